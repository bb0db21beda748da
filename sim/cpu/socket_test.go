package cpu

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// A line from a core of another socket costs more, and a lock that passes there more for each core
// that spins on the other side; cores of one socket pay nothing.
func TestSockets(t *testing.T) {
	for _, lockstep := range []bool{false, true} {
		p := params()
		p.SocketCores, p.LineFar = 2, 500*ns
		r := newRig(sim.Options{Lockstep: lockstep}, p)
		var l Line
		for core, want := range []sim.Time{0, 30 * ns, 530 * ns, 30 * ns} { // cores 0, 1 | 2, 3
			r.thread(core, func(p *sim.Proc, c *Core) {
				p.Advance(sim.Time(core) * 10 * sim.Microsecond)
				at := p.Now()
				if c.Touch(p, &l); p.Now()-at != want {
					t.Errorf("core %d: the line took %v, want %v", core, p.Now()-at, want)
				}
			})
		}
		r.run(t)
	}
}

func TestLockOverSockets(t *testing.T) {
	// How long the second of the threads on these cores waits after the first has released the
	// lock.
	second := func(socket int, cores ...int) sim.Time {
		p := params()
		p.SocketCores, p.LineFar = socket, 500*ns
		r := newRig(sim.Options{}, p)
		var l Spinlock
		var released, got sim.Time
		for i, core := range cores {
			r.thread(core, func(p *sim.Proc, c *Core) {
				p.Advance(sim.Time(i) * ns)
				l.Lock(p, c)
				if i == 1 {
					got = p.Now()
				}
				p.Sleep(sim.Microsecond)
				l.Unlock(p, c)
				if i == 0 {
					released = p.Now()
				}
			})
		}
		r.run(t)
		return got - released
	}
	near := second(0, 0, 1)
	for _, c := range []struct {
		name   string
		socket int
		cores  []int
		far    sim.Time
	}{
		{"one socket", 0, []int{0, 2, 3}, 0},
		{"two threads of one socket", 2, []int{0, 1}, 0},
		{"to the other socket", 2, []int{0, 2}, 500 * ns},
		{"while another spins there", 2, []int{0, 1, 2}, 500 * ns},
		{"to the other, where two spin", 2, []int{0, 2, 3}, 1000 * ns},
		{"to the other, where two threads of a core spin", 2, []int{0, 2, 6}, 500 * ns},
		{"while two threads of a core spin there", 2, []int{0, 1, 2, 6}, 500 * ns},
		{"while two cores and a second thread of one spin there", 2, []int{0, 5, 7, 2, 6}, 1000 * ns},
	} {
		if got := second(c.socket, c.cores...); got != near+c.far {
			t.Errorf("%s: %v, want %v more than %v", c.name, got, c.far, near)
		}
	}
	p := params()
	p.SocketCores = -1
	if p.Validate() == nil {
		t.Error("a socket of -1 cores is accepted")
	}
}

// A lock passes to a thread of the same socket first, so many times while the first in line is of
// the other one.
func TestLockPrefersItsSocket(t *testing.T) {
	order := func(near int, cores ...int) (got []int) {
		p := params()
		p.SocketCores, p.LineFar, p.LockNear = 5, 500*ns, near
		r := newRig(sim.Options{}, p)
		var l Spinlock
		for i, core := range cores {
			r.thread(core, func(p *sim.Proc, c *Core) {
				p.Advance(sim.Time(i) * ns)
				l.Lock(p, c)
				got = append(got, core)
				p.Sleep(sim.Microsecond)
				l.Unlock(p, c)
			})
		}
		r.run(t)
		return got
	}
	for _, c := range []struct {
		near        int
		cores, want []int
	}{
		{0, []int{0, 5, 1, 6, 2, 3, 4}, []int{0, 5, 1, 6, 2, 3, 4}},
		{1, []int{0, 5, 1, 6, 2, 3, 4}, []int{0, 1, 5, 6, 2, 3, 4}},
		{2, []int{0, 5, 1, 6, 2, 3, 4}, []int{0, 1, 2, 5, 6, 3, 4}},
		{9, []int{0, 5, 1, 6, 2, 3, 4}, []int{0, 1, 2, 3, 4, 5, 6}},
		{9, []int{5, 0, 6, 1}, []int{5, 6, 0, 1}},
	} {
		if got := order(c.near, c.cores...); !slices.Equal(got, c.want) {
			t.Errorf("near %d, threads on %v: they get the lock in the order %v, want %v", c.near, c.cores, got, c.want)
		}
	}
	p := params()
	p.LockNear = -1
	if p.Validate() == nil {
		t.Error("a lock that stays -1 times is accepted")
	}
}

// What a core of the second socket pays more for a write to a device, and to read what a device
// wrote.
func TestDevicesOfTheFirstSocket(t *testing.T) {
	for core, far := range []sim.Time{0, 1, 0} { // cores 0 | 1 | 2: one a socket, round and round
		p := params()
		p.SocketCores, p.MMIOFar, p.DMAFar = 1, 200*ns, 70*ns
		plain := params()
		for _, b := range []int{8, 64} {
			for _, kind := range []MapKind{Uncached, WriteCombining} {
				took := func(p Params) (store, touch sim.Time) {
					r := newRig(sim.Options{}, p)
					var l Line
					l.DeviceWrote()
					r.thread(core, func(p *sim.Proc, c *Core) {
						at := p.Now()
						c.Touch(p, &l)
						touch = p.Now() - at
						at = p.Now()
						c.Store(p, &Mapping{Dev: r.l, Off: 0, Kind: kind}, 0, make([]byte, b))
						c.Fence(p)
						store = p.Now() - at
					})
					r.run(t)
					return store, touch
				}
				store, touch := took(p)
				store0, touch0 := took(plain)
				writes := sim.Time(1)
				if kind == Uncached {
					writes = sim.Time(b / 8)
				}
				if store-store0 != far*writes*200*ns || touch-touch0 != far*70*ns {
					t.Errorf("core %d, %d bytes, mapping %d: a store takes %v more and a line %v", core, b, kind, store-store0, touch-touch0)
				}
			}
		}
	}
}

// What a lock costs that passes between sockets depends on who spins then, and not on how far ahead
// of the others its holder ran.
func TestLockOverSocketsInLockstep(t *testing.T) {
	times := func(lockstep bool) (all [6]sim.Time) {
		p := params()
		p.SocketCores, p.LineFar, p.LockNear = 2, 500*ns, 2
		r := newRig(sim.Options{Lockstep: lockstep}, p)
		var l Spinlock
		for core := range all {
			r.thread(core, func(p *sim.Proc, c *Core) {
				for i := range 50 {
					c.Run(p, sim.Time(100+37*core+13*(i%7))*ns)
					l.Lock(p, c)
					c.Run(p, 900*ns)
					l.Unlock(p, c)
					c.Run(p, 300*ns)
				}
				all[core] = p.Now()
			})
		}
		r.run(t)
		return all
	}
	if ahead, lockstep := times(false), times(true); ahead != lockstep {
		t.Errorf("threads end at %v, and in lockstep at %v", ahead, lockstep)
	}
}
