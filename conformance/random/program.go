// Package random draws programs of verbs and runs each on one target or two. Package model judges
// every result; with two targets random also compares what the verbs contract fixes: what calls
// return, the completions of each queue in their order, and the bytes in memory. If a program shows
// a difference, random searches for a smaller one that shows it too, and writes it as a case for
// the suite.
package random

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/verbs"
)

// Kinds of steps.
const (
	StepRecv    = "recv"     // ibv_post_recv of one receive
	StepSend    = "send"     // ibv_post_send, and then all requests complete
	StepError   = "error"    // the queue pair goes to ERR
	StepDereg   = "dereg"    // ibv_dereg_mr
	StepRestart = "restart"  // both queue pairs go to ERR and are drained, reset and connected anew; memory is as at first
	StepRenew   = "renew"    // both queue pairs are destroyed, with completions left unpolled, and new ones connected on the same CQs
	StepPoll    = "poll"     // ibv_poll_cq for N completions
	StepArm     = "arm"      // ibv_req_notify_cq
	StepEvent   = "event"    // ibv_get_cq_event until there is none
	StepResize  = "resize"   // ibv_resize_cq to N entries, counted from Anchor
	StepLimit   = "limit"    // ibv_modify_srq of the limit to N, counted from Anchor
	StepReg     = "reg"      // ibv_reg_mr of a deregistered region, on a piece of its memory
	StepRereg   = "rereg"    // ibv_rereg_mr: the translation if Pieces, the PD if N (another) or All (the queue pairs'), else the access flags
	StepEvict   = "evict"    // madvise(MADV_DONTNEED) of N pages of a region on demand, all if N is 0
	StepAdvise  = "advise"   // ibv_advise_mr of the piece: prefetch number N
	StepModify  = "modify"   // ibv_modify_qp of the attributes in Mask, to Access or to N (at most the largest value of each)
	StepDrain   = "drain"    // the queue pair goes to SQD, with a notification if N is not 0, or back to RTS
	StepModer   = "moderate" // ibv_modify_cq to N completions and Period microseconds
	StepQuery   = "query"    // ibv_query_qp
	StepGroup   = "group"    // ibv_attach_mcast, or ibv_detach_mcast if N is 0
	StepBind    = "bind"     // a window is bound to the piece; a piece of length 0 unbinds it
)

// Anchors: the value to which N is added.
const (
	AnchorNone    = ""        // 0
	AnchorWaiting = "waiting" // the completions in the CQ, or the receives in the SRQ
	AnchorCap     = "cap"     // the size of the CQ or SRQ
)

// Program is what a process does with two connected queue pairs, A (side 0) and B (side 1), and
// regions that both use.
type Program struct {
	UC                bool   `json:",omitempty"` // the queue pairs are of type UC
	UD                bool   `json:",omitempty"` // the queue pairs are of type UD
	XRC               bool   `json:",omitempty"` // the queue pairs are an XRC sender and its target; with none of UC, UD, XRC: RC
	IPv6              bool   `json:",omitempty"` // the path is between GIDs of IPv6 addresses
	Group             bool   `json:",omitempty"` // UD: there is a multicast group
	Class             uint8  `json:",omitempty"` // traffic class of the path
	Flow              uint32 `json:",omitempty"` // flow label of the path
	SL                uint8  `json:",omitempty"` // service level of the path
	Hops              uint8  `json:",omitempty"` // hop limit of the path; 0: 64
	SRQ               bool   `json:",omitempty"` // both queue pairs take their receives from one SRQ
	Extended          bool   `json:",omitempty"` // requests are posted by ibv_wr_*, not ibv_post_send
	Atomic            bool   `json:",omitempty"` // atomics are allowed
	MTU               verbs.MTU
	RNRRetry, Retries uint8
	RNRTimer, Timeout uint8                `json:",omitempty"` // codes of min_rnr_timer and timeout; 0: 12
	SigAll            bool                 `json:",omitempty"`
	CQE               int                  `json:",omitempty"` // entries of each CQ; 0: 63
	Depth             int                  `json:",omitempty"` // requests in each queue; 0: 32
	Window            verbs.MWType         `json:",omitempty"` // type of the two memory windows; 0: none
	Inline            int                  `json:",omitempty"` // max_inline_data; 0: 64
	Shared            bool                 `json:",omitempty"` // one CQ for all queues
	SGEs              int                  `json:",omitempty"` // of each request; 0: 4
	PSN               uint32               `json:",omitempty"` // of the first request of A, and of B 0x1000 more; 0: that of the kit
	RdAtomic          uint8                `json:",omitempty"` // max_rd_atomic and max_dest_rd_atomic; 0: 8; 255: the most; 254: one more is tried first
	CQ                CQShape              // of the CQs
	Domain            bool                 `json:",omitempty"` // queue pairs are of a thread domain
	Access            [2]verbs.AccessFlags // of the queue pairs
	Regions           []Region
	Faults            []Fault `json:",omitempty"` // on the wire
	Steps             []Step
}

