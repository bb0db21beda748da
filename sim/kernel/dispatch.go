package kernel

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// event gives an entry to the object that it is about.
func (d *Device) event(e prm.EQE) {
	var to eventTarget
	switch e.Type() {
	case prm.EventComp:
		to = d.cqs[e.CompCQN()]
	case prm.EventCQError:
		to = d.cqs[e.CQErrCQN()]
	case prm.EventSRQRQLimit, prm.EventSRQCatasError:
		to = d.srqs[e.QPSRQN()]
	case prm.EventPortChange:
		to = (*portTarget)(d)
	case prm.EventDCTDrained:
		return // whoever has asked knows
	default:
		to = d.qps[e.QPSRQN()]
	}
	if to == nil || !to.event(e) {
		d.count.StrayEvents++
	}
}

// portTarget is the device's one port, as a target of events.
type portTarget Device

func (p *portTarget) event(e prm.EQE) bool {
	d := (*Device)(p)
	t, ok := d.portEvent(e.SubType())
	if !ok {
		return false
	}
	if d.caps.ib {
		d.portChanged()
		if t == verbs.EventGIDChange {
			return true // ib_cache_event_task takes programs to have been told for each entry, which is so on Ethernet only
		}
	}
	d.broadcast(t)
	return true
}

// portEvent is the event for a change of the port (handle_port_change). On Ethernet the
// real driver takes up and down from the network interface, which follows the same change.
// On InfiniBand every state that is not ACTIVE is an error.
func (d *Device) portEvent(sub uint8) (verbs.EventType, bool) {
	switch sub {
	case prm.PortChangeDown:
		return verbs.EventPortErr, true
	case prm.PortChangeInitialized:
		return verbs.EventPortErr, d.caps.ib
	case prm.PortChangeActive:
		return verbs.EventPortActive, true
	case prm.PortChangeLID:
		return verbs.EventLIDChange, true
	case prm.PortChangePKey:
		return verbs.EventPKeyChange, true
	case prm.PortChangeGUID:
		return verbs.EventGIDChange, true
	case prm.PortChangeClientRereg:
		return verbs.EventClientReregister, !d.breaks(rule.ReregistrationIsReported)
	}
	return 0, false
}

// portChanged reads the tables of an InfiniBand port again after an event, as ib_core's
// cache does before programs get the event (ib_cache_event_task).
func (d *Device) portChanged() {
	if err := d.readGIDs(&call{d: d}); err != nil {
		d.count.StrayEvents++
	}
}
