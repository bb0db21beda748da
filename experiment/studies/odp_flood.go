package studies

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// floodSeries are READs of many queue pairs into the same pages: what packet flood, a hypothesis,
// adds to them.
var floodSeries = []flood{
	{name: "reads, cold"},
	{name: "reads, cold, flood", on: true},
	{name: "reads, prefetched, flood", on: true, prefetched: true},
}

type flood struct {
	name           string
	on, prefetched bool
}

// readBytes is how much a queue pair reads, into a place of its own beside those of the others.
const readBytes = 64

// floodSwitches turn packet flood on, with the profile's times where it has them: asked for again
// each 0.5 ms, and 10 ms until the next queue pair learns.
func (x *odpRun) floodSwitches() []string {
	or := func(key string, v, otherwise sim.Time) string {
		v = cmp.Or(v, otherwise)
		return fmt.Sprintf("%s=%dps", key, int64(v))
	}
	p := &x.Profile.HCA.ODP
	return []string{or("odp.ask_again", p.AskAgain, 500*sim.Microsecond), or("odp.learn", p.Learn, 10*sim.Millisecond)}
}

// noFlood turns packet flood off, in a profile that has it.
var noFlood = []string{"odp.ask_again=0ps", "odp.learn=0ps"}

func (x *odpRun) incastReads() error {
	var rows []table.Row
	for _, s := range floodSeries {
		for _, timer := range rnrTimers {
			switches := noFlood
			if s.on {
				switches = x.floodSwitches()
			}
			var done []readDone
			run := func(x *odpRun) (table.Row, error) {
				row := incastRow("incast-reads", s.name, timer)
				return row, x.incastRun(s.name, timer, switches, &row, func(t verbs.Thread, b *bed) (err error) {
					done, err = x.readAll(t, b, s.prefetched, timer, &row)
					return err
				})
			}
			row, err := run(x)
			if err != nil {
				return err
			}
			first := done
			if err := x.confirmed(&row, fmt.Sprintf("incast, %s, RNR timer %v ms", s.name, timerMS(timer)), false, run); err != nil {
				return err
			}
			rows = append(rows, row)
			x.Emit(row)
			if timer == rnrTimers[0] { // the others are the same
				x.emitDone(s.name, first)
			}
		}
	}
	x.concludeReads(rows)
	return nil
}

// readDone is the completion of a READ, with what the host had counted by then.
type readDone struct {
	at                time.Duration // since the first was posted
	pages, askedAgain uint64
}

// emitDone says when how many queue pairs had what they have read.
func (x *odpRun) emitDone(series string, done []readDone) {
	for n := 1; ; n = min(2*n, len(done)) {
		var row table.Row
		d := done[n-1]
		row.Set("row", "incast-read").Set("scenario", "incast").Set("series", series).Set("queues_done", n).Set("time_us", microseconds(d.at))
		row.Set("goodput_gbps", gbps(uint64(n)*readBytes, d.at)).Set("page_faults", d.pages).Set("asked_again", d.askedAgain)
		x.Emit(row)
		if n == len(done) {
			return
		}
	}
}

