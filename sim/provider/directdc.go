package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// queryDC is the part of mlx5dv_query_device for the dynamically connected transport: there is no
// paging on demand for it and there are no streams; how many READs a queue has outstanding the
// library asks the device by DevX, which it has not.
func (c *Context) queryDC(uint64, *verbs.DirectAttr) {}

// checkDC is the part of create_qp for a QP of the driver's type, whose direct attributes name an
// end.
func (q *QP) checkDC(a *verbs.QPInitAttr) error {
	switch d := a.Direct; d.DCType {
	case verbs.DCT:
		return q.checkDCT(a)
	case verbs.DCI:
		// dci_streams_caps are zeros: the kernel has none to report.
		if d.CompMask&verbs.DirectQPDCIStreams != 0 && (d.DCIStreams.LogNumConcurrent > 0 || d.DCIStreams.LogNumErrored > 0) {
			return fmt.Errorf("2^%d streams of a DCI, 2^%d in error: %w", d.DCIStreams.LogNumConcurrent, d.DCIStreams.LogNumErrored, syscall.EINVAL)
		}
		return nil
	}
	return fmt.Errorf("dc_type %d: %w", a.Direct.DCType, syscall.EINVAL)
}

// checkDCT is create_dct up to the command, and what create_qp looks at before it.
func (q *QP) checkDCT(a *verbs.QPInitAttr) error {
	const flags = verbs.DirectQPCreateTunnelOffloads | selfLoopback | verbs.DirectQPCreateAllowScatterToCQE | verbs.DirectQPCreatePacketBasedCredit
	d := a.Direct
	switch {
	case a.CompMask&^maskPD != 0:
		return fmt.Errorf("comp_mask %#x of a DCT: %w", a.CompMask, syscall.EINVAL)
	case d.CompMask&^(verbs.DirectQPDC|verbs.DirectQPCreateFlags) != 0:
		return fmt.Errorf("comp_mask %#x of direct attributes of a DCT: %w", d.CompMask, syscall.EINVAL)
	case d.CompMask&verbs.DirectQPCreateFlags != 0 && d.CreateFlags&flags != 0:
		return fmt.Errorf("direct create_flags %#x of a DCT: %w", d.CreateFlags, syscall.EINVAL)
	}
	return nil
}

// selfLoopback is MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC and _MC.
const selfLoopback uint32 = 1<<1 | 1<<2

// dct says whether the QP is a DCT, which has neither rings nor doorbells.
func (q *QP) dct() bool {
	return q.typ == verbs.QPTDriver && q.init.Direct != nil && q.init.Direct.DCType == verbs.DCT
}

// newDCT is newQP for a DCT.
func (q *QP) newDCT(a *verbs.QPInitAttr) (*QP, error) {
	var ok bool
	if q.sendCQ, ok = a.SendCQ.(*CQ); !ok || q.sendCQ == nil {
		return nil, fmt.Errorf("no send CQ: %w", syscall.EINVAL)
	}
	if q.recvCQ, ok = a.RecvCQ.(*CQ); !ok || q.recvCQ == nil {
		return nil, fmt.Errorf("no receive CQ: %w", syscall.EINVAL)
	}
	if a.SRQ != nil {
		if q.srq, ok = a.SRQ.(*SRQ); !ok || q.srq == nil || q.srq.ctx != q.ctx {
			return nil, fmt.Errorf("an SRQ of another context: %w", syscall.EINVAL)
		}
	}
	q.bf = new(bfReg) // it rings none
	q.sq.limit, q.rq.limit = -1, -1
	q.sq.lock, q.rq.lock = lock{what: "a send queue"}, lock{what: "a receive queue"}
	return q, nil
}

// buildDCT is the rest of create_dct.
func (q *QP) buildDCT(t *Thread, a *verbs.QPInitAttr) error {
	c, d := q.ctx, a.Direct
	r := kernel.QPReq{Type: a.Type, PD: q.pd.h, SendCQ: q.sendCQ.h, RecvCQ: q.recvCQ.h, Cap: a.Cap, SigAll: a.SigAll,
		DC: kernel.DCTEnd, AccessKey: d.DCTAccessKey, ScatterToCQE: c.env.scatterToCQE}
	if d.CompMask&verbs.DirectQPCreateFlags != 0 && d.CreateFlags&verbs.DirectQPCreateDisableScatterToCQE != 0 {
		r.ScatterToCQE = false
	}
	if q.srq != nil {
		r.SRQ, r.HasSRQ = q.srq.h, true
	}
	q.uidx = c.uidx.take(q)
	r.UIDX, r.Cookie = q.uidx, uint64(q.uidx)
	h, resp, err := c.u.CreateQP(t.caller, r)
	if err != nil {
		c.uidx.put(q.uidx)
		return err
	}
	q.h, q.qpn = h, resp.QPN
	q.pd.hold()
	return nil
}

// numbered is the rest of modify_dct.
func (q *QP) numbered(a *verbs.QPAttr) {
	q.state = a.State
	if a.State == verbs.QPSRTR {
		q.qpn = q.ctx.u.DCTN(q.h)
	}
}

// ResetDCIStream is mlx5dv_dci_stream_id_reset.
func (q *QP) ResetDCIStream(verbs.Thread, uint16) error {
	return q.ctx.unmodelled("dci_stream_id_reset", "the device has no streams of DCIs")
}

// SetDCAddr is mlx5dv_wr_set_dc_addr.
func (e *qpEx) SetDCAddr(t verbs.Thread, ah verbs.AH, remoteDCTN uint32, key uint64) {
	e.setDC(Of(t), ah, remoteDCTN, key)
}

// SetDCAddrStream is mlx5dv_wr_set_dc_addr_stream. A device without streams does not look at their
// numbers.
func (e *qpEx) SetDCAddrStream(vt verbs.Thread, ah verbs.AH, remoteDCTN uint32, key uint64, stream uint16) {
	t := Of(vt)
	if e.q.typ == verbs.QPTDriver && !e.full {
		prm.CtrlSegment(e.q.seg(e.ctrl)).SetDCIStream(stream)
	}
	e.setDC(t, ah, remoteDCTN, key)
}

func (e *qpEx) setDC(t *Thread, ah verbs.AH, remoteDCTN uint32, key uint64) {
	q := e.q
	if q.typ != verbs.QPTDriver {
		e.noDirect(t, "dc_addr")
	}
	if e.full {
		return
	}
	s := posting{ctrl: e.ctrl, ds: 1}
	q.datagramSeg(t, &s, &verbs.SendWR{AH: ah, RemoteQPN: remoteDCTN})
	prm.SetDCKey(prm.AVSegment(q.ring.at(q.sq.off + (e.ctrl+segSize)&q.sq.mask)[:prm.AVSegmentSize]), key)
	e.set(t)
}
