package sim

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs e and reports its rate for each second of CPU time.
func measure(b *testing.B, e *Engine, until Time, unit string) {
	b.ReportAllocs()
	start := cpuTime()
	b.ResetTimer()
	if err := e.Run(until); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	used := (cpuTime() - start).Seconds()
	b.ReportMetric(used*1e9/float64(b.N), "ns/op") // of CPU time, too
	b.ReportMetric(float64(b.N)/used, unit+"/cpu-s")
}

// delays are like those of a device: pipeline steps, bus and wire latencies, some
// timers that are far away.
var delays = func() (d [1024]Time) {
	r := NewRand(1, "delays")
	for i := range d {
		switch k := r.Intn(16); {
		case k < 6:
			d[i] = Time(2000 + r.Intn(40_000)) // pipeline
		case k < 12:
			d[i] = Time(100_000 + r.Intn(400_000)) // bus, wire
		case k < 15:
			d[i] = Time(500_000 + r.Intn(2_000_000)) // a program's work
		default:
			d[i] = Time(10_000_000 + r.Intn(60_000_000)) // timers
		}
	}
	return d
}()

func BenchmarkEngine(b *testing.B) {
	for _, pending := range []int{256, 10_000} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			e := New(Options{})
			left := b.N
			i := 0
			var h Handler
			h = func(arg uint64) {
				if left--; left <= 0 {
					e.Stop()
				}
				i++
				e.After(delays[i&1023], h, arg)
			}
			for k := range pending {
				e.After(delays[k&1023], h, uint64(k))
			}
			measure(b, e, Never, "events")
		})
	}
}

// A switch: two programs that alternate.
func BenchmarkSwitch(b *testing.B) {
	e := New(Options{})
	for range 2 {
		e.Go("p", func(p *Proc) {
			for range b.N / 2 {
				p.Sleep(1000)
			}
		})
	}
	measure(b, e, Never, "switches")
}

// The fast path of Sync: nothing is due.
func BenchmarkSync(b *testing.B) {
	e := New(Options{})
	e.Go("p", func(p *Proc) {
		for range b.N {
			p.Sleep(10)
		}
	})
	e.After(Time(1<<62), func(uint64) {}, 0)
	measure(b, e, 1<<61, "syncs")
}
