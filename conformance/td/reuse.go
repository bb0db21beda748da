package td

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// place is a register as a program sees it.
type place struct{ page, offset uint32 }

// takenAgain gives some of six domains' registers back, in the order of their numbers in freed,
// and returns which of the six registers as many new domains have, in the order of their making.
func takenAgain(c *spec.C, freed []int) []int {
	e := kit.Open(c)
	const n = 6 // three pages: no register is left over
	var users [n]tdUser
	number := map[place]int{}
	at := func(u tdUser) place {
		r := kit.BFReg(c, u.A)
		return place{r.UARPage, r.Offset}
	}
	for i := range users {
		users[i] = newTDUser(c, e)
		number[at(users[i])] = i
	}
	c.Equal("registers", len(number), n)
	for _, i := range freed {
		users[i].A.DestroyNow(c)
		users[i].B.DestroyNow(c)
		users[i].td.Free(c)
	}
	var got []int
	for range freed {
		u := newTDUser(c, e)
		i, known := number[at(u)]
		c.True("a register that was freed", known, "%+v is on a new page", at(u))
		got = append(got, i)
		u.sendAndCheck(c, "on a used register")
	}
	return got
}

// inOrderOfFreeing: the library has a list of free registers.
func inOrderOfFreeing(c *spec.C) {
	c.Equal("registers of the new domains", takenAgain(c, []int{4, 1, 3}), []int{4, 1, 3})
}

// lowestFirst: the library has a table of the dynamic registers.
func lowestFirst(c *spec.C) {
	c.Equal("registers of the new domains", takenAgain(c, []int{4, 1, 3}), []int{1, 3, 4})
}
