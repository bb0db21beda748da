package workload

import (
	"cmp"
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// localSize is the size of the regions of the host that posts.
func (l *Load) localSize() uint64 {
	return cmp.Or(l.LocalMRSize, l.MRSize)
}

// sizeAt is the size of the regions of a side.
func (l *Load) sizeAt(target bool) uint64 {
	if target {
		return l.MRSize
	}
	return l.localSize()
}

// stride is the distance of the places of messages in a region.
func (l *Load) stride() uint64 {
	return cmp.Or(l.Stride, uint64(max(l.Payload, 8)))
}

// checkRegions reports regions that are too small for a message.
func (l *Load) checkRegions() error {
	for _, r := range []struct {
		name string
		size uint64
		to   bool
	}{{"mr_size", l.MRSize, true}, {"local_mr_size", l.localSize(), false}} {
		switch {
		case l.Stride > r.size:
			return fmt.Errorf("stride is %d bytes, which is more than the %s of %d", l.Stride, r.name, r.size)
		case uint64(l.Payload) > r.size:
			return fmt.Errorf("payload is %d bytes, which is more than the %s of %d", l.Payload, r.name, r.size)
		case l.Latency && r.size < 2*uint64(l.Payload)+64:
			return fmt.Errorf("%s is %d bytes, and a latency load needs twice the payload and 64 bytes more: it sends from the upper half and receives in the lower", r.name, r.size)
		case r.to && l.Transport == UD && uint64(l.Payload)+verbs.GRHSize > r.size:
			return fmt.Errorf("%s is %d bytes, too few for a datagram of %d bytes behind a routing header of %d", r.name, r.size, l.Payload, verbs.GRHSize)
		}
	}
	return nil
}
