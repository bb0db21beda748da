package oracle

import (
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
)

// Kind is the severity of a verdict.
type Kind uint8

// Kinds of verdicts.
const (
	Violation    Kind = iota // the rule is broken
	Warning                  // allowed, but it should not be
	Note                     // recorded, to compare runs with
	Inconclusive             // a lost or missing frame would explain it
	Kinds                    // how many there are
)

var kindNames = [...]string{"violation", "warning", "note", "inconclusive"}

// String returns the kind in one word, such as "violation".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText returns the same word as String, for JSON; the error is nil.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Verdict says that a rule applies to a frame.
type Verdict struct {
	Rule  string `json:"rule"`
	Kind  Kind   `json:"kind"`
	Frame int    `json:"frame"` // number of the frame in its file, from 1; 0: the capture as a whole
	// Count is the number of frames of the flow of which it is true: a verdict on a
	// constant header field is given once, for the first.
	Count int `json:"count"`
	// Others are the numbers of the next frames, up to 8, of which an inconclusive verdict is true.
	Others []int  `json:"others,omitempty"`
	Flow   string `json:"flow,omitempty"`
	Text   string `json:"text"`
}

// String returns rule, kind, frame, flow and text in one line.
func (v Verdict) String() string {
	return fmt.Sprintf("%s %v frame %d %s: %s", v.Rule, v.Kind, v.Frame, v.Flow, v.Text)
}

// MostVerdicts is how many verdicts of one kind on one rule are kept: more than anybody reads,
// where a forged capture could cause millions.
const MostVerdicts = 1000

// ruleKind is what verdicts are counted by.
type ruleKind struct {
	rule string
	kind Kind
}

// Kept counts the verdicts that are kept, by rule and kind.
type Kept struct{ of map[ruleKind]int }

// room reports whether another verdict may be kept, and counts it.
func (k *Kept) room(of ruleKind) bool {
	if k.of == nil {
		k.of = map[ruleKind]int{}
	}
	if k.of[of] >= MostVerdicts {
		return false
	}
	k.of[of]++
	return true
}

// LeftOut says how many verdicts of a kind on a rule were not kept.
type LeftOut struct {
	Rule  string `json:"rule"`
	Kind  Kind   `json:"kind"`
	Count int    `json:"count"`
}

// Flow is what one side sends to one QP.
type Flow struct {
	Name      string `json:"flow"`
	Transport string `json:"transport"`
	Peer      string `json:"peer,omitempty"` // the flow of the other direction, once known
	Requests  int    `json:"requests"`
	Resent    int    `json:"resent"`
	Responses int    `json:"responses"`
	MTU       int    `json:"mtu,omitempty"` // learned or given
	// Retransmissions are the first 1,000 of the flow; MoreRetransmissions counts the others.
	// LostNS sums how long the first packet of each had waited since it was last sent, in
	// nanoseconds.
	Retransmissions     []Retransmission `json:"retransmissions,omitempty"`
	MoreRetransmissions int              `json:"more_retransmissions,omitempty"`
	LostNS              int64            `json:"lost_ns,omitempty"`
	// Missing are the first places that show that the capture lacks frames of the flow, and Gaps is
	// their number.
	Missing []Gap `json:"missing,omitempty"`
	Gaps    int   `json:"gaps,omitempty"`
	// JudgedTo is the last frame that is judged; later ones are only counted. 0: all are judged.
	JudgedTo int `json:"judged_to,omitempty"`
}

// Gap is where a capture lacks frames.
type Gap struct {
	Frame int    `json:"frame"` // that shows it
	Text  string `json:"text"`
}

// Result is the judgement of a capture.
type Result struct {
	Name     string    `json:"name,omitempty"` // of the run, in a file of several
	Whole    bool      `json:"whole"`
	Broken   []string  `json:"broken,omitempty"`  // why it is not whole
	Reading  []string  `json:"reading,omitempty"` // what was done to the frames first, and what cannot be judged of them
	Frames   int       `json:"frames"`
	RDMA     int       `json:"rdma_frames"`
	Flows    []Flow    `json:"flows"`
	Verdicts []Verdict `json:"verdicts"`
	LeftOut  []LeftOut `json:"left_out,omitempty"` // beyond MostVerdicts
	// Unproved counts the inconclusive verdicts that are violations if the capture has every frame.
	Unproved int `json:"unproved,omitempty"`
	// Early counts requests that were sent again before the timeout, as adaptive retransmission
	// does.
	Early int `json:"before_timeout,omitempty"`
}

