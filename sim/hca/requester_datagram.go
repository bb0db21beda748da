package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
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
	u := q.u
	key := av.Path()
	h := uint8(0)
	for _, b := range key {
		h = h*31 + b
	}
	e := &q.paths[h>>(8-avPathBits)]
	if e.gidGen != u.gidGen || [36]byte(key) != e.key {
		*e = avPath{key: [36]byte(key), gidGen: u.gidGen}
		q.makePath(e, av)
	}
	return e
}

// forget drops the headers that were made of the port as it was.
func (p *avPaths) forget() { clear(p[:]) }

func (q *requester) makePath(e *avPath, av prm.AVSegment) {
	u := q.u
	if u.ib != nil {
		q.makeIBPath(e, av)
		return
	}
	i := int(av.SGIDIndex())
	if i >= len(u.gids) || !u.gids[i].valid {
		return
	}
	g := &u.gids[i]
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
	e.loop = !e.group && u.gidIndex(p.DstGID) >= 0
}

// datagram makes the headers of a datagram in the frame's slot i. A Q_Key with the top
// bit set in the WQE stands for the QP's own.
func (q *requester) datagram(op roce.Opcode, psn uint32, n int, flags roce.Flags, av prm.AVSegment) (f *roce.Frame, i int32) {
	u := q.u
	e := q.path(av)
	e.tmpl.SetDestQP(av.DestQPN())
	f = e.tmpl.New(&u.frames, op, psn, n, flags)
	key := av.QKey()
	if key>>31 != 0 {
		key = q.context().QKey()
	}
	h := f.DETH()
	h.SetQKey(key)
	h.SetSrcQP(q.num)
	i = u.getSlot(f)
	u.slot(i).loop, u.slot(i).group = e.loop, e.group
	return f, i
}

// makeIBPath is makePath on InfiniBand.
func (q *requester) makeIBPath(e *avPath, av prm.AVSegment) {
	u := q.u
	p, ok := u.ibPath(av.RLID(), av.FLMLID()&0x7f, av.StatRateSL()&15, av.GRHPresent(), int(av.SGIDIndex()))
	if !ok {
		return
	}
	p.PKey = q.pkey
	if p.Global {
		copy(p.DstGID[:], av.RGID())
		p.TrafficClass, p.HopLimit, p.FlowLabel = av.TClass(), av.HopLimit(), av.FlowLabel()
	}
	e.group = roce.IsMulticastLID(p.DLID)
	if e.group && !p.DstGID.IsMulticast() {
		return
	}
	t, err := roce.NewTemplate(p)
	if err != nil {
		return
	}
	e.ok, e.tmpl = true, t
	e.loop = !e.group && u.isOwnLID(p.DLID)
}
