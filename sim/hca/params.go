package hca

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca/dcqcn"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/uar"
)

// Params are the size and the speed of a device. Profiles compose them; every
// field must be set (Check says what is missing), times may be 0 where the text
// says so. Log fields are base-2 logarithms, as in the capability page.
type Params struct {
	// Capabilities, as QUERY_HCA_CAP reports them.
	LogMaxQP, LogMaxQPSize uint8 // QPs; WQEBBs of an SQ, WQEs of an RQ
	LogMaxCQ, LogMaxCQSize uint8
	LogMaxEQ, LogMaxEQSize uint8
	LogMaxMkey, LogMaxPD   uint8
	LogMaxXRCD             uint8
	LogMaxMsg              uint8 // message bytes
	LogMaxRAReq            uint8 // READs and atomics outstanding as requester, per QP
	LogMaxRARes            uint8 // as responder
	LogMaxKLMList          uint8
	LogMaxSRQ, LogMaxSRQSz uint8 // SRQs; WQEs of one
	LogMaxMCG              uint8 // multicast groups
	MaxQPMCG               int   // QPs in one of them
	MaxWQESizeSQ           int   // bytes of a send WQE, at most 1024
	MaxWQESizeRQ           int   // bytes of a receive WQE
	MaxQCounters           int   // Q counter sets, at most 255
	GIDTableSize           int   // RoCE addresses
	LocalCAAckDelay        uint8
	Vectors                int // MSI-X vectors
	BFRegSize              int // bytes of a bfreg: two halves; 0 is a device without BlueFlame
	BARSize                int // bytes of BAR 0, a power of two: UAR pages of 4096
	Atomics                bool
	ScatterToCQE           bool
	AtomicWrite            bool     // 8-byte writes with an answer, which mlx5 does not have
	DCT                    bool     // the dynamically connected transport
	SQD                    bool     // the commands that drain a send queue, which mlx5 drivers do not know
	CQECompMax             int      // completions that a session of compressed CQEs holds at most; 0: there is no compression
	CQECompTimeout         sim.Time // for which a session holds completions back at most
	CQECompAggressive      bool     // a session waits for completions also when the bus is free
	CQArm                  CQArm    // which completions that are there an arm reports: a hypothesis
	CQEVersion             uint8    // 1: CQEs carry the user index
	CoreClockKHz           uint64   // of the free-running timer and of CQE timestamps
	PortCapMask            uint32   // CapabilityMask of an InfiniBand port after power-on (IBTA 14.2.5.6)
	PortCapMask2           uint32   // CapabilityMask2 of it
	MemicSize              int      // bytes of memory on the device for programs; 0: none
	MemicOps               bool     // a write to an address adds to a byte of it, a read of another tests and sets
	ReservedNumbers        int      // log2 of the QP numbers of an object that reserves them; 0: there is none
	UDPSport               bool     // RTS2RTS_QP takes the UDP source port
	CopyLogMax             int      // bytes that a work request may have the device copy (log2); 0: it does not copy
	DumpFillMkey           bool     // the fixed local key by which writes go nowhere and reads give zeros
	VendorPartID           uint32
	FirmwareMajor          uint16
	FirmwareMinor          uint16
	FirmwareSub            uint16

	// Send engine.
	PUs              int      // processing units
	PUChoice         PUChoice // which of them works on a QP
	PUService        sim.Time // of a PU, and of the QP, for one WQE
	PUPacket         sim.Time // for each further packet of a message
	RequesterLatency sim.Time // WQE at hand to first byte on the port, PUService included
	IssueInterval    sim.Time // between two WQEs of the whole device: its message ceiling
	WQEBuffer        int      // WQEBBs of a QP that the device holds ahead: power of two, >= 32
	PushIdle         bool     // a pushed WQE is taken only if none of its QP waits, and fetched otherwise: a hypothesis
	FetchLimit       int      // WQEBBs that one WQE fetch reads at most
	FetchPerDoorbell bool     // each doorbell has a read of its own, even when several wait
	TxBuffer         int      // payload bytes in preparation for the port, all QPs
	Quantum          int      // packets that a PU sends of a message before it looks at other QPs
	DCTurn           sim.Time // of a DCI, to leave its target and to connect to another; may be 0
	PUReliable       sim.Time // of a PU, more for a WQE of an RC QP; may be 0
	PURead           sim.Time // of a PU, for a READ or an atomic that was answered; may be 0
	PUGather         sim.Time // of a PU, more for a WQE of a SEND or WRITE whose payload it reads from memory; may be 0

	// Receive engine.
	ResponderLatency sim.Time     // frame received to DMA write issued
	AckHandling      sim.Time     // response received to completion written
	ReadHandling     sim.Time     // READ or atomic response received to its data written
	RxInterval       sim.Time     // between two request packets of the whole device
	RxScatter        sim.Time     // more, when one takes a receive WQE and has payload: two writes instead of one; may be 0
	RxAckInterval    sim.Time     // between two response packets
	ReadInterval     sim.Time     // between two READ requests served
	RQPrefetch       int          // receive WQEs that a QP holds ahead, at least 1
	AckDelay         sim.Time     // an ACK waits this long for others to join it; 0: none waits
	AtomicService    sim.Time     // between two atomics on one slot
	AtomicOnChip     sim.Time     // AtomicService in memory on the device, and the time to read it; may be 0
	AtomicSlots      int          // power of two; an address's slot is its low bits
	AtomicIndex      AtomicIndex  // which bits
	AtomicInterval   sim.Time     // between two atomics on host memory that enter the unit, whatever their slots; may be 0
	AtomicsPerSlot   int          // atomics that a slot holds; the next one holds up all behind it; 0: any number
	AtomicsHoldReads bool         // READs wait behind atomics that find no room
	NackGenerate     [2]sim.Time  // loss noticed to asked for again: [0] by the NAK of a SEND or WRITE, [1] by a new READ request
	NackReact        [2]sim.Time  // that received to sent again, by requester and responder
	AckTimeoutFloor  sim.Time     // the least ACK timeout that the device honours, where it goes by the formula of the specification; 0: none
	SelectiveRepeat  bool         // only what a NAK names is sent again; the responder keeps what came early
	RepeatWindow     int          // PSNs ahead that it keeps
	Credits          bool         // ACKs announce the receives of a queue, and requesters heed it
	AckReqPackets    int          // AckReq at the latest on every n-th packet of a long message
	XRCViolation     XRCViolation // the answer to a request for an SRQ that a target may not use
	RNRStall         sim.Time     // the engines take nothing for so long when an RNR NAK is sent; 0: they go on
	RNRDamming       bool         // what is taken up during the wait for an RNR NAK counts as sent and is not put on the wire
	FlushPoll        sim.Time     // a QP in ERR looks at its doorbell record again after this, then at doubling distances

	// ACK timer of a RoCE port (retransmit.go); the first three are fields of the register ROCE_ACCL after power-on.
	RoCEAccl                   bool // the device has the register
	RoCEAdpRetransEn           bool // adaptive retransmission
	RoCESlowRestartEn          bool // a retransmission after a timeout counts as a congestion notice
	MinAckTimeoutLimitDisabled bool // no floor, and no adaptive retransmission
	AdaptiveSchedule           RetransSchedule
	AdaptiveStart              int        // points of the schedule that are left out at its front, 0..3
	AckTimeoutMin              int        // timeout codes below it act as it
	FirstFault                 bool       // every fault is taken as the first one of a new process, whose regular timeouts begin at another time
	IBAckTimer                 IBAckTimer // the same of an InfiniBand port

	// What errors show.
	CardFaults   bool     // as ConnectX-5 and ConnectX-6 were seen to do in 2026 (requester_record.go, responder_silence.go): vendor bytes by cause, no error counters of responders, lengths checked packet by packet, completions in ERR by the doorbell record
	DeregSilence sim.Time // for which a responder answers nothing that names a deregistered key; 0: it refuses at once

	// Caches of what lives in host memory. A miss takes its time, and holds up the
	// engine that needs the entry for that time divided by the cache's overlap.
	QPCCache   int // QP contexts, a power of two, as the next two
	MPTCache   int // memory keys
	MTTCache   int // translation entries
	QPCWays    int // entries of a set, a power of two, as the next two; 1: direct-mapped
	MPTWays    int
	MTTWays    int
	QPCMiss    sim.Time // until a QP context is there
	MPTMiss    sim.Time
	MTTMiss    sim.Time
	QPCOverlap int // misses that are served at once
	MPTOverlap int
	MTTOverlap int

	// FlushOnDestroy empties the caches of memory keys and translations when a key is
	// destroyed or made free.
	FlushOnDestroy bool

	// Caches of WQEs. Size 0 is one in which everything is found.
	WQECache  int      // send WQEs
	WQEMiss   sim.Time // for which a processing unit is held up when it must read a WQE again
	RecvCache int      // queues whose receive WQEs are kept, RQPrefetch of each

	// Port. The link layer is one of those that the device has.
	LinkLayers      LinkLayers
	LinkLayer       LinkLayer
	WireRate        uint64   // bits per second
	WireOverhead    int      // bytes of a packet beside the frame given to the wire: FCS, preamble, gap
	LoopbackLatency sim.Time // port to port inside the device
	RoCEAdder       sim.Time // extra of RoCE over InfiniBand, per direction; may be 0

	// Congestion control.
	Congestion dcqcn.Params

	// On-demand paging.
	ODP odp.Params

	// UAR pages.
	UAR uar.Params

	// Command times.
	Commands CommandTimes
}

