// Package workload holds loads as programs against verbs: message-rate and latency loads like those
// of perftest and of the public benchmarks on thread domains and completion sharing. A load does
// not know whether a simulator or a device runs it.
//
// Build opens the devices and objects of a Load on a testbed, and Started.Go runs it and returns a
// Result. Package experiment runs loads from scenario files.
package workload

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Verb names an operation of a load.
type Verb string

// The operations. Latency of a Write is that of a ping-pong over polled memory,
// as ib_write_lat measures it; of the others, from post to completion.
const (
	Write    Verb = "write"
	WriteImm Verb = "write_imm"
	Send     Verb = "send"
	Read     Verb = "read"
	CmpSwap  Verb = "cas"
	FetchAdd Verb = "faa"
)

var opcodes = map[Verb]verbs.WROpcode{
	Write: verbs.WRRDMAWrite, WriteImm: verbs.WRRDMAWriteImm, Send: verbs.WRSend, Read: verbs.WRRDMARead,
	CmpSwap: verbs.WRAtomicCmpSwp, FetchAdd: verbs.WRAtomicFetchAdd,
}

// TDKind says what thread domains a load uses.
type TDKind string

// Kinds of thread domains.
const (
	TDNone        TDKind = "none"
	TDPerThread   TDKind = "per-thread"
	TDIndependent TDKind = "independent"
)

// Mix is one operation of a load's mix, which has a share of the messages in proportion to its
// Weight.
type Mix struct {
	Verb   Verb
	Weight int
}

// Transport names the service of a load's QPs; empty is RC. On UC and UD the rate is
// that of the messages sent: one that arrives with no receive posted is dropped silently.
type Transport string

// Transports.
const (
	RC Transport = "rc"
	UC Transport = "uc"
	UD Transport = "ud"
)

var types = map[Transport]verbs.QPType{"": verbs.QPTRC, RC: verbs.QPTRC, UC: verbs.QPTUC, UD: verbs.QPTUD}

// carries reports whether the transport has the operation.
func (tr Transport) carries(v Verb) bool {
	switch tr {
	case UC:
		return v == Write || v == WriteImm || v == Send
	case UD:
		return v == Send
	}
	return true
}

// AckTimeout is the code of the queue pairs' ACK timeout unless a load says another one.
const AckTimeout = 14

