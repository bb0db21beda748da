package mad

import "github.com/rdmasim/rdmasim/roce"

// Management classes of subnet management, of performance and of the vendors' first range, and
// their versions.
const (
	ClassSubnLID      = 0x01
	ClassSubnDirected = 0x81
	ClassPerf         = 0x04
	ClassDevice       = 0x06
	SubnVersion       = 1
	PerfVersion       = 1
)

// Methods of subnet management beside Get and Set.
const (
	TrapRepress = 0x07
	Trap        = 0x05
)

// Attributes of subnet management.
const (
	AttrNodeDescription = 0x0010
	AttrNodeInfo        = 0x0011
	AttrSwitchInfo      = 0x0012
	AttrGUIDInfo        = 0x0014
	AttrPortInfo        = 0x0015
	AttrPKeyTable       = 0x0016
	AttrSLtoVL          = 0x0017
	AttrVLArbitration   = 0x0018
	AttrLinearTable     = 0x0019
	AttrMulticastTable  = 0x001b
	AttrSMInfo          = 0x0020
	// AttrVendorPort is the vendor's addition to PortInfo (MLX5_ATTR_EXTENDED_PORT_INFO).
	AttrVendorPort = 0xff90
)

// Attributes of performance management.
const (
	AttrPortCounters    = 0x0012
	AttrPortCountersExt = 0x001d
)

// PerfExtendedWidth is the bit of ClassPortInfo's CapabilityMask for PortCountersExtended
// (IB_PMA_CLASS_CAP_EXT_WIDTH).
const PerfExtendedWidth = 1 << 9

// StatusBadField says that a field or the modifier has a value that is not valid.
const StatusBadField = 7 << 2

// directionBit is that of the status of a directed-route SMP that goes back.
const directionBit = 0x8000

// SMPDataSize is the length of an attribute of subnet management in bytes.
const SMPDataSize = 64

// maxHops is the longest directed route.
const maxHops = 63

// Directed says whether a datagram is an SMP that is routed by the path that it holds.
func (m MAD) Directed() bool { return m.Class() == ClassSubnDirected }

// Subnet says whether a datagram is an SMP, which goes to QP0.
func (m MAD) Subnet() bool { return m.Class() == ClassSubnLID || m.Class() == ClassSubnDirected }

// SMPData returns the attribute of an SMP, SMPDataSize bytes from byte 64 on.
func (m MAD) SMPData() []byte { return m[64 : 64+SMPDataSize] }

// PerfData returns the attribute of a datagram of performance management, from byte 64 on.
func (m MAD) PerfData() []byte { return m[64:] }

// HopPointer returns the hop that a directed route has got to: byte 6.
func (m MAD) HopPointer() uint8 { return m[6] }

// HopCount returns the hops of a directed route: byte 7.
func (m MAD) HopCount() uint8 { return m[7] }

// MKey returns the M_Key: 64 bits at byte 24.
func (m MAD) MKey() uint64 { return be.Uint64(m[24:]) }

// DirectedSLID and DirectedDLID return the LIDs of the parts of a directed route that go by LID: 16
// bits at bytes 32 and 34.
func (m MAD) DirectedSLID() uint16 { return be.Uint16(m[32:]) }

// DirectedDLID is described at DirectedSLID.
func (m MAD) DirectedDLID() uint16 { return be.Uint16(m[34:]) }

// Returning says whether a directed-route SMP goes back to who asked.
func (m MAD) Returning() bool { return m.Status()&directionBit != 0 }

// SetReturning has a directed-route SMP go back.
func (m MAD) SetReturning() { m.SetStatus(m.Status() | directionBit) }

// SetStatus15 sets the status of an SMP, but for the direction.
func (m MAD) SetStatus15(v uint16) { m.SetStatus(m.Status()&directionBit | v&^directionBit) }

func (m MAD) initial() []byte { return m[128:192] }
func (m MAD) back() []byte    { return m[192:256] }

// Hop says what becomes of a directed-route SMP at a node.
type Hop int

// Hops.
const (
	Discard Hop = iota
	Here        // the node's own agent takes it
	Onward      // it leaves by a port
	Home        // it is back where it was sent
	ByLID       // it goes on to a LID: to a node where the directed part begins, or back from there
)

// Directed-route SMPs pass nodes by the rules of IBTA Vol. 1, 14.2.2, as smi.c of the Linux kernel
// has them (smi_handle_dr_smp_send and smi_handle_dr_smp_recv). A first part by LID is followed, a
// last one is not (DrDLID is permissive).

// Begin has a directed-route SMP leave the node where it is made, by the port that out names. Here:
// the node itself is asked. Home: who asked is on the node.
func (m MAD) Begin() (to Hop, out uint8) {
	p, n := m.HopPointer(), m.HopCount()
	switch {
	case !m.routable():
		return Discard, 0
	case m.Returning():
		if p != n+1 {
			return Discard, 0
		}
		switch m[6]--; {
		case n == 0 && m.DirectedSLID() != roce.PermissiveLID:
			return ByLID, 0
		case n == 0:
			return Home, 0
		}
		return Onward, m.back()[n]
	case p != 0:
		return Discard, 0
	case m.DirectedSLID() != roce.PermissiveLID:
		return ByLID, 0
	}
	if m[6]++; n == 0 {
		return Here, 0
	}
	return Onward, m.initial()[1]
}

// Arrive has a directed-route SMP come to a node by a port. Only switches, with so many ports, pass
// it on, by the port that out names.
func (m MAD) Arrive(in uint8, isSwitch bool, ports int) (to Hop, out uint8) {
	p, n := m.HopPointer(), m.HopCount()
	between := isSwitch && p < n+1 && m.routable()
	switch {
	case !m.routable():
		return Discard, 0
	case m.Returning() && p == 0 && m.DirectedSLID() != roce.PermissiveLID:
		return Home, 0
	case m.Returning() && p == 1:
		if m[6] = 0; m.DirectedSLID() != roce.PermissiveLID {
			return ByLID, 0
		}
		return Home, 0
	case !m.Returning() && p == 0 && between && n > 0 && m.DirectedSLID() != roce.PermissiveLID: // here the directed part begins
		m[6] = 1
		out = m.initial()[1]
	case m.Returning() && between && p >= 2:
		m[6]--
		out = m.back()[p-1]
	case !m.Returning() && p == n && (n > 0 || m.DirectedSLID() != roce.PermissiveLID):
		m.back()[p] = in
		m[6]++
		return Here, 0
	case !m.Returning() && between && p >= 1:
		m.back()[p] = in
		m[6]++
		out = m.initial()[p+1]
	}
	if out == 0 || int(out) > ports {
		return Discard, 0
	}
	return Onward, out
}

// routable says whether the route ends with its directed part, and that is no longer than its
// memory.
func (m MAD) routable() bool {
	return m.HopCount() <= maxHops && m.DirectedDLID() == roce.PermissiveLID
}

// Answer turns a request to an agent into its answer in place, with a status.
func (m MAD) Answer(status uint16) {
	m[3] |= Response
	if m.Method() == Set|Response {
		m[3] = GetResp
	}
	if m.Directed() {
		m.SetReturning()
		m.SetStatus15(status)
		return
	}
	m.SetStatus(status)
}