// CommandTimes are what the firmware needs for a command.
type CommandTimes struct {
	Base                sim.Time // any command not named here
	CreateQP, ModifyQP  sim.Time
	DestroyQP, CreateCQ sim.Time
	CreateMkey          sim.Time
	CreateMkeyEntry     sim.Time // for each translation entry of the list
	DestroyMkey         sim.Time
}

// Identity has the values in which one device differs from another.
type Identity struct {
	Number  int    // among the devices of a network, from 0: where the numbers of QPs begin follows from it
	GUID    uint64 // node GUID; the port's and the system image's are the same
	MAC     [6]byte
	IPv4    [4]byte // of the port's network device; the GID table is filled by commands only
	BoardID string  // PSID, at most 16 bytes
	// Netdev: the function has what a driver needs to make a network interface of an Ethernet port.
	Netdev bool
}

// Check says what is wrong with the parameters, or returns nil.
func (p *Params) Check() error {
	var errs []error
	pos := func(name string, v int64, lo, hi int64) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("hca: %s is %d, not in %d..%d", name, v, lo, hi))
		}
	}
	span := func(name string, v, lo sim.Time) {
		if v < lo || v > sim.Second {
			errs = append(errs, fmt.Errorf("hca: %s is %v, not in %v..%v", name, v, lo, sim.Second))
		}
	}
	pos("LogMaxQP", int64(p.LogMaxQP), 3, 18)
	pos("LogMaxQPSize", int64(p.LogMaxQPSize), 4, 15)
	pos("LogMaxCQ", int64(p.LogMaxCQ), 3, 24)
	pos("LogMaxCQSize", int64(p.LogMaxCQSize), 4, 22)
	pos("LogMaxEQ", int64(p.LogMaxEQ), 2, 8)
	pos("LogMaxEQSize", int64(p.LogMaxEQSize), 4, 22)
	pos("LogMaxMkey", int64(p.LogMaxMkey), 4, 24)
	pos("LogMaxPD", int64(p.LogMaxPD), 2, 24)
	pos("LogMaxSRQ", int64(p.LogMaxSRQ), 1, 24)
	pos("LogMaxSRQSz", int64(p.LogMaxSRQSz), 1, 15)
	pos("LogMaxMCG", int64(p.LogMaxMCG), 1, 24)
	pos("MaxQPMCG", int64(p.MaxQPMCG), 1, 1<<24)
	pos("LogMaxXRCD", int64(p.LogMaxXRCD), 1, 24)
	pos("LogMaxMsg", int64(p.LogMaxMsg), 12, 31)
	pos("LogMaxRAReq", int64(p.LogMaxRAReq), 0, 7)
	pos("LogMaxRARes", int64(p.LogMaxRARes), 0, 7)
	pos("MaxWQESizeSQ", int64(p.MaxWQESizeSQ), 64, 1024)
	pos("MaxWQESizeRQ", int64(p.MaxWQESizeRQ), 16, 2048)
	pos("CQEVersion", int64(p.CQEVersion), 0, 1)
	pos("CQECompMax", int64(p.CQECompMax), 0, 1<<16-1)
	pos("CQArm", int64(p.CQArm), 0, int64(len(CQArmWords))-1)
	pos("MaxQCounters", int64(p.MaxQCounters), 1, 255)
	pos("GIDTableSize", int64(p.GIDTableSize), 1, 255)
	pos("Vectors", int64(p.Vectors), 1, 2048)
	pos("CoreClockKHz", int64(p.CoreClockKHz), 1, 1e9)
	pos("PUs", int64(p.PUs), 1, 1024)
	pos("PUChoice", int64(p.PUChoice), 0, int64(len(PUChoiceWords))-1)
	span("PUService", p.PUService, 1)
	span("RequesterLatency", p.RequesterLatency, 1)
	if p.RequesterLatency < p.PUService {
		errs = append(errs, fmt.Errorf("hca: RequesterLatency is %v, less than PUService (%v), which includes it: change both", p.RequesterLatency, p.PUService))
	}
	pos("WQEBuffer", int64(p.WQEBuffer), 32, 1<<15)
	pos("FetchLimit", int64(p.FetchLimit), 16, min(512, int64(p.WQEBuffer)))
	pos("TxBuffer", int64(p.TxBuffer), 4096, 1<<30)
	pos("Quantum", int64(p.Quantum), 1, 1<<20)
	pos("RQPrefetch", int64(p.RQPrefetch), 1, 64)
	pos("AtomicSlots", int64(p.AtomicSlots), 1, 1<<20)
	pos("AtomicIndex", int64(p.AtomicIndex), 0, int64(len(AtomicIndexWords))-1)
	pos("AtomicsPerSlot", int64(p.AtomicsPerSlot), 0, 1<<16)
	pos("AtomicInterval", int64(p.AtomicInterval), 0, int64(sim.Second))
	pos("QPCCache", int64(p.QPCCache), 1, 1<<20)
	pos("MPTCache", int64(p.MPTCache), 1, 1<<20)
	pos("MTTCache", int64(p.MTTCache), 1, 1<<24)
	pos("QPCWays", int64(p.QPCWays), 1, 64)
	pos("MPTWays", int64(p.MPTWays), 1, 64)
	pos("MTTWays", int64(p.MTTWays), 1, 64)
	pos("QPCOverlap", int64(p.QPCOverlap), 1, 1024)
	pos("MPTOverlap", int64(p.MPTOverlap), 1, 1024)
	pos("MTTOverlap", int64(p.MTTOverlap), 1, 1024)
	pos("WQECache", int64(p.WQECache), 0, 1<<20)
	pos("RecvCache", int64(p.RecvCache), 0, 1<<20)
	span("FlushPoll", p.FlushPoll, sim.Nanosecond)
	span("RNRStall", p.RNRStall, 0)
	span("DeregSilence", p.DeregSilence, 0)
	span("DCTurn", p.DCTurn, 0)
	pos("XRCViolation", int64(p.XRCViolation), 0, int64(len(XRCViolationWords))-1)
	p.checkRetransmission(pos, func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) })
	pos("RepeatWindow", int64(p.RepeatWindow), 1, 1<<16)
	pos("AckReqPackets", int64(p.AckReqPackets), 1, 1<<20)
	pos("WireRate", int64(p.WireRate), 1e6, 1e13)
	pos("BARSize", int64(p.BARSize), 1<<16, 1<<32)
	pos("WireOverhead", int64(p.WireOverhead), 0, 4096)
	pos("ReservedNumbers", int64(p.ReservedNumbers), 0, 10)
	pos("CopyLogMax", int64(p.CopyLogMax), 0, 31)
	pos("MemicSize", int64(p.MemicSize), 0, int64(p.BARSize)/2)
	for _, pw := range []struct {
		name string
		v    int
	}{{"WQEBuffer", p.WQEBuffer}, {"AtomicSlots", p.AtomicSlots}, {"BARSize", p.BARSize},
		{"QPCCache", p.QPCCache}, {"MPTCache", p.MPTCache}, {"MTTCache", p.MTTCache},
		{"QPCWays", p.QPCWays}, {"MPTWays", p.MPTWays}, {"MTTWays", p.MTTWays}} {
		if pw.v&(pw.v-1) != 0 {
			errs = append(errs, fmt.Errorf("hca: %s is %d, not a power of two", pw.name, pw.v))
		}
	}
	if s := sim.TooLong(p, nil); s != "" && len(errs) == 0 { // the checks above say more
		errs = append(errs, fmt.Errorf("hca: %s", s))
	}
	if s := sim.TooLong(&p.Commands, map[string]sim.Time{"CreateMkeyEntry": sim.Millisecond}); s != "" {
		errs = append(errs, fmt.Errorf("hca: %s", s))
	}
	switch p.BFRegSize {
	case 0, 128, 256, 512:
	default:
		errs = append(errs, fmt.Errorf("hca: BFRegSize is %d, not 0, 128, 256 or 512", p.BFRegSize))
	}
	if p.LinkLayers > EitherLinkLayer || !p.LinkLayers.Has(p.LinkLayer) {
		errs = append(errs, fmt.Errorf("hca: LinkLayer is %v, which the device does not have: its port is %s only",
			p.LinkLayer, LinkLayersWords[min(p.LinkLayers, EitherLinkLayer)]))
	}
	return errors.Join(append(errs, p.UAR.Check(), p.Congestion.Check(), p.ODP.Check())...)
}