// CQShape says how CQs are created and polled. Completions do not depend on it.
type CQShape struct {
	Extended   bool  `json:",omitempty"` // by ibv_create_cq_ex, and polled by ibv_start_poll
	Wide       bool  `json:",omitempty"` // entries of 128 bytes
	Compressed uint8 `json:",omitempty"` // cqe_comp_res_format
}

// Fault disturbs packets on the wire. Programs with faults use RC, whose retries repair the damage.
type Fault struct {
	Action verbs.WireAction // WireDrop, WireCorrupt, WireDelay or WireDuplicate
	To     int              `json:",omitempty"` // side (0 or 1) whose queue pair the packets go to
	Skip   int              `json:",omitempty"` // packets that pass first
	Count  int              // packets that are then disturbed
	Delay  int              `json:",omitempty"` // in microseconds
}

// Region is a memory region that is registered at the start.
type Region struct {
	Size   int
	Access verbs.AccessFlags
	Off    int  `json:",omitempty"` // of its first byte in the memory
	Place  int  `json:",omitempty"` // where its addresses are: PlaceOwn and so on
	Big    bool `json:",omitempty"` // on demand: 4 GiB that nobody touches precede it in the region
	Paged  bool `json:",omitempty"` // on demand
}

// Step is one step of a program.
type Step struct {
	Kind   string
	Side   int       `json:",omitempty"`
	Region int       `json:",omitempty"` // of StepDereg and StepRereg
	Pieces []Piece   `json:",omitempty"` // of StepRecv
	List   []Request `json:",omitempty"` // of StepSend; of StepError, StepDrain and StepRenew: requests in flight at that time
	Late   int       `json:",omitempty"` // of StepSend: microseconds after which the receive for it, of Pieces, is posted
	Leave  bool      `json:",omitempty"` // of StepSend: its completions stay in the CQ; of StepRenew: events are not taken before the destruction
	Times  int       `json:",omitempty"` // of StepSend and StepRecv: repetitions; 0: once
	All    bool      `json:",omitempty"` // of StepRenew: the CQs are renewed too

	Recv      bool              `json:",omitempty"` // the receive CQ, not the send CQ
	N         int               `json:",omitempty"`
	Anchor    string            `json:",omitempty"`
	Solicited bool              `json:",omitempty"` // of StepArm
	Access    verbs.AccessFlags `json:",omitempty"` // of StepRereg, and of StepModify
	Mask      verbs.QPAttrMask  `json:",omitempty"` // of StepModify
	Period    int               `json:",omitempty"` // of StepModer
}

// Piece is a part of a region.
type Piece struct {
	Region, Off, Len int
	WrongKey         bool `json:",omitempty"`
	Window           int  `json:",omitempty"` // 1 or 2: the key is that window's; 0: the region's
	Old              bool `json:",omitempty"` // the key is the one that the window had before
}

