package testbed

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/verbs"
)

// onDemand is a device with on-demand paging, all of it, and the published times.
func onDemand(c *Config) {
	const all = prm.ODPSend | prm.ODPReceive | prm.ODPWrite | prm.ODPRead | prm.ODPAtomic | prm.ODPSRQReceive
	c.Profile.HCA.ODP = odp.Params{RC: all, UD: prm.ODPSend | prm.ODPSRQReceive, XRC: all, Implicit: true,
		Report: 128 * sim.Microsecond, ReportPage: 24 * sim.Nanosecond, Resume: 74 * sim.Microsecond}
}

// onDemandNode makes a node's memory lazy and its region one of on-demand paging, of the whole
// address space if whole.
func (x *rig) onDemandNode(t verbs.Thread, n *node, size uint64, whole bool) {
	x.Helper()
	var err error
	n.buf, err = t.Process().Map(t, size, verbs.MapOptions{Lazy: true})
	x.ok("map", err)
	addr, length := n.buf.Addr(), size
	if whole {
		addr, length = 0, math.MaxUint64
	}
	x.ok("dereg", n.mr.Dereg(t))
	n.mr, err = n.pd.RegMR(t, addr, length, everything|verbs.AccessOnDemand)
	x.ok("mr", err)
}

func (x *rig) discard(t verbs.Thread, b verbs.Buffer) {
	x.Helper()
	x.ok("discard", b.(verbs.PagedBuffer).Advise(t, 0, b.Len(), verbs.AdviceDontNeed))
}

func (x *rig) regionCounters(t verbs.Thread, n *node) map[string]uint64 {
	x.Helper()
	all, err := n.mr.Counters(t)
	x.ok("counters", err)
	m := map[string]uint64{}
	for _, c := range all {
		m[c.Name] = c.Value
	}
	return m
}

// Every operation moves its bytes where both sides have memory that comes with its first touch, on
// explicit and implicit regions, cold and after the pages have gone.
func TestOperationsOnDemand(t *testing.T) {
	for _, how := range []struct{ whole, memory bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		whole := how.whole
		for _, n := range []int{1, 100, 5000, 70000} {
			tb := run(t, config(t, onDemand, func(c *Config) { c.Profile.HCA.ODP.MemoryScheme = how.memory }), func(x *rig) {
				a, b, do := x.pair(true, 4096)
				const size = 1 << 18
				x.onDemandNode(x.t, a, size, whole)
				do(func(t verbs.Thread) { x.onDemandNode(t, b, size, whole) })
				for round := range 3 {
					want := pattern(n + round)[round:]
					x.write(x.t, a.buf, want, 100)
					do(func(t verbs.Thread) {
						_, err := b.qp.PostRecv(t, []verbs.RecvWR{{ID: 9, SGEs: b.sge(100000, 80000)}})
						x.ok("recv", err)
					})
					x.post(a, verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(100, n), RemoteAddr: b.buf.Addr() + 200, RKey: b.mr.RKey()})
					x.wait(x.t, a)
					x.post(a, verbs.SendWR{ID: 2, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: a.sge(100, n)})
					x.wait(x.t, a)
					x.post(a, verbs.SendWR{ID: 3, Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, SGEs: a.sge(100000, n), RemoteAddr: b.buf.Addr() + 200, RKey: b.mr.RKey()})
					x.wait(x.t, a)
					do(func(t verbs.Thread) {
						x.wait(t, b)
						if !bytes.Equal(x.read(t, b.buf, 200, n), want) || !bytes.Equal(x.read(t, b.buf, 100000, n), want) {
							x.Errorf("whole %v, round %d: %d bytes were not written or received", whole, round, n)
						}
						x.discard(t, b.buf)
					})
					if !bytes.Equal(x.read(x.t, a.buf, 100000, n), want) {
						x.Errorf("whole %v, round %d: %d bytes were not read", whole, round, n)
					}
					x.post(a, verbs.SendWR{ID: 4, Opcode: verbs.WRAtomicFetchAdd, Flags: verbs.SendSignaled, SGEs: a.sge(200000, 8),
						RemoteAddr: b.buf.Addr() + 4096, RKey: b.mr.RKey(), CompareAdd: 7})
					x.wait(x.t, a)
					do(func(t verbs.Thread) {
						if got := x.read(t, b.buf, 4096, 1); got[0] != 7 {
							x.Errorf("whole %v, round %d: added up to %d", whole, round, got[0])
						}
					})
					x.discard(x.t, a.buf)
				}
				if c := x.regionCounters(x.t, a); c["page_faults"] < 6 || !whole && c["page_invalidations"] < 6 {
					x.Errorf("counters %v", c)
				}
				x.ok("dereg", a.mr.Dereg(x.t))
				do(func(t verbs.Thread) { x.ok("dereg", b.mr.Dereg(t)) })
			})
			for _, h := range tb.hosts {
				if c := h.devices[0].kern.Counters().Paging; c.Regions != 0 || c.FailedResolutions != 0 || c.Faults == 0 {
					t.Errorf("whole %v, %d bytes: %+v", whole, n, c)
				}
			}
		}
	}
}

