package link

import (
	"strings"

	"github.com/rdmasim/rdmasim/roce"
)

// Counters of a port. Those with a name in ethtool -S of an mlx5 device keep it;
// the last four are the model's own.
type Counters struct {
	TxPackets, TxBytes       uint64 // bytes with padding and FCS
	TxMulticast, TxBroadcast uint64
	TxDiscards               uint64 // link down, or egress buffer full
	RxPackets, RxBytes       uint64
	RxMulticast, RxBroadcast uint64
	RxCRCErrors              uint64 // wrong FCS
	LinkDownEvents           uint64

	Marked           uint64               // by the switch, of what leaves here: "congestion experienced"
	RxPause, TxPause [roce.Classes]uint64 // pause frames of each class, those that end a pause too

	TxWireBytes  uint64 // TxBytes with preambles and gaps
	Loopback     uint64 // frames that never saw the wire
	ScriptLost   uint64 // frames that a rule dropped
	LostInFlight uint64 // frames on the cable when it was pulled
}

// Each calls f for every counter of a port, in a fixed order: on InfiniBand those of
// /sys/class/infiniband/.../counters, where data count in words of 4 bytes without the
// VCRC.
func (p *Port) Each(f func(name string, value uint64)) {
	p.settle()
	if p.lanes == nil {
		p.C.each(f)
		return
	}
	c := &p.C
	f("port_xmit_packets", c.TxPackets)
	f("port_xmit_data", (c.TxBytes-roce.VCRCSize*c.TxPackets)/4)
	f("multicast_xmit_packets", c.TxMulticast)
	f("port_xmit_discards", c.TxDiscards)
	f("port_rcv_packets", c.RxPackets)
	f("port_rcv_data", (c.RxBytes-roce.VCRCSize*c.RxPackets)/4)
	f("multicast_rcv_packets", c.RxMulticast)
	f("port_rcv_errors", c.RxCRCErrors)
	f("link_downed", c.LinkDownEvents)
	f("sim_tx_wire_bytes", c.TxWireBytes)
	f("sim_loopback_frames", c.Loopback)
	f("sim_script_lost", c.ScriptLost)
	f("sim_lost_in_flight", c.LostInFlight)
	f("sim_credit_stalls", p.lanes.Stalls)
	f("sim_credit_wait_ps", uint64(p.lanes.StallFor))
}

// Counters reads the port's counters.
func (p *Port) Counters() *Counters {
	p.settle()
	return &p.C
}

// HardwareCounters adds the port's counters that a device has, under their names there.
func (p *Port) HardwareCounters(to map[string]uint64) {
	p.Each(func(name string, v uint64) {
		if !strings.HasPrefix(name, "sim_") {
			to[name] = v
		}
	})
}

func (c *Counters) each(f func(name string, value uint64)) {
	f("tx_packets_phy", c.TxPackets)
	f("tx_bytes_phy", c.TxBytes)
	f("tx_multicast_phy", c.TxMulticast)
	f("tx_broadcast_phy", c.TxBroadcast)
	f("tx_discards_phy", c.TxDiscards)
	f("rx_packets_phy", c.RxPackets)
	f("rx_bytes_phy", c.RxBytes)
	f("rx_multicast_phy", c.RxMulticast)
	f("rx_broadcast_phy", c.RxBroadcast)
	f("rx_crc_errors_phy", c.RxCRCErrors)
	f("link_down_events_phy", c.LinkDownEvents)
	for class, names := range pauseNames {
		f(names[0], c.RxPause[class])
		f(names[1], c.TxPause[class])
	}
	f("sim_tx_wire_bytes", c.TxWireBytes)
	f("sim_loopback_frames", c.Loopback)
	f("sim_script_lost", c.ScriptLost)
	f("sim_lost_in_flight", c.LostInFlight)
}

// pauseNames are those of the pause counters of a class, received and sent.
var pauseNames = [roce.Classes][2]string{
	{"rx_prio0_pause", "tx_prio0_pause"}, {"rx_prio1_pause", "tx_prio1_pause"}, {"rx_prio2_pause", "tx_prio2_pause"}, {"rx_prio3_pause", "tx_prio3_pause"},
	{"rx_prio4_pause", "tx_prio4_pause"}, {"rx_prio5_pause", "tx_prio5_pause"}, {"rx_prio6_pause", "tx_prio6_pause"}, {"rx_prio7_pause", "tx_prio7_pause"},
}
