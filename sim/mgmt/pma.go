package mgmt

import (
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
)

// Counters are what a port has counted. Data count in words of 4 bytes.
type Counters struct {
	XmitData, RcvData, XmitPackets, RcvPackets uint64
	MulticastXmit, MulticastRcv                uint64
	RcvErrors, Discards, Downed                uint64
}

// PMA is the agent of performance management of a node. Its counters begin where they were set to
// 0; the port's own go on.
type PMA struct {
	First, Last int // numbers of the ports
	// Read is what a port has counted.
	Read func(number int) Counters
	base map[int]Counters
}

// allPorts is the number that stands for every port in Set; AllPortSelect is not claimed for Get.
const allPorts = 0xff

// counter is a counter with its place in both attributes, and the bit that chooses it in Set. One
// without a place is not there.
type counter struct {
	of                func(*Counters) *uint64
	short, long       attr.Field
	shortBit, longBit uint8
}

// counters are those that the model has, in PortCounters and in PortCountersExtended (IBTA Vol. 1,
// 16.1.3.5 and 16.1.4.11).
var counters = [...]counter{
	{func(c *Counters) *uint64 { return &c.Downed }, attr.CounterDowned, attr.Field{}, 2, 0},
	{func(c *Counters) *uint64 { return &c.RcvErrors }, attr.CounterRcvErrors, attr.Field{}, 3, 0},
	{func(c *Counters) *uint64 { return &c.Discards }, attr.CounterDiscards, attr.Field{}, 6, 0},
	{func(c *Counters) *uint64 { return &c.XmitData }, attr.CounterXmitData, attr.CounterXmitData64, 12, 0},
	{func(c *Counters) *uint64 { return &c.RcvData }, attr.CounterRcvData, attr.CounterRcvData64, 13, 1},
	{func(c *Counters) *uint64 { return &c.XmitPackets }, attr.CounterXmitPackets, attr.CounterXmitPackets64, 14, 2},
	{func(c *Counters) *uint64 { return &c.RcvPackets }, attr.CounterRcvPackets, attr.CounterRcvPackets64, 15, 3},
	{func(c *Counters) *uint64 { return &c.MulticastXmit }, attr.Field{}, attr.CounterMulticastXmit64, 0, 6},
	{func(c *Counters) *uint64 { return &c.MulticastRcv }, attr.Field{}, attr.CounterMulticastRcv64, 0, 7},
}

// in is the counter's place in an attribute.
func (x *counter) in(long bool) (f attr.Field, bit uint8, ok bool) {
	if long {
		return x.long, x.longBit, x.long.Width != 0
	}
	return x.short, x.shortBit, x.short.Width != 0
}

// Answer turns a request into its answer. It reports false for what is no request to this agent,
// which is as it was.
func (a *PMA) Answer(m mad.MAD) bool {
	method := m.Method()
	if m.Class() != mad.ClassPerf || method != mad.Get && method != mad.Set {
		return false
	}
	status := uint16(mad.StatusBadVersion)
	if m.ClassVersion() == mad.PerfVersion {
		status = a.attribute(m, method == mad.Set)
	}
	m.Answer(status)
	return true
}

func (a *PMA) attribute(m mad.MAD, set bool) (status uint16) {
	b := m.PerfData()
	switch at := m.Attribute(); {
	case at == mad.AttrClassPortInfo && !set:
		clear(b)
		mad.ClassPortInfo(b).SetBaseVersion(mad.BaseVersion)
		mad.ClassPortInfo(b).SetClassVersion(mad.PerfVersion)
		attr.ClassCapMask.Set(b, mad.PerfExtendedWidth)
		attr.ClassResponseTime.Set(b, responseTime)
		return mad.StatusOK
	case at == mad.AttrPortCounters, at == mad.AttrPortCountersExt:
		return a.counters(b, set, at == mad.AttrPortCountersExt)
	}
	return mad.StatusNoAttribute
}

func (a *PMA) counters(b []byte, set, long bool) (status uint16) {
	number, chosen := int(attr.CountersPort.Get(b)), attr.CountersSelect.Get(b)
	first, last := number, number
	if set && number == allPorts {
		first, last = a.First, a.Last
	}
	if a.First == a.Last { // which is meant, whatever the number (process_pma_cmd of mlx5_ib)
		first, last = a.First, a.Last
	}
	if first < a.First || last > a.Last {
		return mad.StatusBadField
	}
	for n := first; set && n <= last; n++ {
		a.set(n, b, chosen, long)
	}
	clear(b)
	attr.CountersPort.Set(b, uint64(number))
	attr.CountersSelect.Set(b, chosen)
	a.Counters(last).Put(b, long)
	return mad.StatusOK
}

// Counters are those of a port since they were set.
func (a *PMA) Counters(number int) *Counters {
	c, base := a.Read(number), a.base[number]
	for i := range counters {
		*counters[i].of(&c) -= *counters[i].of(&base)
	}
	return &c
}

// set sets the chosen counters to the values of a request, which commonly are 0.
func (a *PMA) set(number int, b []byte, chosen uint64, long bool) {
	if a.base == nil {
		a.base = map[int]Counters{}
	}
	now, base := a.Read(number), a.base[number]
	for i := range counters {
		x := &counters[i]
		if f, bit, ok := x.in(long); ok && chosen>>bit&1 != 0 {
			*x.of(&base) = *x.of(&now) - f.Get(b)
		}
	}
	a.base[number] = base
}

// Put writes the counters into an attribute. Those of PortCounters stay at their highest value.
func (c *Counters) Put(b []byte, long bool) {
	for i := range counters {
		if f, _, ok := counters[i].in(long); ok {
			v := *counters[i].of(c)
			if f.Width < 64 {
				v = min(v, 1<<f.Width-1)
			}
			f.Set(b, v)
		}
	}
	if long {
		attr.CounterUnicastXmit64.Set(b, c.XmitPackets-min(c.MulticastXmit, c.XmitPackets))
		attr.CounterUnicastRcv64.Set(b, c.RcvPackets-min(c.MulticastRcv, c.RcvPackets))
	}
}
