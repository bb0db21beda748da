package studies

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// cause is why a peer does not answer as it did before.
type cause struct {
	name, help string
	silent     bool // only the requester's ACK timer ends the wait
	switched   bool // there is a switch between the hosts
	regionLast bool // the peer registers its region after it has made its queue pair
	end        func(x *failure, t verbs.Thread) error
}

var causes = []cause{
	{name: "qp-gone", help: "the peer destroys its queue pair", silent: true, end: func(x *failure, t verbs.Thread) error { return x.peer.Do(t, "destroy", x.peer.queue.QP().Destroy) }},
	{name: "killed", help: "the peer's process is killed, its queue pair being newer than its region", silent: true, end: kill},
	{name: "killed-region-first", help: "the same, its region being newer", silent: true, regionLast: true, end: kill},
	{name: "stopped", help: "its process is stopped (SIGSTOP); the device goes on", end: func(*failure, verbs.Thread) error { return nil }}, // nothing of it runs in any trial
	{name: "region-gone", help: "it deregisters its region", end: func(x *failure, t verbs.Thread) error { return x.peer.Do(t, "deregister", x.peer.mr.Dereg) }},
	{name: "no-receive", help: "it posts no receive", end: func(*failure, verbs.Thread) error { return nil }},
	{name: "link-down", help: "the cable from the switch to the peer is unplugged", silent: true, switched: true, end: func(x *failure, t verbs.Thread) error { return x.b.TB.Wire().SetLink(t, 1, 1, false) }},
	{name: "switch-loss", help: "a switch loses the requests", silent: true, switched: true, end: func(x *failure, t verbs.Thread) error {
		return x.b.TB.Wire().Inject(t, verbs.WireRule{Match: verbs.WireMatchDirection, Count: x.Int("lost"), Action: verbs.WireDrop})
	}},
}

func causeNames() (names []string) {
	for i := range causes {
		names = append(names, causes[i].name)
	}
	return names
}

func causeHelp() string {
	var all []string
	for i := range causes {
		all = append(all, causes[i].name+": "+causes[i].help)
	}
	return strings.Join(all, "; ")
}

// kill ends the peer's process, whose objects the kernel destroys while the caller waits.
func kill(x *failure, t verbs.Thread) error {
	x.peer.Proc.Kill(t)
	return nil
}

// failure is one failure of a connection.
type failure struct {
	*experiment.Env
	kind             string // of its row
	cause            *cause
	timeout, retries int
	floor            string
	prof             *profile.Profile

	b          *bed
	from, peer *party
	row        table.Row
}

// party is one of the two processes.
type party struct {
	*workload.Member
	cq    verbs.CQ
	queue *workload.Queue
	buf   verbs.Buffer
	mr    verbs.MR
}

func (x *failure) name() string {
	return fmt.Sprintf("%s, timeout %d, retry_cnt %d, floor %s", x.cause.name, x.timeout, x.retries, x.floor)
}

func (x *failure) after() time.Duration { return time.Duration(x.Int("after_us")) * time.Microsecond }

// limit is more than a completion can take: what the timers add up to, and what wire and host need.
func (x *failure) limit() time.Duration {
	rnr := time.Duration(roce.RNRTimer(uint8(x.Int("min_rnr_timer")))) * 8
	p := &x.prof.HCA
	return 2*(time.Duration(p.Unanswered(uint8(x.timeout), uint32(x.retries)).Detection/sim.Nanosecond)+rnr+formula(x.timeout, x.retries)+time.Duration(p.DeregSilence/sim.Nanosecond)) + x.after() + 10*time.Second
}

// run carries the trial out and returns its row.
func (x *failure) run() (table.Row, error) {
	x.row.Set("row", x.kind).Set("cause", x.cause.name).Set("timeout", x.timeout).Set("retry_cnt", x.retries).Set("floor", hasFloor(&x.prof.HCA)).Set("series", x.series())
	if x.row.Set("formula_ms", nil); x.timeout > 0 {
		x.row.Set("formula_ms", formula(x.timeout, x.retries).Seconds()*1e3)
	}
	if x.cause.name == "no-receive" {
		x.row.Set("rnr_retry", x.Int("rnr_retry"))
	}
	change := func(c *testbed.Config) { c.Profile, c.Switched = x.prof, x.cause.switched }
	x.Out.AddHypotheses(x.prof)
	err := within(x.Env, time.Minute+2*x.limit(), x.name(), make([]testbed.HostConfig, 2), change, func(t verbs.Thread, b *bed) error {
		x.b = b
		return x.body(t)
	})
	return x.row, err
}