// The times of one fault, of a send whose page is in memory and not on the device: 215 us with one
// page and 355 us with 1,024 (ASPLOS 2017, Fig. 3), and of an invalidation, 17 and 61 us.
func TestTimesOfAFault(t *testing.T) {
	for _, c := range []struct {
		pages                  uint64
		fault, invalidate, tol time.Duration
	}{
		{1, 215 * time.Microsecond, 17 * time.Microsecond, 5 * time.Microsecond},
		{1024, 355 * time.Microsecond, 61 * time.Microsecond, 8 * time.Microsecond},
	} {
		took := map[bool]time.Duration{}
		var invalidation time.Duration
		for _, cold := range []bool{false, true} {
			run(t, config(t, onDemand), func(x *rig) {
				a, b, _ := x.pair(false, c.pages*4096)
				x.onDemandNode(x.t, a, c.pages*4096, false)
				touch := func() {
					for i := range c.pages {
						x.write(x.t, a.buf, []byte{1}, int(i*4096))
					}
				}
				touch()
				post := func() time.Duration {
					start := x.t.Now()
					x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, int(c.pages*4096)), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
					x.wait(x.t, a)
					return x.t.Now() - start
				}
				if !cold {
					x.ok("prefetch", a.pd.AdviseMR(x.t, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, a.sge(0, int(c.pages*4096))))
					post()
				} else {
					post()
					start := x.t.Now()
					x.discard(x.t, a.buf)
					invalidation = x.t.Now() - start
					touch()
				}
				took[cold] = post()
			})
		}
		if d := took[true] - took[false] - c.fault; d < -c.tol || d > c.tol {
			t.Errorf("%d pages: a fault takes %v, want %v", c.pages, took[true]-took[false], c.fault)
		}
		if d := invalidation - c.invalidate; d < -c.tol || d > c.tol {
			t.Errorf("%d pages: an invalidation takes %v, want %v", c.pages, invalidation, c.invalidate)
		}
	}
}

// A request that ends with the last page of a mapping is carried out, also where its first page is
// there and a packet has begun in it: nothing behind is asked for.
func TestFaultsAtTheEndOfAMapping(t *testing.T) {
	for _, memory := range []bool{false, true} {
		run(t, config(t, onDemand, func(c *Config) { c.Profile.HCA.ODP.MemoryScheme = memory }), func(x *rig) {
			a, b, _ := x.pair(false, 2*4096)
			x.onDemandNode(x.t, a, 2*4096, true)
			x.write(x.t, a.buf, []byte{1}, 0)
			x.ok("prefetch", a.pd.AdviseMR(x.t, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, a.sge(0, 4096)))
			x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(4096-512, 4096+512), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
			x.wait(x.t, a)
		})
	}
}

// A process ends while one of its threads waits for a prefetch: nothing waits for the thread.
func TestEndInAPrefetch(t *testing.T) {
	for _, whole := range []bool{false, true} {
		tb := run(t, config(t, onDemand), func(x *rig) {
			for i := range 80 {
				p, err := x.bed.Hosts()[1].NewProcess(x.t, nil)
				x.ok("process", err)
				var n *node
				started := false
				p.Start(x.t, "prefetch", -1, func(t verbs.Thread) {
					n = x.node(t, 4096)
					x.onDemandNode(t, n, 8*4096, whole)
					x.ok("prefetch", n.pd.AdviseMR(t, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, n.sge(0, 4096)))
					started = true
					x.ok("prefetch", n.pd.AdviseMR(t, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, n.sge(0, 8*4096)))
				})
				for !started {
					x.t.Sleep(time.Microsecond)
				}
				if i%2 == 0 { // and all that the device has goes
					p.Start(x.t, "discard", -1, func(t verbs.Thread) { x.discard(t, n.buf) })
				}
				x.t.Sleep(time.Duration(i) * 500 * time.Nanosecond)
				p.Kill(x.t)
			}
		})
		if k := tb.hosts[1].devices[0].kern; k.Counters().Paging.Regions != 0 || k.Resources() != (kernel.Resources{}) {
			t.Errorf("whole %v: left are %d regions and %+v", whole, k.Counters().Paging.Regions, k.Resources())
		}
	}
}

