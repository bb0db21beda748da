//go:build linux && amd64

package pci

import (
	"bytes"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/uar"
	"github.com/rdmasim/rdmasim/uapi"
)

// push stores the first n bytes of a WQE at its register, 8 at a time, as a monitor passes on what
// a processor stores.
func (g *guest) push(reg uint64, wqe []byte, n int) {
	g.t.Helper()
	for i := 0; i < n; i += 8 {
		g.check(g.c.Write(uapi.VFIORegionBAR0, uint64(g.uar)*4096+reg+uint64(i), wqe[i:i+8]))
	}
}

func (s *Server) pushes(k int) uar.Counters {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.m.fns[k].hca.UARTotals()
}

// wqe lays a SEND of n bytes in pieces of 16 into the ring, and returns its blocks.
func (q *guestQP) wqe(r guestMR, n uint32) []byte {
	pieces := int(n / 16)
	b := make([]byte, prm.CtrlSegmentSize+pieces*prm.DataSegmentSize)
	for i := range pieces {
		prm.DataSegment(b[prm.CtrlSegmentSize+i*prm.DataSegmentSize:]).Set(16, r.key, r.pa+uint64(i)*16)
	}
	prm.CtrlSegment(b).Set(prm.WQEOpSend, 0, q.pi, q.n, len(b)/16, prm.CtrlCQUpdate, 0)
	blocks := (len(b) + 63) / 64
	ring := make([]byte, blocks*64)
	copy(ring, b)
	for i := range blocks {
		copy(q.g.at(q.sq+uint64((int(q.pi)+i)%16)*64, 64), ring[i*64:])
	}
	q.pi += uint16(blocks)
	q.records()
	return ring
}

// TestBlueFlame: pushes whose stores arrive one by one are pushes, what stays in pieces is a
// doorbell, and nothing is lost, whatever else is written between.
func TestBlueFlame(t *testing.T) {
	cfg := config(t, 2, "connectx-5")
	cfg.BlueFlame = time.Second // none of the pushes ends by time
	s := start(t, cfg)
	defer closed(t, s)
	a, b := pairOf(t, s)
	if !a.g.bf {
		t.Fatal("the device offers no BlueFlame")
	}
	ra, rb := a.g.newMR(4096), b.g.newMR(4096)
	fill(a.g.at(ra.pa, 4096), 1)
	m := prm.UARMap{LogBFRegSize: 9}
	for _, c := range []struct {
		name      string
		message   uint32
		n         int  // bytes that are stored
		read      bool // afterwards
		want      uar.Counters
		reg, half uint32
	}{
		{name: "a line", message: 48, n: 64, want: uar.Counters{BlueFlame: 1}},
		{name: "two lines, the other half", message: 96, n: 128, half: 1, want: uar.Counters{BlueFlame: 1}},
		{name: "four lines", message: 240, n: 256, reg: 3, want: uar.Counters{BlueFlame: 1}},
		{name: "a doorbell", message: 48, n: 8, want: uar.Counters{Doorbells: 1}},
		{name: "a doorbell and a read", message: 48, n: 8, read: true, want: uar.Counters{Doorbells: 1}},
		{name: "a part of a line", message: 48, n: 40, read: true, want: uar.Counters{Torn: 1}},
		{name: "a line of two", message: 96, n: 64, read: true, want: uar.Counters{Torn: 1}},
	} {
		before := s.pushes(0)
		b.recv(rb, 0, 4096)
		clear(b.g.at(rb.pa, 4096))
		w := a.wqe(ra, c.message)
		reg := uint64(m.BFReg(c.reg, c.half))
		a.g.push(reg, w, c.n)
		if c.read {
			a.g.reg(prm.InitSegHealthCounter)
		}
		a.cq.wait()
		b.cq.wait()
		if !bytes.Equal(b.g.at(rb.pa, int(c.message)), a.g.at(ra.pa, int(c.message))) {
			t.Errorf("%s: the message arrives changed", c.name)
		}
		got := s.pushes(0)
		got.Doorbells -= before.Doorbells
		got.BlueFlame -= before.BlueFlame
		got.Torn -= before.Torn
		got.Dropped -= before.Dropped
		if got.Doorbells != c.want.Doorbells || got.BlueFlame != c.want.BlueFlame || got.Torn != c.want.Torn || got.Dropped != c.want.Dropped {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	a.g.kill()
	b.g.kill()
}

// TestManyPushes begins more pushes than there are buffers, and rings each QP once: none is lost.
func TestManyPushes(t *testing.T) {
	cfg := config(t, 2, "connectx-5")
	cfg.BlueFlame = time.Millisecond
	s := start(t, cfg)
	defer closed(t, s)
	g, peer := dial(t, s.Sockets()[0]), dial(t, s.Sockets()[1])
	defer g.kill()
	defer peer.kill()
	for k, g := range []*guest{g, peer} {
		g.bringUp()
		g.setGID(k)
	}
	if !g.bf {
		t.Fatal("the device offers no BlueFlame")
	}
	var pages []uint32 // with four registers of two halves each
	for range 3 {
		pages = append(pages, prm.AllocUAROut(g.cmd(prm.NewIn(prm.OpAllocUAR, 0))).UAR())
	}
	ra, rb := g.newMR(4096), peer.newMR(4096)
	var from, to []*guestQP
	for i := range 3 * combineLines / 2 {
		g.uar = pages[i/4]
		a, b := g.newQP(), peer.newQP()
		a.connect(1, b.n)
		b.connect(0, a.n)
		b.recv(rb, uint64(i)*64, 64)
		from, to = append(from, a), append(to, b)
	}
	m := prm.UARMap{LogBFRegSize: 9}
	for i, a := range from {
		w := a.wqe(ra, 48)
		g.uar = pages[i/4]
		g.push(uint64(m.BFReg(uint32(i%4), 0)), w, 16)
	}
	for i := range from {
		from[i].cq.wait()
		to[i].cq.wait()
	}
}