func (x *failure) body(t verbs.Thread) (err error) {
	if x.from, err = x.open(t, 0, false, 0); err != nil {
		return err
	}
	others := 0
	if strings.HasPrefix(x.cause.name, "killed") {
		others = x.Int("peer_qps")
	}
	if x.peer, err = x.open(t, 1, x.cause.regionLast, others); err != nil {
		return err
	}
	a := workload.Attempts{Timeout: uint8(x.timeout), RetryCnt: uint8(x.retries), RNRRetry: uint8(x.Int("rnr_retry")), MinRNRTimer: uint8(x.Int("min_rnr_timer")), MTU: verbs.MTU4096}
	for _, side := range [][2]*party{{x.from, x.peer}, {x.peer, x.from}} {
		side[0].queue.Tries(a)
		if err := side[0].Do(t, "connect", func(t verbs.Thread) error { return side[0].queue.Connect(t, side[1].queue) }); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	return x.from.Do(t, "write", func(t verbs.Thread) error {
		if wc, err := x.request(t, verbs.WRRDMAWrite, 1); err != nil || wc.Status != verbs.WCSuccess {
			return fmt.Errorf("a WRITE before anything fails: %v, %w", wc.Status, err)
		}
		return x.fail(t)
	})
}

// open starts a process with a queue pair, memory, and what else it shall have. What is made last
// dies first.
func (x *failure) open(t verbs.Thread, host int, regionLast bool, others int) (*party, error) {
	m, err := workload.OpenMember(t, x.b.TB.Hosts()[host], workload.XRCShared)
	if err != nil {
		return nil, err
	}
	p := &party{Member: m}
	size := uint64(max(x.Int("payload"), odpPage))
	queues := func(t verbs.Thread, n int) error {
		for range n {
			q, err := p.Queue(t, workload.RC, verbs.QPInitAttr{SendCQ: p.cq, RecvCQ: p.cq, Cap: verbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1, MaxRecvWR: 1, MaxRecvSGE: 1}})
			if err != nil {
				return err
			}
			if p.queue = q; regionLast && n == 1 {
				return nil
			}
		}
		return nil
	}
	return p, p.Do(t, "open", func(t verbs.Thread) (err error) {
		if p.cq, err = p.Ctx.CreateCQ(t, verbs.CQAttr{CQE: 16}); err != nil {
			return err
		}
		if p.buf, err = p.Proc.Map(t, size, verbs.MapOptions{}); err != nil {
			return err
		}
		region := func() (err error) {
			p.mr, err = p.PD.RegMR(t, p.buf.Addr(), size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			return err
		}
		if !regionLast {
			if err := region(); err != nil {
				return err
			}
			return queues(t, others+1)
		}
		if err := queues(t, 1); err != nil {
			return err
		}
		own := p.queue
		if err := queues(t, others); err != nil {
			return err
		}
		p.queue = own
		return region()
	})
}

// request posts a request of n bytes and waits for its completion.
func (x *failure) request(t verbs.Thread, op verbs.WROpcode, n int) (wc verbs.WC, err error) {
	if err := x.post(t, op, n); err != nil {
		return wc, err
	}
	return x.wait(t)
}

func (x *failure) post(t verbs.Thread, op verbs.WROpcode, n int) error {
	wr := verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, RemoteAddr: x.peer.buf.Addr(), RKey: x.peer.mr.RKey(),
		SGEs: []verbs.SGE{{Addr: x.from.buf.Addr(), Length: uint32(n), LKey: x.from.mr.LKey()}}}
	_, err := x.from.queue.QP().PostSend(t, []verbs.SendWR{wr})
	return err
}

func (x *failure) wait(t verbs.Thread) (verbs.WC, error) {
	var wc [1]verbs.WC
	n, err := x.from.cq.PollWait(t, wc[:], x.limit())
	if err == nil && n == 0 {
		err = fmt.Errorf("no completion in %v", x.limit())
	}
	return wc[0], err
}

// mark is what memory of the requester holds.
const mark = 0xa5