// A window on a region of on-demand paging, explicit or of everything, grants a peer a range whose
// pages come with its access.
func TestWindowOnDemand(t *testing.T) {
	for _, whole := range []bool{false, true} {
		run(t, config(t, onDemand), func(x *rig) {
			a, b, _ := x.pair(false, 4096)
			x.onDemandNode(x.t, b, 1<<16, whole)
			x.ok("mw access", b.mr.Dereg(x.t))
			addr, length := b.buf.Addr(), uint64(1<<16)
			if whole {
				addr, length = 0, math.MaxUint64
			}
			var err error
			b.mr, err = b.pd.RegMR(x.t, addr, length, everything|verbs.AccessOnDemand|verbs.AccessMWBind)
			x.ok("mr", err)
			w, err := b.pd.AllocMW(x.t, verbs.MWType2)
			x.ok("mw", err)
			key := verbs.IncRKey(w.RKey())
			x.post(b, verbs.SendWR{ID: 1, Opcode: verbs.WRBindMW, Flags: verbs.SendSignaled, Bind: &verbs.MWBindWR{MW: w, RKey: key,
				Info: verbs.MWBindInfo{MR: b.mr, Addr: b.buf.Addr() + 8192, Length: 8192, Access: verbs.AccessRemoteWrite}}})
			x.wait(x.t, b)
			w.SetRKey(key)
			want := pattern(5000)
			x.write(x.t, a.buf, want[:4096], 0)
			x.post(a, verbs.SendWR{ID: 2, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 4096), RemoteAddr: b.buf.Addr() + 9000, RKey: key})
			x.wait(x.t, a)
			if !bytes.Equal(x.read(x.t, b.buf, 9000, 4096), want[:4096]) {
				x.Errorf("whole %v: the bytes were not written", whole)
			}
			if c := x.regionCounters(x.t, b); c["page_faults"] != 2 {
				x.Errorf("whole %v: counters %v", whole, c)
			}
			x.ok("dealloc", w.Dealloc(x.t))
			x.ok("dereg", b.mr.Dereg(x.t))
		})
	}
}

// Run-ahead changes nothing of page faults: the same program ends at the same time with the same
// counters.
func TestFaultsInLockstep(t *testing.T) {
	type outcome struct {
		at     time.Duration
		paging kernel.PagingCounters
	}
	var seen []outcome
	for _, change := range [][]func(*Config){{onDemand}, {onDemand, lockstep}, {onDemand}} {
		var o outcome
		tb := run(t, config(t, change...), func(x *rig) {
			a, b, _ := x.pair(false, 4096)
			w := &movingWorld{rig: x, a: a, b: b}
			x.onDemandNode(x.t, a, movingPages*4096, false)
			x.onDemandNode(x.t, b, movingPages*4096, true)
			for i := range 40 {
				w.step(movingStep{op: []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRSend}[i%3], from: i * 997, to: i * 1201 % 50000, length: 1 + i*311%9000,
					meanwhile: i % 5, at: i * 7 % movingPages, pages: 1 + i%6, peers: i%2 == 0, after: i * 13 % 300, between: i % 90, advice: i%6 - 3})
			}
			x.ok("moved", w.err)
			for _, c := range w.copies {
				c.Release()
			}
			o.at = x.t.Now()
		})
		o.paging = tb.hosts[0].devices[0].kern.Counters().Paging
		seen = append(seen, o)
	}
	if seen[0] != seen[1] || seen[0] != seen[2] || seen[0].paging.Faults == 0 {
		t.Errorf("ahead, in lockstep and again:\n%+v", seen)
	}
}

// A working set of twice the memory goes round: pages are reclaimed under the device, and come back
// from swap with their bytes.
func TestFaultsUnderMemoryPressure(t *testing.T) {
	run(t, config(t, onDemand), func(x *rig) {
		const pages = 64
		a, b, _ := x.pair(false, 4096)
		x.onDemandNode(x.t, b, pages*4096, false)
		b.buf.(*buffer).p.lib.K.Space.Memory().SetPaging(pages/2*4096, 4*pages*4096)
		for round := range 3 {
			for i := range pages {
				x.write(x.t, a.buf, []byte{byte(round), byte(i)}, 0)
				x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 2), RemoteAddr: b.buf.Addr() + uint64(i)*4096, RKey: b.mr.RKey()})
				x.wait(x.t, a)
			}
			for i := range pages {
				if got := x.read(x.t, b.buf, i*4096, 2); got[0] != byte(round) || got[1] != byte(i) {
					x.Errorf("round %d, page %d has %v", round, i, got)
				}
			}
		}
		if c := x.regionCounters(x.t, b); c["page_faults"] < 3*pages || c["page_invalidations"] < 2*pages {
			x.Errorf("counters %v", c)
		}
	})
}
