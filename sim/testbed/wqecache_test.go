package testbed

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// READs whose WQEs have gone read them again, and bring the same bytes.
func TestSendWQECache(t *testing.T) {
	for _, c := range []struct {
		size   int
		misses uint64
	}{{0, 0}, {64, 0}, {4, 28}} {
		b := run(t, config(t, func(c2 *Config) { c2.Profile.HCA.WQECache = c.size }), func(x *rig) {
			a, b, _ := x.pair(false, 1<<16)
			want := bytes.Repeat([]byte("0123456789abcdef"), 1<<11)
			x.write(x.t, b.buf, want, 0)
			var wrs []verbs.SendWR
			for i := range 32 {
				wrs = append(wrs, verbs.SendWR{ID: uint64(i), Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, SGEs: a.sge(1024*i, 1024),
					RemoteAddr: b.buf.Addr() + uint64(1024*i), RKey: b.mr.RKey()})
			}
			for i := range wrs { // one by one, so that each is pushed
				x.post(a, wrs[i])
			}
			for range wrs {
				x.wait(x.t, a)
			}
			if got := x.read(x.t, a.buf, 0, len(want)); !bytes.Equal(got, want) {
				t.Error("the bytes that were read differ")
			}
		})
		h := b.hosts[0].devices[0].hca.Counters()
		if c.size > 0 && h.WQELookups != 32 {
			t.Errorf("cache of %d: %d look-ups, want 32", c.size, h.WQELookups)
		}
		if h.WQEMisses < c.misses || c.misses == 0 && h.WQEMisses != 0 {
			t.Errorf("cache of %d: %d misses, want %d", c.size, h.WQEMisses, c.misses)
		}
	}
}

// Queues that take turns lose their receive WQEs to each other when there is room for
// one alone; every message arrives all the same.
func TestReceiveWQECache(t *testing.T) {
	for _, size := range []int{1, 8} {
		b := run(t, config(t, func(c *Config) { c.Profile.HCA.RecvCache = size }), func(x *rig) {
			var pairs [2][2]*node
			for i := range pairs {
				pairs[i][0], pairs[i][1], _ = x.pair(false, 4096)
			}
			for n := range 60 {
				a, b := pairs[n%2][0], pairs[n%2][1]
				if n < 2 {
					for i := range 40 {
						_, err := b.qp.PostRecv(x.t, []verbs.RecvWR{{ID: uint64(i), SGEs: b.sge(0, 64)}})
						x.ok("recv", err)
					}
				}
				x.post(a, verbs.SendWR{ID: 1, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: a.sge(64, 64)})
				x.wait(x.t, a)
				if w := x.wait(x.t, b); w.ID != uint64(n/2) {
					t.Errorf("message %d took receive %d", n, w.ID)
				}
			}
		})
		h := b.hosts[0].devices[0].hca.Counters()
		if size == 1 && h.RecvWQEMisses < 5 || size == 8 && h.RecvWQEMisses != 0 {
			t.Errorf("room for %d queues: %d misses of %d", size, h.RecvWQEMisses, h.RecvWQELookups)
		}
	}
}