// Count returns the number of verdicts of a kind, including those that were not kept.
func (r *Result) Count(k Kind) int {
	n := 0
	for _, v := range r.Verdicts {
		if v.Kind == k {
			n++
		}
	}
	for _, l := range r.LeftOut {
		if l.Kind == k {
			n += l.Count
		}
	}
	return n
}

// Sender says how a requester recovers from loss.
type Sender uint8

// Ways to recover.
const (
	GoBackN         Sender = iota
	SelectiveRepeat        // a NAK asks for one packet
	SelectiveAck           // NAKs have SACKs, in the assumed form of roce.SACKETH
)

// Options are facts about the senders and the capture that its frames do not show. The zero value
// holds none.
type Options struct {
	MTU    int // path MTU in bytes; 0: learned from First packets
	Sender Sender
	// Complete: every frame that was sent is in the capture, from the first of each
	// connection. Delivered: every frame that is not marked as lost did arrive.
	Complete, Delivered bool
	// Declared: Complete is a claim of the user's, which gives way where frames show that others
	// are missing.
	Declared bool
	// Reconnects: QPs may be reset and connected again; a first packet while nothing is
	// outstanding then begins a new connection, also with the bytes of the first time.
	Reconnects bool
	// Timeout is the local ACK timeout attribute of the senders (0: unknown); Tolerance
	// is allowed on either side of every time, in nanoseconds.
	Timeout   uint8
	Tolerance int64
	// Adaptive: the senders may be ConnectX-5 or later on RoCE, which send again by a schedule of
	// their firmware: before the timeout (not before roce.AdaptiveLeast) or after it, and up to
	// roce.AdaptiveMost times more often than RetryCount.
	Adaptive bool
	// Flight bounds how long a frame is under way, in nanoseconds; 0: 20 us. What is
	// sent within it after a NAK may have been sent before the NAK arrived.
	Flight int64
	// Limits of the QPs; nil: unknown.
	RetryCount, RNRRetry, RNRTimer, MaxRdAtomic, MaxDestRdAtomic *int
	// StartPSN is the first PSN of every requester; nil: unknown.
	StartPSN *uint32
	// PKey is the partition key of all QPs; 0: unknown.
	PKey uint16
	// Receive is the size of every receive buffer in bytes; 0: unknown.
	Receive int
	// CNPInterval is the least time between two CNPs of one scope in nanoseconds, of
	// responders with congestion control; 0: unknown.
	CNPInterval int64
	CNPScope    CNPScope
	// ODP: a responder may answer RNR where no receive is needed. SRQ: responders take
	// their receives from an SRQ. OnlyAtomics: only the atomics in the capture
	// write to the words that they act on.
	ODP, SRQ, OnlyAtomics bool
	// Kept is shared by the runs of one file, which keep MostVerdicts together; nil: each run keeps
	// so many.
	Kept *Kept
}

func (o *Options) flight() int64 {
	if o.Flight > 0 {
		return o.Flight
	}
	return 20_000
}

// ackTimeout is T_tr in nanoseconds and whether it is known.
func (o *Options) ackTimeout() (int64, bool) {
	return roce.AckTimeout(o.Timeout), o.Timeout != 0
}

// leastWait is the least time between two transmissions where the timer is t, longestWait the
// longest that is no sign of a fault: by the specification four times the timer. With adaptive
// retransmission a short timeout counts as one of code 16.
func (o *Options) leastWait(t int64) int64 {
	least := t - o.Tolerance
	if o.Adaptive {
		least = min(least, max(roce.AdaptiveLeast-o.Tolerance, roce.AdaptiveLeast/2))
	}
	return least
}

func (o *Options) longestWait(t int64) int64 {
	if o.Adaptive {
		t = max(t, roce.AckTimeout(16))
	}
	return 4*t + o.Tolerance
}

// mostRetries is how often a request may be sent again without progress, where that is known.
func (o *Options) mostRetries() (n int, known bool) {
	if o.RetryCount == nil {
		return 0, false
	}
	n = *o.RetryCount
	if o.Adaptive {
		n += roce.AdaptiveMost + max(0, int(o.Timeout)-20)
		if o.Timeout == 0 { // not known
			n += 31 - 20
		}
	}
	return n, true
}
