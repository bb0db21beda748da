package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// PortInfo is what the subnet manager reads of the port.
func (d *Device) PortInfo() roce.PortInfo { return d.ib.info }

// SetPortInfo takes the settings of the subnet manager. An event reports each change to the
// driver: of the state, the LID or the GID prefix, and the wish that clients register again.
func (d *Device) SetPortInfo(v roce.PortInfo) {
	if d.lateWire != nil {
		d.lateWire.Recall() // what is on its way may not be for the port any more
	}
	b := d.ib
	old := b.info
	b.info = v
	b.info.Reregister = false
	b.update()
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
	d.ib.update()
	d.events.ofPort(sub)
}
