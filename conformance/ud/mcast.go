package ud

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// Multicast groups, as RoCE v2 over IPv4 writes them.
var (
	group = verbs.GID(roce.GIDFromIPv4([4]byte{239, 7, 7, 1}))
	other = verbs.GID(roce.GIDFromIPv4([4]byte{239, 7, 7, 2}))
)

// multicastSender is a sender to the group and QPs that may join it.
type multicastSender struct {
	*kit.Env
	from *kit.QP
	ah   verbs.AH
	mem  *kit.Buffer
}

func newMulticastSender(c *spec.C) *multicastSender {
	e := kit.Open(c)
	return &multicastSender{e, e.NewUD(c), e.CreateAH(c, e.AHTo(e.Group(group))), e.Buffer(c, 4096, kit.AllAccess)}
}

// newListener is a QP with two receives.
func (x *multicastSender) newListener(c *spec.C, n int) *kit.QP {
	q := x.NewUD(c)
	q.RecvInto(c, 1, x.mem.SGE(256*n, 128))
	q.RecvInto(c, 2, x.mem.SGE(256*n+128, 128))
	return q
}

func (x *multicastSender) send(c *spec.C) []byte {
	want := c.Rand().Bytes(20)
	x.mem.Set(c, 4000, want)
	c.Status("send to the group", x.from.PostAndPoll(c, kit.Datagram(1, x.ah, verbs.MulticastQPN, x.mem.SGE(4000, 20))), verbs.WCSuccess)
	return want
}

// expectCopy takes the one copy that a QP must get.
func (x *multicastSender) expectCopy(c *spec.C, q *kit.QP, n int, want []byte) {
	wc := kit.ExpectSuccess(c, q.RecvCQ, 1)[0]
	c.Equal("byte_len", wc.ByteLen, uint32(header+20))
	c.True("src_qp", wc.SrcQP == x.from.QPN(), "%#x, want %#x", wc.SrcQP, x.from.QPN())
	c.Equal(fmt.Sprintf("bytes of listener %d", n), x.mem.Get(c, 256*n+128*int(wc.ID-1)+header, 20), want)
	kit.ExpectNoCompletion(c, q.RecvCQ, kit.QuietPeriod)
}

func attachOtherType(c *spec.C) {
	e := kit.Open(c)
	for _, t := range []verbs.QPType{verbs.QPTRC, verbs.QPTUC} {
		q := e.CreateQP(c, kit.DefaultFor(t))
		c.Errno(fmt.Sprintf("attach_mcast of QP type %d", t), q.AttachMcast(c.T, group, 0), syscall.EINVAL)
	}
}

func attachUnicast(c *spec.C) {
	e := kit.Open(c)
	q := e.NewUD(c)
	for _, g := range []verbs.GID{e.GID.GID, {}, {0: 0xfe, 15: 1}, verbs.GID(roce.GIDFromIPv4([4]byte{223, 255, 255, 255}))} {
		c.Errno("attach_mcast", q.AttachMcast(c.T, g, e.Group(group).LID), syscall.EINVAL)
	}
	if e.IB {
		for _, lid := range []uint16{0, 1, roce.FirstMulticastLID - 1, roce.PermissiveLID} {
			c.Errno("attach_mcast with a LID of no group", q.AttachMcast(c.T, group, lid), syscall.EINVAL)
		}
	}
}

func groupOfTwo(c *spec.C) {
	x := newMulticastSender(c)
	a, b, stranger := x.newListener(c, 0), x.newListener(c, 1), x.newListener(c, 2)
	a.JoinMulticast(c, group)
	b.JoinMulticast(c, group)
	stranger.JoinMulticast(c, other)
	want := x.send(c)
	x.expectCopy(c, a, 0, want)
	x.expectCopy(c, b, 1, want)
	kit.ExpectNoCompletion(c, stranger.RecvCQ, kit.QuietPeriod)
}

func attachedTwice(c *spec.C) {
	x := newMulticastSender(c)
	a := x.newListener(c, 0)
	a.JoinMulticast(c, group)
	err := a.AttachMcast(c.T, group, x.Group(group).LID)
	c.Observe("second attach_mcast", verbs.ErrnoName(verbs.ErrnoOf(err)))
	x.expectCopy(c, a, 0, x.send(c))
}

func detach(c *spec.C) {
	x := newMulticastSender(c)
	a, b := x.newListener(c, 0), x.newListener(c, 1)
	c.ErrnoIn("detach_mcast of a stranger", a.DetachMcast(c.T, group, x.Group(group).LID), syscall.EINVAL)
	a.JoinMulticast(c, group)
	b.JoinMulticast(c, group)
	want := x.send(c)
	x.expectCopy(c, a, 0, want)
	x.expectCopy(c, b, 1, want)
	c.NoErr("detach_mcast", a.DetachMcast(c.T, group, x.Group(group).LID))
	want = x.send(c)
	kit.ExpectNoCompletion(c, a.RecvCQ, kit.QuietPeriod)
	x.expectCopy(c, b, 1, want)
	c.ErrnoIn("detach_mcast again", a.DetachMcast(c.T, group, x.Group(group).LID), syscall.EINVAL)
}

// ownGroup has the sender be a member of the group that it sends to.
func ownGroup(c *spec.C) {
	x := newMulticastSender(c)
	a := x.newListener(c, 0)
	x.from.RecvInto(c, 1, x.mem.SGE(512, 128))
	x.from.RecvInto(c, 2, x.mem.SGE(640, 128))
	a.JoinMulticast(c, group)
	x.from.JoinMulticast(c, group)
	want := x.send(c)
	c.Observe("copies at another member", len(kit.RecordCompletions(c, "at another member", a.RecvCQ, 2)))
	got := kit.RecordCompletions(c, "at the sender", x.from.RecvCQ, 2)
	c.Observe("copies at the sender", len(got))
	for _, w := range got {
		c.Equal("bytes at the sender", x.mem.Get(c, 512+128*int(w.ID-1)+header, 20), want)
	}
}
