package sa

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
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

// paths are the records of the ways between ports that suit a request. There is one way from each port to each other one, and
// to itself.
func (n *Node) paths(mask uint64, b []byte) (all [][]byte, status uint16) {
	q := mad.PathRecord(b)
	if mask&mad.PathSGID == 0 && mask&mad.PathSLID == 0 {
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

// nodes are the records of the ports' nodes that suit a request.
func (n *Node) nodes(mask uint64, b []byte) (all [][]byte) {
	q := mad.NodeRecord(b)
	for _, m := range n.members {
		lid := m.PortInfo().LID
		if mask&mad.RecordLID != 0 && q.LID() != lid || mask&mad.NodeGUID != 0 && q.NodeGUID() != m.GUID ||
			mask&mad.NodePortGUID != 0 && q.PortGUID() != m.GUID {
			continue
		}
		rec := make([]byte, mad.NodeRecordSize)
		r := mad.NodeRecord(rec)
		r.SetLID(lid)
		r.SetVersions(1, 1)
		r.SetNodeType(mad.NodeTypeCA)
		r.SetPorts(1)
		r.SetSystemGUID(m.GUID)
		r.SetNodeGUID(m.GUID)
		r.SetPortGUID(m.GUID)
		r.SetPartitions(uint16(len(n.pkeys)))
		r.SetLocalPort(1)
		r.SetDescription(m.Description)
		all = append(all, rec)
	}
	return all
}

// portInfos are the records of ports that suit a request.
func (n *Node) portInfos(mask uint64, b []byte) (all [][]byte) {
	q := mad.PortInfoRecord(b)
	for _, m := range n.members {
		p := m.PortInfo()
		if mask&mad.RecordLID != 0 && q.LID() != p.LID {
			continue
		}
		rec := make([]byte, mad.PortInfoRecordSize)
		r := mad.PortInfoRecord(rec)
		r.SetLID(p.LID)
		r.SetPort(1)
		r.SetGIDPrefix(p.GIDPrefix)
		r.SetPortLID(p.LID)
		r.SetSMLID(p.SMLID)
		r.SetLocalPort(1)
		r.SetState(p.State)
		r.SetPhysicalState(physical(p.State))
		r.SetLMC(p.LMC)
		r.SetMTU(p.MTU)
		r.SetSMSL(p.SMSL)
		r.SetSubnetTimeout(p.SubnetTimeout)
		all = append(all, rec)
	}
	return all
}

// physical is the state of the link below a port: up, or polling.
func physical(s roce.PortState) uint8 {
	if s >= roce.PortInit {
		return 5
	}
	return 2
}
