package perf

import (
	"math"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// latencyTest is what the latency programs do once they are connected.
func (e *End) latencyTest(t verbs.Thread) error {
	o := e.o
	if !o.Sender && reads(o.Test) { // the peer does it alone
		if err := e.closeChannel(t); err != nil {
			return err
		}
		e.printf("%s", separator)
		return nil
	}
	e.titles()
	sizes := []uint64{o.Size}
	if o.Method == AllSizes {
		sizes = e.sizes()
	}
	for _, size := range sizes {
		if err := e.measureLatency(t, size); err != nil {
			return err
		}
	}
	e.printf("%s", separator)
	if o.Test.Verb != Write && o.Test.Verb != WriteImm { // whose program just ends
		if err := e.closeChannel(t); err != nil {
			return err
		}
	}
	e.wait(t, o.WaitEnd)
	return nil
}

func (e *End) measureLatency(t verbs.Thread, size uint64) error {
	e.size = size
	e.prepareSends()
	if e.o.Test.Verb.receives() {
		if err := e.prepareReceives(t); err != nil {
			return err
		}
		if err := e.step(t, stepReady, func() error { return e.handshake(t) }); err != nil {
			return err
		}
	}
	err := e.measured(t, func() error {
		switch {
		case reads(e.o.Test):
			return e.runRequests(t)
		case e.o.Test.Verb == Write:
			return e.runPingPong(t)
		}
		return e.runMessages(t)
	})
	if err != nil {
		return err
	}
	return e.step(t, stepReport, e.reportLatency)
}

// summary is what a latency test says about its times, in microseconds.
type summary struct {
	least, most, typical, average, deviation, p99, p999 float64
	sorted                                              []float64
}

// tail is how many of the longest times are left out (LAT_MEASURE_TAIL).
const tail = 2

// summarize is print_report_lat: the times between posts, of which the two longest are left out; a
// time is that of a message to the peer and back, of which half counts unless the peer's adapter
// answers it. The deviation is that of the times, where perftest cuts the distance of each from the
// mean to whole microseconds.
func summarize(posted []time.Duration, answered bool) (s summary, all []float64) {
	factor := 2.0
	if answered {
		factor = 1
	}
	for i := range posted[1:] {
		all = append(all, float64(posted[i+1]-posted[i])/1e3/factor)
	}
	d := slices.Clone(all)
	slices.Sort(d)
	n := len(d) - tail
	if n%2 == 1 {
		s.typical = d[n/2]
	} else {
		s.typical = (d[n/2] + d[n/2-1]) / 2
	}
	for _, v := range d[:n] {
		s.average += v / float64(n)
	}
	squares := 0.0
	for _, v := range d[:n] {
		squares += (v - s.average) * (v - s.average)
	}
	s.deviation = math.Sqrt(squares / float64(n))
	at := func(share float64) float64 { return d[int(math.Ceil(float64(n)*share))] }
	s.least, s.most, s.p99, s.p999, s.sorted = d[0], d[n], at(0.99), at(0.999), d[:n]
	return s, all
}

// reportLatency computes and prints what was measured.
func (e *End) reportLatency() error {
	if e.o.Timed {
		return e.reportLatencyTimed()
	}
	s, all := summarize(e.times.posted, reads(e.o.Test))
	if e.o.Unsorted {
		e.list(all)
	}
	if e.o.Histogram {
		e.list(s.sorted)
	}
	if e.o.Unsorted || e.o.Histogram {
		e.titles()
	}
	return e.printLatency(&s)
}

// reportLatencyTimed is print_report_lat_duration.
func (e *End) reportLatencyTimed() error {
	factor := 2.0
	if reads(e.o.Test) {
		factor = 1
	}
	span, n := e.times.span(false).Seconds(), float64(e.mine.Iters)
	average, perSecond := 0.0, 0.0
	if n > 0 {
		average, perSecond = span*1e6/factor/n, n/span
	}
	return e.printLatencyTimed(average, perSecond)
}