// Load describes a load from one host to another (or to itself). Sizes are bytes.
type Load struct {
	Name     string
	From, To int // host numbers
	// Threads run on the hosts' cores Cores[i % len(Cores)].
	Threads int
	Cores   []int
	// Contexts are shared blockwise: thread i uses context i*Contexts/Threads.
	Contexts int
	// PDs of each context, taken in turn by its threads.
	PDs int
	TD  TDKind
	// QPs of each thread; QPShare threads share one set of QPs.
	QPs     int
	QPShare int
	// CQShare is how many QPs complete on one CQ (of the same context); 0: the QPs
	// of one thread share a CQ.
	CQShare int
	// MRs of each context, of MRSize bytes, used in turn (or at random) by messages.
	MRs    int
	MRSize uint64
	// LocalMRSize is the size of the regions of the host that posts; 0: MRSize.
	LocalMRSize uint64
	// Stride is the distance of the places in a region that messages use; 0: the payload, or 8.
	Stride uint64
	// PageSize of the physical memory of regions in bytes (verbs.MapOptions); 0: as the host
	// gives it.
	PageSize uint64
	Random   bool
	// Seed decides what Random and Spread choose; 0 counts as 1.
	Seed uint64
	// OnDemand has regions page on demand, at the ends named by OnDemandAt. Cold: before each
	// message the device loses its pages, and the host keeps them.
	OnDemand   OnDemand
	OnDemandAt End
	Cold       bool
	// Memory is the kind of memory under the regions at the ends named by MemoryAt; other ends use
	// the host's own.
	Memory   verbs.MemoryKind
	MemoryAt End
	// BothWays: the target posts the same mix on the same queue pairs. It is not measured.
	BothWays bool

	Transport Transport
	// NoReceive has the target post no receives: what arrives at a UC or UD queue is
	// dropped, so that the sender's limits show alone, and at an RC queue draws RNR NAKs until
	// the load's time is over.
	NoReceive bool
	// MinRNRTimer and AckTimeout are attributes of the queue pairs; nil: 12, which is 0.64 ms,
	// and 14, which is 67.1 ms.
	MinRNRTimer, AckTimeout *uint8
	// RetryCnt and RNRRetry are attributes of the queue pairs; nil: 7.
	RetryCnt, RNRRetry *uint8
	// Spread, unless 0, is how many requests a thread keeps outstanding, each on a QP
	// chosen at random; otherwise QPs come in turn, each up to its window.
	Spread int

	Mix         []Mix
	Payload     uint32
	Inline      bool
	InlineMax   uint32 // asked at QP creation; 0: what Payload needs
	Window      int    // outstanding requests of a QP
	Postlist    int    // requests of one post call
	SignalEvery int
	// Drain has a thread that has posted a whole window on a QP post there again when all of it has
	// completed, as programs do that post a batch and wait for it.
	Drain     bool
	RecvDepth int
	// RecvPostlist is how many receives of a QP are posted in one call; 0 is 1.
	RecvPostlist int
	MTU          verbs.MTU
	RdAtomic     uint8
	Env          map[string]string
	// Work is the time that a thread computes before each post call.
	Work time.Duration
	// Churn, unless empty, makes the load register or deregister memory regions of MRSize,
	// one each Work, up to MRs of a thread, and post nothing.
	Churn Churn

	// Latency makes a thread keep one request outstanding and time each.
	Latency bool
	// Timed has a load that does not measure latency time its signalled requests too, from post to
	// the poll of their completion.
	Timed bool
	// Messages of each thread; or, with Duration, as many as fit.
	Messages int
	// Start is how long after the other loads it begins.
	Start    time.Duration
	Warmup   time.Duration
	Duration time.Duration
}

