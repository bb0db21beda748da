//go:build linux && amd64

package pci

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pace"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// host is a simulation with a device of its own, which its goroutine runs.
type host struct {
	mu    sync.Mutex
	eng   *sim.Engine
	clock *pace.Clock
	quit  chan struct{}
	done  chan struct{}
}

func (h *host) enter() (leave func()) {
	h.mu.Lock()
	return h.mu.Unlock
}

func (h *host) run() {
	defer close(h.done)
	for {
		select {
		case <-h.quit:
			return
		default:
		}
		h.mu.Lock()
		h.clock.CatchUp()
		worked := h.clock.Advance(16, false)
		h.mu.Unlock()
		if !worked {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// TestGuestsOfAHost joins two functions for guests to a device of the host by a switch: the guests
// reach each other, and the host goes on when they are gone.
func TestGuestsOfAHost(t *testing.T) {
	cfg := config(t, 2, "connectx-5")
	log := new(said)
	cfg.Logf = log.logf
	h := &host{eng: sim.New(sim.Options{Seed: 1}), quit: make(chan struct{}), done: make(chan struct{})}
	p := cfg.Profile.Resolved()
	own := hca.New(h.eng, "mlx5_0", pcie.NewLink(h.eng, mem.New(1<<20), p.PCIe), p.HCA, network.Identity(0))
	s, err := NewGuests(h.eng, cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	n := network.New(h.eng, p, append([]*hca.Device{own}, s.Devices()...))
	h.clock = pace.New(h.eng, false)
	go h.run()
	if err := s.Serve(Host{Clock: h.clock, Network: n, Enter: h.enter}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var a, b *guestQP
		for k, q := range []**guestQP{&a, &b} {
			g := dial(t, s.Sockets()[k])
			g.bringUp()
			g.setGID(k + 1)
			*q = g.newQP()
		}
		a.connect(2, b.n)
		b.connect(1, a.n)
		ra, rb := a.g.newMR(8192), b.g.newMR(8192)
		fill(a.g.at(ra.pa, 8192), 1)
		b.recv(rb, 0, 8192)
		a.post(prm.WQEOpSend, ra, 0, 8192, 0, 0)
		if e := a.cq.wait(); e.Opcode() != prm.CQEReq {
			t.Fatalf("send: %x", []byte(e))
		}
		if e := b.cq.wait(); e.Opcode() != prm.CQERespSend || !bytes.Equal(b.g.at(rb.pa, 8192), a.g.at(ra.pa, 8192)) {
			t.Fatalf("receive: %x", []byte(e))
		}
		a.g.kill()
		b.g.kill()
	}
	closed(t, s)
	close(h.quit)
	<-h.done
	if !log.has("mlx5_1: 2 lives") || !log.has("mlx5_2: 2 lives") {
		t.Errorf("%q", log.lines)
	}
	if err := h.clock.Err(); err != nil {
		t.Error(err)
	}
}

// What cannot be offered is the caller's mistake, and names the flag.
func TestGuestsRefused(t *testing.T) {
	for _, change := range []func(cfg *Config){
		func(cfg *Config) { cfg.Functions = 0 },
		func(cfg *Config) { cfg.Socket = "" },
		func(cfg *Config) { cfg.BlueFlame = time.Hour },
	} {
		cfg := config(t, 1, "connectx-5")
		change(cfg)
		var usage *UsageError
		if _, err := NewGuests(sim.New(sim.Options{}), cfg, 1); !errors.As(err, &usage) {
			t.Errorf("%v", err)
		}
	}
}
