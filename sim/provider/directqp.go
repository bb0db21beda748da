package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.DirectQP = (*QP)(nil)

// What mlx5dv_create_qp knows (verbs.c: MLX5_DV_CREATE_QP_SUP_COMP_MASK,
// MLX5DV_QP_CREATE_SUP_FLAGS).
const (
	directQPMasks = verbs.DirectQPCreateFlags | verbs.DirectQPDC | verbs.DirectQPSendOpsFlags | verbs.DirectQPDCIStreams
	directQPFlags = verbs.DirectQPCreateOOODP<<1 - 1
	// bothScatter are two flags that contradict each other.
	bothScatter = verbs.DirectQPCreateDisableScatterToCQE | verbs.DirectQPCreateAllowScatterToCQE
)

// checkDirect is what create_qp makes of mlx5dv_qp_init_attr, in its order, and of the driver's
// type without. Its other checks come before or after.
func (q *QP) checkDirect(a *verbs.QPInitAttr) error {
	d := a.Direct
	if d == nil {
		if a.Type == verbs.QPTDriver {
			// The library sets no errno here: what it holds is that of an earlier call.
			return fmt.Errorf("a QP of the driver's type without direct attributes: %w", syscall.EINVAL)
		}
		return nil
	}
	if err := q.ctx.noDirect("create_qp"); err != nil {
		return err
	}
	if d.CompMask&^directQPMasks != 0 && !q.ctx.breaks(rule.DirectMasksAreKnown) {
		return fmt.Errorf("comp_mask %#x of direct attributes: %w", d.CompMask, syscall.EINVAL)
	}
	if d.CompMask&verbs.DirectQPDC != 0 && a.Type != verbs.QPTDriver && !q.ctx.breaks(rule.EndsAreOfTheDriversType) {
		return fmt.Errorf("a dynamically connected QP of type %d: %w", a.Type, syscall.EINVAL)
	}
	if err := q.checkDirectFlags(d); err != nil {
		return err
	}
	if a.Type != verbs.QPTDriver {
		return nil
	}
	if d.CompMask&verbs.DirectQPDC == 0 {
		if q.ctx.breaks(rule.DriverTypeNamesAnEnd) {
			return syscall.EOPNOTSUPP
		}
		return fmt.Errorf("a QP of the driver's type that is not dynamically connected: %w", syscall.EINVAL)
	}
	return q.checkDC(a)
}

// checkDirectFlags is the part of it for create_flags.
func (q *QP) checkDirectFlags(d *verbs.DirectQPAttr) error {
	if d.CompMask&verbs.DirectQPCreateFlags == 0 {
		return nil
	}
	flags := d.CreateFlags
	switch {
	case flags&^directQPFlags != 0 && !q.ctx.breaks(rule.DirectFlagsAreKnown):
		return fmt.Errorf("direct create_flags %#x: %w", flags, syscall.EINVAL)
	case flags&bothScatter == bothScatter && !q.ctx.breaks(rule.ScatterFlagsContradict):
		return fmt.Errorf("scatter to CQE disabled and allowed: %w", syscall.EINVAL)
	case flags&verbs.DirectQPCreateSigPipelining != 0:
		return fmt.Errorf("signature pipelining is not modelled: %w", syscall.EOPNOTSUPP)
	case flags&verbs.DirectQPCreateOOODP != 0:
		return fmt.Errorf("the device places no data out of order: %w", syscall.EOPNOTSUPP)
	}
	return nil
}

// Flags of mlx5_ib_create_qp (MLX5_QP_FLAG_*).
const (
	qpTunnelOffloads = 1 << 2
	qpPacketCredits  = 1 << 9
	qpDCIStream      = 1 << 11
)

// directRequest puts creation flags into the command. The driver takes those of loopback for any
// QP, and the others where the device has what they ask for.
func (q *QP) directRequest(r *kernel.QPReq) {
	d := q.init.Direct
	if d == nil || d.CompMask&verbs.DirectQPCreateFlags == 0 {
		return
	}
	if d.CreateFlags&verbs.DirectQPCreateDisableScatterToCQE != 0 {
		r.ScatterToCQE = false
	}
	if d.CreateFlags&verbs.DirectQPCreateAllowScatterToCQE != 0 {
		r.ScatterToCQE, r.AllowScatterToCQE = true, true
	}
	if d.CreateFlags&verbs.DirectQPCreateTunnelOffloads != 0 {
		r.Vendor |= qpTunnelOffloads
	}
	if d.CreateFlags&verbs.DirectQPCreatePacketBasedCredit != 0 {
		r.Vendor |= qpPacketCredits
	}
}

// directOps are the operations of direct verbs that the QP was created with.
func directOps(a *verbs.QPInitAttr) uint64 {
	if a.Direct == nil || a.Direct.CompMask&verbs.DirectQPSendOpsFlags == 0 {
		return 0
	}
	return a.Direct.SendOpsFlags
}