// Validate reports the first value that is impossible.
func (l *Load) Validate() error {
	for _, c := range []struct {
		name     string
		v, least int
	}{
		{"threads", l.Threads, 1}, {"contexts", l.Contexts, 1}, {"pds", l.PDs, 1}, {"qps_per_thread", l.QPs, 1},
		{"qp_sharing", l.QPShare, 1}, {"window", l.Window, 1}, {"postlist", l.Postlist, 1},
		{"signal_every", l.SignalEvery, 1}, {"mrs", l.MRs, 1}, {"cq_sharing", l.CQShare, 0},
	} {
		if c.v < c.least {
			return fmt.Errorf("%s is %d, and must be at least %d", c.name, c.v, c.least)
		}
	}
	if l.Timed && (l.Latency || l.Churn != "") {
		return fmt.Errorf("only loads that measure the rate of messages also time them: leave churn out, or measure rate")
	}
	if l.Churn != "" {
		return errors.Join(l.checkChurn(), l.checkMemory())
	}
	switch {
	case l.Contexts > l.Threads:
		return fmt.Errorf("contexts is %d, which is more than the %d threads that would use them", l.Contexts, l.Threads)
	case l.Postlist > l.Window:
		return fmt.Errorf("postlist is %d, which is more than the window of %d", l.Postlist, l.Window)
	case l.SignalEvery > l.Window:
		return fmt.Errorf("signal_every is %d, which is more than the window of %d: the queue would fill without a completion to poll", l.SignalEvery, l.Window)
	case l.RecvPostlist > max(l.RecvDepth, 1):
		return fmt.Errorf("recv_postlist is %d, which is more than the recv_depth of %d", l.RecvPostlist, l.RecvDepth)
	case l.Messages == 0 && l.Duration == 0:
		return fmt.Errorf("messages or duration is needed")
	case l.Threads%l.QPShare != 0:
		return fmt.Errorf("qp_sharing is %d, which does not divide the %d threads", l.QPShare, l.Threads)
	case l.QPShare > 1 && l.share()*l.QPShare > l.Window:
		return fmt.Errorf("window is %d, and %d threads that share a queue pair, each with postlist %d and signal_every %d, need %d",
			l.Window, l.QPShare, l.Postlist, l.SignalEvery, max(l.Postlist, l.SignalEvery)*l.QPShare)
	case l.QPShare > 1 && l.Threads/l.Contexts < l.QPShare:
		return fmt.Errorf("qp_sharing is %d: threads of different contexts cannot share a QP", l.QPShare)
	case l.Stride != 0 && (l.Stride < uint64(max(l.Payload, 8)) || l.Stride%8 != 0):
		return fmt.Errorf("stride is %d bytes, and must be a multiple of 8 and at least the payload of %d: places do not overlap", l.Stride, l.Payload)
	case types[l.Transport] == 0:
		return fmt.Errorf("unknown transport %q", l.Transport)
	case (l.Latency || l.Timed) && (l.Transport == UC || l.Transport == UD):
		return fmt.Errorf("latency cannot be measured on %s, where a completion means only that the message has left", l.Transport)
	case l.unanswered() && (l.Messages > 0 || l.Latency || l.Spread > 0 || l.QPs > 1 || l.sharesQueues()):
		return fmt.Errorf("receive is none on a reliable connection, which does not go on without receives: such a load needs a duration, no messages, and one queue pair and one CQ for each thread")
	case l.Spread > 0 && (l.SignalEvery != 1 || l.Postlist != 1 || l.CQShare != 0 || l.QPShare != 1 || l.Latency || l.Timed):
		return fmt.Errorf("spread needs signal_every 1, postlist 1, and queue pairs and CQs that threads do not share, and does not measure latency")
	case l.Spread > l.Window:
		return fmt.Errorf("spread is %d, which is more than the window of %d, and all requests may fall on one queue pair", l.Spread, l.Window)
	case l.Drain && (l.share()%l.Postlist != 0 || l.share()%l.SignalEvery != 0 || l.Spread > 0 || l.Latency):
		return fmt.Errorf("drain needs a window of each thread (%d) that is a multiple of postlist and signal_every, has no spread, and does not measure latency", l.share())
	case len(l.Mix) == 0:
		return fmt.Errorf("the verb mix is empty")
	case l.QPShare > 1 && l.TD != TDNone:
		return fmt.Errorf("td and qp_sharing exclude each other: a thread domain promises that one thread uses it")
	}
	if err := errors.Join(l.checkSignals(), l.checkRegions(), l.checkLatency(), l.checkPaging(), l.checkMemory()); err != nil {
		return err
	}
	for _, m := range l.Mix {
		if _, ok := opcodes[m.Verb]; !ok {
			return fmt.Errorf("unknown verb %q", m.Verb)
		}
		if !l.Transport.carries(m.Verb) {
			return fmt.Errorf("verb %s does not exist on transport %s", m.Verb, l.Transport)
		}
		if (m.Verb == CmpSwap || m.Verb == FetchAdd) && l.Payload != 8 {
			return fmt.Errorf("payload is %d bytes, and an atomic has 8", l.Payload)
		}
		if l.Inline && (m.Verb == Read || m.Verb == CmpSwap || m.Verb == FetchAdd) {
			return fmt.Errorf("%s cannot be inline", m.Verb)
		}
		if m.Weight < 1 {
			return fmt.Errorf("weight of %s is %d, and must be at least 1", m.Verb, m.Weight)
		}
	}
	return nil
}