// fail has the cause happen, and requests fail of it.
func (x *failure) fail(t verbs.Thread) error {
	n, op := x.Int("payload"), verbs.WRRDMAWrite
	if x.cause.name == "no-receive" {
		op = verbs.WRSend
	}
	if _, err := x.from.buf.WriteAt(t, bytes.Repeat([]byte{mark}, n), 0); err != nil {
		return err
	}
	var failed error
	end := func(t verbs.Thread) { failed = x.cause.end(x, t) }
	killed := strings.HasPrefix(x.cause.name, "killed")
	var by verbs.Thread
	if x.after() == 0 {
		by = t.Process().Start(t, "cause", -1, end)
	}
	if by != nil && !killed {
		t.Join(by)
	}
	for {
		m, err := x.measure(t)
		if err != nil {
			return err
		}
		if err := x.post(t, op, n); err != nil {
			return err
		}
		m.at = t.Now()
		if x.after() > 0 && by == nil {
			t.Sleep(x.after())
			by = t.Process().Start(t, "cause", -1, end)
		}
		wc, err := x.wait(t)
		if err != nil {
			return err
		}
		m.done = t.Now()
		if wc.Status == verbs.WCSuccess && killed { // the kernel has not come to its queue pair
			t.Sleep(killStep)
			continue
		}
		t.Join(by)
		if failed != nil {
			return failed
		}
		return x.report(t, m, wc, n)
	}
}

// killStep lies between two WRITEs to a process that is being killed.
const killStep = 5 * time.Microsecond

// moment is what had been counted when a request was posted.
type moment struct {
	at, done time.Duration
	counters [2]map[string]uint64
	sent     float64
}

func (x *failure) measure(t verbs.Thread) (m moment, err error) {
	for host := range m.counters {
		if m.counters[host], err = x.b.TB.HardwareCounters(t, host); err != nil {
			return m, err
		}
	}
	for _, r := range x.b.TB.Counters() {
		if r.Unit == "host0/mlx5_0/hca" && r.Name == "tx_requests" {
			m.sent = float64(r.Value)
		}
	}
	return m, nil
}

// detectionCounters are those of hw_counters that say something of failures, of both sides.
var detectionCounters = []string{"local_ack_timeout_err", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart_cnps", "rp_cnp_handled", "np_cnp_sent", "req_transport_retries_exceeded",
	"req_cqe_error", "req_cqe_flush_error", "req_remote_access_errors", "req_remote_invalid_request", "rnr_nak_retry_err", "packet_seq_err", "implied_nak_seq_err", "out_of_sequence", "duplicate_request",
	"out_of_buffer", "rx_write_requests", "resp_cqe_error", "resp_cqe_flush_error", "resp_remote_access_errors", "resp_local_length_error"}

// shownCounters are those that the table shows; the others stay, or say the same.
var shownCounters = []string{"requester_local_ack_timeout_err", "requester_roce_adp_retrans", "requester_rp_cnp_handled", "requester_req_transport_retries_exceeded", "requester_req_cqe_error",
	"requester_req_remote_access_errors", "requester_rnr_nak_retry_err", "responder_rx_write_requests", "responder_out_of_buffer", "responder_resp_cqe_error", "responder_resp_remote_access_errors"}

// report completes the row by how the request of a moment ended.
func (x *failure) report(t verbs.Thread, m moment, wc verbs.WC, n int) error {
	now, err := x.measure(t)
	if err != nil {
		return err
	}
	grown := func(host int, name string) int { return int(now.counters[host][name] - m.counters[host][name]) }
	took := (m.done - m.at).Seconds() * 1e3
	r := &x.row
	r.Set("detection_ms", nil).Set("transmissions", int(now.sent-m.sent)).Set("adaptive", grown(0, "roce_adp_retrans")).Set("regular", grown(0, "local_ack_timeout_err"))
	r.Set("status", wc.Status.String()).Set("vendor_err", nil)
	if wc.Status == verbs.WCSuccess {
		r.Set("completion_ms", took)
	} else {
		r.Set("detection_ms", took).Set("vendor_err", fmt.Sprintf("%#02x", wc.VendorErr))
	}
	r.Set("landed_bytes", nil)
	if !strings.HasPrefix(x.cause.name, "killed") { // its memory is gone
		err = x.peer.Do(t, "look", func(t verbs.Thread) error {
			got := make([]byte, n)
			_, err := x.peer.buf.ReadAt(t, got, 0)
			r.Set("landed_bytes", bytes.Count(got, []byte{mark}))
			return err
		})
	}
	for host, side := range []string{"requester_", "responder_"} {
		for _, name := range detectionCounters {
			if _, ok := now.counters[host][name]; ok {
				r.Set(side+name, grown(host, name))
			}
		}
	}
	return err
}
