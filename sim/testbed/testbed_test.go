package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
	"github.com/rdmasim/rdmasim/verbs/record"
)

// A mixed load of several threads, recorded: everything that comes out must be the
// same bytes for the same seed, whether programs run ahead or not.
func mixedRun(t *testing.T, change ...func(*Config)) (counters, pcap, calls string) {
	var capture bytes.Buffer
	c := config(t, append(change, func(c *Config) { c.Pcap = &capture; c.Seed = 42 })...)
	var rec *record.Testbed
	b := run(t, c, func(x *rig) {
		rec = record.New(x.bed)
		x.t = rec.Thread(x.t)
		var threads []verbs.Thread
		ctx := x.open(x.t)
		p, err := rec.Hosts()[1].NewProcess(x.t, nil)
		x.ok("process", err)
		for i := range 6 {
			a := &node{ctx: ctx}
			x.fill(x.t, a, 8192)
			var peer *node
			x.t.Join(p.Start(x.t, fmt.Sprint("peer", i), -1, func(t verbs.Thread) {
				peer = x.node(t, 8192)
				x.connect(t, peer.qp, peer.gid, a.gid, a.qp.QPN(), verbs.MTU1024)
			}))
			x.connect(x.t, a.qp, a.gid, peer.gid, peer.qp.QPN(), verbs.MTU1024)
			threads = append(threads, x.t.Process().Start(x.t, fmt.Sprint("worker", i), -1, func(t verbs.Thread) {
				y := &rig{TB: x.TB, bed: x.bed, t: t}
				for k := range 30 {
					op := []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead}[k%2]
					y.post(a, verbs.SendWR{ID: uint64(k), Opcode: op, Flags: verbs.SendSignaled,
						SGEs: a.sge(0, 2+97*k*(i+1)%3000), RemoteAddr: peer.buf.Addr(), RKey: peer.mr.RKey()})
					if k%3 == 2 {
						for range 3 {
							y.wait(t, a)
						}
					}
				}
			}))
		}
		for _, th := range threads {
			x.t.Join(th)
		}
	})
	var s strings.Builder
	for _, c := range b.Counters() {
		fmt.Fprintln(&s, c.Unit, c.Name, c.Value)
	}
	fmt.Fprintf(&s, "now %v\n", b.Engine().Now())
	return s.String(), capture.String(), rec.Text()
}

