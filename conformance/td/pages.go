package td

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// halves is how many buffers a BlueFlame register has: the register is twice the size
// of what a post may write at once.
const halves = 2

func firstPair(c *spec.C) {
	e := kit.Open(c)
	a, b := kit.BFReg(c, newTDUser(c, e).A), kit.BFReg(c, newTDUser(c, e).A)
	c.Equal("same page", a.UARPage == b.UARPage, true)
	c.Equal("distance of the registers", int64(b.Offset)-int64(a.Offset), int64(halves*a.Size))
	kit.ExpectNoLock(c, a) // TD-005 counts the locks that posts take
	kit.ExpectNoLock(c, b)
}

func thirdOnNewPage(c *spec.C) {
	e := kit.Open(c)
	a, b, third := kit.BFReg(c, newTDUser(c, e).A), kit.BFReg(c, newTDUser(c, e).A), kit.BFReg(c, newTDUser(c, e).A)
	c.Equal("first two share", a.UARPage == b.UARPage, true)
	c.Equal("third is elsewhere", third.UARPage != a.UARPage, true)
	c.Equal("third is where the first is in its page", third.Offset, a.Offset)
}

func pairsOnly(c *spec.C) {
	e := kit.Open(c)
	const n = 32
	var pages [n]uint32
	for i := range n {
		pages[i] = kit.BFReg(c, newTDUser(c, e).A).UARPage
	}
	for i := range n {
		for j := range i {
			if (pages[i] == pages[j]) != (i/2 == j/2) {
				c.Failf("domains %d and %d: on one page %t, want %t", j, i, pages[i] == pages[j], i/2 == j/2)
			}
		}
	}
	c.Observe("domains", n)
	c.Equal("pages", distinct(pages[:]), n/2)
}

func distinct(pages []uint32) int {
	set := map[uint32]bool{}
	for _, p := range pages {
		set[p] = true
	}
	return len(set)
}

func slotReuse(c *spec.C) {
	e := kit.Open(c)
	const n = 6
	var users [n]tdUser
	var pages []uint32
	for i := range users {
		users[i] = newTDUser(c, e)
		pages = append(pages, kit.BFReg(c, users[i].A).UARPage)
	}
	before := distinct(pages)
	c.Equal("pages", before, n/2)
	for _, i := range []int{3, 0, 5} {
		users[i].A.DestroyNow(c)
		users[i].B.DestroyNow(c)
		users[i].td.Free(c)
	}
	for range 3 {
		u := newTDUser(c, e)
		pages = append(pages, kit.BFReg(c, u.A).UARPage)
		u.sendAndCheck(c, "on a used slot")
	}
	c.Equal("pages after freeing and allocating three", distinct(pages), before)
	pages = append(pages, kit.BFReg(c, newTDUser(c, e).A).UARPage)
	c.Equal("pages with one more", distinct(pages), before+1)
}

func independentPages(c *spec.C) {
	e := kit.Open(c)
	const n = 16
	var pages []uint32
	for range n {
		pages = append(pages, kit.BFReg(c, pairOn(c, e, e.AllocIndependentTD(c)).A).UARPage)
	}
	c.Equal("pages", distinct(pages), n)
}

func independentCost(c *spec.C) {
	const n = 16
	count := func(alloc func(e *kit.Env) *kit.TD) int {
		e := kit.Open(c)
		var pages []uint32
		for range n {
			pages = append(pages, kit.BFReg(c, pairOn(c, e, alloc(e)).A).UARPage)
		}
		return distinct(pages)
	}
	independent := count(func(e *kit.Env) *kit.TD { return e.AllocIndependentTD(c) })
	paired := count(func(e *kit.Env) *kit.TD { return e.AllocTD(c) })
	c.Equal("pages of independent domains", independent, n)
	c.Equal(fmt.Sprintf("pages of %d paired domains", n), paired, n/2)
}

func twoQPs(c *spec.C) {
	e := kit.Open(c)
	td := e.AllocTD(c)
	u, v := pairOn(c, e, td), pairOn(c, e, td)
	a, b := kit.BFReg(c, u.A), kit.BFReg(c, v.A)
	c.Equal("same page", a.UARPage == b.UARPage, true)
	c.Equal("same register", a.Offset == b.Offset, true)
	const n = 50
	for i := range uint64(n) {
		for _, w := range []tdUser{u, v} {
			wr := kit.Send(i, w.mem.SGE(0, 16))
			w.B.RecvInto(c, i, w.mem.SGE(64, 16))
			w.A.Post(c, wr)
		}
	}
	for _, w := range []tdUser{u, v} {
		kit.ExpectInOrder(c, w.A.SendCQ, n)
		kit.ExpectInOrder(c, w.B.RecvCQ, n)
	}
	c.Observe("posts by turns", 2*n)
}
