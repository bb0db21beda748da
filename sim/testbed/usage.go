package testbed

import (
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// Usage reads how long each unit has been busy until now. Two readings tell what limited a run
// between them:
//
//	sim.Limit(after.Since(before))
//
// No thread may be running, as before the first thread of a load or after the last; UsageAt reads
// the usage in order with threads that run.
func (tb *Testbed) Usage() *sim.Usage {
	u := &sim.Usage{At: tb.eng.Now()}
	for _, h := range tb.hosts {
		u.Meters = append(u.Meters, h.cpu.Meters(h.name, u.At)...)
		for _, d := range h.devices {
			u.Meters = append(u.Meters, d.link.Meters(d.path(), u.At)...)
			u.Meters = append(u.Meters, d.hca.Meters(d.path())...)
			u.Meters = append(u.Meters, d.port.Meter(d.path()+", cable"))
			if tb.cfg.Switched {
				u.Meters = append(u.Meters, d.port.Peer().Meter(d.path()+", cable from the switch"))
			}
		}
	}
	return u
}

// UsageAt calls read with the usage at a later instant, in order with all threads: no thread is
// ahead of that instant. It returns the instant, which is later than at if at is too soon for the
// threads to stop there.
func (tb *Testbed) UsageAt(at sim.Time, read func(*sim.Usage)) sim.Time {
	at = max(at, tb.eng.Now()+tb.notice())
	tb.eng.AtBarrier(at, func(uint64) { read(tb.Usage()) }, 0)
	return at
}

// DeliveriesAt implements verbs.DeliveryMeter.
func (tb *Testbed) DeliveriesAt(at time.Duration, read func(of func(host int, qpn uint32) (verbs.Delivered, bool))) {
	of := func(host int, qpn uint32) (d verbs.Delivered, ok bool) {
		d.Received, d.Read, d.Sent, d.FailedSent, ok = tb.hosts[host].devices[0].hca.Delivered(qpn)
		return d, ok
	}
	tb.eng.At(max(provider.FromDuration(at), tb.eng.Now()), func(uint64) { read(of) }, 0)
}
