package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// parts is into how many parts the measured time is cut. Each is a batch of the confidence
// interval.
const parts = 4

// looks is how often in the measured time the progress of a load is read, a multiple of parts.
const looks = 64

// progress is what has been delivered of a load, packet by packet, where the testbed can tell
// (verbs.DeliveryMeter). Of messages of many packets completions tell too little: when the bytes of
// one that completes behind an edge of the measured time have come they do not say, and of senders
// that take turns at a port each would count the turns of the others as its own.
type progress struct {
	read  int          // looks that were taken, the first of them when the measured time begins
	ends  [2][]float64 // messages of each set of queue pairs by the first look and by the last
	total [looks + 1]float64

	counted   bool
	completed float64 // messages of the measured time by completions, once counted
}

// whole reports whether the progress was read until the end of the measured time.
func (p *progress) whole() bool { return p.read == looks+1 }

// longMessage is what counts as a whole packet where packets are longer: few such messages fill a
// port, and each counts.
const longMessage = 1024

// FillsPackets reports whether the messages of the load are of a whole packet or more, or nearly.
func (l *Load) FillsPackets() bool {
	return l.Payload >= uint32(min(cmp.Or(l.MTU, defaultMTU).Bytes(), longMessage))
}

// visible reports whether the bytes that the load's queue pairs receive and read, or send where
// nothing tells a sender of deliveries, say how many of its messages were delivered.
func (l *Load) visible() bool {
	atomic := slices.ContainsFunc(l.Mix, func(m Mix) bool { return m.Verb == CmpSwap || m.Verb == FetchAdd })
	return l.Churn == "" && !l.Latency && l.Payload > 0 && !atomic
}

// Outstanding is how many requests a load that posts as fast as it can keeps outstanding.
func (l *Load) Outstanding() int {
	if l.Spread > 0 {
		return l.Threads * l.Spread
	}
	return l.Threads / l.QPShare * l.QPs * l.Window
}

// watch has the progress of the load read; where the measured time ends with the load, at its
// beginning.
func (s *Started) watch() {
	m, ok := s.tb.(verbs.DeliveryMeter)
	if !ok || !s.l.visible() {
		return
	}
	for k := range looks + 1 {
		at := s.begin() + s.l.Duration/looks*time.Duration(k) + s.l.Duration%looks*time.Duration(k)/looks
		m.DeliveriesAt(at, s.look)
		if s.stop() == 0 {
			return
		}
	}
}

// Delivered is how many bytes of payload the queue pairs of the load have brought to their end by
// the instant at which of is called; ok is false for loads without payload, for atomics, and where
// a queue pair cannot be read.
func (s *Started) Delivered(of func(host int, qpn uint32) (verbs.Delivered, bool)) (bytes uint64, ok bool) {
	atomic := slices.ContainsFunc(s.l.Mix, func(m Mix) bool { return m.Verb == CmpSwap || m.Verb == FetchAdd })
	if s.l.Churn != "" || s.l.Payload == 0 || atomic {
		return 0, false
	}
	for _, set := range s.a.qps {
		n, ok := s.deliveredBy(set, of)
		if !ok {
			return 0, false
		}
		bytes += n
	}
	return bytes, true
}

// deliveredBy are the bytes of a set of queue pairs.
func (s *Started) deliveredBy(set []*conn, of func(host int, qpn uint32) (verbs.Delivered, bool)) (bytes uint64, ok bool) {
	for _, c := range set {
		there, ok := of(s.l.To, c.peer.qp.QPN())
		here, also := of(s.l.From, c.qp.QPN())
		if !ok || !also {
			return 0, false
		}
		if types[s.l.Transport] == verbs.QPTRC {
			bytes += there.Received + here.Read
		} else {
			bytes += here.Sent
		}
	}
	return bytes, true
}

// look reads the progress. One that cannot be read ends it.
func (s *Started) look(of func(host int, qpn uint32) (verbs.Delivered, bool)) {
	p := &s.progress
	by := make([]float64, len(s.a.qps))
	for g, set := range s.a.qps {
		bytes, ok := s.deliveredBy(set, of)
		if !ok {
			return
		}
		by[g] = float64(bytes) / float64(s.l.Payload)
		p.total[p.read] += by[g]
	}
	p.ends[min(p.read, 1)] = by
	p.read++
}

