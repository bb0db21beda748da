package workload

import (
	"strings"
	"testing"
)

// Messages lie in the regions of their side, a stride apart, and nowhere else.
func TestPlacesOfMessages(t *testing.T) {
	for _, c := range []struct {
		load   Load
		size   uint64
		stride uint64
		places int
	}{
		{Load{MRSize: 4096, Payload: 2}, 4096, 8, 512},
		{Load{MRSize: 4096, Payload: 64}, 4096, 64, 64},
		{Load{MRSize: 65536, Payload: 64, Stride: 4096}, 65536, 4096, 16},
		{Load{MRSize: 65536, Payload: 64, Stride: 4096}, 8192, 4096, 2}, // of a smaller side
		{Load{MRSize: 4096, Payload: 4000, Stride: 4096}, 4096, 4096, 1},
	} {
		l := c.load
		l.Random, l.MRs, l.PDs, l.Postlist = true, 1, 1, 1
		s := &Started{l: &l}
		p := s.newPoster(0)
		k := &conn{ctx: &ctx{mrs: make([]region, 1), size: c.size}}
		seen := map[uint64]bool{}
		for range 100 * c.places {
			_, off := p.pick(k, 0)
			if off%c.stride != 0 || off+uint64(l.Payload) > c.size {
				t.Fatalf("%+v: a message of %d bytes at %d of %d", c, l.Payload, off, c.size)
			}
			seen[off] = true
		}
		if len(seen) != c.places {
			t.Errorf("%+v: %d places, want %d", c, len(seen), c.places)
		}
	}
}

func TestRegionsThatAreTooSmall(t *testing.T) {
	for _, c := range []struct {
		l    Load
		want string
	}{
		{Load{MRSize: 4096, Payload: 5000}, "payload is 5000 bytes, which is more than the mr_size of 4096"},
		{Load{MRSize: 8192, LocalMRSize: 4096, Payload: 5000}, "payload is 5000 bytes, which is more than the local_mr_size of 4096"},
		{Load{MRSize: 8192, LocalMRSize: 64, Payload: 8, Latency: true}, "local_mr_size is 64 bytes, and a latency load needs"},
		{Load{MRSize: 4096, Payload: 8, Stride: 8192}, "stride is 8192 bytes, which is more than the mr_size of 4096"},
		{Load{MRSize: 1 << 20, LocalMRSize: 4096, Payload: 8, Stride: 8192}, "stride is 8192 bytes, which is more than the local_mr_size of 4096"},
		{Load{MRSize: 1 << 20, LocalMRSize: 4096, Payload: 8, Stride: 4096}, ""},
		{Load{MRSize: 64, LocalMRSize: 4096, Payload: 64, Transport: UD}, "mr_size is 64 bytes, too few for a datagram"},
	} {
		err := c.l.checkRegions()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.l, err, c.want)
		}
	}
}
