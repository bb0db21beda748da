package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// datagrams is what a UD QP has instead of a peer.
type datagrams struct {
	paths [1 << avPathBits]avPath
	grh   [roce.GRHSize]byte
}

// avPathBits is the logarithm of how many ways a UD QP keeps headers for.
const avPathBits = 5

// avPath is the header for the address vectors of one port: what is behind the Q_Key
// and the QPN in them.
type avPath struct {
	key    [36]byte
	gidGen uint32 // generation of the address table; 0: the entry is empty
	ok     bool   // the address vector makes a header
	loop   bool   // the destination is this port
	group  bool   // or a multicast group
	tmpl   roce.Template
}

// path finds the header for an address vector, which must be whole. ok is false in
// what it returns when the source address is not in the table or does not suit the
// destination.
func (q *qp) path(av prm.AVSegment) *avPath {
	d := q.d
	key := av.Path()
	h := uint8(0)
	for _, b := range key {
		h = h*31 + b
	}
	e := &q.ud.paths[h>>(8-avPathBits)]
	if e.gidGen != d.gidGen || [36]byte(key) != e.key {
		*e = avPath{key: [36]byte(key), gidGen: d.gidGen}
		q.makePath(e, av)
	}
	return e
}

// forget drops the headers that were made of the port as it was.
func (u *datagrams) forget() { clear(u.paths[:]) }

func (q *qp) makePath(e *avPath, av prm.AVSegment) {
	d := q.d
	if d.ib != nil {
		q.makeIBPath(e, av)
		return
	}
	i := int(av.SGIDIndex())
	if i >= len(d.gids) || !d.gids[i].valid {
		return
	}
	g := &d.gids[i]
	p := roce.Path{
		Framing: g.framing(), SrcMAC: g.mac, SrcGID: g.gid, TrafficClass: av.TClass(), HopLimit: av.HopLimit(),
		FlowLabel: av.FlowLabel(), SrcPort: av.RLID(), PKey: roce.DefaultPKey, MigReq: true,
		Tagged: g.vlanValid, VLANTCI: uint16(av.StatRateSL()>>1&7)<<13 | g.vlan,
	}
	copy(p.DstGID[:], av.RGID())
	copy(p.DstMAC[:], av.RMAC())
	if p.HopLimit == 0 {
		p.HopLimit = defaultHopLimit
	}
	t, err := roce.NewTemplate(p)
	if err != nil {
		return
	}
	e.ok, e.tmpl = true, t
	e.group = p.DstGID.IsMulticast()
	e.loop = !e.group && d.gidIndex(p.DstGID) >= 0
	d.loops = d.loops || e.loop || e.group
}

// checkDatagram is what a UD WQE must have beside what every SEND must: a whole
// address vector that leads somewhere, and no more than a packet's payload.
func (q *qp) checkDatagram(w *prm.SendWQE) prm.Syndrome {
	switch {
	case !w.AV.Extended(), !q.path(w.AV).ok:
		return prm.SyndromeLocalQPOp
	case w.Bytes > uint64(q.mtu):
		return prm.SyndromeLocalLength
	}
	return 0
}

// datagram makes the headers of a datagram in the frame's slot i. A Q_Key with the top
// bit set in the WQE stands for the QP's own.
func (q *qp) datagram(op roce.Opcode, psn uint32, n int, flags roce.Flags, av prm.AVSegment) (f *roce.Frame, i int32) {
	d := q.d
	e := q.path(av)
	e.tmpl.SetDestQP(av.DestQPN())
	f = e.tmpl.New(&d.frames, op, psn, n, flags)
	key := av.QKey()
	if key>>31 != 0 {
		key = q.context().QKey()
	}
	h := f.DETH()
	h.SetQKey(key)
	h.SetSrcQP(q.num)
	i = d.getSlot(f)
	d.slots[i].loop, d.slots[i].group = e.loop, e.group
	return f, i
}