// measured reports whether the progress is to say what was delivered in the measured time, which
// has ended at end. Of messages smaller than a packet completions tell as well, unless they are so
// few that those of the time before make up much of them, or more completed than arrived: a
// completion tells also of unsignalled requests before, of which some may have crossed the wire
// before the measured time.
func (s *Started) measured(end time.Duration) bool {
	if !s.whole() || end != s.stop() {
		return false
	}
	arrived := s.total[looks] - s.total[0]
	return s.l.FillsPackets() || arrived < float64(s.l.Outstanding()) || s.l.SignalEvery > 1 && s.tooMany(arrived)
}

// tooMany reports whether completions told of more messages of the measured time than arrived in
// it.
func (s *Started) tooMany(arrived float64) bool {
	if !s.counted {
		s.counted = true
		for i := range s.res.Threads {
			s.completed += s.res.Threads[i].Delivered
		}
	}
	return s.completed > arrived
}

// batches are what was delivered in the parts of the measured time until end.
func (s *Started) batches(end time.Duration) (all [parts]batch) {
	all = batchesOf(s.meters, end)
	if s.measured(end) {
		for k := range all {
			const each = looks / parts
			all[k].delivered = s.total[(k+1)*each] - s.total[k*each]
		}
	}
	return all
}

// burst is how far the progress in the measured time was before and behind a steady one, as a share
// of what was delivered: of so much it is chance on which side of an edge it fell. Messages that
// come one by one, with pauses between them, make it large when they are few.
func (s *Started) burst(end time.Duration) float64 {
	if !s.measured(end) {
		return 0
	}
	return burstOf(s.total[:], s.total[looks]-s.total[0])
}

// burstOf is how far a progress was before and behind a steady one, as a share of all.
func burstOf(progress []float64, all float64) float64 {
	if all == 0 {
		return 0
	}
	before, behind, last := 0.0, 0.0, len(progress)-1
	for k, v := range progress {
		off := v - progress[0] - (progress[last]-progress[0])*float64(k)/float64(last)
		before, behind = max(before, off), max(behind, -off)
	}
	return (before + behind) / all
}

// Together is half the width of the 95 % confidence interval of the sum of the rates of several
// loads, as a share of it, by the method of Result.Confidence: what all deliver in a quarter of the
// time is one batch. Each load counts weights[i] for a message, such as its payload for a goodput.
// The loads have no such interval, and ok is false, if they were not measured in the same time.
func Together(results []*Result, weights []float64) (confidence95 float64, ok bool) {
	var sum [parts]batch
	var progress [looks + 1]float64
	all := 0.0
	for i, r := range results {
		if r.Failed != nil || r.Begin != results[0].Begin || r.End != results[0].End {
			return 0, false
		}
		for k, b := range r.batches {
			sum[k].delivered += weights[i] * b.delivered
			sum[k].polled = sum[k].polled || b.polled
			all += weights[i] * b.delivered
		}
		for k, v := range r.progress {
			progress[k] += weights[i] * v
		}
	}
	return confidence(sum) + burstOf(progress[:], all), len(results) > 0
}

// settle has what threads delivered in the measured time follow from the progress, if that was
// read. Threads that share queue pairs have parts of it in proportion to what completed.
func (s *Started) settle(end time.Duration, complete bool) {
	open := s.stop() == 0 && s.read > 0 && complete && s.l.FillsPackets()
	if s.res.Failed != nil || !open && !s.measured(end) {
		return
	}
	for g := range s.ends[0] {
		threads := s.res.Threads[g*s.l.QPShare:][:s.l.QPShare]
		seen, all := 0.0, 0.0
		for i := range threads {
			seen += threads[i].Delivered
			all += float64(threads[i].Completed)
		}
		if !open {
			all = s.ends[1][g]
		}
		for i := range threads {
			share := 1 / float64(len(threads))
			if seen > 0 {
				share = threads[i].Delivered / seen
			}
			threads[i].Delivered = share * (all - s.ends[0][g])
		}
	}
}
