//go:build linux && amd64

package exec

import (
	"time"

	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
)

// trafficPeriod is how old the counters of a port are at most, as those of hw_counters of a kernel
// (RDMA_HW_STATS_DEFAULT_LIFESPAN). They change with each message, and a file costs 10 us.
const trafficPeriod = 10 * time.Millisecond

// wordsOf is how many bytes a word of port_xmit_data and port_rcv_data has (pma_cnt_ext_assign of
// mlx5_ib).
const wordsOf = 4

// trafficCounters are those of the folder counters that the model has. A device's own count what
// goes through its loopback, as do those of mlx5.
var trafficCounters = []struct {
	name string
	of   func(h *hca.Counters, l *link.Counters) uint64
}{
	{"port_xmit_data", func(h *hca.Counters, _ *link.Counters) uint64 { return h.TxOctets / wordsOf }},
	{"port_rcv_data", func(h *hca.Counters, _ *link.Counters) uint64 { return h.RxOctets / wordsOf }},
	{"port_xmit_packets", func(h *hca.Counters, _ *link.Counters) uint64 { return h.TxPackets }},
	{"port_rcv_packets", func(h *hca.Counters, _ *link.Counters) uint64 { return h.RxPackets }},
	{"unicast_xmit_packets", func(h *hca.Counters, l *link.Counters) uint64 { return h.TxPackets - min(l.TxMulticast, h.TxPackets) }},
	{"unicast_rcv_packets", func(h *hca.Counters, l *link.Counters) uint64 { return h.RxPackets - min(l.RxMulticast, h.RxPackets) }},
	{"multicast_xmit_packets", func(_ *hca.Counters, l *link.Counters) uint64 { return l.TxMulticast }},
	{"multicast_rcv_packets", func(_ *hca.Counters, l *link.Counters) uint64 { return l.RxMulticast }},
	{"port_xmit_discards", func(_ *hca.Counters, l *link.Counters) uint64 { return l.TxDiscards }},
	{"port_rcv_errors", func(_ *hca.Counters, l *link.Counters) uint64 { return l.RxCRCErrors }},
	{"link_downed", func(_ *hca.Counters, l *link.Counters) uint64 { return l.LinkDownEvents }},
}

// showTraffic brings the files up to date.
func (c *counterFiles) showTraffic() {
	h, l := c.hca.Counters(), c.link()
	for i := range c.traffic {
		c.traffic[i].say(trafficCounters[i].of(h, l))
	}
}

// showTraffic brings the counters of ports up to date when it is time for it, or now, and returns
// how long it is until then.
func (e *engine) showTraffic(now bool) time.Duration {
	if left := trafficPeriod - time.Since(e.trafficAt); left > 0 && !now {
		return left
	}
	e.trafficAt, e.trafficOld = time.Now(), false
	for _, d := range e.m.devs {
		if d.counters != nil {
			d.counters.showTraffic()
		}
	}
	return 0
}
