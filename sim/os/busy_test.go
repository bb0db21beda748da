package os

import (
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// A CPU is never busy for longer than time passes, wherever one looks between two events.
func TestNoCPUIsBusyForLongerThanTimePasses(t *testing.T) {
	for _, cpus := range []int{1, 3} {
		e, m := machine(t, Config{Params: params(), CPUs: cpus})
		l := m.NewSpinLock()
		for i := range 4 {
			set, err := m.CPUSet(i%cpus, 1)
			if err != nil {
				t.Fatal(err)
			}
			th := m.NewThread(fmt.Sprint("t", i), set, i%cpus, func(t *Thread) {
				for range 40 {
					t.Run(sim.Time(3+2*i) * us)
					l.Lock(&t.Context)
					t.Run(2 * us)
					l.Unlock(&t.Context)
					t.Run(sim.Time(100*i) * ns)
				}
			})
			th.Start()
			e.After(sim.Time(70+30*i)*us, func(uint64) { m.CPU(i % cpus).Interrupt(func(x *Context) { x.Run(900 * ns) }) }, 0)
		}
		const step = 1370 * ns
		before := make([]sim.Time, cpus)
		total := sim.Time(0)
		for at := step; at < 3*sim.Millisecond; at += step {
			if err := e.Run(at); err != nil {
				t.Fatal(err)
			}
			for i := range cpus {
				busy := m.CPU(i).BusyNow()
				if d := busy - before[i]; d < 0 || d > step {
					t.Errorf("%d CPUs, %v: CPU %d was busy for %v of %v", cpus, at, i, d, step)
				}
				total += busy - before[i]
				before[i] = busy
			}
		}
		sum := sim.Time(0)
		for i := range cpus {
			for _, d := range m.CPU(i).Busy {
				sum += d
			}
		}
		if total != sum || total < 200*us {
			t.Errorf("%d CPUs: busy for %v in steps, %v altogether", cpus, total, sum)
		}
		e.Close()
	}
}
