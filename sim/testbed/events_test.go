package testbed

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// script is a change of the usual testbed: a file of faults.
func script(tb testing.TB, text string) func(*Config) {
	tb.Helper()
	p, err := fault.Parse("f.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return func(c *Config) { c.Faults = p }
}

// errno holds when err is of the given errno, 0 for none.
func (x *rig) errno(what string, err error, want syscall.Errno) {
	x.Helper()
	if got := verbs.ErrnoOf(err); got != want {
		x.Errorf("%s: %v, want errno %v", what, err, want)
	}
}

// next is the next completion.
func (x *rig) next(n *node) verbs.WC {
	x.Helper()
	var wc [1]verbs.WC
	k, err := n.cq.PollWait(x.t, wc[:], 10*time.Second)
	x.ok("poll", err)
	if k != 1 {
		x.Fatal("no completion")
	}
	return wc[0]
}

// resources of the first device of a host.
func (tb *Testbed) resources(host int) kernel.Resources {
	return tb.hosts[host].devices[0].kern.Resources()
}

// A device goes while a program uses it: the event, the errnos, what still works, and what
// the other end sees.
func TestDeviceRemoved(t *testing.T) {
	for name, change := range map[string][]func(*Config){"dynamic": nil, "static": {static}, "InfiniBand": {infiniBand}, "lockstep": {lockstep}} {
		t.Run(name, func(t *testing.T) {
			b := run(t, config(t, append(change, script(t, "events: [{at: 30ms, do: remove, device: host1/mlx5_0}]"))...), removed)
			if r := b.resources(1); r != (kernel.Resources{}) {
				t.Errorf("left behind: %+v", r)
			}
			if d := b.EventsDone(); len(d) != 1 || d[0] != "done at 30ms" {
				t.Errorf("%q", d)
			}
		})
	}
}

func removed(x *rig) {
	a, b, do := x.pair(true, 4096)
	do(func(t verbs.Thread) {
		y := &rig{TB: x.TB, bed: x.bed, t: t}
		ch, err := b.ctx.CreateCompChannel(t)
		x.ok("channel", err)
		cq, err := b.ctx.CreateCQ(t, verbs.CQAttr{CQE: 4, Channel: ch})
		x.ok("cq", err)
		before, err := b.ctx.RawClock(t)
		x.ok("clock", err)
		ev, err := b.ctx.AsyncEvent(t, time.Second)
		y.errno("event", err, 0)
		if ev.Type != verbs.EventDeviceFatal || before == 0 {
			x.Errorf("event %v, clock at first %d", ev.Type, before)
		}
		_, err = b.ctx.AsyncEvent(t, time.Millisecond)
		y.errno("another event", err, syscall.EAGAIN)
		_, err = ch.Event(t, time.Second)
		y.errno("completion event", err, syscall.EIO)
		_, err = b.ctx.QueryDevice(t)
		y.errno("query_device", err, syscall.EIO)
		_, err = b.ctx.QueryPort(t, 1)
		y.errno("query_port", err, syscall.EIO)
		_, err = b.ctx.QueryGIDEx(t, 1, 0, 0)
		y.errno("query_gid_ex", err, syscall.EIO)
		_, err = b.ctx.AllocPD(t)
		y.errno("alloc_pd", err, syscall.EIO)
		_, err = b.pd.RegMR(t, b.buf.Addr(), 64, everything)
		y.errno("reg_mr", err, syscall.EIO)
		y.errno("modify_qp", b.qp.Modify(t, &verbs.QPAttr{State: verbs.QPSErr}, verbs.QPMaskState), syscall.EIO)
		after, err := b.ctx.RawClock(t)
		if y.errno("clock", err, 0); after != 0 {
			x.Errorf("the clock of a removed device reads %d, not a page of zeros", after)
		}
		// Posts go into the ring and to a page of zeros.
		y.post(b, verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: b.sge(0, 8), RemoteAddr: a.buf.Addr(), RKey: a.mr.RKey()})
		var wc [1]verbs.WC
		if n, err := b.cq.PollWait(t, wc[:], 100*time.Millisecond); n != 0 || err != nil {
			x.Errorf("%d completions, %v, of a device that is gone", n, err)
		}
		for _, d := range []struct {
			what    string
			destroy func(verbs.Thread) error
		}{{"qp", b.qp.Destroy}, {"mr", b.mr.Dereg}, {"cq", cq.Destroy}, {"channel", ch.Destroy}} {
			y.errno("destroy "+d.what, d.destroy(t), 0)
		}
		y.errno("destroy the MR again", b.mr.Dereg(t), syscall.ENOENT)
		devs, err := t.Process().Devices(t)
		if y.errno("devices", err, 0); len(devs) != 0 {
			x.Errorf("%d devices are listed", len(devs))
		}
		_, err = b.ctx.Device().Open(t)
		y.errno("open", err, syscall.ENODEV)
		y.errno("close", b.ctx.Close(t), 0)
	})
	x.post(a, verbs.SendWR{ID: 2, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 8), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
	if wc := x.next(a); wc.Status != verbs.WCRetryExcErr {
		x.Errorf("a write to a device that is gone: %v", wc.Status)
	}
	x.errno("remove again", x.bed.RemoveDevice(x.t, 1, "mlx5_0"), syscall.ENODEV)
	x.errno("remove another", x.bed.RemoveDevice(x.t, 1, "mlx5_7"), syscall.ENODEV)
}

// A killed process leaves nothing on the device, and its peer runs out of retries.
func TestProcessKilled(t *testing.T) {
	b := run(t, config(t, script(t, "events: [{at: 30ms, do: kill, process: host1/p2}, {at: 31ms, do: kill, process: host1/p2}, {at: 31ms, do: kill, process: host1/p9}]")),
		func(x *rig) {
			a, b, _ := x.pair(true, 4096)
			if r := x.bed.resources(1); r.QP != 1 || r.MR != 1 {
				x.Fatalf("%+v", r)
			}
			x.t.Sleep(40 * time.Millisecond)
			x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 8), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
			if wc := x.next(a); wc.Status != verbs.WCRetryExcErr {
				x.Errorf("%v", wc.Status)
			}
		})
	if r := b.resources(1); r != (kernel.Resources{}) {
		t.Errorf("left behind: %+v", r)
	}
	want := []string{"done at 30ms", "host1/p2 has ended before: no such process",
		`no process host1/p9; there are host0/p1, host1/p2: no such process`}
	if d := cmp.Diff(want, b.EventsDone()); d != "" {
		t.Error(d)
	}
}

