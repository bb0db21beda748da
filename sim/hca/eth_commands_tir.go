package hca

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/prm"
)

// goodHash says whether a TIR can have the hash of a context.
func goodHash(c prm.TIRC) bool {
	return c.RxHashFn() <= prm.RxHashToeplitz && c.OuterSelectedFields()&^prm.RxHashFields == 0
}

func cmdCreateTIR(d *Device, in, out []byte) prm.Status {
	c := prm.CreateTIRIn(in).Context()
	t := &tir{td: c.TransportDomain()}
	// Programs make some of no domain (test_dest_tir of rdma-core): packets of every one come to
	// these.
	if !counted(d.tds, t.td) && (t.td != 0 || !d.p.SWSteering) || c.TLSEn() || c.PacketMergeMask() != 0 || c.TunneledOffloadEn() || !goodHash(c) {
		return prm.StatusBadParam
	}
	switch c.DispType() {
	case prm.TIRDirect:
		t.rq = d.nic.receivers.at(c.InlineRQN())
	case prm.TIRIndirect:
		t.table = numbered(d.nic.rqts, c.IndirectTable())
		t.setHash(c)
	}
	if t.rq == nil && t.table == nil {
		return prm.StatusBadParam
	}
	n, ok := d.nic.tirNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	copy(t.ctx[:], c)
	d.nic.tirs = put(d.nic.tirs, n, t)
	d.useTIR(t, 1)
	prm.CreateTIROut(out).SetTIRN(n)
	if d.p.SWSteering {
		prm.CreateTIROut(out).PutICMAddress(icmTIRs + uint64(n)*prm.STESize)
	}
	return prm.StatusOK
}

// useTIR counts a TIR among the users of what it has; by is 1 or -1.
func (d *Device) useTIR(t *tir, by int) {
	d.nic.takers += by
	d.listen()
	if t.td != 0 {
		d.tds[t.td] += int32(by)
	}
	if t.rq != nil {
		t.rq.users += by
	} else {
		t.table.users += by
	}
}

// cmdModifyTIR changes the hash, or which packets of the function itself come to it.
func cmdModifyTIR(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyTIRIn(in)
	t, from := numbered(d.nic.tirs, m.TIRN()), m.Context()
	switch {
	case t == nil:
		return prm.StatusBadResState
	case m.SelectPacketMerge() && from.PacketMergeMask() != 0, m.SelectHash() && (t.table == nil || !goodHash(from)):
		return prm.StatusBadParam
	}
	to := prm.TIRC(t.ctx[:])
	if m.SelectSelfLB() {
		to.SetSelfLBBlock(from.SelfLBBlock())
	}
	if m.SelectHash() {
		to.SetRxHashFn(from.RxHashFn())
		to.SetRxHashSymmetric(from.RxHashSymmetric())
		to.SetOuterSelectedFields(from.OuterSelectedFields())
		copy(to.RxHashToeplitzKey(), from.RxHashToeplitzKey())
		t.setHash(from)
	}
	return prm.StatusOK
}

func cmdDestroyTIR(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyTIRIn(in).TIRN()
	t := numbered(d.nic.tirs, n)
	if t == nil {
		return prm.StatusBadResState
	}
	st := destroyed(d.nic.tirs, n, t.users, &d.nic.tirNums)
	if st == prm.StatusOK {
		d.useTIR(t, -1)
	}
	return st
}

func cmdQueryTIR(d *Device, in, out []byte) prm.Status {
	t := numbered(d.nic.tirs, prm.QueryTIRIn(in).TIRN())
	if t == nil {
		return prm.StatusBadResState
	}
	copy(prm.QueryTIROut(out).Context(), t.ctx[:])
	return prm.StatusOK
}

// rqList is the RQs of a list: a power of two, and all there.
func (n *nic) rqList(c prm.RQTC, l prm.RQList, most int) ([]*packetRQ, bool) {
	size := int(c.ActualSize())
	if size == 0 || size > most || bits.OnesCount(uint(size)) != 1 || size > l.Count() || c.ListQType() != 0 || c.RQVHCAIDFormat() {
		return nil, false
	}
	list := make([]*packetRQ, size)
	for i := range list {
		if list[i] = n.receivers.at(l.At(i)); list[i] == nil {
			return nil, false
		}
	}
	return list, true
}

// setList takes over a list.
func (r *rqt) setList(list []*packetRQ) {
	for _, q := range list {
		q.users++
	}
	for _, q := range r.list {
		q.users--
	}
	r.list = list
	prm.RQTC(r.ctx[:]).SetActualSize(uint32(len(list)))
}

func cmdCreateRQT(d *Device, in, out []byte) prm.Status {
	m := prm.CreateRQTIn(in)
	c := m.Context()
	most := int(c.MaxSize())
	list, ok := d.nic.rqList(c, m.List(), min(most, 1<<logMaxRQTSize))
	if !ok || most > 1<<logMaxRQTSize {
		return prm.StatusBadParam
	}
	n, ok := d.nic.rqtNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	r := &rqt{max: most}
	copy(r.ctx[:], c)
	r.setList(list)
	d.nic.rqts = put(d.nic.rqts, n, r)
	prm.CreateRQTOut(out).SetRQTN(n)
	return prm.StatusOK
}

func cmdModifyRQT(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyRQTIn(in)
	r := numbered(d.nic.rqts, m.RQTN())
	if r == nil {
		return prm.StatusBadResState
	}
	if !m.SelectList() {
		return prm.StatusOK
	}
	list, ok := d.nic.rqList(m.Context(), m.List(), r.max)
	if !ok {
		return prm.StatusBadParam
	}
	r.setList(list)
	return prm.StatusOK
}

func cmdDestroyRQT(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyRQTIn(in).RQTN()
	r := numbered(d.nic.rqts, n)
	if r == nil {
		return prm.StatusBadResState
	}
	st := destroyed(d.nic.rqts, n, r.users, &d.nic.rqtNums)
	if st == prm.StatusOK {
		r.setList(nil)
	}
	return st
}

func cmdQueryRQT(d *Device, in, out []byte) prm.Status {
	r, o := numbered(d.nic.rqts, prm.QueryRQTIn(in).RQTN()), prm.QueryRQTOut(out)
	switch {
	case r == nil:
		return prm.StatusBadResState
	case o.List().Count() < len(r.list):
		return prm.StatusBadOutpLen
	}
	copy(o.Context(), r.ctx[:])
	for i, q := range r.list {
		o.List().Set(i, q.num)
	}
	return prm.StatusOK
}