// Taking is the share of the load's messages that take a receive which the target posts again; 0 if
// it posts none.
func (l *Load) Taking() float64 {
	all, taking := 0, 0
	for _, m := range l.Mix {
		all += m.Weight
		if m.Verb == Send || m.Verb == WriteImm {
			taking += m.Weight
		}
	}
	if all == 0 || !l.needsReceiver() {
		return 0
	}
	return float64(taking) / float64(all)
}

// unanswered reports whether the load's requests draw RNR NAKs as long as it runs.
func (l *Load) unanswered() bool { return l.NoReceive && types[l.Transport] == verbs.QPTRC }

// share is how many requests a thread keeps outstanding on a QP.
func (l *Load) share() int { return max(l.Window/l.QPShare, l.Postlist, l.SignalEvery) }

func (l *Load) sharesQueues() bool { return l.QPShare > 1 || l.CQShare > 0 }

// ThreadResult is what one thread measured.
type ThreadResult struct {
	Thread    int
	Completed uint64 // messages, also before and after the measured time
	// Delivered are the thread's messages of the measured time, which is that of the load; without
	// a duration it ends for the thread with its last message.
	Delivered  float64
	Begin, End time.Duration
	// Full is when the thread had filled its windows for the first time; 0: never. Until then it
	// only posts, and does not poll.
	Full        time.Duration
	Latency     []time.Duration
	Register    verbs.BFReg // of its first QP
	HasRegister bool
	Locks       verbs.LockStats
}

// Flow is how long the messages of a thread took, from the beginning of its load to the last
// completion; 0 of a load that has a duration.
func (l *Load) Flow(r *Result, thread int) time.Duration {
	if l.Messages == 0 || l.Duration > 0 || l.Latency || l.Churn != "" || r.Failed != nil {
		return 0
	}
	return r.Threads[thread].End - r.Began
}

// Rate is messages per second: what was delivered in the measured time over that time.
func (r *ThreadResult) Rate() float64 { return rate(r.Delivered, r.End-r.Begin) }

// Result is what a load measured.
type Result struct {
	Threads []ThreadResult
	// Began is when the load began, its warm-up included.
	Began time.Duration
	// Begin and End are the measured time: after the warm-up until the duration is over, all
	// messages are delivered, or the load has failed.
	Begin, End time.Duration
	// Confidence is half the width of the 95 % confidence interval of the rate, as a share of
	// the rate: it is large when the rate is not steady in the measured time, and infinite
	// when a quarter of that time saw no delivery.
	Confidence float64
	// Bursts is the part of Confidence that bursts and pauses within the quarters make.
	Bursts float64
	// batches and progress are what Confidence and Bursts are of; progress is nil if it was not
	// read.
	batches  [parts]batch
	progress []float64
	// Moving is how many queue pairs got something delivered in each quarter of the measured time;
	// nil: nothing can tell.
	Moving []int
	// Refilled are the receives that the target posted in the measured time.
	Refilled uint64
	// MRPage is the size of the pages in which the device translates the load's regions, in
	// bytes, and MREntries how many entries these take on one side. 0: the device does not tell.
	MRPage    uint64
	MREntries int
	// Failed is the first completion in error, or what else ended the load; nil: nothing did.
	Failed *Failure
	// Detection is the time from a post to its completion in error, of a load that measures
	// latency; 0: there was none.
	Detection time.Duration
}

// countTranslation adds a region to the result.
func (r *Result) countTranslation(mr verbs.MR) {
	if m, ok := mr.(verbs.TranslatedMR); ok {
		var entries int
		r.MRPage, entries = m.Translation()
		r.MREntries += entries
	}
}

// Rate is messages per second of all threads: what was delivered in the measured time over that
// time.
func (r *Result) Rate() float64 {
	sum := 0.0
	for i := range r.Threads {
		sum += r.Threads[i].Delivered
	}
	return rate(sum, r.End-r.Begin)
}

func rate(delivered float64, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return delivered / in.Seconds()
}
