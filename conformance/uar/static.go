package uar

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// staticRegisters creates QPs until each static register but the first has one, and then as many
// again that share those which are not for low latency. The first is kept for plain doorbells.
func staticRegisters(c *spec.C, e *kit.Env) map[registerPlace]int {
	o := kit.Default()
	o.SendCQ = e.CreateCQ(c, 255)
	o.RecvCQ = o.SendCQ
	uses := map[registerPlace]int{}
	create := func(step string, n, users int, locked bool) {
		for range n {
			q := e.CreateQP(c, o)
			r := kit.BFReg(c, q)
			uses[placeOf(c, q)]++
			c.Equal(step+": a dynamic register", r.Dynamic, false)
			c.Equal(step+": QPs on the register", uses[placeOf(c, q)], users)
			if r.Class != "" { // a real library does not tell
				c.Equal(step+": its lock", r.NeedLock, locked)
			}
		}
	}
	const medium = totalRegs - lowLatency - 1
	create("low latency", lowLatency, 1, false)
	create("not low latency", medium, 1, true)
	create("shared", medium, 2, true)
	c.Equal("registers in use", len(uses), totalRegs-1)
	return uses
}

// domainBeside makes a thread domain, whose register is none of those in use.
func domainBeside(c *spec.C, e *kit.Env, uses map[registerPlace]int) {
	o := kit.Default()
	o.PD = e.AllocTD(c).PD
	q := e.CreateQP(c, o)
	if r := kit.BFReg(c, q); r.Class != "" { // a real library does not tell
		c.Equal("a thread domain has a dynamic register", r.Dynamic, true)
	}
	c.Equal("QPs without a domain on it", uses[placeOf(c, q)], 0)
}

func fallback(c *spec.C) {
	e := kit.Open(c)
	domainBeside(c, e, staticRegisters(c, e))
	_, err := e.Ctx.AllocUAR(c.T, verbs.UARNonCached)
	c.Errno("a non-cached UAR", err, syscall.EOPNOTSUPP)
	legacyPath(c)
}

func oldLibrary(c *spec.C) {
	e := kit.Open(c)
	domainBeside(c, e, staticRegisters(c, e))
	legacyPath(c)
}
