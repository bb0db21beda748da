package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/uar"
)

// Counters reads the device's counters.
func (d *Device) Counters() *Counters {
	d.settle()
	return &d.c
}

// HardwareCounters are the device's own under the names that they have on hardware, in hw_counters
// and in ethtool -S; those of its port and of its driver are not among them.
func (d *Device) HardwareCounters() map[string]uint64 {
	all := map[string]uint64{}
	for _, q := range prm.QCounterNames {
		all[q.Name] = d.QCounter(q.Counter)
	}
	c := d.Counters()
	all["np_ecn_marked_roce_packets"], all["np_cnp_sent"] = c.NpECNMarkedRocePackets, c.NpCNPSent
	all["rp_cnp_handled"], all["rp_cnp_ignored"] = c.RpCNPHandled, c.RpCNPIgnored
	all["rx_icrc_encapsulated"] = c.RxDropped[roce.DropICRC]
	return all
}

// Delivered is what a QP has received of what was sent to it, what it has read, and what it has
// sent, in bytes of payload, and how often the request was sent that has ended it with an error (0:
// none has); false: there is no such QP. Packets that wait for a receive WQE or for one that is
// missing have been received.
func (d *Device) Delivered(qpn uint32) (received, read, sent uint64, failed int, ok bool) {
	d.settle()
	q := d.qpn(qpn)
	if q == nil {
		return 0, 0, 0, 0, false
	}
	received = q.responder.got
	for _, l := range []list{q.responder.hold, q.responder.ahead} {
		for i := l.head; i >= 0; i = d.slot(i).next {
			if p := d.packet(i); p.Info().Class == roce.ClassSend || p.Info().Class == roce.ClassWrite {
				received += uint64(len(p.Payload()))
			}
		}
	}
	return received, q.requester.landed, q.requester.out, int(q.requester.failedSent), true
}

// PageFaults are the counters of the page-fault unit.
func (d *Device) PageFaults() odp.Counters {
	if d.faults == nil {
		return odp.Counters{}
	}
	c := d.faults.Counters
	c.Out = uint64(d.faults.Out())
	return c
}

// Keys is the table of memory keys, for its counters.
func (d *tables) Keys() *mkey.Table { return d.keys }

// UAR is page index as the device sees it, or nil.
func (d *Device) UAR(index uint32) *uar.Page {
	if uint64(index) >= uint64(len(d.uars)) {
		return nil
	}
	if g := d.uars[index]; g != nil {
		g.Settle(d.e)
	}
	return d.uars[index]
}

// UARTotals adds up the counters of all pages.
func (d *Device) UARTotals() uar.Counters {
	t := d.c.UARPast
	for _, g := range d.uars {
		if g != nil {
			g.Settle(d.e)
			t.Add(&g.Counters)
		}
	}
	return t
}

func (d *tables) qset(n uint32) *qset {
	if n == 0 || uint64(n) >= uint64(len(d.qsets)) {
		return nil
	}
	return d.qsets[n]
}

// QCounter is the sum of a counter over all sets.
func (d *tables) QCounter(c prm.QCounter) uint64 {
	sum := uint64(0)
	for _, s := range d.qsets {
		if s != nil {
			sum += uint64(s.c[c>>2])
		}
	}
	return sum
}
