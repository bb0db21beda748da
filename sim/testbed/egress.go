package testbed

// Egress is a port of the switch towards a device, by some instant.
type Egress struct {
	Name   string // of the device at its other end
	Queue  int    // bytes that wait for the line
	Drops  uint64 // frames that found the queue full
	Marks  uint64 // frames that were marked "congestion experienced"
	Pauses uint64 // frames of priority flow control that paused the device, or let it go on
}

// Egresses are the ports of the switch now, in the order of the hosts, as DeliveriesAt may read them; on a cable and on InfiniBand, where packets
// wait at the ingress, there are none.
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
