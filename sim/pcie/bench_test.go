package pcie

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

func BenchmarkWriteDMA(b *testing.B) {
	r := newRig(kalia())
	pa, _ := r.m.Alloc(4096, 0)
	cqe := make([]byte, 64)
	left := b.N
	var done sim.Handler
	done = func(uint64) {
		if left--; left > 0 {
			r.l.WriteDMANotify(pa, cqe, done, 0)
		}
	}
	b.ReportAllocs()
	for range 16 {
		done(0)
	}
	_ = r.e.Run(sim.Never)
}

func BenchmarkReadDMA(b *testing.B) {
	r := newRig(kalia())
	pa, _ := r.m.Alloc(4096, 0)
	wqe := make([]byte, 64)
	left := b.N
	var done sim.Handler
	done = func(uint64) {
		if left--; left > 0 {
			r.l.ReadDMA(pa, wqe, done, 0)
		}
	}
	b.ReportAllocs()
	for range 16 {
		done(0)
	}
	_ = r.e.Run(sim.Never)
}

func BenchmarkPostMMIO(b *testing.B) {
	r := newRig(kalia())
	r.f.quiet = true
	line := make([]byte, 64)
	b.ReportAllocs()
	r.e.Go("cpu", func(p *sim.Proc) {
		for range b.N {
			p.Sleep(30 * sim.Nanosecond)
			r.l.PostMMIO(p, 0x800, line)
		}
	})
	_ = r.e.Run(sim.Never)
}
