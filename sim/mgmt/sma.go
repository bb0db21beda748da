// Package mgmt has the agents that firmware runs on the nodes of an InfiniBand subnet: that of
// subnet management (SMA, IBTA Vol. 1, 14.2.5), which answers SMPs, and that of performance
// management (PMA, 16.1). They answer datagrams in place and do not carry them. M_Keys are kept and
// not checked.
package mgmt

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
)

// vendor is that of all nodes: the OUI of their GUIDs.
const vendor = 0x0002c9

// Types of nodes.
const (
	CA     = 1
	Switch = 2
)

// Physical states of a port.
const (
	physPolling  = 2
	physDisabled = 3
	physLinkUp   = 5
)

// Node is what does not change.
type Node struct {
	Type        uint8
	Ports       int // beside port 0 of a switch
	GUID        uint64
	Description string
	Device      uint16
	PKeys       int    // entries of the table of a CA's port, or of a switch's port 0
	Speed       uint32 // active_speed and active_width of the links, as verbs code them
	Width       uint8
	VLCap       uint8
}

// Port is a port as the agent sees it.
type Port interface {
	// PortInfo returns the attribute of that name; SetPortInfo sets what may be set of it.
	PortInfo() roce.PortInfo
	SetPortInfo(roce.PortInfo)
	// PKeyTable returns the P_Key table; SetPKeys replaces it.
	PKeyTable() []uint16
	SetPKeys([]uint16)
	// CapMasks are CapabilityMask and CapabilityMask2.
	CapMasks() (mask, mask2 uint32)
	// Violations count packets with P_Keys and with Q_Keys that the port did not take.
	Violations() (pkeys, qkeys uint16)
	// Retrain takes the link down and, with up, up again.
	Retrain(up bool)
}

// keys are what only the subnet manager reads.
type keys struct {
	mkey  uint64
	lease uint16
}

// SMA is the agent of subnet management of a node.
type SMA struct {
	Node
	// Port is that of a number; nil: there is none.
	Port func(number int) Port
	// More answers what only switches have; false: the attribute is unknown.
	More func(m mad.MAD, set bool) (status uint16, ok bool)
	keys map[int]keys
}

// Answer turns a request into its answer. in is the port by which it came. It reports false for
// what is no request to this agent, which is as it was.
func (a *SMA) Answer(m mad.MAD, in uint8) bool {
	method := m.Method()
	if method != mad.Get && method != mad.Set || m.Attribute() == mad.AttrSMInfo || !m.Subnet() {
		return false
	}
	status := uint16(mad.StatusBadVersion)
	if m.ClassVersion() == mad.SubnVersion {
		status = a.attribute(m, method == mad.Set, in)
	}
	m.Answer(status)
	return true
}

// attribute reads or writes the attribute of a request, and puts what there is into it.
func (a *SMA) attribute(m mad.MAD, set bool, in uint8) (status uint16) {
	b := m.SMPData()
	switch at := m.Attribute(); at {
	case mad.AttrNodeDescription, mad.AttrNodeInfo:
		if set {
			return mad.StatusNoAttribute
		}
		clear(b)
		if at == mad.AttrNodeDescription {
			copy(b, a.Description)
		} else {
			a.NodeInfo(b, in)
		}
		return mad.StatusOK
	case mad.AttrPortInfo:
		return a.portInfo(m, set, in)
	case mad.AttrPKeyTable:
		return a.pkeys(m, set)
	case mad.AttrGUIDInfo:
		return a.guids(m, set)
	case mad.AttrSLtoVL:
		return a.lanes(m, set)
	case mad.AttrVendorPort:
		return a.vendorPort(m, set)
	}
	if a.More != nil {
		if status, ok := a.More(m, set); ok {
			return status
		}
	}
	return mad.StatusNoAttribute
}

// NodeInfo writes the attribute for who asks by a port.
func (a *Node) NodeInfo(b []byte, in uint8) {
	attr.NodeBaseVersion.Set(b, mad.BaseVersion)
	attr.NodeClassVersion.Set(b, mad.SubnVersion)
	attr.NodeType.Set(b, uint64(a.Type))
	attr.NodePorts.Set(b, uint64(a.Ports))
	attr.NodeSystemGUID.Set(b, a.GUID)
	attr.NodeGUID.Set(b, a.GUID)
	attr.NodePortGUID.Set(b, a.GUID)
	attr.NodePartitions.Set(b, uint64(a.PKeys))
	attr.NodeDevice.Set(b, uint64(a.Device))
	attr.NodeLocalPort.Set(b, uint64(in))
	attr.NodeVendor.Set(b, vendor)
}