func TestDeterminism(t *testing.T) {
	counters, pcap, calls := mixedRun(t)
	if len(pcap) < 10000 || !strings.Contains(calls, "poll_cq") {
		t.Fatalf("the run did too little: capture of %d bytes, calls\n%s", len(pcap), calls)
	}
	for name, change := range map[string]func(*Config){"same again": func(*Config) {}, "lockstep": lockstep} {
		c2, p2, l2 := mixedRun(t, change)
		if c2 != counters {
			t.Errorf("%s: counters differ:\n%s", name, firstDifference(counters, c2))
		}
		if p2 != pcap {
			t.Errorf("%s: captures differ", name)
		}
		if l2 != calls {
			t.Errorf("%s: recordings differ:\n%s", name, firstDifference(calls, l2))
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n  %s\n  %s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// What is watched is not changed by watching.
func TestTapChangesNothing(t *testing.T) {
	end := func(c Config) sim.Time {
		b := run(t, c, func(x *rig) {
			a, b, _ := x.pair(false, 8192)
			for range 50 {
				x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 2000),
					RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
				x.wait(x.t, a)
			}
		})
		return b.Engine().Now()
	}
	plain := config(t, func(c *Config) { c.NoTap = true })
	var out bytes.Buffer
	tapped := config(t, func(c *Config) { c.Pcap = &out })
	if a, b := end(plain), end(tapped); a != b {
		t.Errorf("the run ends at %v, with taps at %v", a, b)
	}
	if out.Len() == 0 {
		t.Error("nothing was captured")
	}
}

// A post from the thread that owns the objects but with another thread's value fails.
func TestWrongThread(t *testing.T) {
	b, err := New(config(t))
	if err != nil {
		t.Fatal(err)
	}
	err = func() (err error) {
		defer func() {
			if p, ok := recover().(*sim.ProgramPanic); ok {
				err = p
			}
		}()
		return b.Run(0, func(t verbs.Thread) {
			other := t.Process().Start(t, "other", -1, func(verbs.Thread) {})
			_, _ = t.Process().Devices(other)
		})
	}()
	if !errors.Is(err, provider.ErrWrongThread) {
		t.Errorf("run: %v, want ErrWrongThread", err)
	}
	_ = b.Close()
}

func TestDeadlineAndDeadlock(t *testing.T) {
	for _, c := range []struct {
		body func(verbs.Thread)
		want func(error) bool
	}{
		{func(t verbs.Thread) {
			for {
				t.Sleep(time.Millisecond)
			}
		}, func(err error) bool { return errors.Is(err, ErrDeadline) }},
		{func(t verbs.Thread) {
			ctx := mustOpen(t)
			ch, _ := ctx.CreateCompChannel(t)
			_, _ = ch.Event(t, time.Duration(1<<62))
		}, func(err error) bool {
			var d *sim.Deadlock
			return errors.As(err, &d) || errors.Is(err, ErrDeadline)
		}},
	} {
		b, err := New(config(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Run(time.Second, c.body); !c.want(err) {
			t.Errorf("run: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func mustOpen(t verbs.Thread) verbs.Context {
	devs, err := t.Process().Devices(t)
	if err != nil {
		panic(err)
	}
	ctx, err := devs[0].Open(t)
	if err != nil {
		panic(err)
	}
	return ctx
}

// A killed process gives everything back.
func TestKill(t *testing.T) {
	run(t, config(t), func(x *rig) {
		x.node(x.t, 4096) // the driver makes what it keeps for itself
		before := x.bed.hosts[0].devices[0].kern.Resources()
		used := x.bed.hosts[0].mem.Used()
		p, err := x.bed.Hosts()[0].NewProcess(x.t, nil)
		x.ok("process", err)
		ready := false
		p.Start(x.t, "victim", -1, func(t verbs.Thread) {
			n := x.node(t, 1<<20)
			ready = true
			var wc [1]verbs.WC
			_, _ = n.cq.PollWait(t, wc[:], time.Hour)
			x.Errorf("the victim went on")
		})
		for !ready {
			x.t.Sleep(time.Millisecond)
		}
		if x.bed.hosts[0].devices[0].kern.Resources() == before {
			x.Errorf("the victim made nothing")
		}
		p.Kill(x.t)
		if after := x.bed.hosts[0].devices[0].kern.Resources(); after != before {
			x.Errorf("resources after the kill %+v, before %+v", after, before)
		}
		if now := x.bed.hosts[0].mem.Used(); now != used {
			x.Errorf("%d bytes used after the kill, %d before", now, used)
		}
	})
}

func TestPlayers(t *testing.T) {
	run(t, config(t), func(x *rig) {
		var ps [2]verbs.Player
		var qpn, gid, buf [2]verbs.PlayerReply
		do := func(i int, op string, data []byte, kv ...any) verbs.PlayerReply {
			x.Helper()
			args := map[string]uint64{}
			for k := 0; k < len(kv); k += 2 {
				args[kv[k].(string)] = uint64(kv[k+1].(int))
			}
			r, err := ps[i].Do(x.t, verbs.PlayerCommand{Op: op, Args: args, Data: data})
			x.ok(op, err)
			if r.Errno != 0 {
				x.Fatalf("%s: %s", op, r.Text)
			}
			return r
		}
		for i := range ps {
			var err error
			ps[i], err = x.bed.Player(x.t, i, nil)
			x.ok("player", err)
			gid[i] = do(i, player.Open, nil)
			buf[i] = do(i, player.RegBuffer, nil, "len", 4096, "access", int(everything))
			qpn[i] = do(i, player.CreateQP, nil)
		}
		for i := range ps {
			do(i, player.Connect, gid[1-i].Data, "qp", 1, "dest_qpn", int(qpn[1-i].Values["qpn"]), "timeout", 14, "retry", 7, "rnr", 7, "rd", 1, "dest_rd", 1)
		}
		do(0, player.WriteBuffer, []byte("hello"), "buf", 1, "off", 0)
		do(0, player.PostSend, nil, "qp", 1, "id", 4, "opcode", int(verbs.WRRDMAWrite), "flags", int(verbs.SendSignaled), "buf", 1, "len", 5,
			"remote", int(buf[1].Values["addr"]), "rkey", int(buf[1].Values["rkey"]))
		if r := do(0, player.Wait, nil, "n", 1, "timeout", int(time.Second)); r.Values["n"] != 1 || r.Values["status0"] != 0 || r.Values["id0"] != 4 {
			x.Errorf("completion %v", r.Values)
		}
		if r := do(1, player.ReadBuffer, nil, "buf", 1, "len", 5); string(r.Data) != "hello" {
			x.Errorf("read %q", r.Data)
		}
		ps[1].Kill(x.t)
		if _, err := ps[1].Do(x.t, verbs.PlayerCommand{Op: player.Close}); !errors.Is(err, verbs.ErrProcessDied) {
			x.Errorf("command to a dead process: %v", err)
		}
	})
}

// Two threads inside a queue pair of a thread domain end their process, and the
// text says why.
func TestThreadDomainViolation(t *testing.T) {
	run(t, config(t), func(x *rig) {
		p, err := x.bed.Player(x.t, 0, nil)
		x.ok("player", err)
		do := func(c verbs.PlayerCommand) (verbs.PlayerReply, error) { return p.Do(x.t, c) }
		g, err := do(verbs.PlayerCommand{Op: player.Open})
		x.ok("open", err)
		q, err := do(verbs.PlayerCommand{Op: player.AllocTDQP})
		x.ok("qp", err)
		b, err := do(verbs.PlayerCommand{Op: player.RegBuffer, Args: map[string]uint64{"len": 4096, "access": 1}})
		x.ok("buffer", err)
		r, err := do(verbs.PlayerCommand{Op: player.Connect, Data: g.Data, Args: map[string]uint64{"qp": 1, "dest_qpn": q.Values["qpn"]}})
		x.ok("connect", err)
		if r.Errno != 0 || b.Errno != 0 {
			x.Fatalf("%s %s", r.Text, b.Text)
		}
		r, err = do(verbs.PlayerCommand{Op: player.Race, Args: map[string]uint64{"qp": 1, "threads": 2, "count": 20, "buf": 1, "len": 8}})
		if !errors.Is(err, verbs.ErrProcessDied) || !strings.Contains(r.Text, "multithreading violation") {
			x.Errorf("race: %v, %q", err, r.Text)
		}
	})
}

// The doorbell record is stored before the register is written; a small request goes
// by BlueFlame to alternate halves, a list by one doorbell.
func TestRegisterLog(t *testing.T) {
	run(t, config(t), func(x *rig) {
		a, b, _ := x.pair(false, 4096)
		w := verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled | verbs.SendInline, SGEs: a.sge(0, 8), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()}
		reg := a.qp.(verbs.Mlx5QP).BFReg()
		var got []string
		for i := range 3 {
			x.bed.Log().Start()
			wrs := []verbs.SendWR{w, w}[:1+i/2]
			_, err := a.qp.PostSend(x.t, wrs)
			x.ok("post", err)
			for range wrs {
				x.wait(x.t, a)
			}
			for _, m := range x.bed.Log().Stop() {
				switch m.Kind {
				case verbs.MMIODoorbellRecord:
					got = append(got, fmt.Sprintf("record %d", m.Index))
				default:
					got = append(got, fmt.Sprintf("kind %d len %d at +%#x index %d mine %v", m.Kind, m.Len, m.Offset-reg.Offset, m.Index,
						m.QPN == a.qp.QPN() && m.UARPage == reg.UARPage))
				}
			}
		}
		want := []string{"record 1", "kind 2 len 64 at +0x0 index 0 mine true", "record 2", "kind 2 len 64 at +0x100 index 1 mine true",
			"record 4", "kind 1 len 8 at +0x0 index 3 mine true"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			x.Errorf("registers saw\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A torn push and swapped doorbells change nothing that a program can see.
func TestRegisterFaults(t *testing.T) {
	run(t, config(t), func(x *rig) {
		a, b, _ := x.pair(false, 4096)
		f := x.bed.Faults()
		for i := range 8 {
			if i%2 == 0 {
				x.ok("tear", f.TearBlueFlame(x.t, 1, 8+8*(i/2)))
			} else {
				x.ok("swap", f.SwapDoorbells(x.t, 1))
			}
			for k := range 2 {
				x.write(x.t, a.buf, []byte{byte(i), byte(k)}, 0)
				x.post(a, verbs.SendWR{ID: uint64(k), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled | verbs.SendInline, SGEs: a.sge(0, 2),
					RemoteAddr: b.buf.Addr() + uint64(4*i+2*k), RKey: b.mr.RKey()})
			}
			for k := range 2 {
				if wc := x.wait(x.t, a); int(wc.ID) != k {
					x.Errorf("round %d: completion of %d, want %d", i, wc.ID, k)
				}
			}
		}
		for i := range 8 {
			if got := x.read(x.t, b.buf, 4*i, 4); !bytes.Equal(got, []byte{byte(i), 0, byte(i), 1}) {
				x.Errorf("round %d wrote %v", i, got)
			}
		}
	})
}

// A steady stream allocates nothing.
func TestNoAllocations(t *testing.T) {
	for i, size := range []int{2, 4096, 2, 4096} {
		c := config(t)
		if i >= 2 {
			c = config(t, infiniBand)
		}
		run(t, c, func(x *rig) {
			a, b, _ := x.pair(true, 8192)
			w := []verbs.SendWR{{Opcode: verbs.WRRDMAWrite, SGEs: a.sge(0, size), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()}}
			var wc [16]verbs.WC
			stream := func(n int) {
				for i := range n {
					w[0].Flags = 0
					if size <= 28 {
						w[0].Flags = verbs.SendInline
					}
					if i%16 == 15 {
						w[0].Flags |= verbs.SendSignaled
					}
					if _, err := a.qp.PostSend(x.t, w); err != nil {
						x.Fatal(err)
					}
					if i%16 == 15 {
						if k, err := a.cq.PollWait(x.t, wc[:], time.Second); k == 0 || err != nil {
							x.Fatalf("poll: %d, %v", k, err)
						}
					}
				}
			}
			stream(4096)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			stream(8192)
			runtime.ReadMemStats(&after)
			// The runtime's own bookkeeping may allocate a little.
			if n := after.Mallocs - before.Mallocs; n > 64 {
				x.Errorf("%d allocations for 8192 messages of %d bytes", n, size)
			}
		})
	}
}

// What is impossible is refused.
func TestConfig(t *testing.T) {
	for name, c := range map[string]Config{
		"no profile": {}, "no hosts": config(t, func(c *Config) { c.Hosts = nil }),
		"no cores":  config(t, func(c *Config) { c.Hosts[0].Cores = 0 }),
		"bad units": config(t, func(c *Config) { c.Profile.CPU.CacheLine = 3 }),
		"no time":   config(t, func(c *Config) { c.OutOfBand = 0 }),
	} {
		if _, err := New(c); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v, want EINVAL", name, err)
		}
	}
}

// The registry tells what every layer did with a few writes.
func TestCounters(t *testing.T) {
	b := run(t, config(t), func(x *rig) {
		a, peer, _ := x.pair(true, 4096)
		for i := range 10 {
			flags := verbs.SendSignaled
			if i < 6 {
				flags |= verbs.SendInline
			}
			x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: flags, SGEs: a.sge(0, 16), RemoteAddr: peer.buf.Addr(), RKey: peer.mr.RKey()})
			x.wait(x.t, a)
		}
	})
	got := map[string]uint64{}
	for _, c := range b.Counters() {
		got[c.Unit+" "+c.Name] = c.Value
	}
	for name, want := range map[string]uint64{
		"host0/p1 post_send_calls": 10, "host0/p1 post_send_wrs": 10, "host0/p1 blueflame": 10, "host0/p1 doorbells": 0, "host0/p1 cqes": 10,
		"host0/mlx5_0/hca wqes": 11, "host0/mlx5_0/hca cqes": 11, // one registers memory
		"host0/mlx5_0/hca wqes_pushed": 10, "host0/mlx5_0/port tx_packets_phy": 10,
		"host1/mlx5_0/port rx_packets_phy": 10, "host1/mlx5_0/port tx_packets_phy": 10,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %d (there: %v), want %d", name, v, ok, want)
		}
	}
	if got["host0/core 0 busy_ps"] == 0 || got["host0/mlx5_0/pcie mmio_bytes"] == 0 {
		t.Errorf("nothing was counted on core or bus")
	}
}

// A timeline shows the library's calls, and recording one changes nothing.
func TestTimeline(t *testing.T) {
	var end [2]sim.Time
	for i := range end {
		b := run(t, config(t, func(c *Config) { c.Trace = i == 1 }), func(x *rig) {
			a, peer, _ := x.pair(true, 4096)
			for range 5 {
				x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 16), RemoteAddr: peer.buf.Addr(), RKey: peer.mr.RKey()})
				x.wait(x.t, a)
			}
		})
		end[i] = b.Engine().Now()
		if i == 0 {
			continue
		}
		var out bytes.Buffer
		if err := b.Engine().Spans.WriteJSON(&out); err != nil {
			t.Error(err)
		}
		for _, want := range []string{`"name":"post_send"`, `"name":"poll_cq"`, `"p1/main"`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %s in the timeline", want)
			}
		}
	}
	if end[0] != end[1] {
		t.Errorf("ends at %v, with a timeline at %v", end[0], end[1])
	}
}
