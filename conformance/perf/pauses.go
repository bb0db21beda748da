package perf

import (
	"strings"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// noPauses has two flows of one message at a time, which fill a fraction of the link.
func noPauses(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	mem, far := e.Buffer(c, 4096, kit.AllAccess), other.Buffer(c, 4096, kit.AllAccess, 0)
	var flows [2]*kit.QP
	for i := range flows {
		flows[i], _ = e.PairWith(c, other, kit.Default())
	}
	hosts := [2]int{0, kit.RemoteHost(c)}
	var before [2]map[string]uint64
	for i, h := range hosts {
		before[i] = kit.Counters(c, h)
	}
	const messages = 64
	kit.RunThreads(c, len(flows), func(c *spec.C, i int) {
		for n := range uint64(messages) {
			flows[i].Post(c, far.WriteTo(n, 0, mem.All()))
			kit.ExpectSuccess(c, flows[i].SendCQ, 1)
		}
	})
	pauses, known := 0, 0
	for i, h := range hosts {
		after := kit.Counters(c, h)
		for name := range after {
			if strings.Contains(name, "_prio") && strings.HasSuffix(name, "_pause") {
				known++
				pauses += kit.CounterDelta(before[i], after, name)
			}
		}
	}
	c.True("the ports count pauses", known > 0, "there are no counters of pauses")
	c.Equal("pauses", pauses, 0)
}