// checkRetransmission is the part of Check about the ACK timer.
func (p *Params) checkRetransmission(pos func(name string, v, lo, hi int64), wrong func(format string, a ...any)) {
	pos("AdaptiveSchedule", int64(p.AdaptiveSchedule), 0, int64(len(schedules))-1)
	pos("AdaptiveStart", int64(p.AdaptiveStart), 0, 3)
	pos("AckTimeoutMin", int64(p.AckTimeoutMin), 0, 31)
	pos("IBAckTimer", int64(p.IBAckTimer), 0, int64(len(IBAckTimerWords))-1)
	for _, f := range []struct {
		name string
		on   bool
	}{{"RoCEAdpRetransEn", p.RoCEAdpRetransEn}, {"RoCESlowRestartEn", p.RoCESlowRestartEn}, {"MinAckTimeoutLimitDisabled", p.MinAckTimeoutLimitDisabled}} {
		if f.on && !p.RoCEAccl {
			wrong("hca: %s is true, and RoCEAccl false: a device without the register ROCE_ACCL has none of its modes; set RoCEAccl to true, or %s to false", f.name, f.name)
		}
	}
	if p.FirstFault && (!p.RoCEAdpRetransEn || p.MinAckTimeoutLimitDisabled) {
		wrong("hca: FirstFault is true, and says of adaptive retransmission when its regular timeouts begin; RoCEAdpRetransEn must be true and MinAckTimeoutLimitDisabled false")
	}
}
