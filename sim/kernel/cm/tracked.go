package cm

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// TrackedID is what ib_core says of an id on a device (`rdma resource show cm_id`).
type TrackedID struct {
	ID       uint32 // as programs know it
	Process  *kernel.Process
	Port     uint8
	PS       verbs.PortSpace
	State    uint8 // enum rdma_cm_state
	QPN      uint32
	Type     verbs.QPType
	Src, Dst netip.AddrPort // zero: none
}

// Tracked lists the ids that are on a device, in the order of their numbers. A listener of a
// wildcard address is on every device, as the kernel makes an id of its own for each.
func (m *Manager) Tracked(d *kernel.Device) (all []TrackedID) {
	for _, id := range slices.Sorted(maps.Keys(m.users.ids)) {
		u := m.users.ids[id]
		x := u.x
		if x.port == nil && x.state != idListen || x.port != nil && x.port.d != d {
			continue
		}
		all = append(all, TrackedID{ID: id, Process: u.f.owner, Port: 1, PS: x.ps, State: uint8(x.state), QPN: x.qpn, Type: x.typ, Src: x.src, Dst: x.dst})
	}
	return all
}
