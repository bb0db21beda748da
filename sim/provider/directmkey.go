package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// queryMkey is the part of mlx5dv_query_device for copies. Nothing checks signatures here.
func (c *Context) queryMkey(mask uint64, a *verbs.DirectAttr) {
	if mask&verbs.DirectWRMemcpyLength != 0 {
		a.MaxWRMemcpyLength = c.u.CopyMax()
	}
}

// opsLayout are the operations that give keys a layout.
const opsLayout = verbs.DirectQPExMRInterleaved | verbs.DirectQPExMRList | verbs.DirectQPExMkeyConfigure

// checkMkeyOps refuses operations that the device or the model does not have.
func (q *QP) checkMkeyOps(ops uint64) error {
	switch {
	case ops&verbs.DirectQPExMkeyConfigure != 0:
		return fmt.Errorf("the builder of keys' configuration is not modelled: %w", syscall.EOPNOTSUPP)
	case ops&verbs.DirectQPExMemcpy != 0 && q.ctx.u.CopyMax() == 0:
		return fmt.Errorf("the device does not copy: %w", syscall.EOPNOTSUPP)
	}
	return nil
}

// readyMkeyOps is qp_init_wr_memcpy (verbs.c).
func (q *QP) readyMkeyOps(t *Thread) error {
	if directOps(&q.init)&verbs.DirectQPExMemcpy == 0 {
		return nil
	}
	return q.pd.real().regOpaque(t)
}

// opaqueBytes is what a copy may leave of itself (MLX5_OPAQUE_BUF_LEN): room that the library
// registers with a PD's first QP that copies.
const opaqueBytes = 64

// regOpaque is reg_opaque_mr.
func (p *PD) regOpaque(t *Thread) error {
	if p.opaque != nil {
		return nil
	}
	b, err := p.ctx.proc.Alloc(t, opaqueBytes)
	if err != nil {
		return fmt.Errorf("room for copies: %w", err)
	}
	m := &MR{ctx: p.ctx, pd: p, addr: b.Addr(), length: opaqueBytes, access: verbs.AccessLocalWrite}
	if m.h, m.lkey, m.rkey, err = p.ctx.u.RegMR(t.caller, p.h, m.addr, m.length, m.addr, m.access); err != nil {
		return fmt.Errorf("room for copies: %w", err)
	}
	p.opaque = &opaque{m, b}
	return nil
}

// opaque is the room of a PD for copies.
type opaque struct {
	mr  *MR
	buf verbs.Buffer
}

// deregOpaque gives it back, before the PD goes.
func (p *PD) deregOpaque(t *Thread) error {
	if p.opaque == nil {
		return nil
	}
	if err := p.ctx.u.DeregMR(t.caller, p.opaque.mr.h); err != nil {
		return err
	}
	err := p.opaque.buf.Unmap(t)
	p.opaque = nil
	return err
}

// Mkey is a memory key that work requests give entries.
type Mkey struct {
	ctx *Context
	h   kernel.Handle
	key uint32
	max int // entries
}

// knownMkeyFlags are those that the library knows; update of the tag needs a device that says so.
const knownMkeyFlags = verbs.MkeyIndirect | verbs.MkeyBlockSignature | verbs.MkeyCrypto | verbs.MkeyRemoteInvalid

// CreateMkey is mlx5dv_create_mkey. EOPNOTSUPP: no flag, one that the library does not know, or
// what the device does not have; errnos of the device.
func (c *Context) CreateMkey(vt verbs.Thread, vp verbs.PD, flags uint32, maxEntries uint16) (_ verbs.Mkey, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if err := c.noDirect("create_mkey"); err != nil {
		return nil, err
	}
	p, ok := vp.(*PD)
	if !ok || p == nil {
		panic(Abort{fmt.Sprintf("segmentation fault: %q creates a memory key without a PD", t.name)})
	}
	switch {
	case flags == 0 || flags&^knownMkeyFlags != 0:
		return nil, fmt.Errorf("create_mkey: flags %#x: %w", flags, syscall.EOPNOTSUPP)
	case flags&(verbs.MkeyBlockSignature|verbs.MkeyCrypto) != 0:
		return nil, fmt.Errorf("create_mkey: flags %#x: the device checks no signatures and encrypts nothing: %w", flags, syscall.EOPNOTSUPP)
	}
	m := &Mkey{ctx: c, max: align(int(maxEntries), wqebb/segSize)}
	if m.h, m.key, err = c.u.CreateMKeyObject(t.caller, p.real().h, uint32(m.max), flags&verbs.MkeyRemoteInvalid != 0); err != nil {
		return nil, fmt.Errorf("create_mkey: %w", err)
	}
	return m, nil
}

