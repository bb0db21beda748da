package studies

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// rnrTimers are the codes that incast tries: 0.01, 0.64 and 5.12 ms.
var rnrTimers = []uint8{1, 12, 18}

// incastSeries are the receivers of incast.
var incastSeries = []string{"cold", "prefetched", "pinned"}

// incastMost is how many bytes of receive buffers there may be: the simulation keeps all that
// arrives in memory of its own.
const incastMost = 16 << 30

// checkIncast refuses receive buffers that are too large.
func (x *odpRun) checkIncast() error {
	if err := varies(x.Env, "link.pfc", "give --set pfc="); err != nil {
		return err
	}
	if all := uint64(x.Int("senders")*x.Int("messages")) * x.message; all > incastMost {
		return experiment.Usagef("senders=%d, messages=%d and message_kib=%d are %d MiB of receive buffers, one for each message; %d are possible: give less of one of them", x.Int("senders"), x.Int("messages"), x.message>>10, all>>20, incastMost>>20)
	}
	return nil
}

func (x *odpRun) incast() error {
	var rows []table.Row
	for _, series := range incastSeries {
		for _, timer := range rnrTimers {
			row, err := x.rushRow("incast", series, nil, rushed{buffers: series, timer: timer})
			if err != nil {
				return err
			}
			rows = append(rows, row)
			x.Emit(row)
		}
	}
	x.concludeIncast(rows)
	if err := x.incastPairs(); err != nil {
		return err
	}
	return x.incastReads()
}

// rushed says how senders rush a receiver: with its buffers cold, prefetched or pinned, one message
// after the other or in pairs.
type rushed struct {
	buffers string
	timer   uint8
	pairs   bool
	third   bool // pairs.third
}

// rushRow is the row of a run of incast, with switches of the profile on.
func (x *odpRun) rushRow(kind, series string, switches []string, r rushed) (table.Row, error) {
	run := func(x *odpRun) (table.Row, error) {
		row := incastRow(kind, series, r.timer)
		return row, x.incastRun(series, r.timer, switches, &row, func(t verbs.Thread, b *bed) error { return x.rush(t, b, r, &row) })
	}
	row, err := run(x)
	if err != nil {
		return row, err
	}
	return row, x.confirmed(&row, fmt.Sprintf("incast, %s, RNR timer %v ms", series, timerMS(r.timer)), false, run)
}

// thirdAfter is how long a sender waits for the second of a pair before it posts a further request,
// longer than an RNR wait takes; 0: it posts none.
func (r *rushed) thirdAfter() time.Duration {
	if !r.third {
		return 0
	}
	return 2*time.Duration(roce.RNRTimer(r.timer)) + 500*time.Microsecond
}

