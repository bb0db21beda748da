package rc

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// denied has a request fail on a fresh pair (the failure ends the pair) with the
// status, and memory unchanged.
func denied(c *spec.C, e *kit.Env, o kit.Options, step string, wr verbs.SendWR, mem *kit.Buffer, set ...verbs.WCStatus) {
	want := mem.FillRandom(c)
	p := e.Pair(c, o)
	wc := p.A.PostAndPoll(c, wr)
	if len(set) == 1 {
		c.Status(step, wc, set[0])
	} else {
		c.StatusIn(step, wc, set...)
	}
	c.Equal(step+": wr_id", wc.ID, wr.ID)
	mem.ExpectContents(c, step+": memory", want)
	mem.CheckRedZones(c)
}

func bounds(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 64, kit.AllAccess)
	dst := e.Buffer(c, 4096, kit.AllAccess)
	p := e.Pair(c, kit.Default())
	for _, off := range []int{0, 4096 - 16} {
		want := dst.FillRandom(c)
		copy(want[off:], src.FillRandom(c)[:16])
		c.Status(fmt.Sprintf("inside at %d", off), p.A.PostAndPoll(c, kit.Write(1, dst, off, src.SGE(0, 16))), verbs.WCSuccess)
		dst.ExpectContents(c, "memory", want)
	}
	for _, off := range []int{-1, 4096 - 15, -16, 4096} {
		denied(c, e, kit.Default(), fmt.Sprintf("outside at %d", off), kit.Write(2, dst, off, src.SGE(0, 16)), dst,
			verbs.WCRemAccessErr)
	}
	denied(c, e, kit.Default(), "read outside", kit.Read(3, dst, 4096-15, src.SGE(0, 16)), dst, verbs.WCRemAccessErr)
}

func wrap(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 4096, kit.AllAccess)
	for _, addr := range []uint64{1<<64 - 1, 1<<64 - 8, 1<<64 - 4095} {
		w := kit.Write(1, mem, 0, mem.All())
		w.RemoteAddr = addr
		denied(c, e, kit.Default(), "write that wraps", w, mem, verbs.WCRemAccessErr)
		r := kit.Read(1, mem, 0, mem.All())
		r.RemoteAddr = addr
		denied(c, e, kit.Default(), "read that wraps", r, mem, verbs.WCRemAccessErr)
	}
}

func readNotAllowed(c *spec.C) {
	e := kit.Open(c)
	dst := e.Buffer(c, 64, kit.AllAccess)
	for _, access := range []verbs.AccessFlags{0, verbs.AccessLocalWrite, kit.AllAccess &^ verbs.AccessRemoteRead} {
		src := e.Buffer(c, 64, access)
		denied(c, e, kit.Default(), fmt.Sprintf("read with access %#x", uint32(access)), kit.Read(1, src, 0, dst.All()), dst,
			verbs.WCRemAccessErr)
	}
}

func writeNotAllowed(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 64, kit.AllAccess)
	for _, access := range []verbs.AccessFlags{0, verbs.AccessLocalWrite, verbs.AccessRemoteRead,
		kit.AllAccess &^ verbs.AccessRemoteWrite} {
		dst := e.Buffer(c, 64, access)
		denied(c, e, kit.Default(), fmt.Sprintf("write with access %#x", uint32(access)), kit.Write(1, dst, 0, src.All()), dst,
			verbs.WCRemAccessErr)
	}
}

func qpAccess(c *spec.C) {
	e := kit.Open(c)
	far := e.Buffer(c, 64, kit.AllAccess)
	near := e.Buffer(c, 64, kit.AllAccess)
	for _, tc := range []struct {
		name string
		lack verbs.AccessFlags
		wr   verbs.SendWR
	}{
		{"write", verbs.AccessRemoteWrite, kit.Write(1, far, 0, near.All())},
		{"read", verbs.AccessRemoteRead, kit.Read(2, far, 0, near.All())},
		{"atomic", verbs.AccessRemoteAtomic, kit.FetchAdd(3, far, 0, 1, near.SGE(0, 8))},
	} {
		o := kit.Default()
		o.Access &^= tc.lack
		local := near.FillRandom(c)
		denied(c, e, o, tc.name+" without the right of the QP", tc.wr, far, verbs.WCRemInvReqErr, verbs.WCRemAccessErr)
		near.ExpectContents(c, "local memory", local)
	}
}

func tooLong(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 8192, kit.AllAccess)
	dst := e.Buffer(c, 8192, kit.AllAccess)
	for _, tc := range []struct{ room, n int }{{8, 9}, {0, 1}, {1024, 1025}, {1500, 5000}} {
		p := e.Pair(c, kit.Default())
		want := dst.FillRandom(c)
		p.B.RecvInto(c, 5, dst.SGE(0, tc.room))
		step := fmt.Sprintf("%d bytes into %d", tc.n, tc.room)
		c.Status(step+", requester", p.A.PostAndPoll(c, kit.Send(1, src.SGE(0, tc.n))), verbs.WCRemInvReqErr)
		wc := kit.PollOne(c, p.B.RecvCQ)
		c.Status(step+", responder", wc, verbs.WCLocLenErr)
		c.Equal("wr_id", wc.ID, uint64(5))
		c.Equal("beyond the receive", dst.Get(c, tc.room, dst.Len-tc.room), want[tc.room:])
	}
}
