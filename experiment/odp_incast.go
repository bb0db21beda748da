package experiment

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// rnrTimers are the codes that incast tries: 0.01, 0.64 and 5.12 ms.
var rnrTimers = []uint8{1, 12, 18}

// incastSeries are the receivers of incast.
var incastSeries = []string{"cold", "prefetched", "pinned"}

// incastMost is how many bytes of receive buffers there may be: the simulation keeps all that arrives in memory of its own.
const incastMost = 16 << 30

// checkIncast refuses receive buffers that are too large.
func (x *odpRun) checkIncast() error {
	if all := uint64(x.Int("senders")*x.Int("messages")) * x.message; all > incastMost {
		return usage("senders=%d, messages=%d and message_kib=%d are %d MiB of receive buffers, one for each message; %d are possible: give less of one of them", x.Int("senders"), x.Int("messages"), x.message>>10, all>>20, incastMost>>20)
	}
	return nil
}

func (x *odpRun) incast() error {
	var rows []Row
	for _, series := range incastSeries {
		for _, timer := range rnrTimers {
			ms := float64(roce.RNRTimer(timer)) / 1e6
			if err := x.next(fmt.Sprintf("incast: %s, RNR timer %v ms", series, ms)); err != nil {
				return err
			}
			var row Row
			row.Set("row", "incast").Set("scenario", "incast").Set("series", series).Set("rnr_timer_ms", ms).Set("min_rnr_timer", int(timer))
			hosts := make([]testbed.HostConfig, x.Int("senders")+1)
			change := func(c *testbed.Config) {
				c.Switched = true
				c.Profile = c.Profile.Clone()
				c.Profile.Link.PFC = x.String("pfc") == "true"
			}
			err := x.on(fmt.Sprintf("incast, %s, RNR timer %v ms", series, ms), hosts, change, func(t verbs.Thread, b *bed) error {
				return x.rush(t, b, series, timer, &row)
			})
			if err != nil {
				return err
			}
			rows = append(rows, row)
			x.Emit(row)
		}
	}
	x.concludeIncast(rows)
	return nil
}

// rush has all hosts but the last send to that one at once.
func (x *odpRun) rush(t verbs.Thread, b *bed, series string, timer uint8, row *Row) error {
	senders, messages := x.Int("senders"), x.Int("messages")
	hosts := b.tb.Hosts()
	to, err := workload.OpenEndpoint(t, hosts[senders], workload.EndpointOptions{QPs: senders, Sends: 1, Receives: messages, MinRNRTimer: timer, MTU: verbs.MTU4096})
	if err != nil {
		return err
	}
	var all []*sending
	for i := range senders {
		s, err := x.newIncastSender(t, hosts[i], to, i, timer)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	var mr verbs.MR
	err = to.Do(t, "receives", func(t verbs.Thread) (err error) {
		mr, err = x.postReceives(t, to, series, senders, messages)
		return err
	})
	if err != nil {
		return err
	}
	b.mark(t, nil)
	start := t.Now()
	var threads []verbs.Thread
	failed := make([]error, senders)
	for i, s := range all {
		threads = append(threads, s.from.Proc.Start(t, "sender", -1, func(t verbs.Thread) { failed[i] = s.sends(t, messages) }))
	}
	for _, th := range threads {
		t.Join(th)
	}
	took := t.Now() - start
	for _, err := range failed {
		if bad := (*badCompletion)(nil); errors.As(err, &bad) {
			row.Set("error", fmt.Sprint(bad.status))
			took = 0
		} else if err != nil {
			return err
		}
	}
	t.Sleep(settle)
	return to.Do(t, "count", func(t verbs.Thread) error {
		var regions []verbs.MR
		if series != "pinned" {
			regions = append(regions, mr)
		}
		x.countIncast(t, b, row, regions, took)
		return nil
	})
}

// newIncastSender is a sender with one pinned message, on its own host.
func (x *odpRun) newIncastSender(t verbs.Thread, host verbs.Host, to *workload.Endpoint, i int, timer uint8) (*sending, error) {
	from, err := workload.OpenEndpoint(t, host, workload.EndpointOptions{QPs: 1, Sends: 1, Receives: 1, MinRNRTimer: timer, MTU: verbs.MTU4096})
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
func (x *odpRun) postReceives(t verbs.Thread, to *workload.Endpoint, series string, senders, messages int) (verbs.MR, error) {
	size := uint64(senders*messages) * x.message
	m, err := to.Proc.Map(t, size, verbs.MapOptions{Lazy: series != "pinned"})
	if err != nil {
		return nil, err
	}
	access := localAccess
	if series != "pinned" {
		access |= verbs.AccessOnDemand
	}
	mr, err := to.PD.RegMR(t, m.Addr(), size, access)
	if err != nil {
		return nil, err
	}
	for i := range senders {
		for k := range messages {
			at := verbs.SGE{Addr: m.Addr() + uint64(i*messages+k)*x.message, Length: uint32(x.message), LKey: mr.LKey()}
			if series == "prefetched" {
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

// countIncast says what the messages took, and how often they were sent.
func (x *odpRun) countIncast(t verbs.Thread, b *bed, row *Row, regions []verbs.MR, took time.Duration) {
	senders := x.Int("senders")
	messages := uint64(senders * x.Int("messages"))
	row.Set("goodput_gbps", gbps(messages*x.message, took))
	b.count(t, row, senders, regions)
	var packets, timeouts uint64
	for i := range senders {
		packets += b.grown(i)["tx_requests"]
		if c, err := b.tb.HardwareCounters(t, i); err == nil {
			timeouts += c["local_ack_timeout_err"]
		}
	}
	const mtu = 4096
	needed := messages * ((x.message + mtu - 1) / mtu)
	row.Set("rnr_naks", b.grown(senders)["rnr_naks_sent"]).Set("timeouts", timeouts)
	if row.Get("error") == nil { // else nobody knows how much of the messages was sent
		efficiency(row, messages*x.message)
		row.Set("sent_again_percent", 100*(float64(packets)/float64(needed)-1))
	}
}
