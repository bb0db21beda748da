package sa

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// gid is that of a port; zero before the subnet manager has given it a prefix.
func (m *Member) gid() roce.GID { return roce.GIDFromGUID(m.PortInfo().GIDPrefix, m.GUID) }

// active says whether a port can be reached.
func (m *Member) active() bool {
	i := m.PortInfo()
	return i.State == roce.PortActive && i.LID != 0
}

// named says whether a path record's component names a port, or is not given.
func named(mask, gidBit, lidBit uint64, gid roce.GID, lid uint16, m *Member) bool {
	return (mask&gidBit == 0 || gid == m.gid()) && (mask&lidBit == 0 || lid == m.PortInfo().LID)
}

// paths are the records of the ways between ports that suit a request. There is one way from each
// port to each other one, and to itself.
func (n *Node) paths(mask uint64, b []byte, table bool) (all [][]byte, status uint16) {
	q := mad.PathRecord(b)
	if mask&mad.PathSGID == 0 && mask&mad.PathSLID == 0 && !(table && mask == 0) { // all paths, as saquery may ask for
		return nil, mad.StatusTooFewComponents
	}
	if mask&mad.PathDGID != 0 && q.DGID().IsMulticast() {
		return n.mcast.paths(mask, q)
	}
	for _, from := range n.members {
		if !from.active() || !named(mask, mad.PathSGID, mad.PathSLID, q.SGID(), q.SLID(), from) {
			continue
		}
		for _, to := range n.members {
			if !to.active() || !named(mask, mad.PathDGID, mad.PathDLID, q.DGID(), q.DLID(), to) {
				continue
			}
			if r := n.path(mask, q, from, to); r != nil {
				all = append(all, r)
			}
		}
	}
	return all, mad.StatusOK
}

// path is the record of the way between two ports, or nil when it is not what a request wants.
func (n *Node) path(mask uint64, q mad.PathRecord, from, to *Member) []byte {
	a, b := from.PortInfo(), to.PortInfo()
	s, v := q.MTU()
	mtu, ok1 := chooseMTU(mask&mad.PathMTUSelector != 0 && mask&mad.PathMTU != 0, s, v, min(a.MTU, b.MTU))
	s, v = q.Rate()
	rate, ok2 := chooseRate(mask&mad.PathRateSelector != 0 && mask&mad.PathRate != 0, s, v, n.rate)
	const level = 0 // the only service level
	pkey := roce.DefaultPKey
	if mask&mad.PathPKey != 0 {
		pkey = q.PKey() | 0x8000
	}
	if !ok1 || !ok2 || !n.hasPKey(pkey) || mask&mad.PathSL != 0 && q.SL() != level {
		return nil
	}
	rec := make([]byte, mad.PathRecordSize)
	r := mad.PathRecord(rec)
	r.SetDGID(to.gid())
	r.SetSGID(from.gid())
	r.SetDLID(b.LID)
	r.SetSLID(a.LID)
	if mask&mad.PathFlowLabel != 0 {
		r.SetFlowLabel(q.FlowLabel())
	}
	if mask&mad.PathTrafficClass != 0 {
		r.SetTrafficClass(q.TrafficClass())
	}
	r.SetReversible(true)
	r.SetPKey(pkey)
	r.SetSL(level)
	r.SetMTU(mad.Exactly, uint8(mtu))
	r.SetRate(mad.Exactly, rate)
	r.SetLifetime(mad.Exactly, lifetime)
	return rec
}

// lifetime is how long a packet can be on its way: 4.096 us << 18, what OpenSM says.
const lifetime = 18

// kind is a table of records that nodes' agents of subnet management answer block by block.
type kind struct {
	smp        uint16 // the attribute
	head, size int    // bytes before the attribute, and of all
	number     int    // byte of the port's or block's number in what is before; 0: there is none
	onlySwitch bool
	numbers    func(a *mgmt.SMA) (first, last int) // of ports or blocks, from first on
	components []attr.Field                        // in the order of the mask
}

// recordLID is that of every record but LinkRecord: the first component.
var recordLID = attr.Field{Width: 16}

func one(*mgmt.SMA) (first, last int) { return 0, 0 }

// ports are the ports of which there are records: of a switch with port 0.
func ports(a *mgmt.SMA) (first, last int) {
	if a.Type == mgmt.CA {
		return 1, a.Ports
	}
	return 0, a.Ports
}

// kinds are the tables. Components are those of ib_types.h of OpenSM (IB_NR_COMPMASK_ and so on).
var kinds = map[uint16]*kind{
	mad.AttrNodeRecord: {smp: mad.AttrNodeInfo, head: 4, size: mad.NodeRecordSize, numbers: one, components: []attr.Field{
		recordLID, {}, attr.NodeBaseVersion.In(4), attr.NodeClassVersion.In(4), attr.NodeType.In(4), attr.NodePorts.In(4), attr.NodeSystemGUID.In(4),
		attr.NodeGUID.In(4), attr.NodePortGUID.In(4), attr.NodePartitions.In(4), attr.NodeDevice.In(4), attr.NodeRevision.In(4),
		attr.NodeLocalPort.In(4), attr.NodeVendor.In(4),
	}},
	mad.AttrPortInfoRecord: {smp: mad.AttrPortInfo, head: 4, size: mad.PortInfoRecordSize, number: 2, numbers: ports, components: []attr.Field{
		recordLID, {Offset: 16, Width: 8}, {}, attr.PortMKey.In(4), attr.PortGIDPrefix.In(4), attr.PortLID.In(4), attr.PortSMLID.In(4), attr.PortCapMask.In(4),
	}},
	mad.AttrSwitchInfoRecord: {smp: mad.AttrSwitchInfo, head: 4, size: mad.SwitchInfoRecordSize, onlySwitch: true, numbers: one, components: []attr.Field{recordLID}},
	mad.AttrLFTRecord: {smp: mad.AttrLinearTable, head: 8, size: mad.BlockRecordSize, number: 3, onlySwitch: true, components: []attr.Field{recordLID, {Offset: 16, Width: 16}},
		numbers: func(a *mgmt.SMA) (first, last int) { return 0, int(topLID(a)) / mad.SMPDataSize }},
	mad.AttrPKeyTableRecord: {smp: mad.AttrPKeyTable, head: 8, size: mad.BlockRecordSize, number: 3, components: []attr.Field{recordLID, {Offset: 16, Width: 16}},
		numbers: func(a *mgmt.SMA) (first, last int) { return 0, (a.PKeys - 1) / 32 }},
	mad.AttrGUIDInfoRecord: {smp: mad.AttrGUIDInfo, head: 8, size: mad.BlockRecordSize, number: 2, numbers: one, components: []attr.Field{recordLID, {Offset: 16, Width: 8}}},
}

