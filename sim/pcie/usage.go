package pcie

import "github.com/rdmasim/rdmasim/sim"

// Meters are the use of the link: its two directions, with the time for which what is posted lacks
// credits, and that for which reads wait for tags. The name is that of the device.
func (l *Link) Meters(name string, now sim.Time) []sim.Meter {
	registers := l.ser(int(l.c.MMIOBytes) + int(l.c.MMIOWrites)*l.p.WriteHeader)
	write := sim.Meter{Resource: sim.PCIeWrite, Unit: name + ", PCIe from the device", Busy: l.tx.BusyBy(now) + l.tx.stalled}
	if l.peer != nil { // writes occupy the function's own wire for as long as the way to the other device takes them
		write.Part, write.PartOf = min(l.peer.c.WriteBusy, write.Busy), sim.PeerPath
	}
	all := []sim.Meter{
		{Resource: sim.PCIeRead, Unit: name + ", PCIe to the device", Busy: l.rx.BusyBy(now) + l.rx.stalled, Part: registers + l.rx.stalled, PartOf: sim.Doorbell},
		write,
		{Resource: sim.PCIeRead, Unit: name + ", PCIe tags", Busy: l.rd.short.For(now), Queued: true},
	}
	if l.peer != nil {
		all = append(all, sim.Meter{Resource: sim.PeerPath, Unit: name + ", READs of the GPU", Busy: l.peer.reads.BusyBy(now)})
	}
	return all
}