// rush has all hosts but the last send to that one at once.
func (x *odpRun) rush(t verbs.Thread, b *bed, r rushed, row *table.Row) error {
	senders, messages := x.Int("senders"), x.Int("messages")
	hosts := b.TB.Hosts()
	to, err := workload.OpenEndpoint(t, hosts[senders], workload.EndpointOptions{QPs: senders, Sends: 1, Receives: messages, MinRNRTimer: r.timer, MTU: verbs.MTU4096})
	if err != nil {
		return err
	}
	var all []*sending
	for i := range senders {
		s, err := x.newIncastSender(t, hosts[i], to, i, r)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	var mr verbs.MR
	err = to.Do(t, "receives", func(t verbs.Thread) (err error) {
		mr, err = x.postReceives(t, to, r.buffers, senders, messages)
		return err
	})
	if err != nil {
		return err
	}
	b.mark(t, nil)
	b.Begin(t)
	start := t.Now()
	var threads []verbs.Thread
	failed, further := make([]error, senders), make([]int, senders)
	for i, s := range all {
		threads = append(threads, s.from.Proc.Start(t, "sender", -1, func(t verbs.Thread) {
			if r.pairs {
				further[i], failed[i] = s.sendsPairs(t, messages, time.Duration(x.Int("gap_us"))*time.Microsecond, r.thirdAfter())
			} else {
				failed[i] = s.sends(t, messages)
			}
		}))
	}
	for _, th := range threads {
		t.Join(th)
	}
	took := t.Now() - start
	end := start + took
	for _, err := range failed {
		if bad := (*badCompletion)(nil); errors.As(err, &bad) {
			row.Set("error", fmt.Sprint(bad.status))
			took = 0
		} else if err != nil {
			return err
		}
	}
	b.Limit(t, row, end)
	return to.Do(t, "count", func(t verbs.Thread) error {
		var regions []verbs.MR
		if r.buffers != "pinned" {
			regions = append(regions, mr)
		}
		x.countIncast(t, b, row, regions, took, sum(further))
		return nil
	})
}

// newIncastSender is a sender with one pinned message, on its own host.
func (x *odpRun) newIncastSender(t verbs.Thread, host verbs.Host, to *workload.Endpoint, i int, r rushed) (*sending, error) {
	sends := 1
	if r.pairs {
		sends = 2 + mostThird
	}
	from, err := workload.OpenEndpoint(t, host, workload.EndpointOptions{QPs: 1, Sends: sends, Receives: 1, MinRNRTimer: r.timer, MTU: verbs.MTU4096})
	if err != nil {
		return nil, err
	}
	s := &sending{from: from, to: to, message: x.message, window: 1}
	if err := from.Connect(t, 0, to, i); err != nil {
		return nil, err
	}
	return s, from.Do(t, "map", func(t verbs.Thread) error {
		m, err := from.Proc.Map(t, x.message, verbs.MapOptions{})
		if err != nil {
			return err
		}
		s.target = m
		mr, err := s.register(t, m, 0, x.message)
		if err == nil {
			s.rkey = mr.LKey()
		}
		return err
	})
}

// postReceives posts a receive for each message, each into memory of its own.
func (x *odpRun) postReceives(t verbs.Thread, to *workload.Endpoint, buffers string, senders, messages int) (verbs.MR, error) {
	size := uint64(senders*messages) * x.message
	m, err := to.Proc.Map(t, size, verbs.MapOptions{Lazy: buffers != "pinned"})
	if err != nil {
		return nil, err
	}
	access := localAccess
	if buffers != "pinned" {
		access |= verbs.AccessOnDemand
	}
	mr, err := to.PD.RegMR(t, m.Addr(), size, access)
	if err != nil {
		return nil, err
	}
	for i := range senders {
		for k := range messages {
			at := verbs.SGE{Addr: m.Addr() + uint64(i*messages+k)*x.message, Length: uint32(x.message), LKey: mr.LKey()}
			if buffers == "prefetched" {
				if err := to.PD.AdviseMR(t, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, []verbs.SGE{at}); err != nil {
					return nil, err
				}
			}
			if _, err := to.QP(i).PostRecv(t, []verbs.RecvWR{{SGEs: []verbs.SGE{at}}}); err != nil {
				return nil, err
			}
		}
	}
	return mr, nil
}

// sends sends messages one after the other.
func (s *sending) sends(t verbs.Thread, messages int) error {
	for range messages {
		wr := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{{Addr: s.target.Addr(), Length: uint32(s.message), LKey: s.rkey}}}
		if _, err := s.from.QP(0).PostSend(t, []verbs.SendWR{wr}); err != nil {
			return err
		}
		if _, err := s.reap(t); err != nil {
			return err
		}
	}
	return nil
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}

// countIncast says what the messages took, and how often they were sent; further packets were
// needed beside theirs.
func (x *odpRun) countIncast(t verbs.Thread, b *bed, row *table.Row, regions []verbs.MR, took time.Duration, further int) {
	senders := x.Int("senders")
	messages := uint64(senders * x.Int("messages"))
	row.Set("goodput_gbps", gbps(messages*x.message, took))
	b.count(t, row, senders, regions)
	var packets, timeouts, sequence, dammed uint64
	all := b.grownOfAll()
	for i, sent := range all[:senders] {
		packets += sent["tx_requests"]
		dammed += sent["requests_dammed"]
		if c, err := b.TB.HardwareCounters(t, i); err == nil {
			timeouts += c["local_ack_timeout_err"] + c["roce_adp_retrans"]
			sequence += c["packet_seq_err"]
		}
	}
	const mtu = 4096
	needed := messages*((x.message+mtu-1)/mtu) + uint64(further)
	row.Set("rnr_naks", all[senders]["rnr_naks_sent"]).Set("timeouts", timeouts)
	if row.Get("row") != "incast" { // whose senders have one message at a time
		row.Set("dammed", dammed).Set("sequence_naks", sequence)
	}
	if row.Get("error") == nil { // else nobody knows how much of the messages was sent
		efficiency(row, messages*x.message)
		row.Set("sent_again_percent", 100*(float64(packets)/float64(needed)-1))
	}
}
