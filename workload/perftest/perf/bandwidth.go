package perf

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload/perftest/exchange"
)

// bandwidthTest is what the bandwidth programs do once they are connected.
func (e *End) bandwidthTest(t verbs.Thread) error {
	e.titles()
	o := e.o
	if !o.Sender && !o.BothWays && !o.Test.Verb.receives() {
		return e.waitForReport(t)
	}
	var err error
	switch o.Method {
	case Infinite:
		err = e.infinitely(t)
	case AllSizes:
		for _, size := range e.sizes() {
			if err = e.measure(t, size); err != nil {
				break
			}
		}
	default:
		err = e.measure(t, o.Size)
	}
	if err != nil {
		return err
	}
	e.noteBacklog()
	e.printf("%s", separator)
	if o.Sender && !o.BothWays && !o.Test.Verb.receives() {
		if err := e.handshake(t); err != nil {
			return err
		}
		if _, err := e.swapReports(t); err != nil {
			return err
		}
	}
	if err := e.closeChannel(t); err != nil {
		return err
	}
	e.wait(t, o.WaitEnd)
	return e.limits()
}

// sizes are those of -a: powers of two from 2 on, of datagrams up to the MTU.
func (e *End) sizes() (all []uint64) {
	most := uint64(allSizesMost)
	if e.o.Connection == UD {
		most = uint64(e.mtu.Bytes())
	}
	for s := uint64(2); s <= most; s *= 2 {
		all = append(all, s)
	}
	return all
}

// waitForReport is the end of a half-duplex test that does nothing: it prints what the other end
// has measured.
func (e *End) waitForReport(t verbs.Thread) error {
	var theirs exchange.Report
	err := e.step(t, stepRun, func() (err error) {
		if err = e.handshake(t); err == nil {
			theirs, err = e.learnReport(t)
		}
		return err
	})
	if err != nil {
		return err
	}
	if e.o.Method == Infinite {
		fmt.Fprint(e.env.Out, " Client closed connection\n")
	} else if err := e.printReport(&theirs, nil); err != nil {
		return err
	}
	if err := e.closeChannel(t); err != nil {
		return err
	}
	e.printf("%s", separator)
	e.wait(t, e.o.WaitEnd)
	return nil
}

// measure runs one size.
func (e *End) measure(t verbs.Thread, size uint64) error {
	o := e.o
	e.size = size
	both := o.BothWays
	if err := e.prepare(t); err != nil {
		return err
	}
	if o.WarmUp && !o.Test.Verb.receives() {
		if err := e.step(t, stepWarmUp, func() error { return e.warmUp(t) }); err != nil {
			return err
		}
	}
	sync := both || o.Test.Verb.receives()
	if sync {
		if err := e.step(t, stepReady, func() error { return e.handshake(t) }); err != nil {
			return err
		}
	}
	err := e.measured(t, func() error {
		switch {
		case both && o.Test.Verb.receives():
			return e.runBothWays(t)
		case o.Sender || both:
			return e.runSender(t)
		}
		return e.runReceiver(t)
	})
	if err != nil {
		return err
	}
	return e.step(t, stepReport, func() error { return e.report(t, sync) })
}

// prepare writes the requests of a size and posts its receives.
func (e *End) prepare(t verbs.Thread) error {
	if e.o.Sender || e.o.BothWays {
		e.prepareSends()
	}
	if e.o.Test.Verb.receives() && e.o.receiver() {
		return e.prepareReceives(t)
	}
	return nil
}

// report computes what was measured, and prints it; with -b it is the sum of both ends.
func (e *End) report(t verbs.Thread, sync bool) error {
	o := e.o
	after := func() error { // between sizes, where a program has it
		if sync && o.Method == AllSizes {
			return e.handshake(t)
		}
		return nil
	}
	if !o.Test.Verb.sends() { // before the report; send programs have it behind
		if err := after(); err != nil {
			return err
		}
	}
	e.compute()
	alone := !o.BothWays || o.Test.Verb.receives() && o.Timed
	if alone {
		if err := e.printReport(&e.mine, nil); err != nil {
			return err
		}
	} else {
		theirs, err := e.learnReport(t)
		if err != nil {
			return err
		}
		if err := e.printReport(&e.mine, &theirs); err != nil {
			return err
		}
		if o.ReportBoth && o.Method == Regular {
			e.printEach(&theirs)
		}
	}
	if o.Test.Verb.sends() {
		return after()
	}
	return nil
}

