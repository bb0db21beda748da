package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// multicastQPN is the destination of packets to a group.
const multicastQPN = 0xffffff

// cmdAttachMCG has a UD QP receive what is sent to a group.
func cmdAttachMCG(d *Device, in, _ []byte) prm.Status {
	m := prm.AttachToMCGIn(in)
	q, gid := d.qpn(m.QPN()), roce.GID(m.MulticastGID())
	switch {
	case q == nil:
		return prm.StatusBadResState
	case q.st != prm.STUD || !gid.IsMulticast():
		return prm.StatusBadParam
	case slices.Contains(d.groups[gid], q):
		return prm.StatusBadResState
	case d.groups[gid] == nil && len(d.groups) >= 1<<d.p.LogMaxMCG:
		return prm.StatusLimErr
	}
	d.groups[gid] = append(d.groups[gid], q)
	q.joined++
	return prm.StatusOK
}

func cmdDetachMCG(d *Device, in, _ []byte) prm.Status {
	m := prm.DetachFromMCGIn(in)
	gid := roce.GID(m.MulticastGID())
	i := slices.IndexFunc(d.groups[gid], func(q *qp) bool { return q.num == m.QPN() })
	if i < 0 {
		return prm.StatusBadResState
	}
	d.groups[gid][i].joined--
	if d.breaks(rule.DetachedQPGetsNothing) {
		return prm.StatusOK
	}
	if d.groups[gid] = slices.Delete(d.groups[gid], i, i+1); len(d.groups[gid]) == 0 {
		delete(d.groups, gid)
	}
	return prm.StatusOK
}

// toGroup gives each QP of a group a received packet, in the order in which they
// joined; the slot is consumed.
func (d *Device) toGroup(i int32) {
	f, p := d.slot(i).f, d.packet(i)
	found := false
	for _, q := range d.groups[p.DstGID()] {
		if !q.admitsDatagram(&p) {
			continue
		}
		found = true
		q.responder.request(d.getSlot(f.Retain()), &p)
	}
	if !found {
		d.c.RxNoQP++
	}
	d.dropSlot(i)
}

// echo gives a datagram to a group that leaves to the members on this port too. The
// sender is no exception: IPoIB throws away what comes back to it (ipoib_ib.c,
// ipoib_ib_handle_rx_wc).
func (d *Device) echo(f *roce.Frame) {
	p, err := f.Packet()
	if err != nil || d.groups[p.DstGID()] == nil || prm.NICVportContext(d.fw.vport[:]).DisableMCLocalLB() {
		return
	}
	d.c.Loopback++
	d.receive(d.getSlot(f.Retain()), d.p.LoopbackLatency)
}
