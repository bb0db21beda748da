package testbed

import (
	"runtime"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// BenchmarkFaults is a write of one page whose target is not there, one after the other: page
// faults of the responder and, every second time, of the requester. The speed that is asked for is
// 50,000 faults in a second.
func BenchmarkFaults(b *testing.B) {
	run(b, config(b, onDemand), func(x *rig) {
		const pages = 1 << 12
		one, two, _ := x.pair(false, 4096)
		x.onDemandNode(x.t, two, pages*4096, false)
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			if i%pages == 0 && i > 0 {
				x.discard(x.t, two.buf)
			}
			x.post(one, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: one.sge(0, 64), RemoteAddr: two.buf.Addr() + uint64(i%pages)*4096, RKey: two.mr.RKey()})
			x.wait(x.t, one)
		}
		b.StopTimer()
		if c := x.regionCounters(x.t, two); c["page_faults"] < uint64(b.N) {
			x.Errorf("%d faults of %d", c["page_faults"], b.N)
		}
	})
}

// A region of 512 GiB, and one of the whole address space, cost next to nothing for pages that
// nobody touches.
func TestLargeRegionsOnDemandAreCheap(t *testing.T) {
	run(t, config(t, onDemand), func(x *rig) {
		a, b, _ := x.pair(false, 4096)
		const size = 512 << 30
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		x.onDemandNode(x.t, b, size, false)
		registered := heap()
		const touched = 1000
		for i := range uint64(touched) {
			x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 8), RemoteAddr: b.buf.Addr() + i*(size/touched)&^4095, RKey: b.mr.RKey()})
			x.wait(x.t, a)
		}
		after := heap()
		whole, err := b.pd.RegMR(x.t, 0, 1<<64-1, everything|verbs.AccessOnDemand)
		x.ok("whole", err)
		all := heap()
		t.Logf("512 GiB: %d bytes to register, %d for each page touched alone; the whole address space %d bytes", registered-before, (after-registered)/touched, all-after)
		if registered-before > 1<<20 || (after-registered)/touched > 64<<10 || all-after > 16<<20 {
			t.Errorf("512 GiB: %d bytes to register, %d for each page touched alone; the whole address space %d bytes", registered-before, (after-registered)/touched, all-after)
		}
		x.ok("dereg", whole.Dereg(x.t))
		x.ok("dereg", b.mr.Dereg(x.t))
	})
}
