package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// avPaths are the headers that a UD QP has made of address vectors, by a hash of them.
type avPaths [1 << avPathBits]avPath

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
func (q *requester) path(av prm.AVSegment) *avPath {
	d := q.d
	key := av.Path()
	h := uint8(0)
	for _, b := range key {
		h = h*31 + b
	}
	e := &q.paths[h>>(8-avPathBits)]
	if e.gidGen != d.gidGen || [36]byte(key) != e.key {
		*e = avPath{key: [36]byte(key), gidGen: d.gidGen}
		q.makePath(e, av)
	}
	return e
}

// forget drops the headers that were made of the port as it was.
func (p *avPaths) forget() { clear(p[:]) }

func (q *requester) makePath(e *avPath, av prm.AVSegment) {
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
}

// datagram makes the headers of a datagram in the frame's slot i. A Q_Key with the top
// bit set in the WQE stands for the QP's own.
func (q *requester) datagram(op roce.Opcode, psn uint32, n int, flags roce.Flags, av prm.AVSegment) (f *roce.Frame, i int32) {
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
	d.slot(i).loop, d.slot(i).group = e.loop, e.group
	return f, i
}

// admitsDatagram checks a received packet that names this UD QP, or a group that it is
// in.
func (q *connection) admitsDatagram(p *roce.Packet) bool {
	d := q.d
	switch {
	case q.st != prm.STUD || p.Op.Transport() != roce.UD || !q.takesRequests():
		return false
	case p.BTH().DestQP() != multicastQPN && !d.isOwnAddress(p) && !q.breaks(rule.DatagramsAreForThePort):
		d.c.RxAddress++
		return false
	case !roce.PKeyMatch(p.BTH().PKey(), q.pkey):
		d.badPKey()
		return false
	case p.DETH().QKey() != q.context().QKey() && !q.breaks(rule.QKeysMatch):
		d.badQKey()
		return false
	}
	return true
}

// isOwnAddress says whether a packet is for an address of this port.
func (d *addresses) isOwnAddress(p *roce.Packet) bool {
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

// execDatagram receives a datagram: into a receive WQE, behind the routing header.
//
// Inferred: what is longer than the buffers ends the receive with a length error, as
// the completions that IPoIB and perftest report show, and the QP with it.
func (q *responder) execDatagram(p *roce.Packet) {
	q.takeRecv()
	if v := q.fillDatagram(p); v != passed {
		q.refuse(v, p)
		return
	}
	q.recvOpen = false
	q.datagramCQE(p, uint32(roce.GRHSize+p.PayloadLen()))
}

// scatterGRH writes the routing header of a datagram. Without one its room is left as it is.
func (q *responder) scatterGRH(p *roce.Packet) bool {
	if !p.PutGRH(q.grh[:]) || q.breaks(rule.DatagramsBringTheirRoute) {
		q.skipRecv(len(q.grh))
		return true
	}
	return q.scatter(q.grh[:])
}

// l3Types are the codes by which a CQE on RoCE names the routing header (cq.c of
// mlx5_ib, MLX5_CQE_ROCE_L3_HEADER_TYPE_*). They share their place with the SL.
var l3Types = [...]uint32{roce.RoCEv1: 0, roce.RoCEv2IPv6: 1, roce.RoCEv2IPv4: 2}

// datagramCQE reports a datagram.
func (q *responder) datagramCQE(p *roce.Packet, n uint32) {
	d := q.d
	all, e := d.entry(q.rcq, q.connection, true)
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