// The main process can be killed, too; the run says so.
func TestMainProcessKilled(t *testing.T) {
	b, err := New(config(t, script(t, "events: [{at: 1ms, do: kill, process: host0/p1}, {at: 5s, do: kill, process: host0/p1}]")))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	err = b.Run(0, func(t verbs.Thread) { t.Sleep(time.Second) })
	if err == nil || !strings.Contains(err.Error(), "killed") || errors.Is(err, ErrDeadline) {
		t.Errorf("%v", err)
	}
	if d := b.EventsDone(); d[0] != "done at 1ms" || d[1] != "the run has ended before 5s" {
		t.Errorf("%q", d)
	}
}

// Unmapped memory is gone for the program and stays what the device sees; other memory
// in its place is other memory.
func TestMemoryUnmapped(t *testing.T) {
	b := run(t, config(t, script(t, `
events:
  - {at: 30ms, do: unmap, process: host1/p2, region: 1, offset: 4KiB, length: 1B}
  - {at: 60ms, do: remap, process: host1/p2, region: 1}
  - {at: 60ms, do: unmap, process: host1/p2, region: 1, offset: 1MiB}
  - {at: 60ms, do: unmap, process: host1/p2, region: 2}
`)), func(x *rig) {
		a, b, do := x.pair(true, 12288)
		old := bytes.Repeat([]byte{0xa5}, 12288)
		do(func(t verbs.Thread) { x.write(t, b.buf, old, 0) })
		read := func(want byte) {
			x.Helper()
			x.post(a, verbs.SendWR{Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, SGEs: a.sge(0, 12288), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
			x.wait(x.t, a)
			if got := x.read(x.t, a.buf, 0, 12288); !bytes.Equal(got, bytes.Repeat([]byte{want}, 12288)) {
				x.Errorf("the device does not see %#x in the pages that it has pinned", want)
			}
		}
		x.t.Sleep(40 * time.Millisecond)
		do(func(t verbs.Thread) {
			var p [8]byte
			for off, want := range map[int64]syscall.Errno{4088: 0, 4096: syscall.EFAULT, 8188: syscall.EFAULT, 8192: 0} {
				_, err := b.buf.ReadAt(t, p[:], off)
				x.errno("read", err, want)
			}
		})
		read(0xa5)
		x.t.Sleep(40 * time.Millisecond)
		do(func(t verbs.Thread) {
			if got := x.read(t, b.buf, 0, 12288); !bytes.Equal(got, make([]byte, 12288)) {
				x.Error("memory that was mapped anew is not zero")
			}
			x.write(t, b.buf, bytes.Repeat([]byte{7}, 12288), 0)
		})
		read(0xa5)
		do(func(t verbs.Thread) {
			x.ok("dereg", b.mr.Dereg(t))
			x.ok("unmap", b.buf.Unmap(t))
		})
	})
	want := []string{"done at 30ms", "done at 60ms", "region 1 has 12288 bytes: invalid argument", "host1/p2 has no region 2, for it has registered 1: no such file or directory"}
	if d := cmp.Diff(want, b.EventsDone()); d != "" {
		t.Error(d)
	}
}

// Events are as deterministic as all else: the same bytes again, and in lockstep.
func TestEventsAreDeterministic(t *testing.T) {
	text := script(t, `
faults: [{do: drop, direction: requests, per_million: 20000}]
events:
  - {at: 1200us, do: unmap, process: host1/p2, region: 2}
  - {at: 1300us, do: remap, process: host0/p1, region: 1}
  - {at: 1600us, do: remove, device: host1/mlx5_0}
  - {at: 1700us, do: kill, process: host1/p2}
`)
	trace := func(change ...func(*Config)) string {
		var capture bytes.Buffer
		c := config(t, append(change, text, func(c *Config) { c.Pcap = &capture; c.Seed = 9 })...)
		run(t, c, func(x *rig) {
			a, b, _ := x.pair(true, 4096)
			for x.t.Now() < 3*time.Millisecond {
				x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGEs: a.sge(0, 1500), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
				x.t.Sleep(25 * time.Microsecond)
			}
		})
		return capture.String()
	}
	first := trace()
	if len(first) < 10000 {
		t.Fatalf("a capture of %d bytes: the run did too little", len(first))
	}
	if trace() != first || trace(lockstep) != first {
		t.Error("captures differ")
	}
}

// A child has a copy of the memory, pinned pages too, and no part in its parent's.
func TestFork(t *testing.T) {
	run(t, config(t), func(x *rig) {
		p := x.t.Process().(*process)
		n := x.node(x.t, 8192)
		x.write(x.t, n.buf, []byte("parent"), 0)
		used := p.host.mem.Used()
		end, err := p.Fork(x.t, n.buf, 0xcc)
		x.ok("fork", err)
		if got := string(x.read(x.t, n.buf, 0, 6)); got != "parent" {
			x.Errorf("the parent reads %q", got)
		}
		if p.host.mem.Used() == used {
			x.Error("a child takes no memory")
		}
		x.ok("end of the child", end(x.t))
		if p.host.mem.Used() != used {
			x.Errorf("%d bytes are left of the child", p.host.mem.Used()-used)
		}
		x.errno("fork_init", p.ForkInit(x.t), syscall.EINVAL)
	})
	run(t, config(t), func(x *rig) {
		p := x.t.Process().(*process)
		x.errno("fork_init", p.ForkInit(x.t), 0)
		n := x.node(x.t, 64)
		x.errno("fork_init again", p.ForkInit(x.t), 0)
		_, err := p.Fork(x.t, n.buf, 1)
		x.errno("fork of what is kept from children", err, syscall.EOPNOTSUPP)
		if s, _ := p.IsForkInitialized(x.t); s != verbs.ForkUnneeded {
			x.Errorf("%v, of a kernel that copies", s)
		}
	})
	run(t, config(t, static), func(x *rig) {
		p := x.t.Process().(*process)
		x.errno("fork_init", p.ForkInit(x.t), 0)
		if s, _ := p.IsForkInitialized(x.t); s != verbs.ForkEnabled {
			x.Errorf("%v, of a kernel that does not copy", s)
		}
	})
}
