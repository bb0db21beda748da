package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// Sizes of the parts of a send WQE, in bytes (wqe.h; verbs.c, sq_overhead).
const (
	segSize      = 16
	wqebb        = 64
	atomicSegs   = 2 * segSize // raddr and atomic
	atomicSize   = 8
	bindOverhead = segSize + 48 + 64 + 64 // ctrl, UMR ctrl, mkey context, one more block
	inlineHeader = 4
	opsAny       = ^uint64(0)
)

// Groups of QPInitAttr.SendOpsFlags, and bits of CompMask.
const (
	opsRDMA   = verbs.QPExRDMAWrite | verbs.QPExRDMAWriteImm | verbs.QPExRDMARead
	opsAtomic = verbs.QPExAtomicCmpSwp | verbs.QPExAtomicFetchAdd
	opsUMR    = verbs.QPExLocalInv | verbs.QPExBindMW
	opsUD     = verbs.QPExSend | verbs.QPExSendImm
	opsRC     = opsRDMA | opsAtomic | opsUMR | opsUD | verbs.QPExSendInv
	opsUC     = opsRC &^ (verbs.QPExRDMARead | opsAtomic)
	maskPD    = 1 << 0
	maskFlags = 1 << 2
	maskKnown = maskPD | maskFlags | verbs.QPInitSendOpsFlags

	createSourceQPN = 1 << 10

	datagramSize = 48 // struct mlx5_wqe_datagram_seg
	ethernetSize = 32 // struct mlx5_wqe_eth_seg
)

// wqSize is a queue's geometry.
type wqSize struct {
	cnt     int // elements of the ring: WQEBBs (send), WQEs (receive)
	shift   uint
	maxPost int // outstanding requests
	maxGS   int
	inline  int // bytes that fit inline
}

// sendOverhead is what a WQE of the type has before its data segments, over the
// operations that the QP may post.
func sendOverhead(typ verbs.QPType, ops uint64) (int, error) {
	switch typ {
	case verbs.QPTXRCSend, verbs.QPTXRCRecv:
		o, err := sendOverhead(verbs.QPTRC, ops)
		return o + prm.XRCSegmentSize, err
	case verbs.QPTRC, verbs.QPTUC:
		o := segSize
		if ops&opsRDMA != 0 {
			o = 2 * segSize
		}
		if ops&opsAtomic != 0 {
			o = segSize + atomicSegs
		}
		if ops&opsUMR != 0 {
			o = bindOverhead
		}
		return o, nil
	case verbs.QPTUD:
		return segSize + datagramSize, nil
	case verbs.QPTDriver:
		o, err := sendOverhead(verbs.QPTRC, ops)
		return o + datagramSize, err
	case verbs.QPTRawPacket:
		return segSize + ethernetSize, nil
	}
	return 0, fmt.Errorf("QP type %d is not modelled: %w", typ, syscall.EOPNOTSUPP)
}

func align(n, a int) int { return (n + a - 1) &^ (a - 1) }

func roundupPow2(n int) int {
	p := 1
	for p < n {
		p <<= 1
	}
	return p
}

func log2(n int) uint {
	s := uint(0)
	for 1<<s < n {
		s++
	}
	return s
}

// sizeSQ is mlx5_calc_sq_size.
func (c *Context) sizeSQ(typ verbs.QPType, ops uint64, q verbs.QPCap) (wqSize, error) {
	if q.MaxSendWR == 0 {
		return wqSize{}, nil
	}
	if q.MaxSendWR > 0x7fffffff/wqebb {
		return wqSize{}, fmt.Errorf("max_send_wr %d: %w", q.MaxSendWR, syscall.EINVAL)
	}
	over, err := sendOverhead(typ, ops)
	if err != nil {
		return wqSize{}, err
	}
	limit := int(c.resp.MaxSQDescSz)
	if int64(q.MaxSendSGE) > int64(max(0, limit-over)/segSize) {
		return wqSize{}, fmt.Errorf("max_send_sge %d does not fit a WQE of %d bytes: %w", q.MaxSendSGE, limit, syscall.EINVAL)
	}
	size := over + segSize*int(q.MaxSendSGE)
	if q.MaxInline > 0 {
		// The library counts in an int: what is near 2^32 wraps to nothing and is taken.
		size = max(size, over+int(int32(align(inlineHeader+int(q.MaxInline), segSize))))
	}
	wqe := align(size, wqebb)
	if wqe > limit {
		return wqSize{}, fmt.Errorf("send WQEs of %d bytes, above %d: %w", wqe, limit, syscall.EINVAL)
	}
	total := roundupPow2(int(q.MaxSendWR) * wqe)
	if total/wqebb > int(c.resp.MaxSendWQEBB) {
		return wqSize{}, fmt.Errorf("max_send_wr %d: %d WQEBBs, above %d: %w", q.MaxSendWR, total/wqebb, c.resp.MaxSendWQEBB, syscall.EINVAL)
	}
	return wqSize{cnt: total / wqebb, shift: log2(wqebb), maxPost: total / wqe, maxGS: int(q.MaxSendSGE),
		inline: max(0, wqe-over-inlineHeader)}, nil
}

// sizeRQ is mlx5_calc_rq_size.
func (c *Context) sizeRQ(q verbs.QPCap) (wqSize, error) {
	if q.MaxRecvWR == 0 {
		return wqSize{}, nil
	}
	if q.MaxRecvWR > c.resp.MaxRecvWR {
		return wqSize{}, fmt.Errorf("max_recv_wr %d, above %d: %w", q.MaxRecvWR, c.resp.MaxRecvWR, syscall.EINVAL)
	}
	if q.MaxRecvSGE > c.resp.MaxRQDescSz {
		return wqSize{}, fmt.Errorf("max_recv_sge %d: %w", q.MaxRecvSGE, syscall.EINVAL)
	}
	wqe := roundupPow2(segSize * max(int(q.MaxRecvSGE), 1))
	if wqe > int(c.resp.MaxRQDescSz) {
		return wqSize{}, fmt.Errorf("receive WQEs of %d bytes, above %d: %w", wqe, c.resp.MaxRQDescSz, syscall.EINVAL)
	}
	total := max(roundupPow2(int(q.MaxRecvWR))*wqe, wqebb)
	return wqSize{cnt: total / wqe, shift: log2(wqe), maxPost: total / wqe, maxGS: wqe / segSize}, nil
}
