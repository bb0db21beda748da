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
	LogMaxQP          uint8 `bounds:"3..18"` // QPs
	LogMaxQPSize      uint8 `bounds:"4..15"` // WQEBBs of an SQ, WQEs of an RQ
	LogMaxCQ          uint8 `bounds:"3..24"`
	LogMaxCQSize      uint8 `bounds:"4..22"`
	LogMaxEQ          uint8 `bounds:"2..8"`
	LogMaxEQSize      uint8 `bounds:"4..22"`
	LogMaxMkey        uint8 `bounds:"4..24"`
	LogMaxPD          uint8 `bounds:"2..24"`
	LogMaxXRCD        uint8 `bounds:"1..24"`
	LogMaxMsg         uint8 `bounds:"12..31"` // message bytes
	LogMaxRAReq       uint8 `bounds:"0..7"`   // READs and atomics outstanding as requester, per QP
	LogMaxRARes       uint8 `bounds:"0..7"`   // as responder
	LogMaxKLMList     uint8
	LogMaxSRQ         uint8 `bounds:"1..24"`                    // SRQs
	LogMaxSRQSz       uint8 `bounds:"1..15"`                    // WQEs of one
	LogMaxMCG         uint8 `bounds:"1..24"`                    // multicast groups
	MaxQPMCG          int   `key:"max_qp_mcg" bounds:"1..2^24"` // QPs in one of them
	MaxWQESizeSQ      int   `unit:"size" bounds:"64..1024"`     // bytes of a send WQE, at most 1024
	MaxWQESizeRQ      int   `unit:"size" bounds:"16..2048"`     // bytes of a receive WQE
	MaxQCounters      int   `bounds:"1..255"`                   // Q counter sets, at most 255
	GIDTableSize      int   `bounds:"1..255"`                   // RoCE addresses
	LocalCAAckDelay   uint8
	Vectors           int `bounds:"1..2048"`                // MSI-X vectors
	BFRegSize         int `unit:"size"`                     // bytes of a bfreg: two halves; 0 is a device without BlueFlame
	BARSize           int `unit:"size" bounds:"2^16..2^32"` // bytes of BAR 0, a power of two: UAR pages of 4096
	Atomics           bool
	ScatterToCQE      bool
	AtomicWrite       bool     // 8-byte writes with an answer, which mlx5 does not have
	DCT               bool     // the dynamically connected transport
	SQD               bool     // the commands that drain a send queue, which mlx5 drivers do not know
	CQECompMax        int      `bounds:"0..65535"` // completions that a session of compressed CQEs holds at most; 0: there is no compression
	CQECompTimeout    sim.Time // for which a session holds completions back at most
	CQECompAggressive bool     // a session waits for completions also when the bus is free
	CQArm             CQArm    `words:"unannounced unpolled"`                      // which completions that are there an arm reports: a hypothesis
	CQEVersion        uint8    `bounds:"0..1"`                                     // 1: CQEs carry the user index
	CoreClockKHz      uint64   `key:"core_clock" unit:"frequency" bounds:"1..1e9"` // of the free-running timer and of CQE timestamps
	PortCapMask       uint32   `unit:"hex"`                                        // CapabilityMask of an InfiniBand port after power-on (IBTA 14.2.5.6)
	PortCapMask2      uint32   `unit:"hex"`                                        // CapabilityMask2 of it
	MemicSize         int      `unit:"size"`                                       // bytes of memory on the device for programs; 0: none
	MemicOps          bool     // a write to an address adds to a byte of it, a read of another tests and sets
	ReservedNumbers   int      `bounds:"0..10"` // log2 of the QP numbers of an object that reserves them; 0: there is none
	UDPSport          bool     // RTS2RTS_QP takes the UDP source port
	SWSteering        bool     `key:"sw_steering"`                // programs write flow table entries and header changes to memory of the device; it has tables of sent packets, too
	DCIStreams        int      `key:"dci_streams" bounds:"0..15"` // streams of a DCI, and those that may be in error (log2 of each); 0: a DCI has one
	CopyLogMax        int      `bounds:"0..31"`                   // bytes that a work request may have the device copy (log2); 0: it does not copy
	DumpFillMkey      bool     // the fixed local key by which writes go nowhere and reads give zeros
	VendorPartID      uint32   `unit:"hex"`
	FirmwareMajor     uint16
	FirmwareMinor     uint16
	FirmwareSub       uint16

	// Send engine.
	PUs              int      `key:"pus" bounds:"1..1024"` // processing units
	PUChoice         PUChoice `words:"any number"`         // which of them works on a QP
	PUService        sim.Time `bounds:"1.."`               // of a PU, and of the QP, for one WQE
	PUPacket         sim.Time // for each further packet of a message
	RequesterLatency sim.Time `bounds:"1.."` // WQE at hand to first byte on the port, PUService included
	IssueInterval    sim.Time // between two WQEs of the whole device: its message ceiling
	WQEBuffer        int      `bounds:"32..2^15"` // WQEBBs of a QP that the device holds ahead: power of two, >= 32
	PushIdle         bool     // a pushed WQE is taken only if none of its QP waits, and fetched otherwise: a hypothesis
	FetchLimit       int      // WQEBBs that one WQE fetch reads at most
	FetchPerDoorbell bool     // each doorbell has a read of its own, even when several wait
	TxBuffer         int      `unit:"size" bounds:"4096..2^30"` // payload bytes in preparation for the port, all QPs
	Quantum          int      `bounds:"1..2^20"`                // packets that a PU sends of a message before it looks at other QPs
	DCTurn           sim.Time `bounds:"0.."`                    // of a DCI, to leave its target and to connect to another; may be 0
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
	RQPrefetch       int          `bounds:"1..64"` // receive WQEs that a QP holds ahead, at least 1
	AckDelay         sim.Time     // an ACK waits this long for others to join it; 0: none waits
	AtomicService    sim.Time     // between two atomics on one slot
	AtomicOnChip     sim.Time     // AtomicService in memory on the device, and the time to read it; may be 0
	AtomicSlots      int          `bounds:"1..2^20"`    // power of two; an address's slot is its low bits
	AtomicIndex      AtomicIndex  `words:"bytes words"` // which bits
	AtomicInterval   sim.Time     `bounds:"0.."`        // between two atomics on host memory that enter the unit, whatever their slots; may be 0
	AtomicsPerSlot   int          `bounds:"0..2^16"`    // atomics that a slot holds; the next one holds up all behind it; 0: any number
	AtomicsHoldReads bool         // READs wait behind atomics that find no room
	NackGenerate     [2]sim.Time  `key:"nack_generate_write nack_generate_read"` // loss noticed to asked for again: [0] by the NAK of a SEND or WRITE, [1] by a new READ request
	NackReact        [2]sim.Time  `key:"nack_react_write nack_react_read"`       // that received to sent again, by requester and responder
	AckTimeoutFloor  sim.Time     // the least ACK timeout that the device honours, where it goes by the formula of the specification; 0: none
	SelectiveRepeat  bool         // only what a NAK names is sent again; the responder keeps what came early
	RepeatScheme     RepeatScheme `words:"single sack by-operation"` // what NAKs say then, and what follows them
	RepeatWindow     int          `bounds:"1..2^16"`                 // PSNs ahead that it keeps; with RepeatSACK a requester sends no further ahead
	RepeatTimeout    sim.Time     // with RepeatSACK: the oldest packet is sent again after so long without progress, until the ACK timer has run out
	Credits          bool         // ACKs announce the receives of a queue, and requesters heed it
	AckReqPackets    int          `bounds:"1..2^20"`       // AckReq at the latest on every n-th packet of a long message
	XRCViolation     XRCViolation `words:"access request"` // the answer to a request for an SRQ that a target may not use
	RNRStall         sim.Time     `bounds:"0.."`           // the engines take nothing for so long when an RNR NAK is sent; 0: they go on
	RNRDamming       bool         // what is taken up during the wait for an RNR NAK counts as sent and is not put on the wire
	FlushPoll        sim.Time     `bounds:"1000.."` // a QP in ERR looks at its doorbell record again after this, then at doubling distances

	// ACK timer of a RoCE port (retransmit.go); the first three are fields of the register
	// ROCE_ACCL after power-on.
	RoCEAccl                   bool            `key:"roce_accl"`            // the device has the register
	RoCEAdpRetransEn           bool            `key:"roce_adp_retrans_en"`  // adaptive retransmission
	RoCESlowRestartEn          bool            `key:"roce_slow_restart_en"` // a retransmission after a timeout counts as a congestion notice
	MinAckTimeoutLimitDisabled bool            // no floor, and no adaptive retransmission
	AdaptiveSchedule           RetransSchedule `words:"fw20 lumina"`
	AdaptiveStart              int             `bounds:"0..3"`  // points of the schedule that are left out at its front, 0..3
	AckTimeoutMin              int             `bounds:"0..31"` // timeout codes below it act as it
	FirstFault                 bool            // every fault is taken as the first one of a new process, whose regular timeouts begin at another time
	IBAckTimer                 IBAckTimer      `words:"exact as-roce"` // the same of an InfiniBand port

	// What errors show.
	CardFaults   bool     // as ConnectX-5 and ConnectX-6 were seen to do in 2026 (requester_record.go, responder_silence.go): vendor bytes by cause, no error counters of responders, lengths checked packet by packet, completions in ERR by the doorbell record
	DeregSilence sim.Time `bounds:"0.."` // for which a responder answers nothing that names a deregistered key; 0: it refuses at once

	// Caches of what lives in host memory. A miss takes its time, and holds up the
	// engine that needs the entry for that time divided by the cache's overlap.
	QPCCache   int      `bounds:"1..2^20"` // QP contexts, a power of two, as the next two
	MPTCache   int      `bounds:"1..2^20"` // memory keys
	MTTCache   int      `bounds:"1..2^24"` // translation entries
	QPCWays    int      `bounds:"1..64"`   // entries of a set, a power of two, as the next two; 1: direct-mapped
	MPTWays    int      `bounds:"1..64"`
	MTTWays    int      `bounds:"1..64"`
	QPCMiss    sim.Time // until a QP context is there
	MPTMiss    sim.Time
	MTTMiss    sim.Time
	QPCOverlap int `bounds:"1..1024"` // misses that are served at once
	MPTOverlap int `bounds:"1..1024"`
	MTTOverlap int `bounds:"1..1024"`

	// FlushOnDestroy empties the caches of memory keys and translations when a key is
	// destroyed or made free.
	FlushOnDestroy bool

	// Caches of WQEs. Size 0 is one in which everything is found.
	WQECache  int      `bounds:"0..2^20"` // send WQEs
	WQEMiss   sim.Time // for which a processing unit is held up when it must read a WQE again
	RecvCache int      `bounds:"0..2^20"` // queues whose receive WQEs are kept, RQPrefetch of each

	// Port. The link layer is one of those that the device has.
	LinkLayers      LinkLayers
	LinkLayer       LinkLayer
	WireRate        uint64   `unit:"rate" bounds:"1e6..1e13"` // bits per second
	WireOverhead    int      `unit:"size" bounds:"0..4096"`   // bytes of a packet beside the frame given to the wire: FCS, preamble, gap
	LoopbackLatency sim.Time // port to port inside the device
	RoCEAdder       sim.Time `key:"roce_adder"` // extra of RoCE over InfiniBand, per direction; may be 0

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
	// Packets: the port's driver has queues for the Ethernet packets of programs, and no network
	// interface of its own. While no queue takes packets, the port is as without them.
	Packets bool
	// Paced: programs run by the wall's clock, so that one may post to a queue pair that has been
	// in ERR for long.
	Paced bool
	// RoCEv2: the port has no RoCE v1.
	RoCEv2 bool
	// SourcePort is the UDP source port of every RoCE v2 packet; 0: it follows from queue pairs and
	// address vectors.
	SourcePort uint16
	// Window is how many PSNs of a queue pair may be outstanding before its next packet, or READ,
	// waits for an answer, where the receiver has less room than a network of cards; at least twice
	// AckReqPackets. 0: as many as the transport allows.
	Window int
}

