package studies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// pairSeries are incast with two messages of each sender at a time: what packet damming, a
// hypothesis, adds to it.
var pairSeries = []pairs{
	{name: "pairs, cold", buffers: "cold"},
	{name: "pairs, cold, damming", buffers: "cold", damming: true},
	{name: "pairs, cold, damming, third request", buffers: "cold", damming: true, third: true},
	{name: "pairs, prefetched, damming", buffers: "prefetched", damming: true},
}

// pairs is a series of incast in which senders post two messages, one gap_us after the other, and
// wait for both.
type pairs struct {
	name, buffers string
	damming       bool
	third         bool // a WRITE of no bytes is posted when the second of a pair stays out
}

// damming is what turns packet damming on, and noDamming off, in a profile that has it.
const damming, noDamming = "hca.rnr_damming=true", "hca.rnr_damming=false"

func (x *odpRun) incastPairs() error {
	var rows []table.Row
	for _, s := range pairSeries {
		for _, timer := range rnrTimers {
			switches := []string{noDamming}
			if s.damming {
				switches = []string{damming}
			}
			row, err := x.rushRow("incast-pairs", s.name, switches, rushed{buffers: s.buffers, timer: timer, pairs: true, third: s.third})
			if err != nil {
				return err
			}
			rows = append(rows, row)
			x.Emit(row)
		}
	}
	x.concludePairs(rows)
	return nil
}

// incastRow is a row of incast with a receiver's RNR timer.
func incastRow(kind, series string, timer uint8) (row table.Row) {
	row.Set("row", kind).Set("scenario", "incast").Set("series", series).Set("rnr_timer_ms", timerMS(timer)).Set("min_rnr_timer", int(timer))
	return row
}

// timerMS is the time of an RNR timer's code in ms.
func timerMS(timer uint8) float64 { return float64(roce.RNRTimer(timer)) / 1e6 }

// incastRun runs body on the hosts of incast, with switches of the profile on, which are
// hypotheses.
func (x *odpRun) incastRun(series string, timer uint8, switches []string, row *table.Row, body func(t verbs.Thread, b *bed) error) error {
	what := fmt.Sprintf("%s, RNR timer %v ms", series, timerMS(timer))
	if err := x.Next("incast: " + what); err != nil {
		return err
	}
	p := x.Profile.Clone()
	for _, s := range switches {
		if err := p.Assign(s); err != nil {
			return err
		}
	}
	x.Out.AddHypotheses(p)
	if on := pitfalls(p.Hypotheses()); len(on) > 0 {
		row.Set("hypotheses", list(on))
	}
	p.Link.PFC = x.String("pfc") == "true"
	change := func(c *testbed.Config) { c.Switched, c.Profile = true, p }
	return on(x.Env, "incast, "+what, make([]testbed.HostConfig, x.Int("senders")+1), change, body)
}

// pitfalls are those of hypotheses that packet damming and packet flood are made of.
func pitfalls(hypotheses []string) []string {
	return slices.DeleteFunc(hypotheses, func(h string) bool {
		key, _, _ := strings.Cut(h, "=")
		return key != "hca.rnr_damming" && key != "odp.ask_again" && key != "odp.learn"
	})
}

// sendsPairs sends messages two by two, each pair when the one before has completed, and returns
// how many further requests it has posted: third, if it is not 0, is how long it waits for the
// second of a pair before each.
func (s *sending) sendsPairs(t verbs.Thread, messages int, gap, third time.Duration) (further int, err error) {
	message := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{{Addr: s.target.Addr(), Length: uint32(s.message), LKey: s.rkey}}}
	for left := messages; left > 0; left -= 2 {
		n := min(left, 2)
		for i := range n {
			if i > 0 {
				t.Sleep(gap)
			}
			if err := s.post(t, message); err != nil {
				return further, err
			}
		}
		m, err := s.reapPair(t, n, third)
		if further += m; err != nil {
			return further, err
		}
	}
	return further, nil
}

func (s *sending) post(t verbs.Thread, wr verbs.SendWR) error {
	_, err := s.from.QP(0).PostSend(t, []verbs.SendWR{wr})
	return err
}

