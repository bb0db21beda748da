// Package sa is the host of an InfiniBand fabric on which its subnet manager and subnet
// administrator run, as OpenSM does on a host of its own: an end node with a port, a LID and QP1.
// The sweeps of the subnet manager are those of sim/link; what is here answers the queries that
// hosts send to QP1 at the subnet manager's LID: paths, multicast groups, which it also writes into
// the forwarding table of the switch, and records of nodes and ports. It costs nothing while nobody
// asks.
//
// A node made by NewHosted is no host of its own: it is the same program on one of the hosts, whose
// QP1 is its way to the others.
//
// It answers at once. It does not send again what is lost on the wire: hosts ask again.
package sa

import (
	"slices"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// Member is a port that queries may name: an end node of the subnet.
type Member struct {
	link.Managed
	GUID        uint64
	Description string
	At          int // port of the switch
	// SMA is the agent of the port's node; nil: one that has no more to say than Managed.
	SMA func() *mgmt.SMA
}

// Switch is the switch of the subnet.
type Switch interface {
	Groups
	// SMA returns the subnet management agent of the switch.
	SMA() *mgmt.SMA
}

// Groups is the multicast forwarding table of a switch.
type Groups interface {
	// SetGroup has packets to a multicast LID leave by these ports; by none: they are dropped.
	SetGroup(mlid uint16, ports []int)
}

// Counters count what came.
type Counters struct {
	Requests uint64 // that were answered
	Refused  uint64 // with a status that is not 0
	Dropped  uint64 // what is no request to QP1 of this node
}

// Node is the host of the subnet administrator.
type Node struct {
	C Counters

	wire    *link.Port
	out     func(to *Peer, m mad.MAD) // how answers leave
	host    link.Managed              // whose port is used; nil: the node has its own
	groups  Groups
	sw      Switch    // groups, if it is a switch; nil: the subnet is a cable
	sma     *mgmt.SMA // of the node's own port, after Manage
	pma     *mgmt.PMA
	guid    uint64
	manager *link.SubnetManager
	rate    uint8 // code of the links' rate
	info    roce.PortInfo
	pkeys   []uint16
	members []*Member
	tables  []transfer
	mcast   multicast
	ib      *link.IBParams
	frames  roce.Pool
	psn     uint32
	made    [mad.Size]byte // the datagram that is being sent
}

// New makes a node at a port of links with these parameters.
func New(wire *link.Port, ib *link.IBParams, groups Groups) *Node {
	n := newNode(ib, groups)
	n.wire, n.out = wire, n.frame
	n.info = roce.PortInfo{State: roce.PortInit, MTU: roce.MTU4096, VLs: 1}
	wire.Attach(n)
	return n
}

// NewHosted makes the program on a host whose port is one of the members. Who has the host's QP1
// gives it what comes there by Request, and sends its answers, whose bytes are good until out
// returns.
func NewHosted(host link.Managed, ib *link.IBParams, groups Groups, out func(to *Peer, m mad.MAD)) *Node {
	n := newNode(ib, groups)
	n.host, n.out = host, out
	return n
}

func newNode(ib *link.IBParams, groups Groups) *Node {
	n := &Node{ib: ib, groups: groups, rate: rateCode(ib.CountedRate()), pkeys: []uint16{roce.DefaultPKey}}
	n.sw, _ = groups.(Switch)
	n.mcast.node = n
	n.mcast.makeBroadcast()
	return n
}

// port is what the subnet manager has given to the port that is used.
func (n *Node) port() roce.PortInfo {
	if n.host != nil {
		return n.host.PortInfo()
	}
	return n.info
}

// Enter adds a port of the subnet.
func (n *Node) Enter(m Member) {
	x := &m
	if m.SMA == nil {
		a := n.newSMA(m.GUID, m.Description, &plainPort{Managed: m.Managed})
		x.SMA = func() *mgmt.SMA { return a }
	}
	n.members = append(n.members, x)
}

// Forget ends what a port has joined: its host has gone without a word.
func (n *Node) Forget(m link.Managed) {
	for _, x := range n.members {
		if x.Managed == m {
			n.mcast.forget(x)
		}
	}
}

// PortInfo is what the subnet manager reads of the node's own port.
func (n *Node) PortInfo() roce.PortInfo { return n.info }

// SetPortInfo takes its settings.
func (n *Node) SetPortInfo(v roce.PortInfo) { n.info = v }

// SetPKeys takes the table of P_Keys.
func (n *Node) SetPKeys(keys []uint16) { n.pkeys = keys }

// LinkChanged is called when the node's cable is pulled or put back.
func (n *Node) LinkChanged(up bool) {
	n.info.State = roce.PortDown
	if up {
		n.info.State = roce.PortInit
	}
}

// Receive takes a frame from the wire: a request is answered, all else is dropped.
func (n *Node) Receive(f *roce.Frame) {
	defer f.Release()
	p, err := f.Decode()
	if err == nil && f.ICRCOK() && n.manages(p) {
		return
	}
	if err != nil || !f.ICRCOK() || !n.accepts(p) {
		n.C.Dropped++
		return
	}
	m, err := mad.Parse(p.Payload())
	if err != nil || m.Class() != mad.ClassSubnAdm {
		n.C.Dropped++
		return
	}
	to := sender(p)
	n.request(&to, m)
}

// Request takes what came to the QP1 of the host on which the node runs: a request is answered, all
// else is dropped.
func (n *Node) Request(from Peer, data []byte) {
	m, err := mad.Parse(data)
	if err != nil || m.Class() != mad.ClassSubnAdm || n.port().State < roce.PortArmed {
		n.C.Dropped++
		return
	}
	n.request(&from, m)
}

// accepts says whether a packet is a datagram to QP1 of this node.
func (n *Node) accepts(p *roce.Packet) bool {
	return p.Framing == roce.InfiniBand && n.info.State >= roce.PortArmed && p.Op == roce.UDSendOnly &&
		p.LRH().DLID() == n.info.LID && p.BTH().DestQP() == roce.GSIQPN && p.DETH().QKey() == mad.QKey &&
		n.hasPKey(p.BTH().PKey())
}

// hasPKey says whether the node is in a partition of which the other end is a member.
func (n *Node) hasPKey(k uint16) bool {
	const full = 0x8000
	return slices.ContainsFunc(n.pkeys, func(own uint16) bool { return own&^full == k&^full && (own|k)&full != 0 && own&^full != 0 })
}

// Peer is where a request came from and its answer goes.
type Peer struct {
	LID    uint16
	SL     uint8
	Global bool
	GIDs   [2]roce.GID // own, the other's
	PKey   uint16
	QPN    uint32
}

// sender is the peer that a request came from.
func sender(p *roce.Packet) Peer {
	h := p.LRH()
	to := Peer{LID: h.SLID(), SL: h.SL(), Global: p.HasGRH(), PKey: p.BTH().PKey(), QPN: p.DETH().SrcQP()}
	if to.Global {
		to.GIDs = [2]roce.GID{p.DstGID(), p.SrcGID()}
	}
	return to
}

// send makes a datagram to a peer; fill writes it.
func (n *Node) send(to *Peer, fill func(mad.MAD)) {
	clear(n.made[:])
	fill(mad.MAD(n.made[:]))
	n.out(to, n.made[:])
}

// frame puts a datagram on the node's own wire.
func (n *Node) frame(to *Peer, m mad.MAD) {
	path := roce.Path{
		Framing: roce.InfiniBand, SLID: n.info.LID, DLID: to.LID, SL: to.SL, VL: to.SL % max(n.info.VLs, 1), MigReq: true,
		PKey: to.PKey, DestQP: to.QPN, Global: to.Global, SrcGID: to.GIDs[0], DstGID: to.GIDs[1],
	}
	t, err := roce.NewTemplate(path)
	if err != nil { // a request from an address to which nothing can go
		n.C.Dropped++
		return
	}
	f := t.New(&n.frames, roce.UDSendOnly, n.psn, mad.Size, 0)
	n.psn = (n.psn + 1) & roce.PSNMask
	f.DETH().SetQKey(mad.QKey)
	f.DETH().SetSrcQP(roce.GSIQPN)
	copy(f.Payload(), m)
	n.wire.Send(f)
}
