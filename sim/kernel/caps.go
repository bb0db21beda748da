package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// caps is what the device said of itself, in the kernel's units.
type caps struct {
	mac                     MAC
	nodeGUID, sysImageGUID  uint64
	vendorID                uint32
	fwMajor, fwMinor, fwSub int

	ports                                            int
	logMaxQP, logMaxQPSz, logMaxCQ, logCQSz          uint32
	logMaxMKey, logMaxPD, logMaxSRQ, logSRQSz        uint32
	logMaxMsg, logMaxMCG, logPGSz                    uint32
	maxQPMCG                                         int
	logRAReq, logRARes                               uint32
	logRAReqDC, logRAResDC                           uint32
	dct                                              bool   // the dynamically connected transport
	dcAtomicMode                                     uint32 // 0: no atomics on it
	maxWQESQ, maxWQERQ                               int
	counterSets, gids                                int
	ackDelay                                         uint8
	pkeys                                            int
	ib                                               bool // the link layer of the port is InfiniBand
	roceV2                                           bool // RoCE v2 alone
	roceAccl                                         bool // the device has the register ROCE_ACCL and its counters
	statRates                                        uint32
	cqeVersion                                       uint8
	bfRegSize                                        uint32 // 0: no BlueFlame
	clockKHz                                         uint64
	transportDomains, pageAccess, xrc, memoryWindows bool
	scatterToCQE, cqResize, endPad                   bool
	cqModeration                                     bool
	cq128                                            bool
	cqeComp, cqeComp128, miniStrideIndex             bool
	cqeCompMax                                       uint32
	copyMax                                          uint64 // bytes that a work request may have the device copy; 0: none
	roWrite, roRead                                  bool
	hasAtomics                                       bool
	umrAtomic, umrROWrite, umrRORead                 bool // a UMR changes these rights
	pkv, qkv, apm                                    bool
	blockLBMC                                        bool // a QP need not get what it sends to a group
	memic                                            memicCaps
	udpSport                                         bool       // rts2rts_qp_udp_sport
	streams                                          DCIStreams // the most
	dumpFill                                         bool
	dumpFillKey                                      uint32
	atomicMode                                       uint32 // 0: no atomics
	hostAtomics                                      bool
	tsFormat                                         uint32
	maxEQs                                           int
	nullKey                                          uint32 // what an empty place of an implicit region leads to
	endOfList                                        uint32 // key that ends the list of a receive
	odp                                              pagingCaps
	packets                                          PacketCaps
	steering                                         steeringCaps
	logMaxWQSz, logFlowTable                         uint32
}

// memicCaps are what the device has of memory for programs (device_mem_cap); max 0: none.
type memicCaps struct {
	max, start uint64
	pages      int
	align      uint32 // log2 of the largest, counted from 64 bytes
	ops        uint32 // operations that have addresses, by bit
}

// compresses reports whether CQEs of a size can be compressed.
func (c *caps) compresses(size uint32) bool {
	return size == 64 && c.cqeComp || size == 128 && c.cqeComp128
}

// miniCQEFormat is mini_cqe_res_format_to_hw: EINVAL for none or for several.
func (c *caps) miniCQEFormat(format uint8) (uint32, error) {
	switch {
	case format == verbs.CQECompHash:
		return prm.MiniCQEHash, nil
	case format == verbs.CQECompCsum:
		return prm.MiniCQECsum, nil
	case format != verbs.CQECompCsumStrideIndex:
		return 0, fmt.Errorf("format %#x of compressed CQEs: %w", format, syscall.EINVAL)
	case !c.miniStrideIndex:
		return 0, fmt.Errorf("compressed CQEs with stride indexes: %w", syscall.EOPNOTSUPP)
	}
	return prm.MiniCQECsumStrideIndex, nil
}

// canReconfigure is can_use_umr_rereg_access: no other right differs than those which the
// device changes by UMR.
func (c *caps) canReconfigure(from, to verbs.AccessFlags) bool {
	const rights = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic | verbs.AccessRelaxedOrdering
	diff := from ^ to
	switch {
	case diff&^rights != 0, diff&verbs.AccessRemoteAtomic != 0 && !c.umrAtomic:
		return false
	case diff&verbs.AccessRelaxedOrdering != 0:
		return (!c.roWrite || c.umrROWrite) && (!c.roRead || c.umrRORead)
	}
	return true
}

// compression is the answer's cqe_comp_caps.
func (c *caps) compression() (a verbs.CQECompCaps) {
	if c.cqeComp {
		a = verbs.CQECompCaps{MaxNum: c.cqeCompMax, Formats: verbs.CQECompHash | verbs.CQECompCsum}
		if c.miniStrideIndex {
			a.Formats |= verbs.CQECompCsumStrideIndex
		}
	}
	return a
}

// maxSGERd is MLX5_MAX_SGE_RD: what fits into a READ of 512 bytes.
const maxSGERd = (512 - 16 - 16) / 16

// maxSendSGE leaves room for a control and a remote address segment.
func (c *caps) maxSendSGE() int { return (min(c.maxWQESQ, 512) - 32) / 16 }

// maxQPWR is max_qp_wr. Kernels used to promise a work request for each basic block of the largest
// ring. Since 6.12 (mlx5_ib_calc_max_qp_wr) it is what a send ring has room for: a WQE of the
// largest overhead with one data segment takes 256 bytes, so that a quarter remains.
func (c *caps) maxQPWR(p *Params) int {
	if p.Generation == Static || p.MaxQPWR == QPWRBlocks {
		return 1 << c.logMaxQPSz
	}
	return 1 << c.logMaxQPSz * 64 / 256
}

// flags are device_cap_flags of mlx5_ib_query_device. That of fast registration is there with every
// device, although only users in the kernel register so, and the model has none of these.
func (c *caps) flags() uint32 {
	f := uint32(devChangePhyPort | devPortActiveEvent | devSysImageGUID | devRCRNRNakGen | devMemMgtExtensions)
	for _, x := range [...]struct {
		on  bool
		bit uint32
	}{
		{c.pkv, devBadPKeyCntr}, {c.qkv, devBadQKeyCntr}, {c.apm, devAutoPathMig},
		{c.memoryWindows, devMemWindow | devMemWindow2B}, {c.xrc, devXRC},
		{c.packets.Checksums, devRawIPCsum}, {c.packets.MaxWQ > 0, devFlowSteering},
	} {
		if x.on {
			f |= x.bit
		}
	}
	return f
}

// Bits of ibv_device_attr.device_cap_flags.
const (
	devBadPKeyCntr      = 1 << 1
	devBadQKeyCntr      = 1 << 2
	devAutoPathMig      = 1 << 4
	devChangePhyPort    = 1 << 5
	devPortActiveEvent  = 1 << 10
	devSysImageGUID     = 1 << 11
	devRCRNRNakGen      = 1 << 12
	devMemWindow        = 1 << 17
	devXRC              = 1 << 20
	devMemMgtExtensions = 1 << 21
	devMemWindow2B      = 1 << 24
	devRawIPCsum        = 1 << 26
	devFlowSteering     = 1 << 29
)