// Request is a send request.
type Request struct {
	Op         verbs.WROpcode
	Flags      verbs.SendFlags `json:",omitempty"`
	Local      []Piece         `json:",omitempty"`
	Remote     Piece           // as long as the local pieces together
	BadQKey    bool            `json:",omitempty"` // of a datagram: a Q_Key that is not the receiver's
	Group      bool            `json:",omitempty"` // a datagram to the multicast group
	SRQ        int             `json:",omitempty"` // of XRC: that of the side, or noSRQ
	Most       int             `json:",omitempty"` // of inline data, 1 to 3: the first piece makes it MaxInline-2+Most bytes long; 0: as Local says
	Imm        uint32          `json:",omitempty"`
	CompareAdd uint64          `json:",omitempty"`
	Swap       uint64          `json:",omitempty"`
}

// idOf is the wr_id of a request, or of a receive.
func idOf(step, i int) uint64 { return uint64(step)<<8 | uint64(i) }

// received is added to the wr_id of receives.
const received = 1 << 32

// marker is the wr_id of the request behind those of a step.
const marker = 0xff

// length is that of the local pieces.
func length(l []Piece) int {
	n := 0
	for _, p := range l {
		n += p.Len
	}
	return n
}

func (r *Request) atomic() bool {
	return r.Op == verbs.WRAtomicCmpSwp || r.Op == verbs.WRAtomicFetchAdd
}

// sends reports whether the request takes a receive of the other side.
func (r *Request) sends() bool {
	return r.Op == verbs.WRSend || r.Op == verbs.WRSendImm || r.Op == verbs.WRSendInv || r.Op == verbs.WRRDMAWriteImm
}

// remote reports whether the request names memory of the other side, which may be written.
func (r *Request) remote() (names, written bool) {
	switch r.Op {
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteImm:
		return true, true
	case verbs.WRRDMARead:
		return true, false
	}
	return r.atomic(), r.atomic()
}

// remotePiece is what the request touches at the other side.
func (r *Request) remotePiece() Piece {
	p := r.Remote
	p.Len = length(r.Local)
	if r.atomic() {
		p.Len = 8
	}
	return p
}

// refused reports whether the library may refuse the request for its inline data or its pieces.
// Behind others in a list, libmlx5 (44, 50) rings for them with what lay in the ring before, and
// when they start is a matter of chance.
func (p *Program) refused(r *Request) bool {
	return r.Flags&verbs.SendInline != 0 && length(r.Local) > int(p.options().Cap.MaxInline) || len(r.Local) > p.sges()
}

// touched are the pieces that a request reads and those that it writes; not what a receive takes.
func (r *Request) touched() (reads, writes []Piece) {
	names, written := r.remote()
	if r.Op == verbs.WRRDMARead || r.atomic() {
		writes = append(writes, r.Local...)
	} else {
		reads = append(reads, r.Local...)
	}
	if names && written {
		writes = append(writes, r.remotePiece())
	}
	if names && r.Op == verbs.WRRDMARead {
		reads = append(reads, r.remotePiece())
	}
	return reads, writes
}

func overlap(a, b []Piece) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Region == y.Region && x.Off < y.Off+y.Len && y.Off < x.Off+x.Len {
				return true
			}
		}
	}
	return false
}

// groups cuts a list where the contract fixes no order: one request writes what another of the
// group reads or writes, or what a receive may write is touched. Each group completes before the
// next begins. On UC, where a message that is dropped may end the receiver, each request does.
func (p *Program) groups(list []Request, received []Piece) (cuts []int) {
	from := 0
	for i := range list {
		if i > from && (p.UC || p.UD || p.refused(&list[i])) {
			cuts = append(cuts, i)
			from = i
		}
		reads, writes := list[i].touched()
		for k := from; k < i; k++ {
			r, w := list[k].touched()
			if list[k].sends() {
				w = append(w, received...)
			}
			mine := writes
			if list[i].sends() {
				mine = append(mine, received...)
			}
			if overlap(w, reads) || overlap(w, mine) || overlap(r, mine) {
				cuts = append(cuts, i)
				from = i
				break
			}
		}
	}
	return append(cuts, len(list))
}