// readAll has the last host read over many queue pairs from all others at once, and returns when
// how many had completed.
func (x *odpRun) readAll(t verbs.Thread, b *bed, prefetched bool, timer uint8, row *table.Row) ([]readDone, error) {
	queues, sources := x.Int("read_qps"), x.Int("senders")
	hosts := b.TB.Hosts()
	to, err := workload.OpenEndpoint(t, hosts[sources], workload.EndpointOptions{QPs: queues, Sends: 1, Receives: 1, MinRNRTimer: timer, MTU: verbs.MTU4096})
	if err != nil {
		return nil, err
	}
	reads := make([]verbs.SendWR, queues)
	for i := range min(sources, queues) {
		if err := x.connectSource(t, b, hosts[i], to, i, timer, reads); err != nil {
			return nil, err
		}
	}
	var done []readDone
	var mr verbs.MR
	err = to.Do(t, "read", func(t verbs.Thread) (err error) {
		if mr, err = x.landingPages(t, to, prefetched, reads); err != nil {
			return err
		}
		b.mark(t, []verbs.MR{mr})
		b.Begin(t)
		start := t.Now()
		if done, err = readOnce(t, b, to, reads); err == nil {
			b.Limit(t, row, start+done[len(done)-1].at)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return done, to.Do(t, "count", func(t verbs.Thread) error {
		took := done[len(done)-1].at
		row.Set("read_qps", queues).Set("time_us", microseconds(took)).Set("goodput_gbps", gbps(uint64(queues)*readBytes, took))
		b.count(t, row, sources, []verbs.MR{mr})
		all := b.grownOfAll()
		naks, sent := uint64(0), all[sources]
		for _, source := range all[:sources] {
			naks += source["rnr_naks_sent"]
		}
		row.Set("rnr_naks", naks).Set("asked_again", sent["requests_asked_again"])
		row.Set("sent_again_percent", 100*(float64(sent["tx_requests"])/float64(queues)-1))
		return nil
	})
}

// connectSource has a host offer memory to read, and connects its share of the receiver's queue
// pairs to it.
func (x *odpRun) connectSource(t verbs.Thread, b *bed, host verbs.Host, to *workload.Endpoint, first int, timer uint8, reads []verbs.SendWR) error {
	step := x.Int("senders")
	from, err := workload.OpenEndpoint(t, host, workload.EndpointOptions{QPs: (len(reads)-first-1)/step + 1, Sends: 1, Receives: 1, MinRNRTimer: timer, MTU: verbs.MTU4096})
	if err != nil {
		return err
	}
	for i := first; i < len(reads); i += step {
		if err := to.Connect(t, i, from, i/step); err != nil {
			return err
		}
	}
	return from.Do(t, "source", func(t verbs.Thread) error {
		m, err := from.Proc.Map(t, odpPage, verbs.MapOptions{})
		if err != nil {
			return err
		}
		mr, err := from.PD.RegMR(t, m.Addr(), odpPage, verbs.AccessRemoteRead)
		if err != nil {
			return err
		}
		for i := first; i < len(reads); i += step {
			reads[i].RemoteAddr, reads[i].RKey = m.Addr(), mr.RKey()
		}
		return nil
	})
}

// landingPages are where the READs land: pages that nobody has touched, which many share.
func (x *odpRun) landingPages(t verbs.Thread, to *workload.Endpoint, prefetched bool, reads []verbs.SendWR) (verbs.MR, error) {
	size := (uint64(len(reads))*readBytes + odpPage - 1) / odpPage * odpPage
	m, err := to.Proc.Map(t, size, verbs.MapOptions{Lazy: true})
	if err != nil {
		return nil, err
	}
	mr, err := to.PD.RegMR(t, m.Addr(), size, localAccess|verbs.AccessOnDemand)
	if err != nil {
		return nil, err
	}
	for i := range reads {
		reads[i].Opcode, reads[i].Flags = verbs.WRRDMARead, verbs.SendSignaled
		reads[i].SGEs = []verbs.SGE{{Addr: m.Addr() + uint64(i)*readBytes, Length: readBytes, LKey: mr.LKey()}}
	}
	if prefetched {
		all := verbs.SGE{Addr: m.Addr(), Length: uint32(size), LKey: mr.LKey()}
		err = to.PD.AdviseMR(t, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, []verbs.SGE{all})
	}
	return mr, err
}

// readOnce posts one READ on each queue pair, and returns when how many had completed.
func readOnce(t verbs.Thread, b *bed, to *workload.Endpoint, reads []verbs.SendWR) (done []readDone, err error) {
	start := t.Now()
	for i := range reads {
		if _, err := to.QP(i).PostSend(t, reads[i:i+1]); err != nil {
			return nil, err
		}
	}
	for len(done) < len(reads) {
		n, err := awaitCompletions(t, to.CQ)
		if err != nil {
			return nil, err
		}
		counted := b.grown(len(b.TB.Hosts()) - 1)
		for range n {
			done = append(done, readDone{t.Now() - start, counted["num_page_fault_pages"], counted["requests_asked_again"]})
		}
	}
	return done, nil
}

func (x *odpRun) concludeReads(rows []table.Row) {
	cold, flood, pre := of(rows, "reads, cold"), of(rows, "reads, cold, flood"), of(rows, "reads, prefetched, flood")
	n, took := x.Note, time.Duration(0)
	if us, ok := flood.Float("time_us"); ok {
		took = time.Duration(us * 1000)
	}
	n("incast: READs into the same cold pages, one on each of the queue pairs (read_qps=%s), have all landed after %s us; with packet flood after %s us, which is %s times as long as a page fault takes (%s us): the requests were sent again %s times meanwhile, each answered by a response that was dropped. The receiver's RNR timer has no part in it.",
		num(cold, "read_qps"), num(cold, "time_us"), num(flood, "time_us"), timesFault(took, cold), num(cold, "fault_us"), num(flood, "asked_again"))
	n("incast: the time of packet flood is the number of queue pairs times odp.learn. Where the profile has none, 10 ms was chosen, with which 64 queue pairs come to the published 3 to 4 orders of magnitude; nothing is known of its true size, and a queue pair alone waits for it once only (--sweep read_qps=1,8,64).")
	n("incast: what helps against packet flood: memory in which READs land that is pinned or prefetched (%s us, asked again %s times); few queue pairs that read into a page for the first time at once, for instance one READ into each page before the others.", num(pre, "time_us"), num(pre, "asked_again"))
}
