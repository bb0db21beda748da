package hca

import (
	"cmp"

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
func (p *avPaths) path(d *addresses, av prm.AVSegment, pkey uint16, qp0 bool) *avPath {
	key := av.Path()
	h := uint8(0)
	for _, b := range key {
		h = h*31 + b
	}
	e := &p[h>>(8-avPathBits)]
	if e.gidGen != d.gidGen || [36]byte(key) != e.key {
		*e = avPath{key: [36]byte(key), gidGen: d.gidGen}
		e.fill(d, av, pkey, qp0)
	}
	return e
}

// forget drops the headers that were made of the port as it was.
func (p *avPaths) forget() { clear(p[:]) }

// fill makes the header of an address vector.
func (e *avPath) fill(d *addresses, av prm.AVSegment, pkey uint16, qp0 bool) {
	if d.ib != nil {
		e.fillIB(d, av, pkey, qp0)
		return
	}
	i := int(av.SGIDIndex())
	if i >= len(d.gids) || !d.gids[i].valid {
		return
	}
	g := &d.gids[i]
	p := roce.Path{
		Framing: g.framing(), SrcMAC: g.mac, SrcGID: g.gid, TrafficClass: av.TClass(), HopLimit: av.HopLimit(),
		FlowLabel: av.FlowLabel(), SrcPort: cmp.Or(d.id.SourcePort, av.RLID()), PKey: roce.DefaultPKey, MigReq: true,
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

// fillIB is fill on InfiniBand.
func (e *avPath) fillIB(d *addresses, av prm.AVSegment, pkey uint16, qp0 bool) {
	p, ok := d.ibPath(av.RLID(), av.FLMLID()&0x7f, av.StatRateSL()&15, av.GRHPresent(), int(av.SGIDIndex()))
	if qp0 {
		p, ok = d.managementPath(av.RLID()), !av.GRHPresent()
	}
	if !ok {
		return
	}
	p.PKey = pkey
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
	e.loop = !e.group && d.isOwnLID(p.DLID)
}
