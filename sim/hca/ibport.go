package hca

import (
	"github.com/rdmasim/rdmasim/roce"
)

// ibPort is the port of a device whose link layer is InfiniBand: what a subnet manager
// has set, and what it may read. That of the model comes by calls (PortInfo, SetPortInfo,
// SetPKeys), others by packets to QP0, which the driver hands on (agents).
type ibPort struct {
	info  roce.PortInfo // what is derived from it is kept by update
	lids  lidRange      // for which the port takes packets
	pkeys [ibPKeys]uint16

	capMask, capMask2  uint32
	badPKeys, badQKeys uint16 // violations, as the port's attributes count them
}

// lidRange is LIDs that are like id in the bits of mask: packets to one address have no others.
// None is while id has a bit that LIDs lack.
type lidRange struct{ mask, id uint32 }

// has says whether a LID is in the range.
func (r *lidRange) has(lid uint16) bool { return uint32(lid)&r.mask == r.id }

// update derives what packets are compared with from info.
func (b *ibPort) update() {
	i := &b.info
	b.lids = lidRange{mask: 0xffff, id: 1 << 16}
	if i.State >= roce.PortArmed && i.LID < roce.FirstMulticastLID && i.LMC < 8 {
		b.lids.mask &= 0xffff << i.LMC
		b.lids.id = uint32(i.LID) & b.lids.mask
	}
}

// Sizes of tables. Drivers limit that of P_Keys to 128 (handle_hca_cap), which is the
// code 0; Connect-IB has room for 8 GIDs, also the code 0.
const (
	ibPKeys    = 128
	ibGIDs     = 8
	ibGIDCode  = 0
	ibPKeyCode = 0
)

// ibCapChangeable are the bits of it that a driver may change: they say which agents the host runs,
// of communication management, SNMP tunnelling, device management and vendor classes (ib_verbs.h,
// IB_PORT_*_SUP), and a subnet manager (IB_PORT_SM).
const ibCapChangeable = ibCapSM | 1<<16 | 1<<17 | 1<<19 | 1<<21

const ibCapSM = 1 << 1

// portInfo in the state after power-on, with the cable in.
func (b *ibPort) reset(capMask, capMask2 uint32) {
	*b = ibPort{capMask: capMask, capMask2: capMask2, info: roce.PortInfo{State: roce.PortInit, MTU: roce.MTU4096, VLs: 1, GIDPrefix: roce.DefaultGIDPrefix}}
	b.pkeys[0] = roce.DefaultPKey
	b.update()
}
