package record

import (
	"github.com/rdmasim/rdmasim/verbs"
)

var (
	_ verbs.DirectVerbs = (*context)(nil)
	_ verbs.DirectQP    = (*qp)(nil)
	_ verbs.DirectQPEx  = (*directEx)(nil)
)

// noDirect is the answer of a testbed without direct verbs: that of a library which finds no mlx5
// device.
const noDirect = "the testbed has no direct verbs"

func (c *context) DirectSupported() bool {
	d, ok := c.Context.(verbs.DirectVerbs)
	return ok && d.DirectSupported()
}

func (c *context) QueryDirect(t verbs.Thread, m uint64) (verbs.DirectAttr, error) {
	a, err := valueOn(c.Context, noDirect, func(d verbs.DirectVerbs) (verbs.DirectAttr, error) {
		return d.QueryDirect(innerThread(t), m)
	})
	return a, c.r.add(t, "mlx5dv_query_device", list(mask(m)), err)
}

func (c *context) ClockInfo(t verbs.Thread) (verbs.ClockInfo, error) {
	i, err := valueOn(c.Context, noDirect, func(d verbs.DirectVerbs) (verbs.ClockInfo, error) {
		return d.ClockInfo(innerThread(t))
	})
	return i, c.r.add(t, "mlx5dv_get_clock_info", nil, err)
}

func (c *context) ReserveQPN(t verbs.Thread) (uint32, error) {
	n, err := valueOn(c.Context, noDirect, func(d verbs.DirectVerbs) (uint32, error) {
		return d.ReserveQPN(innerThread(t))
	})
	return made(c.r, t, "mlx5dv_reserved_qpn_alloc", nil, err, func() (uint32, []string) { return n, []string{c.r.qpn(n)} })
}

func (c *context) ReleaseQPN(t verbs.Thread, n uint32) error {
	err := on(c.Context, noDirect, func(d verbs.DirectVerbs) error { return d.ReleaseQPN(innerThread(t), n) })
	return c.r.add(t, "mlx5dv_reserved_qpn_dealloc", list(c.r.qpn(n)), err)
}

// directVAR is a VAR page; its numbers are the device's own affair.
type directVAR struct {
	verbs.VAR
	r *Recorder
}

func (c *context) AllocVAR(t verbs.Thread, flags uint32) (verbs.VAR, error) {
	v, err := valueOn(c.Context, noDirect, func(d verbs.DirectVerbs) (verbs.VAR, error) {
		return d.AllocVAR(innerThread(t), flags)
	})
	return made(c.r, t, "mlx5dv_alloc_var", list(mask(flags)), err, func() (verbs.VAR, []string) { return &directVAR{v, c.r}, nil })
}

func (v *directVAR) Map(t verbs.Thread) (uint64, error) {
	a, err := v.VAR.Map(innerThread(t))
	return a, v.r.add(t, "mmap of VAR", nil, err)
}

func (v *directVAR) Unmap(t verbs.Thread, addr uint64) error {
	return v.r.add(t, "munmap of VAR", nil, v.VAR.Unmap(innerThread(t), addr))
}

func (v *directVAR) Free(t verbs.Thread) error {
	return v.r.add(t, "mlx5dv_free_var", nil, v.VAR.Free(innerThread(t)))
}

func (c *context) AllocDirectDM(t verbs.Thread, a verbs.DMAttr, da verbs.DirectDMAttr) (verbs.DM, error) {
	m, err := valueOn(c.Context, noDirect, func(d verbs.DirectVerbs) (verbs.DM, error) {
		return d.AllocDirectDM(innerThread(t), a, da)
	})
	return made(c.r, t, "mlx5dv_alloc_dm", list(a.Length, a.LogAlign, mask(a.CompMask), da.Type, mask(da.CompMask)), err,
		func() (verbs.DM, []string) { return c.r.dm(m), nil })
}

type directDM struct {
	*dm
	d verbs.DirectDM
}

func (r *Recorder) dm(m verbs.DM) verbs.DM {
	w := &dm{m, r}
	if d, ok := m.(verbs.DirectDM); ok {
		return &directDM{w, d}
	}
	return w
}

func (x *dm) inner() verbs.DM { return x.DM }

func (m *directDM) MapOp(t verbs.Thread, op uint8) (verbs.OpAddr, error) {
	a, err := m.d.MapOp(innerThread(t), op)
	return made(m.r, t, "mlx5dv_dm_map_op_addr", list(op), err, func() (verbs.OpAddr, []string) { return opAddr{a}, nil })
}

// opAddr is an operation address; accesses to it are not calls.
type opAddr struct{ verbs.OpAddr }

func (a opAddr) Load(t verbs.Thread, off uint64, p []byte) error {
	return a.OpAddr.Load(innerThread(t), off, p)
}

func (a opAddr) Store(t verbs.Thread, off uint64, p []byte) error {
	return a.OpAddr.Store(innerThread(t), off, p)
}

func (a opAddr) Unmap(t verbs.Thread) error { return a.OpAddr.Unmap(innerThread(t)) }

type mkey struct {
	verbs.Mkey
	r *Recorder
}

func (x *mkey) inner() verbs.Mkey { return x.Mkey }

func (c *context) CreateMkey(t verbs.Thread, p verbs.PD, flags uint32, entries uint16) (verbs.Mkey, error) {
	m, err := valueOn(c.Context, noDirect, func(d verbs.DirectVerbs) (verbs.Mkey, error) {
		return d.CreateMkey(innerThread(t), bare(p), flags, entries)
	})
	args := list(mask(flags), entries)
	return made(c.r, t, "mlx5dv_create_mkey", args, err,
		func() (verbs.Mkey, []string) { return &mkey{m, c.r}, []string{c.r.key(m.LKey()), c.r.key(m.RKey())} })
}

