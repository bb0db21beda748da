//go:build linux

package peer

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// bench is a bench at loopback address n.
func bench(t *testing.T, n int) *Bench {
	t.Helper()
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenBench(Config{Place: wire.At(loopback(n)), Profile: p, Say: func(format string, a ...any) { t.Errorf("said: "+format, a...) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil && !errors.Is(err, errEnded) {
			t.Error(err)
		}
	})
	return b
}

// order gives a command that must succeed.
func order(t *testing.T, p verbs.Player, th verbs.Thread, op string, args map[string]uint64, data []byte) verbs.PlayerReply {
	t.Helper()
	r, err := p.Do(th, verbs.PlayerCommand{Op: op, Args: args, Data: data})
	if err != nil || r.Errno != 0 {
		t.Errorf("%s: %v, %s", op, err, r.Text)
	}
	return r
}

// end is a process that has a connected queue pair and a buffer.
type end struct {
	p            verbs.Player
	th           verbs.Thread
	gid          []byte
	qpn          uint64
	addr, rkey   uint64
	buf, qp, psn uint64
}

func begun(t *testing.T, p verbs.Player, th verbs.Thread, psn uint64) *end {
	e := &end{p: p, th: th, psn: psn}
	e.gid = order(t, p, th, player.Open, nil, nil).Data
	b := order(t, p, th, player.RegBuffer, map[string]uint64{"len": 8192, "access": uint64(verbs.AccessLocalWrite | verbs.AccessRemoteWrite)}, nil).Values
	e.buf, e.addr, e.rkey = b["buf"], b["addr"], b["rkey"]
	q := order(t, p, th, player.CreateQP, map[string]uint64{"type": uint64(verbs.QPTRC)}, nil).Values
	e.qp, e.qpn = q["qp"], q["qpn"]
	return e
}

func (e *end) connect(t *testing.T, far *end) {
	order(t, e.p, e.th, player.Connect, map[string]uint64{"qp": e.qp, "dest_qpn": far.qpn, "rq_psn": far.psn, "sq_psn": e.psn, "timeout": 14, "retry": 7, "rnr": 7}, far.gid)
}

// write writes n bytes to the peer's buffer and returns the status.
func (e *end) write(t *testing.T, far *end, n uint64) verbs.WCStatus {
	order(t, e.p, e.th, player.PostSend, map[string]uint64{"qp": e.qp, "id": 1, "opcode": uint64(verbs.WRRDMAWrite), "flags": uint64(verbs.SendSignaled),
		"buf": e.buf, "len": n, "remote": far.addr, "rkey": far.rkey}, nil)
	v := order(t, e.p, e.th, player.Wait, map[string]uint64{"n": 1, "timeout": uint64(20 * time.Second)}, nil).Values
	if v["n"] != 1 {
		t.Error("no completion")
	}
	return verbs.WCStatus(v["status0"])
}

// TestBenches: of two hosts the one's case runs there and the other's process is told what to do
// from outside. Each sees and disturbs what passes, in both directions.
func TestBenches(t *testing.T) {
	near, far := bench(t, 1), bench(t, 2)
	if !near.Has("tap") || near.Has("ipv6") || near.Has("inj.ip") || near.Has("2p") {
		t.Error("what a UDP socket of IPv4 gives is not told")
	}
	other, err := far.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Kill(nil)
	fw, nw := far.FarWire(), near.NearWire()
	err = near.Run(time.Minute, func(th verbs.Thread) {
		own, err := near.PlayerOf(th, nil)
		if err != nil {
			t.Error(err)
			return
		}
		b := begun(t, other, nil, 9000)
		a := begun(t, own, th, 100)
		b.connect(t, a)
		a.connect(t, b)
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		near.Wait(th, func() {
			must(fw.StartTap(nil))
			// The second packet is lost where it arrives, and the first NAK where it leaves.
			must(fw.Inject(nil, verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchPSN, DestQPN: uint32(b.qpn), PSN: 101, Count: 1, Action: verbs.WireDrop}))
		})
		must(nw.StartTap(th))
		must(nw.Inject(th, verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchPSN, DestQPN: uint32(b.qpn), PSN: 103, Count: 1, Action: verbs.WireDuplicate}))
		if st := a.write(t, b, 4096); st != verbs.WCSuccess {
			t.Errorf("write: %v", st)
		}
		seen, err := nw.StopTap(th)
		must(err)
		var there []verbs.WireFrame
		var met []int
		near.Wait(th, func() {
			there, err = fw.StopTap(nil)
			must(err)
			met, err = fw.ClearRules(nil)
			must(err)
		})
		if len(met) != 1 || met[0] != 2 { // the packet and its repetition
			t.Errorf("rules met %v frames", met)
		}
		// What a rule does to a frame comes after its record: there the duplicate is two frames.
		if n := len(there) - len(seen); n != 1 {
			t.Errorf("%d frames here, %d there", len(seen), len(there))
		}
		count := func(frames []verbs.WireFrame, acted verbs.WireAction, response bool) (n int) {
			for _, f := range frames {
				p, err := roce.Parse(f.Data)
				if err != nil || !p.ICRCOK() {
					t.Errorf("a frame of the recording: %v", err)
				} else if f.Acted == acted && (p.Info().Kind == roce.KindResponse) == response {
					n++
				}
			}
			return n
		}
		if count(there, verbs.WireDrop, false) != 1 || count(seen, verbs.WireDuplicate, false) < 1 || count(there, verbs.WirePass, true) == 0 || count(seen, verbs.WirePass, true) == 0 {
			t.Errorf("recordings: %v, %v", seen, there)
		}
		if err := nw.SetLink(th, 0, 1, false); !errors.Is(err, syscall.EOPNOTSUPP) {
			t.Errorf("set a link: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	far.Reset()
	if met, err := fw.ClearRules(nil); err != nil || len(met) != 0 {
		t.Errorf("after a reset there are rules: %v, %v", met, err)
	}
	other.Kill(nil)
	if _, err := other.Do(nil, verbs.PlayerCommand{Op: player.Close}); !errors.Is(err, verbs.ErrProcessDied) {
		t.Errorf("a process that was killed: %v", err)
	}
}

// TestBenchOutlivesCases: a body that hangs, one that panics, one whose process dies, and a command
// that hangs do not end the bench.
func TestBenchOutlivesCases(t *testing.T) {
	b := bench(t, 3)
	waits := func(th verbs.Thread) {
		p, err := b.PlayerOf(th, nil)
		if err != nil {
			t.Error(err)
			return
		}
		order(t, p, th, player.Open, nil, nil)
		th.Sleep(time.Hour)
	}
	if err := b.Run(50*time.Millisecond, waits); !errors.Is(err, ErrDeadline) {
		t.Errorf("a body that hangs: %v", err)
	}
	if err := b.Run(time.Minute, func(th verbs.Thread) { th.Process().Kill(th) }); err == nil || !strings.Contains(err.Error(), "before its body") {
		t.Errorf("a body whose process dies: %v", err)
	}
	func() {
		defer func() {
			if p, _ := recover().(string); !strings.Contains(p, "of the body") {
				t.Errorf("a body that panics: %q", p)
			}
		}()
		_ = b.Run(time.Minute, func(verbs.Thread) { panic("of the body") })
	}()
	p, err := b.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	order(t, p, nil, player.Open, nil, nil)
	hangs := make(chan error)
	go func() {
		_, err := p.Do(nil, verbs.PlayerCommand{Op: player.Wait, Args: map[string]uint64{"n": 1, "timeout": uint64(time.Hour)}})
		hangs <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if _, err := p.Do(nil, verbs.PlayerCommand{Op: player.Close}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("a second command at once: %v", err)
	}
	p.Kill(nil)
	if err := <-hangs; !errors.Is(err, verbs.ErrProcessDied) {
		t.Errorf("a command that hangs when its process is killed: %v", err)
	}
	if err := b.Run(time.Minute, func(verbs.Thread) {}); err != nil {
		t.Errorf("the next body: %v", err)
	}
}