// Valid returns what is wrong with a program that was not drawn here, or nil.
func (p *Program) Valid() error {
	piece := func(x Piece) error {
		if x.Window < 0 || x.Window > 2 || p.Window == 0 && x.Window > 0 {
			return fmt.Errorf("window %d", x.Window)
		}
		if x.Region < 0 || x.Region >= len(p.Regions) || x.Off < 0 || x.Len < 0 || x.Len > maxLen || x.Off > 2*maxLen {
			return fmt.Errorf("a piece %+v of %d regions, of %d bytes at most", x, len(p.Regions), maxLen)
		}
		if size := memorySize; x.Off+x.Len > size {
			return fmt.Errorf("a piece %+v of memory of %d bytes", x, size)
		}
		return nil
	}
	switch {
	case len(p.Regions) == 0 || len(p.Regions) > maxRegions:
		return fmt.Errorf("%d regions: want 1 to %d", len(p.Regions), maxRegions)
	case p.Window > verbs.MWType2:
		return fmt.Errorf("windows of type %d", p.Window)
	case len(p.Steps) > maxSteps:
		return fmt.Errorf("%d steps, at most %d", len(p.Steps), maxSteps)
	case p.MTU < verbs.MTU256 || p.MTU > verbs.MTU4096 || p.Retries > faultRetries && !p.paged() || p.Retries > pagedRetries || p.RNRRetry > lateRetries && (p.RNRRetry != pagedRetries || !p.paged()):
		return fmt.Errorf("MTU %d, %d retries, %d retries for want of receives: want 1 to 5, at most %d, and at most %d", p.MTU, p.Retries, p.RNRRetry, faultRetries, lateRetries)
	}
	if p.RNRTimer > 31 || p.Timeout != 0 && (p.Timeout < 8 || p.Timeout > 14) {
		return fmt.Errorf("codes %d of min_rnr_timer and %d of timeout: at most 31, and 8 to 14", p.RNRTimer, p.Timeout)
	}
	if err := p.validFaults(); err != nil {
		return err
	}
	if p.CQE < 0 || p.CQE > maxNumber || p.Depth < 0 || p.Depth == 1 || p.Depth > queueDepth {
		return fmt.Errorf("CQs of %d entries, queues of %d: at most %d and 2 to %d", p.CQE, p.Depth, maxNumber, queueDepth)
	}
	if p.Inline < 0 || p.Inline > maxNumber {
		return fmt.Errorf("%d bytes of inline data, at most %d", p.Inline, maxNumber)
	}
	if p.XRC {
		if err := p.validXRC(); err != nil {
			return err
		}
	}
	if p.UC && p.UD {
		return errors.New("queue pairs of type UC and UD")
	}
	if p.UC && (p.SRQ || p.Access[0]&p.Access[1]&verbs.AccessRemoteWrite == 0) {
		return fmt.Errorf("UC has no SRQ, and its queue pairs allow writes, by which the end of a step is seen")
	}
	if err := p.validShapes(); err != nil {
		return err
	}
	for i, s := range p.Steps {
		if err := p.validStep(s, piece); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// validFaults says what is wrong with the faults.
func (p *Program) validFaults() error {
	all := 0
	for _, f := range p.Faults {
		known := f.Action == verbs.WireDrop || f.Action == verbs.WireCorrupt || f.Action == verbs.WireDelay || f.Action == verbs.WireDuplicate
		if !known || f.To != 0 && f.To != 1 || f.Skip < 0 || f.Skip > maxNumber || f.Count < 1 || f.Delay < 0 || f.Delay > maxDelay || (f.Delay > 0) != (f.Action == verbs.WireDelay) {
			return fmt.Errorf("a fault %+v: want one that drops, corrupts, delays (at most %d microseconds) or doubles packets to side 0 or 1", f, maxDelay)
		}
		all += f.Count
	}
	if all > maxFaults || len(p.Faults) > 0 && (p.UC || p.UD || p.Retries != faultRetries) {
		return fmt.Errorf("%d faults: at most %d, on RC with %d retries", all, maxFaults, faultRetries)
	}
	return nil
}

// ofUC reports whether a UC queue pair has the operation.
func ofUC(op verbs.WROpcode) bool {
	return op == verbs.WRSend || op == verbs.WRSendImm || op == verbs.WRRDMAWrite || op == verbs.WRRDMAWriteImm
}

func (p *Program) validStep(s Step, piece func(Piece) error) error {
	for _, r := range s.List {
		if r.Most < 0 || r.Most > 3 || r.Most > 0 && (r.Flags&verbs.SendInline == 0 || len(r.Local) == 0) {
			return fmt.Errorf("inline data of kind %d: 0 to 3, with a piece", r.Most)
		}
		if r.Group && !p.Group {
			return errors.New("a datagram to no group")
		}
		if r.SRQ < 0 || r.SRQ > noSRQ || r.SRQ > 0 && !p.XRC {
			return fmt.Errorf("SRQ %d", r.SRQ)
		}
		if r.Op == verbs.WRSendInv && (p.Window != verbs.MWType2 || r.Remote.Window == 0) {
			return errors.New("SEND_WITH_INV without a window of type 2")
		}
		if p.UC && !ofUC(r.Op) || p.UD && r.Op != verbs.WRSend && r.Op != verbs.WRSendImm {
			return fmt.Errorf("opcode %d on UC or UD", r.Op)
		}
	}
	all := append([]Piece{{Region: s.Region}}, s.Pieces...)
	for _, r := range s.List {
		all = append(append(all, r.Local...), r.Remote)
	}
	for _, x := range all {
		if err := piece(x); err != nil {
			return err
		}
	}
	if s.Side != 0 && s.Side != 1 || len(s.List) > maxList || len(s.Pieces) > maxSGEs+1 {
		return fmt.Errorf("side %d, %d requests, %d pieces", s.Side, len(s.List), len(s.Pieces))
	}
	if !strings.Contains(" recv send error dereg restart renew poll arm event resize limit reg rereg evict advise modify query drain moderate bind group ", " "+s.Kind+" ") {
		return fmt.Errorf("kind %q", s.Kind)
	}
	if s.N < -maxNumber || s.N > maxNumber || !strings.Contains(",,waiting,cap,", ","+s.Anchor+",") {
		return fmt.Errorf("number %d, anchor %q", s.N, s.Anchor)
	}
	if s.Kind == StepGroup && !p.Group {
		return errors.New("a member of no group")
	}
	if s.Kind == StepBind && (len(s.Pieces) != 1 || s.Pieces[0].Window == 0 || p.UC || p.UD) {
		return errors.New("a bind takes one window and one piece, on RC")
	}
	if s.Kind == StepReg && (len(s.Pieces) != 1 || s.Pieces[0].Len == 0) || s.Kind == StepRereg && len(s.Pieces) > 1 || s.Kind == StepAdvise && (len(s.Pieces) != 1 || s.N < 0 || s.N > 2) || s.Kind == StepEvict && s.N < 0 {
		return fmt.Errorf("%s %d with %d pieces", s.Kind, s.N, len(s.Pieces))
	}
	if s.Kind == StepLimit && !p.SRQ && !p.XRC {
		return errors.New("a limit without an SRQ")
	}
	if s.Late < 0 || s.Late > maxDelay || s.Times > maxNumber && len(s.List) > 1 {
		return fmt.Errorf("a receive %d microseconds late, or %d times %d requests", s.Late, s.Times, len(s.List))
	}
	if len(p.Faults) > 0 && s.Kind == StepModify && s.Mask&^modifiedUnderFaults != 0 {
		return fmt.Errorf("a change of the attributes %#x, while retries make faults good", uint32(s.Mask))
	}
	if s.Times < 0 || s.Times > maxTimes || s.Period < 0 || s.Period > maxPeriod || s.Kind == StepModer && s.N < 0 {
		return fmt.Errorf("%d times, %d completions, a period of %d", s.Times, s.N, s.Period)
	}
	if s.Kind == StepModify && (s.Mask&^modified != 0 || s.Mask == 0 || s.N < 0) {
		return fmt.Errorf("a change of the attributes %#x to %d", uint32(s.Mask), s.N)
	}
	if s.Kind == StepModify && p.UC && s.Mask&verbs.QPMaskAccessFlags != 0 && s.Access&verbs.AccessRemoteWrite == 0 {
		return errors.New("UC queue pairs allow writes, by which the end of a step is seen")
	}
	return nil
}
