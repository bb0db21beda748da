package cpu

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// A line from a core of another socket costs more, and a lock that passes there more for each thread that spins on the other
// side; cores of one socket pay nothing.
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
	// How long the second of the threads on these cores waits after the first has released the lock.
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
		{"to the other socket", 2, []int{0, 2}, 1000 * ns},
		{"while another spins there", 2, []int{0, 1, 2}, 500 * ns},
		{"to the other, where two spin", 2, []int{0, 2, 3}, 1500 * ns},
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
