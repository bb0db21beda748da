package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// toGroup gives each QP of a group a received packet, in the order in which they
// joined, but not the QP that has sent it if that one's context says so; the reference is consumed.
func (v *queuePairs) toGroup(f *roce.Frame) {
	p := &f.Packet
	found := false
	for _, q := range v.groups[p.DstGID()] {
		if !q.admitsDatagram(p) || q.context().BlockLBMC() && p.DETH().SrcQP() == q.num && v.gidIndex(p.SrcGID()) >= 0 {
			continue
		}
		found = true
		q.responder.request(f.Retain())
	}
	if !found {
		v.c.RxNoQP++
	}
	f.Release()
}

// echo gives a datagram to a group that leaves to the members on this port too. The
// sender is no exception, unless it was made so: IPoIB throws away what comes back to it
// (ipoib_ib.c, ipoib_ib_handle_rx_wc).
func (v *queuePairs) echo(f *roce.Frame) {
	p, err := f.Decode()
	if err != nil || v.groups[p.DstGID()] == nil || prm.NICVportContext(v.vport[:]).DisableMCLocalLB() {
		return
	}
	v.c.Loopback++
	v.port.users.receive(f.Retain(), -1, v.p.LoopbackLatency)
}
