//go:build linux && amd64

package pci

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

func tester(t *testing.T, s *Server, devices ...int) *remotewire.Client {
	t.Helper()
	c, err := net.Dial("unix", s.cfg.Tester)
	if err != nil {
		t.Fatal(err)
	}
	var guids []uint64
	for _, k := range devices {
		guids = append(guids, network.Identity(k).GUID)
	}
	w, err := remotewire.New(c, guids)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWireSocket: a tester sees and disturbs what guests send, beside a plan of faults that stays,
// and the next one begins anew.
func TestWireSocket(t *testing.T) {
	cfg := config(t, 2, "connectx-5")
	cfg.Tester = filepath.Join(t.TempDir(), "w")
	log := new(said)
	cfg.Logf = log.logf
	var err error
	if cfg.Faults, err = fault.Parse("f.yaml", []byte("faults:\n- {opcode: 10, count: 1, do: drop}\n")); err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg)
	a, b := pairOf(t, s)
	ra, rb := a.g.newMR(64<<10), b.g.newMR(64<<10)
	write := func() { // one packet, and its acknowledgement
		a.post(prm.WQEOpRDMAWrite, ra, 0, 100, rb.pa, rb.key)
		if e := a.cq.wait(); e.Opcode() != prm.CQEReq {
			t.Fatalf("write: %x", []byte(e))
		}
	}
	w := tester(t, s, 0, 1)
	if err := errors.Join(w.StartTap(nil), w.Inject(nil, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: a.n, Action: verbs.WireDuplicate, Skip: 1})); err != nil {
		t.Fatal(err)
	}
	write() // the plan drops it once
	write()
	frames, err := w.StopTap(nil)
	var acted []verbs.WireAction
	last := time.Duration(-1)
	for _, f := range frames {
		p, perr := roce.Parse(f.Data)
		if perr != nil || !p.ICRCOK() || f.At < last {
			t.Errorf("frame %x at %v: %v", f.Data, f.At, perr)
		}
		last = f.At
		if p.BTH().DestQP() == b.n {
			acted = append(acted, f.Acted)
		}
	}
	if err != nil || len(acted) < 3 || acted[0] != verbs.WireDrop {
		t.Errorf("%v; of the requests, the wire did %v", err, acted)
	}
	if met, err := w.ClearRules(nil); err != nil || len(met) != 1 || met[0] == 0 {
		t.Errorf("rules %v, %v", met, err)
	}
	if err := w.SetLink(nil, 0, 1, false); err != nil {
		t.Fatal(err)
	}
	// A second tester is sent away, and the first goes on.
	c, err := net.Dial("unix", cfg.Tester)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remotewire.New(c, nil); err == nil {
		t.Error("two testers at once")
	}
	if err := w.ConfigureSubnet(nil, verbs.SubnetConfig{FirstLID: 5}); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("a subnet manager on Ethernet: %v", err)
	}
	if err := errors.Join(w.Inject(nil, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: a.n, Action: verbs.WireDrop}), w.Close()); err != nil {
		t.Fatal(err)
	}
	w = tester(t, s, 1, 0) // what the one before has changed is undone
	write()
	if err := errors.Join(w.StartTap(nil), w.Close()); err != nil {
		t.Error(err)
	}
	write()
	a.g.kill()
	b.g.kill()
	closed(t, s)
	if !log.has("rule 1 of the faults has acted upon 1 frame ") || log.has("rule 2") {
		t.Errorf("%q", log.lines)
	}
}

// TestLateFrame: software may say that a packet is sent before it is.
func TestLateFrame(t *testing.T) {
	s := start(t, config(t, 2, "connectx-5"))
	a, b := pairOf(t, s)
	ra, rb := a.g.newMR(64), b.g.newMR(64)
	w := s.m.remote()
	w.Quiet = 300 * time.Millisecond
	for n := 0; n < 2; w.Quiet *= 3 { // a busy machine may take longer from one step to the next
		if w.Quiet > hangs {
			t.Fatalf("%d frames of a request and its acknowledgement within %v", n, w.Quiet/3)
		}
		if err := w.StartTap(); err != nil {
			t.Fatal(err)
		}
		recorded := make(chan int)
		go func() {
			frames, _ := w.StopTap()
			recorded <- len(frames)
		}()
		time.Sleep(10 * time.Millisecond)
		a.post(prm.WQEOpRDMAWrite, ra, 0, 8, rb.pa, rb.key)
		n = <-recorded
	}
	a.g.kill()
	b.g.kill()
	closed(t, s)
}

// TestWireOptions: QEMU has the port with the options that are printed.
func TestWireOptions(t *testing.T) {
	cfg := config(t, 1, "connectx-5-ib")
	cfg.Tester = filepath.Join(t.TempDir(), "w,x'y")
	s := start(t, cfg)
	all := strings.Join(s.QEMUOptions(), "\n")
	for _, want := range []string{"-device virtserialport,chardev=wire,name=rdmasim.wire", `w,,x'\''y'`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	closed(t, s)
}
