package errs

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// causeOfFailure is one request that fails, on a new connection.
type causeOfFailure struct {
	name     string
	access   verbs.AccessFlags // of the far queue pair
	wr       func(p *pairOfHosts) verbs.SendWR
	status   verbs.WCStatus
	counters map[string]int // of the requester, beside req_cqe_error
	received map[string]int // of the responder
}

// failureCauses are those that were counted on cards: what each moves, and nothing else does.
var failureCauses = []causeOfFailure{
	{name: "local key unknown", status: verbs.WCLocProtErr, wr: func(p *pairOfHosts) verbs.SendWR {
		wr := p.far.WriteTo(1, 0, p.mem.SGE(0, 8))
		wr.SGEs[0].LKey ^= 0x7f00
		return wr
	}},
	{name: "remote key unknown", status: verbs.WCRemAccessErr, counters: map[string]int{"req_remote_access_errors": 1}, received: map[string]int{"rx_write_requests": 1},
		wr: func(p *pairOfHosts) verbs.SendWR {
			wr := p.far.WriteTo(1, 0, p.mem.SGE(0, 8))
			wr.RKey ^= 0x7f00
			return wr
		}},
	{name: "address beyond the region", status: verbs.WCRemAccessErr, counters: map[string]int{"req_remote_access_errors": 1}, received: map[string]int{"rx_write_requests": 1},
		wr: func(p *pairOfHosts) verbs.SendWR { return p.far.WriteTo(1, farBytes, p.mem.SGE(0, 8)) }},
	{name: "not permitted by the queue pair", access: verbs.AccessRemoteRead, status: verbs.WCRemInvReqErr, counters: map[string]int{"req_remote_invalid_request": 1},
		wr: func(p *pairOfHosts) verbs.SendWR { return p.far.WriteTo(1, 0, p.mem.SGE(0, 8)) }},
	{name: "no receive", status: verbs.WCRNRRetryExcErr, received: map[string]int{"out_of_buffer": 3},
		wr: func(p *pairOfHosts) verbs.SendWR { return kit.Send(1, p.mem.SGE(0, 8)) }},
}

func (f *causeOfFailure) run(c *spec.C, p *pairOfHosts) {
	o := kit.Default()
	o.RNRRetry = 2
	if f.access != 0 {
		o.Access = f.access
	}
	p.reconnect(c, o)
	c.Status(f.name, p.a.PostAndPoll(c, f.wr(p)), f.status)
}

func requesterCounters(c *spec.C) {
	p := connectHosts(c, kit.Default(), kit.AllAccess)
	for i := range failureCauses {
		f := &failureCauses[i]
		grown := kit.Moving(c, 1, func() { f.run(c, p) })[0]
		kit.MeasuredCounter(c, f.name+": req_cqe_error", grown, "req_cqe_error", 1)
		for _, name := range []string{"req_cqe_flush_error", "req_remote_access_errors", "req_remote_invalid_request"} {
			kit.MeasuredCounter(c, f.name+": "+name, grown, name, f.counters[name])
		}
	}
}

func responderCounters(c *spec.C) {
	p := connectHosts(c, kit.Default(), kit.AllAccess)
	for i := range failureCauses {
		f := &failureCauses[i]
		grown := kit.Moving(c, p.host+1, func() { f.run(c, p) })[p.host]
		for _, name := range []string{"resp_cqe_error", "resp_cqe_flush_error", "resp_local_length_error", "resp_remote_access_errors", "packet_seq_err", "out_of_sequence"} {
			kit.MeasuredCounter(c, f.name+": "+name, grown, name, 0)
		}
	}
}