// printEach prints the results of either direction.
func (e *End) printEach(theirs *exchange.Report) {
	for _, r := range []struct {
		name string
		r    *exchange.Report
	}{{"Local", &e.mine}, {"Remote", theirs}} {
		e.printf("%s\n %s results: \n", separator, r.name)
		e.titles()
		e.row(r.r.Size, r.r.Iters, r.r.Peak, r.r.Average, r.r.Rate)
	}
}

// compute is print_report_bw: the average over the measured time, and the best window.
func (e *End) compute() {
	o := e.o
	unit := float64(1 << 20)
	if o.Gbits {
		unit = 1e9 / 8
	}
	r := &e.mine
	r.Size = e.size
	span := e.times.span(!o.NoPeak).Seconds()
	r.Average, r.Rate, r.Peak = 0, 0, 0
	if span > 0 {
		r.Rate = float64(r.Iters) / span / 1e6
		r.Average = float64(r.Size) * float64(r.Iters) / span / unit
	}
	if !o.NoPeak {
		r.Peak = float64(r.Size) * 1e9 / e.times.bestWindow(o.PostList) / unit
	}
}

// limits is the verdict of -w and -y. Perftest asks for both only if a bandwidth is given.
func (e *End) limits() error {
	switch {
	case !e.o.limitBW:
		return nil
	case !e.passed.bw:
		return &StepError{Step: stepReport, Err: fmt.Errorf("no row has the bandwidth of -w %g", e.o.LimitBW), Words: "Error: BW result is below bw limit\n"}
	case !e.passed.rate:
		return &StepError{Step: stepReport, Err: fmt.Errorf("no row has the message rate of -y %g", e.o.LimitRate), Words: "Error: Msg rate  is below msg_rate limit\n"}
	}
	return nil
}

// judge notes whether a row meets the limits.
func (e *End) judge(bw, rate float64) {
	e.passed.bw = e.passed.bw || bw >= e.o.LimitBW
	e.passed.rate = e.passed.rate || !e.o.limitRate || rate >= e.o.LimitRate
}

// infinitely prints a row each -D seconds until the user or the peer ends the test
// (run_iter_bw_infinitely).
func (e *End) infinitely(t verbs.Thread) error {
	if err := e.prepare(t); err != nil {
		return err
	}
	if e.o.Test.Verb.receives() {
		if err := e.handshake(t); err != nil {
			return err
		}
	}
	e.startTimes(t.Now())
	interval := time.Duration(e.o.Duration) * time.Second
	from, before := t.Now(), uint64(0)
	row := func(total uint64) error {
		now := t.Now()
		if now-from < interval {
			return nil
		}
		e.times.first, e.times.last, e.mine.Iters = from, now, total-before
		from, before = now, total
		e.compute()
		return e.printReport(&e.mine, nil)
	}
	if !e.o.Sender && !e.o.BothWays {
		return e.receiveInfinitely(t, row)
	}
	s := &sender{e: e, infinite: true, quietSince: t.Now(), limit: e.pace(t.Now())}
	return e.step(t, stepRun, func() error {
		for !e.interrupted() {
			posted, err := s.fill(t)
			if err != nil {
				return err
			}
			if err := s.complete(t, posted); err != nil {
				return err
			}
			if err := row(s.done); err != nil {
				return err
			}
		}
		return nil
	})
}

// receiveInfinitely receives until the user ends it, or nothing comes any more.
func (e *End) receiveInfinitely(t verbs.Thread, row func(uint64) error) error {
	r := &receiver{e: e, infinite: true, quietSince: t.Now()}
	return e.step(t, stepRun, func() error {
		var bad error
		err := r.run(t, func() bool {
			bad = row(r.got)
			return bad != nil || e.interrupted()
		})
		if errors.Is(err, errQuiet) {
			err = nil // the client has ended
		}
		return errors.Join(bad, err)
	})
}