func (a *SMA) portInfo(m mad.MAD, set bool, in uint8) (status uint16) {
	n := int(m.Modifier() & 0xff)
	if n == 0 && a.Type == CA {
		n = int(in) // the port that the request came by
	}
	p := a.Port(n)
	if p == nil || m.Modifier()&0x7fffff00 != 0 { // bit 31: who asks knows extended speeds
		return mad.StatusBadField
	}
	b := m.SMPData()
	if set {
		if status = a.setPortInfo(p, n, b); status != mad.StatusOK {
			return status
		}
	}
	clear(b)
	a.PortInfo(b, p, n, in)
	return mad.StatusOK
}

// PortInfo writes the attribute of port n, for who asks by a port.
func (a *SMA) PortInfo(b []byte, p Port, n int, in uint8) {
	i, k := p.PortInfo(), a.keys[n]
	mask, mask2 := p.CapMasks()
	badP, badQ := p.Violations()
	speed, ext := speedCodes(a.Speed)
	if ext != 0 && (a.Type == CA || n == 0) {
		mask |= capExtendedSpeeds
	}
	if a.Type == Switch && n == 0 {
		speed, ext = 1, 0 // port 0 has no link: these fields say nothing (IBTA Vol. 1, 14.2.5.6)
	}
	set := func(f attr.Field, v uint64) { f.Set(b, v) }
	set(attr.PortMKey, k.mkey)
	set(attr.PortMKeyLease, uint64(k.lease))
	set(attr.PortCapMask, uint64(mask))
	set(attr.PortCapMask2, uint64(mask2))
	set(attr.PortLocalPort, uint64(in))
	set(attr.PortState, uint64(i.State))
	set(attr.PortPhysState, uint64(PhysicalState(i.State)))
	set(attr.PortDownDefault, physPolling)
	set(attr.PortMTUCap, uint64(roce.MTU4096))
	set(attr.PortNeighborMTU, uint64(i.MTU))
	set(attr.PortVLCap, uint64(a.VLCap))
	set(attr.PortOperationalVLs, uint64(VLCode(i.VLs)))
	if a.Type == CA || n == 0 { // what only ports with an address have
		set(attr.PortGIDPrefix, i.GIDPrefix)
		set(attr.PortLID, uint64(i.LID))
		set(attr.PortSMLID, uint64(i.SMLID))
		set(attr.PortLMC, uint64(i.LMC))
		set(attr.PortSMSL, uint64(i.SMSL))
		set(attr.PortSubnetTimeout, uint64(i.SubnetTimeout))
		set(attr.PortGUIDCap, guidCap)
		set(attr.PortResponseTime, responseTime)
	}
	set(attr.PortPKeyViolations, uint64(badP))
	set(attr.PortQKeyViolations, uint64(badQ))
	set(attr.PortWidthSupported, uint64(a.Width))
	set(attr.PortWidthEnabled, uint64(a.Width))
	set(attr.PortWidthActive, uint64(a.Width))
	set(attr.PortSpeedSupported, uint64(2*speed-1)) // and all below it
	set(attr.PortSpeedEnabled, uint64(2*speed-1))
	set(attr.PortSpeedActive, uint64(speed))
	if ext != 0 {
		set(attr.PortExtSpeedCap, uint64(2*ext-1))
		set(attr.PortExtSpeedOn, uint64(2*ext-1))
		set(attr.PortExtSpeedActive, uint64(ext))
	}
}

// capExtendedSpeeds is the bit of CapabilityMask for speeds from FDR on
// (IB_PORT_EXTENDED_SPEEDS_SUP).
const capExtendedSpeeds = 1 << 14

// What ports say of themselves. Assumed: entries of the table of GUIDs as OpenSM's examples have
// them, and a response time of 0.27 s.
const (
	guidCap      = 8
	responseTime = 16 // 4.096 us << 16
)

// speedCodes are LinkSpeedActive and LinkSpeedExtActive of an active_speed of verbs. FDR10 is QDR
// with an attribute of the vendor's.
func speedCodes(code uint32) (speed, ext uint8) {
	const qdr = 4
	switch {
	case code >= 16:
		return qdr, uint8(code / 16)
	case code > qdr:
		return qdr, 0
	}
	return uint8(max(code, 1)), 0
}

// vendorPort says of a port whether its speed is FDR10.
func (a *SMA) vendorPort(m mad.MAD, set bool) (status uint16) {
	const fdr10 = 8 // active_speed
	switch p := a.Port(max(int(m.Modifier()&0xff), 2-int(a.Type))); {
	case set:
		return mad.StatusNoAttribute
	case p == nil:
		return mad.StatusBadField
	}
	b := m.SMPData()
	clear(b)
	if a.Speed == fdr10 {
		attr.VendorSpeedSupported.Set(b, 1)
		attr.VendorSpeedEnabled.Set(b, 1)
		attr.VendorSpeedActive.Set(b, 1)
	}
	return mad.StatusOK
}

// laneCodes are the numbers of data lanes by their codes.
var laneCodes = [...]uint8{0, 1, 2, 4, 8, 15}