func (m *mkey) Destroy(t verbs.Thread) error {
	k := m.r.key(m.LKey())
	return m.r.add(t, "mlx5dv_destroy_mkey", list(k), m.Mkey.Destroy(innerThread(t)))
}

func (c *context) RegDirectDmabufMR(t verbs.Thread, p verbs.PD, offset, length, iova uint64, fd int, access verbs.AccessFlags,
	flags uint32) (verbs.MR, error) {
	m, err := valueOn(c.Context, noDirect, func(d verbs.DirectVerbs) (verbs.MR, error) {
		return d.RegDirectDmabufMR(innerThread(t), bare(p), offset, length, iova, fd, access, flags)
	})
	return c.r.mr(t, "mlx5dv_reg_dmabuf_mr", m, err, list(offset, length, c.r.addr(iova), mask(access), mask(flags)))
}

func (q *qp) ModifyUDPSport(t verbs.Thread, sport uint16) error {
	err := on(q.QP, noDirect, func(d verbs.DirectQP) error { return d.ModifyUDPSport(innerThread(t), sport) })
	return q.r.add(t, "mlx5dv_modify_qp_udp_sport", list(q.name(), sport), err)
}

func (q *qp) QueryLagPort(t verbs.Thread) (port, active uint8, err error) {
	err = on(q.QP, noDirect, func(d verbs.DirectQP) error {
		port, active, err = d.QueryLagPort(innerThread(t))
		return err
	})
	return port, active, q.r.add(t, "mlx5dv_query_qp_lag_port", list(q.name()), err, list(port, active)...)
}

func (q *qp) ModifyLagPort(t verbs.Thread, port uint8) error {
	err := on(q.QP, noDirect, func(d verbs.DirectQP) error { return d.ModifyLagPort(innerThread(t), port) })
	return q.r.add(t, "mlx5dv_modify_qp_lag_port", list(q.name(), port), err)
}

func (q *qp) ResetDCIStream(t verbs.Thread, stream uint16) error {
	err := on(q.QP, noDirect, func(d verbs.DirectQP) error { return d.ResetDCIStream(innerThread(t), stream) })
	return q.r.add(t, "mlx5dv_dci_stream_id_reset", list(q.name(), stream), err)
}

// What is done to the insides of a QP is not recorded.

func (q *qp) RecvQueue(t verbs.Thread, off int, p []byte) error {
	return on(q.QP, noDirect, func(d verbs.DirectQP) error { return d.RecvQueue(innerThread(t), off, p) })
}

func (q *qp) WriteRecvQueue(t verbs.Thread, off int, p []byte) error {
	return on(q.QP, noDirect, func(d verbs.DirectQP) error { return d.WriteRecvQueue(innerThread(t), off, p) })
}

func (q *qp) WriteRecvDoorbellRecord(t verbs.Thread, n uint16) error {
	return on(q.QP, noDirect, func(d verbs.DirectQP) error { return d.WriteRecvDoorbellRecord(innerThread(t), n) })
}

func (q *qp) RecvQueueGeometry() (entries, stride int) {
	if d, ok := q.QP.(verbs.DirectQP); ok {
		return d.RecvQueueGeometry()
	}
	return 0, 0
}

// directEx is the extended way to post of a QP of an mlx5 device.
type directEx struct {
	*qpEx
	d verbs.DirectQPEx
}

func (e *directEx) SetDCAddr(t verbs.Thread, ah verbs.AH, dctn uint32, key uint64) {
	e.note("to DCT %s key %#x", e.q.r.qpn(dctn), key)
	e.d.SetDCAddr(innerThread(t), bare(ah), dctn, key)
}

func (e *directEx) SetDCAddrStream(t verbs.Thread, ah verbs.AH, dctn uint32, key uint64, stream uint16) {
	e.note("to DCT %s key %#x stream %d", e.q.r.qpn(dctn), key, stream)
	e.d.SetDCAddrStream(innerThread(t), bare(ah), dctn, key, stream)
}

func (e *directEx) keyOf(m verbs.Mkey) string {
	if m == nil {
		return "none"
	}
	return e.q.r.key(m.LKey())
}

func (e *directEx) WRMRList(t verbs.Thread, m verbs.Mkey, access verbs.AccessFlags, sges []verbs.SGE) {
	e.note("mkey %s list %s access %#x", e.keyOf(m), e.q.r.sges(sges), uint32(access))
	e.d.WRMRList(innerThread(t), bare(m), access, sges)
}

func (e *directEx) WRMRInterleaved(t verbs.Thread, m verbs.Mkey, access verbs.AccessFlags, repeat uint32, pieces []verbs.MRInterleaved) {
	e.note("mkey %s interleaved, %d rounds access %#x", e.keyOf(m), repeat, uint32(access))
	for _, p := range pieces {
		e.note("piece %s:%d:%s skip %d", e.q.r.addr(p.Addr), p.Bytes, e.q.r.key(p.LKey), p.Skip)
	}
	e.d.WRMRInterleaved(innerThread(t), bare(m), access, repeat, pieces)
}

func (e *directEx) WRMemcpy(t verbs.Thread, destLKey uint32, dest uint64, srcLKey uint32, src, length uint64) {
	e.note("copy %d from %s to %s", length, e.remote(srcLKey, src), e.remote(destLKey, dest))
	e.d.WRMemcpy(innerThread(t), destLKey, dest, srcLKey, src, length)
}

// WRRawWQE is recorded by its length: keys and addresses lie anywhere in it.
func (e *directEx) WRRawWQE(t verbs.Thread, wqe []byte) {
	e.note("raw WQE of %d B", len(wqe))
	e.d.WRRawWQE(innerThread(t), wqe)
}
