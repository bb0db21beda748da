package pcie

import "github.com/rdmasim/rdmasim/sim"

// Meters are the use of the link: its two directions, with the time for which what is posted lacks credits, and that for which reads wait
// for tags. The name is that of the device.
func (l *Link) Meters(name string, now sim.Time) []sim.Meter {
	registers := l.ser(int(l.c.MMIOBytes) + int(l.c.MMIOWrites)*l.p.WriteHeader)
	return []sim.Meter{
		{Resource: sim.PCIeRead, Unit: name + ", PCIe to the device", Busy: l.rx.BusyBy(now) + l.rx.stalled, Part: registers + l.rx.stalled, PartOf: sim.Doorbell},
		{Resource: sim.PCIeWrite, Unit: name + ", PCIe from the device", Busy: l.tx.BusyBy(now) + l.tx.stalled},
		{Resource: sim.PCIeRead, Unit: name + ", PCIe tags", Busy: l.rd.short.For(now), Queued: true},
	}
}