// checkDirectOps is the part of mlx5_qp_fill_wr_pfns for direct verbs.
func (q *QP) checkDirectOps(ops uint64) error {
	known := verbs.DirectQPExRawWQE
	switch q.typ {
	case verbs.QPTRC:
		known = verbs.DirectQPExMemcpy<<1 - 1
	case verbs.QPTDriver:
		known |= verbs.DirectQPExMemcpy
	}
	if ops&^known != 0 {
		return fmt.Errorf("direct send_ops_flags %#x: %w", ops, syscall.EOPNOTSUPP)
	}
	return q.checkMkeyOps(ops)
}

// ModifyUDPSport is mlx5dv_modify_qp_udp_sport: a command of the library's own, in RTS on
// connections only. The library has asked for the device's capabilities when it opened it; here it
// asks now.
func (q *QP) ModifyUDPSport(vt verbs.Thread, sport uint16) (err error) {
	const call = "modify_qp_udp_sport"
	t := q.ctx.enter(vt)
	defer t.answers(&err)
	if err := q.ctx.noDirect(call); err != nil {
		return err
	}
	general, err := q.ctx.u.Capability(t.caller, prm.CapGeneral, prm.CapModeCurrent)
	has := err == nil && prm.HCACap(general).RTS2RTSQPUDPSport()
	if q.typ != verbs.QPTRC && q.typ != verbs.QPTUC || q.state != verbs.QPSRTS || !has {
		return fmt.Errorf("%s of a QP of type %d in state %v: %w", call, q.typ, q.state, syscall.EOPNOTSUPP)
	}
	in, out := prm.NewIn(prm.OpRTS2RTSQP, 0), prm.NewOut(prm.OpRTS2RTSQP, 0)
	m := prm.ModifyQPIn(in)
	m.SetQPN(q.qpn)
	m.SetOptParamMaskHigh(prm.OptParHighUDPSport)
	m.QPC().PrimaryPath().SetUDPSport(uint32(sport))
	if err := q.ctx.u.ObjectCommand(t.caller, q.h, false, in, out); err != nil {
		if said := prm.CmdOut(out).Err(prm.OpRTS2RTSQP); said != nil { // mlx5_get_cmd_status_err
			err = said
		}
		return fmt.Errorf("%s: %w", call, err)
	}
	return nil
}

// QueryLagPort is mlx5dv_query_qp_lag_port.
func (q *QP) QueryLagPort(verbs.Thread) (port, active uint8, err error) {
	return 0, 0, q.ctx.unmodelled("query_qp_lag_port", "the device has no port that is bonded")
}

// ModifyLagPort is mlx5dv_modify_qp_lag_port.
func (q *QP) ModifyLagPort(verbs.Thread, uint8) error {
	return q.ctx.unmodelled("modify_qp_lag_port", "the device has no port that is bonded")
}

// RecvQueueGeometry has the number of entries of the receive ring and the bytes of each.
func (q *QP) RecvQueueGeometry() (entries, stride int) { return q.rq.cnt, 1 << q.rq.shift }

// RecvQueue reads from the receive ring.
func (q *QP) RecvQueue(vt verbs.Thread, off int, p []byte) error {
	return q.inRecvQueue(vt, off, p, func(p, ring []byte) int { return copy(p, ring) })
}

// WriteRecvQueue writes to the receive ring.
func (q *QP) WriteRecvQueue(vt verbs.Thread, off int, p []byte) error {
	return q.inRecvQueue(vt, off, p, func(p, ring []byte) int { return copy(ring, p) })
}

// inRecvQueue moves bytes between p and the windows of the ring from off on.
func (q *QP) inRecvQueue(vt verbs.Thread, off int, p []byte, move func(p, ring []byte) int) error {
	if err := q.ctx.noDirect("init_obj"); err != nil {
		return err
	}
	Of(vt).P.Sync()
	if off < 0 || off+len(p) > q.rq.cnt<<q.rq.shift {
		return fmt.Errorf("%d B at %d of a receive queue of %d: %w", len(p), off, q.rq.cnt<<q.rq.shift, syscall.EINVAL)
	}
	for n := 0; n < len(p); {
		n += move(p[n:], q.ring.at(q.rq.off+off+n))
	}
	return nil
}

// WriteRecvDoorbellRecord stores the counter of receives alone.
func (q *QP) WriteRecvDoorbellRecord(vt verbs.Thread, recvCounter uint16) error {
	if err := q.ctx.noDirect("init_obj"); err != nil {
		return err
	}
	t := Of(vt)
	t.P.Sync()
	q.dbRecord.SetRecv(recvCounter)
	t.Core.DMABarrier(t.P)
	return nil
}