// admitsDatagram checks a received packet that names this UD QP, or a group that it is
// in.
func (q *qp) admitsDatagram(p *roce.Packet) bool {
	d := q.d
	switch {
	case q.st != prm.STUD || p.Op.Transport() != roce.UD || !q.takesRequests():
		return false
	case p.BTH().DestQP() != multicastQPN && !d.isOwnAddress(p):
		d.c.RxAddress++
		return false
	case !roce.PKeyMatch(p.BTH().PKey(), q.pkey):
		d.badPKey()
		return false
	case p.DETH().QKey() != q.context().QKey():
		d.badQKey()
		return false
	}
	return true
}

// isOwnAddress says whether a packet is for an address of this port.
func (d *Device) isOwnAddress(p *roce.Packet) bool {
	if p.Framing == roce.InfiniBand { // its LID is, or it would not be here
		return !p.HasGRH() || d.gidIndex(p.DstGID()) >= 0
	}
	gid, mac := p.DstGID(), p.Ethernet().Dst()
	for i := range d.gids {
		if g := &d.gids[i]; g.valid && g.gid == gid && g.mac == mac && g.framing() == p.Framing {
			return true
		}
	}
	return false
}

// execDatagram receives a datagram: into a receive WQE, behind the routing header. It
// reports true when the packet must wait for a receive WQE. Without one it is dropped.
//
// Inferred: what is longer than the buffers ends the receive with a length error, as
// the completions that IPoIB and perftest report show, and the QP with it.
func (q *qp) execDatagram(p *roce.Packet) (wait bool) {
	if !q.hasRecv() {
		if q.wantRecv() {
			return true
		}
		q.qs.add(prm.QCOutOfBuffer)
		return false
	}
	data := p.Payload()
	if len(data) > q.mtu || p.PadCount() != roce.PadCount(len(data)) {
		return false
	}
	q.takeRecv()
	n := uint32(roce.GRHSize + len(data))
	if uint64(n) > q.recvCap {
		q.qs.add(prm.QCRespLocalLengthError)
		q.failRecv(prm.SyndromeLocalLength, 0)
		return false
	}
	head := q.ud.grh[:]
	if !p.PutGRH(head) { // without a GRH its room is left as it is
		q.skipRecv(len(head))
		head = nil
	}
	if !q.scatter(head) || !q.scatter(data) {
		q.qs.add(prm.QCRespLocalProtection)
		q.failRecv(prm.SyndromeLocalProt, 0)
		return false
	}
	q.recvOpen = false
	q.datagramCQE(p, n)
	return false
}

// l3Types are the codes by which a CQE on RoCE names the routing header (cq.c of
// mlx5_ib, MLX5_CQE_ROCE_L3_HEADER_TYPE_*). They share their place with the SL.
var l3Types = [...]uint32{roce.RoCEv1: 0, roce.RoCEv2IPv6: 1, roce.RoCEv2IPv4: 2}

// datagramCQE reports a datagram.
func (q *qp) datagramCQE(p *roce.Packet, n uint32) {
	d := q.d
	all, e := d.entry(q.rcq, q, true)
	op := prm.CQERespSend
	if p.Has(roce.HasImmDt) {
		op = prm.CQERespSendImm
		e.SetImmInvalPKey(p.ImmDt().Value())
	}
	e.SetRQPN(p.DETH().SrcQP())
	if p.Framing == roce.InfiniBand {
		q.ibDatagramCQE(e, p)
	} else {
		e.SetGRH(1)
		e.SetSL(l3Types[p.Framing])
	}
	e.SetByteCnt(n)
	e.SetTimestamp(d.timestamp(d.e.Now()))
	e.SetQPN(q.num)
	e.SetWQECounter(q.recvIdx)
	e.SetOpOwn(op, prm.CQEFormatPlain, p.BTH().Solicited(), 0)
	q.rcq.push(all)
}

// udPayload is the most that a datagram carries: the largest MTU of the standard that
// the port's own has room for, and the QP's context allows.
func (d *Device) udPayload(ctx roce.MTU) int {
	for ctx > roce.MTU256 && !d.carries(ctx) {
		ctx--
	}
	return ctx.Bytes()
}