// topLID is the last LID in the forwarding table of a switch.
func topLID(a *mgmt.SMA) uint64 {
	m := query(mad.AttrSwitchInfo, 0)
	a.Answer(m, 0)
	return attr.SwitchLinearTop.Get(m.SMPData())
}

// query is a request to an agent of subnet management.
func query(attribute uint16, modifier int) mad.MAD {
	m := make(mad.MAD, mad.Size)
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(mad.ClassSubnLID)
	m.SetClassVersion(mad.SubnVersion)
	m.SetMethod(mad.Get)
	m.SetAttribute(attribute)
	m.SetModifier(uint32(modifier))
	return m
}

// lid is that of the node whose agent it is.
func lid(a *mgmt.SMA) uint16 {
	first, _ := ports(a)
	return a.Port(first).PortInfo().LID
}

// table are the records of a kind that suit a request.
func (n *Node) table(k *kind, m mad.MAD) (all [][]byte) {
	for _, a := range n.agents() {
		if k.onlySwitch && a.Type != mgmt.Switch {
			continue
		}
		first, last := k.numbers(a)
		for i := first; i <= last; i++ {
			q := query(k.smp, i)
			if a.Answer(q, uint8(min(1, a.Ports))); q.Status() != mad.StatusOK {
				continue
			}
			rec := make([]byte, k.size)
			copy(rec[k.head:], q.SMPData())
			recordLID.Set(rec, uint64(lid(a)))
			if k.number != 0 {
				rec[k.number] = uint8(i)
			}
			if k.smp == mad.AttrNodeInfo {
				copy(rec[nodeDescription:], a.Description)
			}
			if suits(k.components, m, rec) {
				all = append(all, rec)
			}
		}
	}
	return all
}

// nodeDescription is where a NodeRecord has it.
const nodeDescription = 44

// anyOf is the bit of the modifier by which a request for PortInfo asks for ports that have all
// bits of a capability mask.
const anyOf = 1 << 31

// suits says whether a record has the components that a request gives.
func suits(components []attr.Field, m mad.MAD, rec []byte) bool {
	for i, f := range components {
		if m.Components()>>i&1 == 0 {
			continue
		}
		want, got := f.Get(m.Data()), f.Get(rec)
		if m.Attribute() == mad.AttrPortInfoRecord && f == attr.PortCapMask.In(4) && m.Modifier()&anyOf != 0 {
			got &= want
		}
		if want != got {
			return false
		}
	}
	return true
}

// agents are those of all nodes: of the ports, of the switch, and of the host that this one is.
func (n *Node) agents() (all []*mgmt.SMA) {
	for _, m := range n.members {
		all = append(all, m.SMA())
	}
	if a := n.switchSMA(); a != nil {
		all = append(all, a)
	}
	if n.host == nil && n.sma != nil {
		all = append(all, n.sma)
	}
	return all
}

// switchSMA is the agent of the switch; nil: there is none.
func (n *Node) switchSMA() *mgmt.SMA {
	if n.sw == nil {
		return nil
	}
	return n.sw.SMA()
}

// linkFields are the components of a LinkRecord (IB_LR_COMPMASK_), in their order.
var linkFields = []attr.Field{{Offset: 0, Width: 16}, {Offset: 16, Width: 8}, {Offset: 24, Width: 8}, {Offset: 32, Width: 16}}

// linkRecords are the links, each in both directions.
func (n *Node) linkRecords(m mad.MAD) (all [][]byte) {
	add := func(fromLID uint16, from int, toLID uint16, to int) {
		rec := make([]byte, mad.LinkRecordSize)
		for i, v := range [...]uint64{uint64(fromLID), uint64(from), uint64(to), uint64(toLID)} {
			linkFields[i].Set(rec, v)
		}
		if suits(linkFields, m, rec) {
			all = append(all, rec)
		}
	}
	both := func(a uint16, at int, b uint16, to int) {
		add(a, at, b, to)
		add(b, to, a, at)
	}
	switch a := n.switchSMA(); {
	case a != nil:
		sw := lid(a)
		for _, x := range n.members {
			both(x.PortInfo().LID, 1, sw, x.At+1)
		}
		if n.host == nil && n.sma != nil {
			both(n.info.LID, 1, sw, n.sma.Port(1).(*ownPort).at+1)
		}
	case len(n.members) == 2:
		both(n.members[0].PortInfo().LID, 1, n.members[1].PortInfo().LID, 1)
	}
	return all
}