// LKey is the key for local use.
func (m *Mkey) LKey() uint32 { return m.key }

// RKey is the key for use by peers: the same.
func (m *Mkey) RKey() uint32 { return m.key }

// Destroy is mlx5dv_destroy_mkey.
func (m *Mkey) Destroy(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := m.ctx.enter(vt)
	if err := m.ctx.u.DestroyMKeyObject(t.caller, m.h); err != nil {
		return fmt.Errorf("destroy_mkey: %w", err)
	}
	return nil
}

// RegDirectDmabufMR is mlx5dv_reg_dmabuf_mr.
func (c *Context) RegDirectDmabufMR(vt verbs.Thread, vp verbs.PD, offset, length, iova uint64, fd int, access verbs.AccessFlags, flags uint32) (verbs.MR, error) {
	if err := c.noDirect("reg_dmabuf_mr"); err != nil {
		return nil, err
	}
	p, ok := vp.(*PD)
	if !ok || p == nil {
		return nil, fmt.Errorf("reg_dmabuf_mr without a PD, which the library reads: %w", syscall.EFAULT)
	}
	if c.proc.Params.Generation == kernel.Static {
		Of(vt)
		return nil, fmt.Errorf("mlx5dv_reg_dmabuf_mr: the library is too old: %w", syscall.EOPNOTSUPP)
	}
	return p.regDmabuf(vt, kernel.DmabufMRReq{Offset: offset, Length: length, Iova: iova, Access: access, Driver: true, Flags: flags}, fd)
}

// layoutAccess are the rights that a layout takes.
const layoutAccess = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic

// layOut is mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved (qp.c: mlx5_send_wr_mkey_configure with
// its two setters): a UMR of units entries of 16 bytes, which fill writes. EOPNOTSUPP: the flags
// have no IBV_SEND_INLINE; EINVAL: other rights than those of memory as such; ENOMEM: more entries
// than the key or a request has room for.
func (e *qpEx) layOut(vt verbs.Thread, op uint64, vm verbs.Mkey, access verbs.AccessFlags, entries, units int, length uint64, fill func(i int, b []byte)) {
	t := Of(vt)
	q := e.q
	if directOps(&q.init)&op == 0 {
		e.noDirect(t, "layout of a key")
	}
	m, ok := vm.(*Mkey)
	if !ok || m == nil {
		panic(Abort{fmt.Sprintf("segmentation fault: %q gives no memory key a layout", t.name)})
	}
	if e.flags&verbs.SendInline == 0 {
		e.fail(fmt.Errorf("a layout comes inline: %w", syscall.EOPNOTSUPP))
		return
	}
	if !e.beginAs(t, prm.WQEOpUMR, verbs.WCOpDriver1, m.key) {
		return
	}
	limit := min((q.maxInl+inlineHeader)/segSize-(units-entries), m.max)
	switch {
	case access&^layoutAccess != 0:
		e.fail(fmt.Errorf("access %#x of a layout: %w", uint32(access), syscall.EINVAL))
		return
	case entries > limit && !t.breaks(rule.KeysHaveTheirEntries):
		e.fail(fmt.Errorf("%d entries, limit %d: %w", entries, limit, syscall.ENOMEM))
		return
	}
	padded := align(units, wqebb/segSize)
	u := prm.UMRCtrlSegment(q.block(e.ctrl)[prm.CtrlSegmentSize:])
	clear(u)
	u.SetFlags(prm.UMRInline)
	u.SetXLTOctowords(uint16(padded))
	u.SetMKeyMask(prm.MKeyMaskFree | prm.MKeyMaskKey | prm.MKeyMaskLen | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA)
	c := prm.MKC(q.block(e.ctrl + wqebb))
	clear(c)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(m.key & 0xff)
	c.SetLW(access&verbs.AccessLocalWrite != 0)
	c.SetRR(access&verbs.AccessRemoteRead != 0)
	c.SetRW(access&verbs.AccessRemoteWrite != 0)
	c.SetA(access&verbs.AccessRemoteAtomic != 0)
	c.SetLen(length)
	for i := range padded {
		b := q.seg(e.ctrl + 2*wqebb + i*segSize)
		if clear(b[:segSize]); i < units {
			fill(i, b[:segSize])
		}
	}
	e.ds, e.inline = 2*wqebb/segSize+padded, true
	q.fmCache = prm.CtrlSmallFence
	t.Core.Run(t.P, sim.Time(e.ds-1)*q.ctx.proc.Params.BuildSegment)
	e.nreq++
	e.finish(t)
}

