package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// ibPort is the port of a device whose link layer is InfiniBand: what a subnet manager
// has set, and what it may read. QP0 and QP1 are not modelled: management comes by
// calls (PortInfo, SetPortInfo, SetPKeys).
type ibPort struct {
	info  roce.PortInfo
	pkeys [ibPKeys]uint16

	badPKeys, badQKeys uint16 // violations, as the port's attributes count them
}

// Sizes of tables. Drivers limit that of P_Keys to 128 (handle_hca_cap), which is the
// code 0; Connect-IB has room for 8 GIDs, also the code 0.
const (
	ibPKeys    = 128
	ibGIDs     = 8
	ibGIDCode  = 0
	ibPKeyCode = 0
)

// ibCapMask is the capability mask that ibstat shows for ports of ConnectX-4 and -5.
const ibCapMask = 0x2651e848

// portInfo in the state after power-on, with the cable in.
func (b *ibPort) reset() {
	*b = ibPort{info: roce.PortInfo{State: roce.PortInit, MTU: roce.MTU4096, VLs: 1}}
	b.pkeys[0] = roce.DefaultPKey
}

// PortInfo is what the subnet manager reads of the port.
func (d *Device) PortInfo() roce.PortInfo { return d.ib.info }

// SetPortInfo takes the settings of the subnet manager. An event reports each change to the
// driver: of the state, the LID or the GID prefix, and the wish that clients register again.
func (d *Device) SetPortInfo(v roce.PortInfo) {
	b := d.ib
	old := b.info
	b.info = v
	b.info.Reregister = false
	d.port.mute = v.State < roce.PortArmed
	d.fillGIDs()
	if v.LID != old.LID || v.VLs != old.VLs || v.GIDPrefix != old.GIDPrefix {
		d.gidGen++
		d.rebuildPaths()
	}
	if v.LID != old.LID && old.LID != 0 {
		d.events.ofPort(prm.PortChangeLID)
	}
	if v.GIDPrefix != old.GIDPrefix && old.GIDPrefix != 0 {
		d.events.ofPort(prm.PortChangeGUID)
	}
	if v.State != old.State && v.State == roce.PortActive {
		d.events.ofPort(prm.PortChangeActive)
	}
	if v.Reregister {
		d.events.ofPort(prm.PortChangeClientRereg)
	}
}

// SetPKeys is the subnet manager's table.
func (d *Device) SetPKeys(keys []uint16) {
	var t [ibPKeys]uint16
	copy(t[:], keys)
	if t == d.ib.pkeys {
		return
	}
	d.ib.pkeys = t
	d.rebuildPaths()
	d.events.ofPort(prm.PortChangePKey)
}

// ibLink is LinkChanged on InfiniBand: a port whose cable is back waits in INIT for the
// subnet manager.
func (d *Device) ibLink(up bool) {
	d.ib.info.State, d.port.mute = roce.PortDown, true
	sub := uint8(prm.PortChangeDown)
	if up {
		d.ib.info.State, sub = roce.PortInit, prm.PortChangeInitialized
	}
	d.events.ofPort(sub)
}

// fillGIDs makes the one entry of the port's table.
func (d *Device) fillGIDs() {
	g := roce.GIDFromGUID(d.ib.info.GIDPrefix, d.id.GUID)
	d.gids[0] = gidEntry{valid: d.ib.info.GIDPrefix != 0, gid: g, ib: true}
}
