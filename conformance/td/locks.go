package td

import (
	"errors"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

const posts = 20

// postAndCompleteEach posts sends and receives, one in each call, and takes their completions.
func (u tdUser) postAndCompleteEach(c *spec.C) {
	for i := range uint64(posts) {
		u.B.RecvInto(c, i, u.mem.SGE(64, 16))
		u.A.Post(c, kit.Send(i, u.mem.SGE(0, 16)))
		kit.ExpectSuccess(c, u.A.SendCQ, 1)
		kit.ExpectSuccess(c, u.B.RecvCQ, 1)
	}
}

func noLock(c *spec.C) {
	u := newTDUser(c, kit.Open(c))
	u.postAndCompleteEach(c)
	a, b := kit.LockStats(c, u.A.QP), kit.LockStats(c, u.B.QP)
	c.Equal("SQ lock of the sender", a.SQ, uint64(0))
	c.Equal("register lock of the sender", a.BF, uint64(0))
	c.Equal("RQ lock of the receiver", b.RQ, uint64(0))
}

func lockPerPost(c *spec.C) {
	e := kit.Open(c)
	u := pairOn(c, e, &kit.TD{PD: e.ParentDomain(c)})
	before := kit.LockStats(c, u.A.QP).SQ
	u.postAndCompleteEach(c)
	c.Equal("SQ lock for each post_send", kit.LockStats(c, u.A.QP).SQ-before, uint64(posts))
	u.A.Post(c, kit.Write(1, u.mem, 0, u.mem.SGE(64, 8)), kit.Write(2, u.mem, 0, u.mem.SGE(64, 8)))
	kit.ExpectSuccess(c, u.A.SendCQ, 2)
	c.Equal("once for a chain", kit.LockStats(c, u.A.QP).SQ-before, uint64(posts+1))
	c.Equal("RQ lock for each post_recv", kit.LockStats(c, u.B.QP).RQ >= posts, true)
}

func cqLock(c *spec.C) {
	e := kit.Open(c)
	td := e.AllocTD(c)
	onDomain := verbs.CQAttr{CQE: 64, Ex: true, CompMask: kit.CQMaskParentDomain, ParentDomain: td.PD}
	single := verbs.CQAttr{CQE: 64, Ex: true, CompMask: kit.CQMaskFlags, Flags: verbs.CQSingleThreaded}
	for _, tc := range []struct {
		name   string
		attr   verbs.CQAttr
		ex     bool // by ibv_start_poll
		locked bool
	}{
		{"ordinary CQ", verbs.CQAttr{CQE: 64}, false, true},
		{"CQ on the domain", onDomain, false, true},
		{"CQ on the domain, start_poll", onDomain, true, true},
		{"single-threaded CQ", single, false, true},
		{"single-threaded CQ, start_poll", single, true, false},
	} {
		cq, err := e.Ctx.CreateCQ(c.T, tc.attr)
		c.NoErr(tc.name+": create", err)
		kit.DestroyOnce(c, "destroy_cq", cq.Destroy)
		o := kit.Default()
		o.PD, o.SendCQ, o.RecvCQ = td.PD, cq, cq
		p := e.Pair(c, o)
		mem := e.Buffer(c, 64, kit.AllAccess)
		for i := range uint64(posts) {
			p.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
			wc := verbs.WC{}
			if tc.ex {
				wc = startPoll(c, cq)
			} else {
				wc = kit.PollOne(c, cq)
			}
			c.Status(tc.name+": write", wc, verbs.WCSuccess)
		}
		taken := kit.LockStats(c, cq).CQ
		if tc.locked {
			c.True(tc.name, taken >= posts, "its lock was taken %d times in %d polls", taken, posts)
		} else {
			c.Equal(tc.name+": lock taken", taken, uint64(0))
		}
	}
}

// startPoll takes a completion by the extended way to poll.
func startPoll(c *spec.C, q verbs.CQ) verbs.WC {
	cq, ok := q.(verbs.CQEx)
	if !ok {
		c.Errorf("a CQ of the extended call has no start_poll")
	}
	for end := c.T.Now() + kit.CompletionTimeout; ; {
		err := cq.StartPoll(c.T, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOENT) || c.T.Now() >= end {
			kit.Must(c, "start_poll", err)
		}
		c.T.Sleep(time.Microsecond)
	}
	wc := verbs.WC{ID: cq.WRID(), Status: cq.Status()}
	cq.EndPoll(c.T)
	return wc
}

func srqLock(c *spec.C) {
	e := kit.Open(c)
	for _, tc := range []struct {
		name   string
		pd     verbs.PD
		locked bool
	}{{"SRQ on a plain PD", e.PD, true}, {"SRQ on the domain", e.AllocTD(c).PD, false}} {
		o := kit.Default()
		s := e.CreateSRQOn(c, tc.pd, 32, 1)
		o.SRQ = s.SRQ
		p := e.Pair(c, o)
		mem := e.Buffer(c, 64, kit.AllAccess)
		for i := range uint64(posts) {
			s.RecvInto(c, i, mem.SGE(32, 8))
			c.Status(tc.name+": send", p.A.PostAndPoll(c, kit.Send(i, mem.SGE(0, 8))), verbs.WCSuccess)
			kit.ExpectSuccess(c, p.B.RecvCQ, 1)
		}
		taken := kit.LockStats(c, s.SRQ).RQ
		c.Equal(tc.name+": lock taken", taken >= posts, tc.locked)
		c.Equal(tc.name+": lock never taken", taken == 0, !tc.locked)
	}
}