// VLCode is the code of a number of data lanes.
func VLCode(n uint8) (code uint8) {
	for c, lanes := range laneCodes {
		if lanes <= max(n, 1) {
			code = uint8(c)
		}
	}
	return code
}

// VLCount is how many data lanes the node's ports have.
func (a *Node) VLCount() uint8 { return laneCodes[min(int(a.VLCap), len(laneCodes)-1)] }

// PhysicalState is the state of the link below a port.
func PhysicalState(s roce.PortState) uint8 {
	if s >= roce.PortInit {
		return physLinkUp
	}
	return physPolling
}

// setPortInfo takes the settings of a subnet manager (IBTA Vol. 1, 14.2.5.6). In some of them 0
// means no change.
func (a *SMA) setPortInfo(p Port, n int, b []byte) (status uint16) {
	i := p.PortInfo()
	if a.Type == CA || n == 0 {
		lid, sm := uint16(attr.PortLID.Get(b)), uint16(attr.PortSMLID.Get(b))
		if lid-1 >= roce.FirstMulticastLID-1 || sm-1 >= roce.FirstMulticastLID-1 {
			return mad.StatusBadField
		}
		i.LID, i.SMLID, i.LMC = lid, sm, uint8(attr.PortLMC.Get(b))
		i.GIDPrefix, i.SMSL = attr.PortGIDPrefix.Get(b), uint8(attr.PortSMSL.Get(b))
		i.SubnetTimeout = uint8(attr.PortSubnetTimeout.Get(b))
		i.Reregister = attr.PortReregister.Get(b) != 0
	}
	mtu, vls := roce.MTU(attr.PortNeighborMTU.Get(b)), uint8(attr.PortOperationalVLs.Get(b))
	if mtu > roce.MTU4096 || vls > min(a.VLCap, uint8(len(laneCodes)-1)) {
		return mad.StatusBadField
	}
	if mtu != 0 {
		i.MTU = mtu
	}
	if vls != 0 {
		i.VLs = laneCodes[vls]
	}
	state, phys := roce.PortState(attr.PortState.Get(b)), attr.PortPhysState.Get(b)
	switch {
	case state == 0 || state == i.State:
	case state == roce.PortArmed && i.State == roce.PortInit, state == roce.PortActive && i.State == roce.PortArmed:
		i.State = state
	case state != roce.PortDown || a.Type == Switch && n == 0:
		return mad.StatusBadField
	}
	if a.keys == nil {
		a.keys = map[int]keys{}
	}
	a.keys[n] = keys{attr.PortMKey.Get(b), uint16(attr.PortMKeyLease.Get(b))}
	p.SetPortInfo(i)
	switch {
	case phys == physDisabled:
		p.Retrain(false)
	case state == roce.PortDown || phys == physPolling:
		p.Retrain(true)
	}
	return mad.StatusOK
}

// pkeyBlock is the entries of a block of the table.
const pkeyBlock = 32

func (a *SMA) pkeys(m mad.MAD, set bool) (status uint16) {
	first, number := int(m.Modifier()&0xffff)*pkeyBlock, int(m.Modifier()>>16)
	if a.Type == CA {
		number = 1
	}
	p := a.Port(number)
	if p == nil || first >= a.PKeys || a.Type == Switch && number != 0 {
		return mad.StatusBadField
	}
	t, b := make([]uint16, a.PKeys), m.SMPData()
	copy(t, p.PKeyTable())
	part := t[first:min(first+pkeyBlock, len(t))]
	if set {
		for i := range part {
			part[i] = uint16(word(i).Get(b))
		}
		p.SetPKeys(t)
	}
	clear(b)
	for i, k := range part {
		word(i).Set(b, uint64(k))
	}
	return mad.StatusOK
}

// word is an entry of a table of 16-bit words.
func word(i int) attr.Field { return attr.Field{Offset: uint16(16 * i), Width: 16} }

func (a *SMA) guids(m mad.MAD, set bool) (status uint16) {
	switch {
	case set || a.Type != CA:
		return mad.StatusNoAttribute
	case m.Modifier() != 0: // a block has 8
		return mad.StatusBadField
	}
	clear(m.SMPData())
	attr.Field{Width: 64}.Set(m.SMPData(), a.GUID)
	return mad.StatusOK
}

// lanes is the table by which service levels get lanes. It cannot be changed: a level has the lane
// of its number, modulo the lanes.
func (a *SMA) lanes(m mad.MAD, set bool) (status uint16) {
	if set {
		return mad.StatusNoAttribute
	}
	b, n := m.SMPData(), uint64(max(1, a.VLCount()))
	clear(b)
	for sl := range uint16(16) {
		attr.Field{Offset: 4 * sl, Width: 4}.Set(b, uint64(sl)%n)
	}
	return mad.StatusOK
}