// countersOfRefused are those of the requests that a responder has received, also of one that it
// refused.
func countersOfRefused(c *spec.C) {
	p := connectHosts(c, kit.Default(), kit.AllAccess)
	for i := range failureCauses {
		f := &failureCauses[i]
		grown := kit.Moving(c, p.host+1, func() { f.run(c, p) })[p.host]
		for _, name := range []string{"rx_write_requests", "out_of_buffer"} {
			kit.MeasuredCounter(c, f.name+": "+name, grown, name, f.received[name])
		}
	}
}

// flushCounters: a flush at the head of a queue counts as an error alone, one behind it as both.
func flushCounters(c *spec.C) {
	o := kit.Default()
	o.Timeout = 20
	p := connectHosts(c, o, kit.AllAccess)
	grown := kit.Moving(c, 1, func() {
		p.b.Process.Do(c, player.DestroyQP, kit.Args{"qp": p.b.ID}, nil)
		for id := uint64(1); id <= 4; id++ {
			p.a.Post(c, p.far.WriteTo(id, 0, p.mem.SGE(0, 8)))
		}
		p.a.ModifyState(c, verbs.QPSErr)
		kit.ExpectFlushed(c, p.a.SendCQ, 4)
	})[0]
	kit.MeasuredCounter(c, "four requests flushed: req_cqe_error", grown, "req_cqe_error", 4)
	kit.MeasuredCounter(c, "four requests flushed: req_cqe_flush_error", grown, "req_cqe_flush_error", 3)
	grown = kit.Moving(c, 1, func() {
		p.reconnect(c, kit.Default())
		p.a.Post(c, p.far.WriteTo(1, farBytes, p.mem.SGE(0, 8)), p.far.WriteTo(2, 0, p.mem.SGE(0, 8)))
		wc := kit.Poll(c, p.a.SendCQ, 2)
		c.Status("the head", wc[0], verbs.WCRemAccessErr)
		c.Status("behind it", wc[1], verbs.WCWRFlushErr)
	})[0]
	kit.MeasuredCounter(c, "one failed and one flushed: req_cqe_error", grown, "req_cqe_error", 2)
	kit.MeasuredCounter(c, "one failed and one flushed: req_cqe_flush_error", grown, "req_cqe_flush_error", 1)
}

// noAnswerCounters: at timeout 14 and retry_cnt 7 six timeouts are counted, and each retransmission
// is handled as a notice.
func noAnswerCounters(c *spec.C) {
	p := connectHosts(c, kit.Default(), kit.AllAccess)
	grown := kit.Moving(c, p.host+1, func() {
		p.b.Process.Do(c, player.DestroyQP, kit.Args{"qp": p.b.ID}, nil)
		c.Status("write", p.a.PostAndPoll(c, p.far.WriteTo(1, 0, p.mem.SGE(0, 8))), verbs.WCRetryExcErr)
	})
	g := grown[0]
	kit.MeasuredCounter(c, "local_ack_timeout_err", g, "local_ack_timeout_err", 6)
	kit.MeasuredCounter(c, "req_transport_retries_exceeded", g, "req_transport_retries_exceeded", 1)
	kit.MeasuredCounter(c, "req_cqe_error", g, "req_cqe_error", 1)
	if _, has := g["rp_cnp_handled"]; has || c.Has(kit.Simulated) { // a driver shows it where the firmware lets it
		kit.Measured(c, "rp_cnp_handled less adaptive and regular timeouts", g["rp_cnp_handled"]-g["roce_adp_retrans"]-g["local_ack_timeout_err"], -1)
		kit.Measured(c, "rp_cnp_handled less roce_slow_restart_cnps", g["rp_cnp_handled"]-g["roce_slow_restart_cnps"], 0)
	}
	c.Observe("roce_adp_retrans", g["roce_adp_retrans"])
	if c.Has(kit.Simulated) {
		c.True("roce_adp_retrans as measured", g["roce_adp_retrans"] >= 4 && g["roce_adp_retrans"] <= 8, "it grew by %d, and by 4 to 8 on cards", g["roce_adp_retrans"])
	}
	for _, name := range []string{"packet_seq_err", "implied_nak_seq_err", "roce_adp_retrans_to"} {
		kit.MeasuredCounter(c, name, g, name, 0)
	}
	kit.MeasuredCounter(c, "the responder's np_cnp_sent", grown[p.host], "np_cnp_sent", 0)
	kit.Measured(c, "the responder's error counters", kit.SumOf(grown[p.host], "resp_", "out_of_sequence", "duplicate_request"), 0)
}

