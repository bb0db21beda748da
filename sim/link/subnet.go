package link

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
	"github.com/rdmasim/rdmasim/sim"
)

// Managed is the face that an end node's port shows to the subnet manager of the model. Its calls
// stand for management datagrams on QP0, by which others ask and set the same (sim/mgmt).
type Managed interface {
	// PortInfo is SubnGet(PortInfo); SetPortInfo is SubnSet.
	PortInfo() roce.PortInfo
	SetPortInfo(roce.PortInfo)
	// SetPKeys replaces the P_Key table; entries that are not given are empty.
	SetPKeys([]uint16)
}

// Fabric is what a subnet manager gives to the ports of its subnet.
type Fabric struct {
	GIDPrefix uint64
	SMLID     uint16
	SMSL      uint8
	FirstLID  uint16 // of the first port; the next ones follow
	MTU       roce.MTU
	PKeys     []uint16
	Timeout   uint8 // SubnetTimeout of the ports
}

// DefaultFabric is that of a subnet manager that runs on the first port without a
// configuration of its own.
func DefaultFabric() Fabric {
	return Fabric{GIDPrefix: roce.DefaultGIDPrefix, SMLID: 1, FirstLID: 1, MTU: roce.MTU4096, PKeys: []uint16{roce.DefaultPKey}, Timeout: 18}
}

// SubnetManager brings the ports of one subnet up: it gives them LIDs in the order in
// which they were entered (LMC 0), fills their P_Key tables, writes the forwarding
// tables of the switch, and takes the ports from INIT over ARMED to ACTIVE. When a link
// comes back it does so again, Sweep later.
type SubnetManager struct {
	e     *sim.Engine
	f     Fabric
	after sim.Time
	nodes []node
	sw    *Switch
	due   bool
	idle  bool
	sweep sim.Handler
	// Sweeps counts the times that the subnet was looked through.
	Sweeps uint64
}

type node struct {
	port *Port
	m    Managed
	at   int // port of the switch
}

// NewSubnetManager makes one that begins Sweep, of the link's parameters, after a
// change.
func NewSubnetManager(e *sim.Engine, f Fabric, sweep sim.Time) *SubnetManager {
	s := &SubnetManager{e: e, f: f, after: sweep}
	s.sweep = func(uint64) { s.due = false; s.Sweep() }
	return s
}

// Add enters an end node by its port; behind a switch, at is the switch's port.
func (s *SubnetManager) Add(p *Port, m Managed, sw *Switch, at int) {
	p.sm, s.sw = s, sw
	s.nodes = append(s.nodes, node{p, m, at})
}

// Fabric is what ports are given.
func (s *SubnetManager) Fabric() Fabric { return s.f }

// Configure changes what ports are given, and gives it to them. With reregister it asks
// the clients of each port to register again.
func (s *SubnetManager) Configure(f Fabric, reregister bool) {
	s.f = f
	s.set(reregister)
}

// Sweep looks through the subnet and brings up what is in INIT.
func (s *SubnetManager) Sweep() { s.set(false) }

// AnswerSMInfo answers a request for SMInfo, on a port with this GUID. It reports false for other
// datagrams.
func (s *SubnetManager) AnswerSMInfo(m mad.MAD, guid uint64) bool {
	if s.idle || m.Attribute() != mad.AttrSMInfo || m.Method() != mad.Get || !m.Subnet() {
		return false
	}
	b := m.SMPData()
	clear(b)
	attr.SMGUID.Set(b, guid)
	attr.SMActivity.Set(b, s.Sweeps)
	attr.SMState.Set(b, attr.SMMaster)
	m.Answer(mad.StatusOK)
	return true
}

// linkChanged has the subnet looked through a while later.
func (s *SubnetManager) linkChanged() {
	if !s.due {
		s.due = true
		s.e.After(s.after, s.sweep, 0)
	}
}

// setSwitch gives the switch the LID behind those of the end nodes, and takes its ports to ACTIVE.
func (s *SubnetManager) setSwitch() {
	a := s.sw.agents
	if a == nil {
		return
	}
	for n, x := range a.ports {
		info := x.PortInfo()
		info.MTU = s.f.MTU
		switch {
		case n == 0:
			info.LID, info.SMLID, info.SMSL = s.f.FirstLID+uint16(len(s.nodes)), s.f.SMLID, s.f.SMSL
			info.GIDPrefix, info.SubnetTimeout = s.f.GIDPrefix, s.f.Timeout
			a.top[0] = info.LID
		case info.State >= roce.PortInit:
			info.State, info.VLs = roce.PortActive, uint8(len(x.port.lanes.vl))
		}
		x.SetPortInfo(info)
	}
	a.ports[0].pkeys = s.f.PKeys[:min(1, len(s.f.PKeys))]
}

// Retire has the manager do nothing from now on: another one, which is not of the model, has the
// subnet.
func (s *SubnetManager) Retire() { s.idle = true }

// Retired says whether it does nothing.
func (s *SubnetManager) Retired() bool { return s.idle }

// set is one sweep. All ports are ARMED before the first is ACTIVE.
func (s *SubnetManager) set(reregister bool) {
	if s.idle {
		return
	}
	s.Sweeps++
	if s.sw != nil {
		s.sw.lids = map[uint16]int{}
		s.setSwitch()
	}
	for i, n := range s.nodes {
		lid := s.f.FirstLID + uint16(i)
		if s.sw != nil {
			s.sw.lids[lid] = n.at
		}
		info := n.m.PortInfo()
		if info.State < roce.PortInit {
			continue
		}
		info.LID, info.LMC, info.SMLID, info.SMSL = lid, 0, s.f.SMLID, s.f.SMSL
		info.GIDPrefix, info.MTU, info.SubnetTimeout = s.f.GIDPrefix, s.f.MTU, s.f.Timeout
		info.VLs = uint8(len(n.port.lanes.vl))
		info.Reregister = reregister
		if info.State == roce.PortInit {
			info.State = roce.PortArmed
		}
		n.m.SetPKeys(s.f.PKeys)
		n.m.SetPortInfo(info)
	}
	for _, n := range s.nodes {
		if info := n.m.PortInfo(); info.State == roce.PortArmed {
			info.State, info.Reregister = roce.PortActive, false
			n.m.SetPortInfo(info)
		}
	}
}
