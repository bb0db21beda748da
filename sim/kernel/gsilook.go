package kernel

import "github.com/rdmasim/rdmasim/verbs"

// What the connection manager asks of a device (struct ib_device, and the network interface of its
// port).

// ACKDelay returns the device's local_ca_ack_delay, a code t of 4.096 us * 2^t.
func (d *Device) ACKDelay() uint8 { return d.caps.ackDelay }

// ActiveMTU returns the path MTU that the port's interface carries.
func (d *Device) ActiveMTU() verbs.MTU {
	if d.caps.ib {
		return verbs.MTU4096
	}
	return activeMTU(d.p.NetMTU)
}

// GIDs calls f with each used entry of the port's table, in order, and the VLAN of the entry's
// interface, until f returns false.
func (d *Device) GIDs(f func(e verbs.GIDEntry, vlan uint16) bool) {
	for i := range d.gids {
		e := &d.gids[i]
		if !e.valid {
			continue
		}
		g := verbs.GIDEntry{GID: e.gid, Index: uint32(i), Port: 1, Type: e.typ}
		if !d.caps.ib {
			g.NetDevice = d.ifindex(e.vlan)
		}
		if !f(g, e.vlan) {
			return
		}
	}
}

// Neighbour reports whether a host answers for an address on the network of a GID table entry, as
// ARP or neighbour discovery would find.
func (d *Device) Neighbour(index int, dst verbs.GID) bool {
	e, err := d.gidAt(index)
	if err != nil {
		return false
	}
	_, _, err = (&call{d: d}).resolve(e, dst)
	return err == nil
}