// WRMRList is mlx5dv_wr_mr_list.
func (e *qpEx) WRMRList(t verbs.Thread, m verbs.Mkey, access verbs.AccessFlags, sges []verbs.SGE) {
	length := uint64(0)
	for i := range sges {
		length += uint64(sges[i].Length)
	}
	e.layOut(t, verbs.DirectQPExMRList, m, access, len(sges), len(sges), length, func(i int, b []byte) {
		k := prm.KLM(b)
		k.SetByteCount(sges[i].Length)
		k.SetMKey(sges[i].LKey)
		k.SetVA(sges[i].Addr)
	})
}

// WRMRInterleaved is mlx5dv_wr_mr_interleaved. The sizes of pieces and gaps are cut to 16 bits, as
// the library does.
func (e *qpEx) WRMRInterleaved(t verbs.Thread, m verbs.Mkey, access verbs.AccessFlags, repeat uint32, pieces []verbs.MRInterleaved) {
	round := uint64(0)
	for i := range pieces {
		round += uint64(pieces[i].Bytes)
	}
	e.layOut(t, verbs.DirectQPExMRInterleaved, m, access, len(pieces), len(pieces)+1, round*uint64(repeat), func(i int, b []byte) {
		if i == 0 {
			r := prm.UMRRepeatBlock(b)
			r.SetRoundBytes(uint32(round))
			r.SetOp(prm.UMRRepeat)
			r.SetRepeatCount(repeat)
			r.SetPieces(uint16(len(pieces)))
			return
		}
		p, x := &pieces[i-1], prm.UMRRepeatEntry(b)
		x.SetStride(uint16(p.Bytes + p.Skip))
		x.SetByteCount(uint16(p.Bytes))
		x.SetMKey(p.LKey)
		x.SetVA(p.Addr)
	})
}

// WRMemcpy is mlx5dv_wr_memcpy. EINVAL: nothing, or more than the device copies at once.
func (e *qpEx) WRMemcpy(vt verbs.Thread, destLKey uint32, dest uint64, srcLKey uint32, src uint64, length uint64) {
	t := Of(vt)
	q := e.q
	if directOps(&q.init)&verbs.DirectQPExMemcpy == 0 {
		e.noDirect(t, "memcpy")
	}
	if limit := q.ctx.u.CopyMax(); length == 0 || length > limit && !t.breaks(rule.CopiesHaveALimit) {
		e.fail(fmt.Errorf("a copy of %d B, limit %d: %w", length, limit, syscall.EINVAL))
		return
	}
	done := verbs.WCOpDriver3
	if t.breaks(rule.CopiesCompleteAsSuch) {
		done = verbs.WCOpDriver1
	}
	if !e.beginAs(t, prm.WQEOpMMO, done, 0) {
		return
	}
	prm.CtrlSegment(q.seg(e.ctrl)).SetOpMod(prm.MMODMA)
	room := q.pd.real().opaque.mr
	m := prm.MMOSegment(q.seg(e.ctrl + segSize))
	m.SetControl(0)
	m.SetLocalKey(room.lkey)
	m.SetLocalAddress(room.addr)
	n := uint32(length % prm.MMOMaxBytes) // all 2 GiB are a byte count of 0
	prm.DataSegment(q.seg(e.ctrl+2*segSize)).Set(n, srcLKey, src)
	prm.DataSegment(q.seg(e.ctrl+3*segSize)).Set(n, destLKey, dest)
	e.ds = wqebb / segSize
	t.Core.Run(t.P, 3*q.ctx.proc.Params.BuildSegment)
	e.nreq++
	e.finish(t)
}