// detectionTimes are the waits for RETRY_EXC_ERR of faults that follow one another. Long ones are
// run where time is virtual.
func detectionTimes(c *spec.C) {
	const ms = time.Millisecond
	p := connectHosts(c, kit.Default(), kit.AllAccess)
	for _, tc := range []struct {
		timeout, retries uint8
		want             time.Duration
		long             bool
	}{
		{10, 7, 3661 * ms, true}, {12, 7, 3661 * ms, true}, {14, 7, 3661800 * time.Microsecond, false}, {16, 7, 3661800 * time.Microsecond, true},
		{17, 7, 7151700 * time.Microsecond, true}, {18, 7, 14667800 * time.Microsecond, true}, {19, 7, 29700800 * time.Microsecond, true}, {20, 7, 59766300 * time.Microsecond, true},
		{14, 1, 440600 * time.Microsecond, false}, {14, 2, 977600 * time.Microsecond, false}, {14, 3, 1514300 * time.Microsecond, false}, {14, 4, 2051400 * time.Microsecond, false},
		{17, 1, 976800 * time.Microsecond, true}, {17, 2, 1781800 * time.Microsecond, true}, {14, 0, 2050700 * time.Microsecond, false},
	} {
		if tc.long && !c.Has(kit.ExactTime) {
			continue
		}
		o := kit.Default()
		o.Timeout, o.RetryCnt = tc.timeout, tc.retries
		p.reconnect(c, o)
		p.b.Process.Do(c, player.DestroyQP, kit.Args{"qp": p.b.ID}, nil)
		p.a.Post(c, p.far.WriteTo(1, 0, p.mem.SGE(0, 8)))
		begin := c.T.Now()
		step := fmt.Sprintf("timeout %d, retry_cnt %d", tc.timeout, tc.retries)
		if wcs, all := kit.AwaitCompletionsWithin(c, "an end with "+step, p.a.SendCQ, 1, 20*time.Second+tc.want); all {
			kit.MeasuredTime(c, step, c.T.Now()-begin, tc.want, 0.01)
			c.Status(step+": status", wcs[0], verbs.WCRetryExcErr)
		}
	}
}

// transmissions counts the packets of a request that nobody answers.
func transmissions(c *spec.C) {
	p := connectHosts(c, kit.Default(), kit.AllAccess)
	for _, retries := range []uint8{0, 2, 7} {
		o := kit.Default()
		o.RetryCnt = retries
		p.reconnect(c, o)
		p.b.Process.Do(c, player.DestroyQP, kit.Args{"qp": p.b.ID}, nil)
		step := fmt.Sprintf("retry_cnt %d", retries)
		var grown map[string]int
		packets := kit.Tap(c, func() {
			grown = kit.Moving(c, 1, func() { c.Status(step, p.a.PostAndPoll(c, p.far.WriteTo(1, 0, p.mem.SGE(0, 8))), verbs.WCRetryExcErr) })[0]
		})
		sent := len(kit.PacketsTo(packets, p.b.QPN))
		if retries == 0 {
			kit.Measured(c, step+": transmissions", sent, 8)
			continue
		}
		c.Observe(step+": transmissions", sent)
		kit.Measured(c, step+": transmissions less adaptive retransmissions", sent-grown["roce_adp_retrans"], int(retries)-1)
		kit.MeasuredCounter(c, step+": local_ack_timeout_err", grown, "local_ack_timeout_err", int(retries)-1)
	}
}