// Check says what is wrong with the parameters, or returns nil.
func (p *Params) Check() error {
	errs := sim.OutOfBounds("hca", p)
	wrong := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	pos := func(name string, v, lo, hi int) {
		if v < lo || v > hi {
			wrong("hca: %s is %d, not in %d..%d", name, v, lo, hi)
		}
	}
	if p.RequesterLatency < p.PUService {
		wrong("hca: RequesterLatency is %v, less than PUService (%v), which includes it: change both", p.RequesterLatency, p.PUService)
	}
	pos("FetchLimit", p.FetchLimit, 16, min(512, p.WQEBuffer))
	p.checkRetransmission(wrong)
	if p.SelectiveRepeat && p.RepeatScheme == RepeatSACK && p.RepeatTimeout < sim.Microsecond {
		wrong("hca: RepeatTimeout is %v, less than a microsecond, in which no answer can come", p.RepeatTimeout)
	}
	pos("MemicSize", p.MemicSize, 0, p.BARSize/2)
	for _, pw := range []struct {
		name string
		v    int
	}{{"WQEBuffer", p.WQEBuffer}, {"AtomicSlots", p.AtomicSlots}, {"BARSize", p.BARSize},
		{"QPCCache", p.QPCCache}, {"MPTCache", p.MPTCache}, {"MTTCache", p.MTTCache},
		{"QPCWays", p.QPCWays}, {"MPTWays", p.MPTWays}, {"MTTWays", p.MTTWays}} {
		if pw.v&(pw.v-1) != 0 {
			wrong("hca: %s is %d, not a power of two", pw.name, pw.v)
		}
	}
	if s := sim.TooLong(p, nil); s != "" && len(errs) == 0 { // the checks above say more
		wrong("hca: %s", s)
	}
	if s := sim.TooLong(&p.Commands, map[string]sim.Time{"CreateMkeyEntry": sim.Millisecond}); s != "" {
		wrong("hca: %s", s)
	}
	switch p.BFRegSize {
	case 0, 128, 256, 512:
	default:
		wrong("hca: BFRegSize is %d, not 0, 128, 256 or 512", p.BFRegSize)
	}
	if p.LinkLayers > EitherLinkLayer || !p.LinkLayers.Has(p.LinkLayer) {
		errs = append(errs, fmt.Errorf("hca: LinkLayer is %v, which the device does not have: its port is %s only",
			p.LinkLayer, LinkLayersWords[min(p.LinkLayers, EitherLinkLayer)]))
	}
	return errors.Join(append(errs, p.UAR.Check(), p.Congestion.Check(), p.ODP.Check())...)
}

// checkRetransmission is the part of Check about the ACK timer.
func (p *Params) checkRetransmission(wrong func(format string, a ...any)) {
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
