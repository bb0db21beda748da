package testbed

// Egress is the state of a switch port towards a device at one instant.
type Egress struct {
	Name   string // of the device at its other end
	Queue  int    // bytes that wait for the line
	Drops  uint64 // frames that found the queue full
	Marks  uint64 // frames that were marked "congestion experienced"
	Pauses uint64 // frames of priority flow control that paused the device, or let it go on
}

// Egresses returns the current state of the switch's ports, in the order of the hosts; DeliveriesAt
// may call it. There are none on a cable, and on InfiniBand, where packets wait at the ingress.
func (tb *Testbed) Egresses() (all []Egress) {
	if !tb.cfg.Switched || tb.prof.Link.InfiniBand {
		return nil
	}
	for _, h := range tb.hosts {
		for _, d := range h.devices {
			p := d.port.Peer()
			e := Egress{Name: d.path(), Queue: p.Backlog(), Drops: p.C.TxDiscards, Marks: p.C.Marked}
			for _, n := range p.C.TxPause {
				e.Pauses += n
			}
			all = append(all, e)
		}
	}
	return all
}