// mostThird is how many further requests go behind a pair at most: one that is posted during the
// wait for an RNR NAK is dammed as well.
const mostThird = 4

// reapPair waits until out requests have completed, and the further ones that it posts: one each
// time that none has completed for as long as third says, once the first has.
func (s *sending) reapPair(t verbs.Thread, out int, third time.Duration) (further int, err error) {
	for posted := out; out > 0; {
		poll := awaitCompletions
		if third > 0 && out < posted && further < mostThird {
			poll = func(t verbs.Thread, cq verbs.CQ) (int, error) { return pollCompletions(t, cq, third) }
		}
		n, err := poll(t, s.from.CQ)
		if err != nil {
			return further, err
		}
		if out -= n; n > 0 {
			continue
		}
		if err := s.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled}); err != nil {
			return further, err
		}
		out, posted, further = out+1, posted+1, further+1
	}
	return further, nil
}

func (x *odpRun) concludePairs(rows []table.Row) {
	n := x.Note
	n("incast: Fukuoka, Sato and Taura (ISPASS 2021) say in their abstract that two pitfalls of on-demand paging take 3 to 4 orders of magnitude longer than a common page fault; more of the paper was not at hand. That these are packet damming and packet flood, and how those come about, is cited from memory, and a hypothesis here, off in every profile: rows name what is on in the column hypotheses.")
	for i, timer := range rnrTimers {
		plain, dammed, third := &rows[i], &rows[len(rnrTimers)+i], &rows[2*len(rnrTimers)+i]
		n("incast: in pairs, with an RNR timer of %s ms and %d us between the two messages: %s Gb/s; with packet damming %s, where %s requests were posted while their queue pair waited out an RNR NAK and never put on the wire, and %s ACK timeouts brought them.%s",
			table.Short(timerMS(timer)), x.Int("gap_us"), num(plain, "goodput_gbps"), num(dammed, "goodput_gbps"), num(dammed, "dammed"), num(dammed, "timeouts"), thirdHelps(third))
	}
	pre := of(rows, "pairs, prefetched, damming")
	n("incast: into prefetched receive buffers pairs go at %s Gb/s with packet damming, since without an RNR NAK nothing is dammed (%s requests); so it is with pinned ones.", num(pre, "goodput_gbps"), num(pre, "dammed"))
	timeout := x.ackTimeout()
	n("incast: a dammed request waits until its queue pair sends again, %v here, which is %s times as long as a page fault takes. Profile connectx-4 has a device that honours none below 500 ms (assumed).", timeout.Round(time.Millisecond/10), timesFault(timeout, &rows[0]))
	n("incast: what helps against packet damming, in this order: receive buffers that are pinned or prefetched; a further request, such as a WRITE of no bytes, when the first one has completed and the next stays out for longer than an RNR wait, since its PSN shows the hole and draws a NAK (during the wait it would be dammed itself); a short ACK timeout, of which this device honours no less than %v; requests that are posted together, before a NAK can come (gap_us=0).", time.Duration(x.Profile.HCA.FirstRetransmission(1)/sim.Nanosecond))
}

// ackTimeout is how long the queue pairs of endpoints, which have code 14, wait for an ACK before
// they send again.
func (x *odpRun) ackTimeout() time.Duration {
	const code = 14
	return time.Duration(x.Profile.HCA.FirstRetransmission(code) / sim.Nanosecond)
}

// timesFault is how many page faults of a row a time is.
func timesFault(d time.Duration, r *table.Row) string {
	fault, ok := r.Float("fault_us")
	if !ok || fault == 0 {
		return "-"
	}
	return table.Short(table.Rounded(microseconds(d) / fault))
}

// thirdHelps says what a third request does.
func thirdHelps(r *table.Row) string {
	if r.Get("error") != nil {
		return ""
	}
	return fmt.Sprintf(" With a third request behind a pair that stays out %s Gb/s, %s sequence NAKs and %s timeouts.", num(r, "goodput_gbps"), num(r, "sequence_naks"), num(r, "timeouts"))
}
