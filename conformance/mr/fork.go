package mr

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// forkedChild has a child write over what it has of the parent's registered memory, before and
// after the parent and the device use it.
func forkedChild(c *spec.C) {
	f := kit.ProcessAs[verbs.Forker](c)
	p := kit.NewPair(c, kit.Default())
	src, dst := p.Buffer(c, 3*4096, kit.AllAccess), p.Buffer(c, 3*4096, kit.AllAccess)
	want := src.FillRandom(c)
	for i, b := range []*kit.Buffer{src, dst, src, dst} {
		end, err := f.Fork(c.T, b.Mem, byte(0x11*(i+1)))
		kit.Must(c, "fork", err)
		src.ExpectContents(c, "the parent's bytes beside a child", want)
		c.Status("write beside a child", p.A.PostAndPoll(c, kit.Write(1, dst, 0, src.All())), verbs.WCSuccess)
		dst.ExpectContents(c, "bytes that were written", want)
		want = src.FillRandom(c) // after the fork: the parent's writes must reach the device's pages
		c.Status("write of new bytes beside a child", p.A.PostAndPoll(c, kit.Write(2, dst, 0, src.All())), verbs.WCSuccess)
		kit.Must(c, "end of the child", end(c.T))
		dst.ExpectContents(c, "bytes when the child has ended", want)
	}
}
