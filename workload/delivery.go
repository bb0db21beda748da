package workload

import (
	"cmp"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// parts is into how many parts the measured time is cut. Each is a batch of the confidence interval.
const parts = 4

// progress is what has been delivered of a load by the edges of the parts of its measured time, packet by packet, where the testbed
// can tell (verbs.DeliveryMeter). Of messages of many packets completions tell too little: when the bytes of one that completes behind
// an edge have come they do not say, and of senders that take turns at a port each would count the turns of the others as its own.
type progress struct {
	read [parts + 1]bool      // at these edges
	by   [parts + 1][]float64 // messages of each set of queue pairs
}

// byPackets reports whether a message of the load is delivered in several steps.
func (l *Load) byPackets() bool {
	return types[l.Transport] == verbs.QPTRC && l.Churn == "" && !l.Latency && l.Payload > l.mtuBytes()
}

// mtuBytes is the path MTU.
func (l *Load) mtuBytes() uint32 {
	return uint32(cmp.Or(l.MTU, defaultMTU).Bytes())
}

// watch has the progress of the load read at the edges of the parts of the measured time; of one that ends with the load at its beginning.
func (s *Started) watch() {
	m, ok := s.tb.(verbs.DeliveryMeter)
	if !ok || !s.l.byPackets() {
		return
	}
	for k := range s.progress.read {
		at := s.begin() + (s.stop()-s.begin())*time.Duration(k)/parts
		m.DeliveriesAt(at, func(of func(int, uint32) (verbs.Delivered, bool)) { s.take(k, of) })
		if s.stop() == 0 {
			return
		}
	}
}

// take reads the progress at edge k.
func (s *Started) take(k int, of func(host int, qpn uint32) (verbs.Delivered, bool)) {
	p := &s.progress
	p.by[k] = make([]float64, len(s.a.qps))
	p.read[k] = true
	for g, set := range s.a.qps {
		bytes := uint64(0)
		for _, c := range set {
			there, ok := of(s.l.To, c.peer.qp.QPN())
			here, also := of(s.l.From, c.qp.QPN())
			bytes += there.Received + here.Read
			p.read[k] = p.read[k] && ok && also
		}
		p.by[k][g] = float64(bytes) / float64(s.l.Payload)
	}
}

// whole reports whether the progress was read at all edges.
func (p *progress) whole() bool {
	for _, ok := range p.read {
		if !ok {
			return false
		}
	}
	return true
}

// batches are what was delivered in the parts of the measured time until end, and the part of a message that is delivered in one step,
// as far as that is known.
func (s *Started) batches(end time.Duration) (all [parts]batch, step float64) {
	all = batchesOf(s.meters, end)
	if s.whole() && end == s.stop() {
		step = float64(s.l.mtuBytes()) / float64(s.l.Payload)
		for k := range all {
			all[k].delivered = 0
			for g := range s.by[k] {
				all[k].delivered += s.by[k+1][g] - s.by[k][g]
			}
		}
	}
	return all, step
}

// settle has what threads delivered in the measured time follow from the progress, if that was read. Threads that share queue pairs have
// parts of it in proportion to what completed.
func (s *Started) settle(complete bool) {
	if !s.read[0] || s.res.Failed != nil || !complete && !s.whole() {
		return
	}
	for g := range s.by[0] {
		threads := s.res.Threads[g*s.l.QPShare:][:s.l.QPShare]
		seen, all := 0.0, 0.0
		for i := range threads {
			seen += threads[i].Delivered
			all += float64(threads[i].Completed)
		}
		if s.stop() > 0 {
			all = s.by[parts][g]
		}
		for i := range threads {
			share := 1 / float64(len(threads))
			if seen > 0 {
				share = threads[i].Delivered / seen
			}
			threads[i].Delivered = share * (all - s.by[0][g])
		}
	}
}
