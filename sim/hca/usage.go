package hca

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Meters are the use of the device's units by now. The name is that of the device.
func (d *Device) Meters(name string) (all []sim.Meter) {
	d.settle()
	now := d.e.Now()
	add := func(m sim.Meter) { all = append(all, m) }
	work := make([]sim.Time, len(d.sendEngine.groups))
	for _, q := range d.bySlot {
		if q != nil && q.requester.puBusy > 0 {
			work[q.requester.puGroup] += q.requester.puBusy
			add(sim.Meter{Resource: sim.PU, Unit: name + ", the PU of a QP", Index: int(q.arg), Busy: q.requester.puBusy})
			add(sim.Meter{Resource: sim.AckTimer, Unit: name + ", the ACK timer of a QP", Index: int(q.arg), Busy: q.requester.timerWaited(now), Queued: true})
		}
	}
	for i, busy := range work {
		add(sim.Meter{Resource: sim.PU, Unit: name + ", PUs", Index: i, Busy: busy, Of: d.p.PUs / len(work)})
	}
	for _, s := range []struct {
		r      sim.Resource
		what   string
		server *sim.Server
		missed sim.Time
	}{
		{sim.SendEngine, "send engine", &d.issue, d.missed.issue},
		{sim.ReceiveEngine, "receive engine", &d.rxReq, d.missed.req},
		{sim.ResponseEngine, "response engine", &d.rxRsp, d.missed.rsp},
		{sim.ReadEngine, "READ engine", &d.readEng, d.missed.read},
	} {
		add(sim.Meter{Resource: s.r, Unit: name + ", " + s.what, Busy: s.server.BusyBy(now), Part: s.missed, PartOf: sim.Caches})
	}
	add(sim.Meter{Resource: sim.TxBuffer, Unit: name + ", TX buffer", Busy: d.full.For(now), Queued: true})
	if d.faults != nil {
		add(sim.Meter{Resource: sim.Paging, Unit: name + ", page faults", Busy: d.faults.Waited(now), Queued: true})
	}
	sent := int(d.c.TxOctets) + int(d.c.TxPackets)*d.p.WireOverhead
	add(sim.Meter{Resource: sim.Wire, Unit: name + ", port", Busy: sim.BytesTime(uint64(sent), d.p.WireRate) - max(0, d.port.portFree-now)})
	return append(append(all, d.pageMeters(name, now)...), d.atomics.meters(name, now)...)
}

// pageMeters are those of UAR pages; the registers of one may disturb each other.
func (d *Device) pageMeters(name string, now sim.Time) (all []sim.Meter) {
	for i, g := range d.uars {
		if g == nil {
			continue
		}
		g.Settle(d.e)
		if busy := g.Busy(now); busy > 0 {
			all = append(all, sim.Meter{Resource: sim.Doorbell, Unit: name + ", UAR pages", Index: i, Busy: busy})
		}
	}
	return all
}

// meters are the use of the entry and of each slot.
func (u *atomicUnit) meters(name string, now sim.Time) []sim.Meter {
	all := []sim.Meter{{Resource: sim.Atomics, Unit: name + ", entry of the atomics", Busy: u.entered.BusyBy(now)},
		{Resource: sim.Atomics, Unit: name + ", full slots of the atomics", Busy: u.held.For(now), Queued: true}}
	for i := range u.slots {
		if s := &u.slots[i]; s.busy > 0 {
			all = append(all, sim.Meter{Resource: sim.Atomics, Unit: fmt.Sprintf("%s, slot %d of the atomics", name, i), Busy: s.busy - max(0, s.free-now)})
		}
	}
	return all
}
