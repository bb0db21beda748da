package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// toGroup gives each QP of a group a received packet, in the order in which they
// joined; the reference is consumed.
func (d *queuePairs) toGroup(f *roce.Frame) {
	p := &f.Packet
	found := false
	for _, q := range d.groups[p.DstGID()] {
		if !q.admitsDatagram(p) {
			continue
		}
		found = true
		q.responder.request(f.Retain())
	}
	if !found {
		d.c.RxNoQP++
	}
	f.Release()
}

// echo gives a datagram to a group that leaves to the members on this port too. The
// sender is no exception: IPoIB throws away what comes back to it (ipoib_ib.c,
// ipoib_ib_handle_rx_wc).
func (d *queuePairs) echo(f *roce.Frame) {
	p, err := f.Decode()
	if err != nil || d.groups[p.DstGID()] == nil || prm.NICVportContext(d.vport[:]).DisableMCLocalLB() {
		return
	}
	d.c.Loopback++
	d.port.users.receive(f.Retain(), -1, d.p.LoopbackLatency)
}
