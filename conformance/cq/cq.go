// Package cq holds the cases of area CQ: completion queues.
package cq

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("CQ-001", zeroEntries)
	s.Case("CQ-002", tooManyEntries)
	s.Case("CQ-003", sizeReturned)
	s.Case("CQ-004", vectorOutside)
	s.Case("CQ-005", everyVector)
	s.Case("CQ-006", unknownFlags)
	s.Case("CQ-007", unknownWCFlags)
	s.Case("CQ-008", plainPDAsParent)
	s.Case("CQ-009", pollEmpty)
	s.Case("CQ-010", pollPastLast)
	s.Case("CQ-011", sendOrder)
	s.Case("CQ-012", recvOrder)
	s.Case("CQ-013", pollSome)
	s.Case("CQ-014", pollNone)
	s.Case("CQ-015", errorFields)
	s.Case("CQ-016", sameCQForBothDirections)
	s.Case("CQ-017", onlySignalled)
	s.Case("CQ-018", busyByQP)
	s.Case("CQ-020", resize)
	s.Case("CQ-021", resizeBelowOutstanding)
	s.Case("CQ-022", resizeOutside)
	s.Case("CQ-023", resizeToSame)
	s.Case("CQ-024", overrun)
	s.Case("CQ-025", overrunIgnored)
	s.Case("CQ-026", timestamps)
	s.Case("CQ-028", accessors)
	s.Case("CQ-029", cqeSize)
	s.Case("CQ-030", cqePadding)
	s.Case("CQ-031", cqeSizeVariable)
	s.Case("CQ-032", cqeCompression)
	s.Case("CQ-033", scatterToCQE)
	s.Case("CQ-034", twoPollers)
	s.Case("CQ-035", destroyedQP)
	s.Case("CQ-036", moderation)
	s.Case("CQ-037", heldBack)
	s.Case("CQ-038", compressed)
}

// create makes a CQ that is destroyed at once: only the answer counts.
func create(c *spec.C, e *kit.Env, a verbs.CQAttr) error {
	cq, err := e.Ctx.CreateCQ(c.T, a)
	if err == nil {
		kit.Must(c, "destroy_cq", cq.Destroy(c.T))
	}
	return err
}

func maxCQE(c *spec.C, e *kit.Env) int {
	a, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	return a.MaxCQE
}

func zeroEntries(c *spec.C) {
	e := kit.Open(c)
	c.Errno("create_cq with 0 entries", create(c, e, verbs.CQAttr{CQE: 0}), syscall.EINVAL)
}

func tooManyEntries(c *spec.C) {
	e := kit.Open(c)
	c.ErrnoIn("create_cq with max_cqe + 1", create(c, e, verbs.CQAttr{CQE: maxCQE(c, e) + 1}), syscall.EINVAL, syscall.ENOMEM)
	c.ErrnoIn("create_cq with 2^31 - 1", create(c, e, verbs.CQAttr{CQE: 1<<31 - 1}), syscall.EINVAL, syscall.ENOMEM)
}

func sizeReturned(c *spec.C) {
	e := kit.Open(c)
	most := maxCQE(c, e)
	for _, n := range []int{1, 2, 3, 4, 7, 8, 63, 64, 100, 1000, 1023, 1024, min(65535, most)} {
		cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: n})
		c.NoErr("create_cq", err)
		got := cq.Cap()
		c.Observe("size returned", []int{n, got})
		if got < n {
			c.Failf("asked for %d entries, got %d", n, got)
		}
		if c.Has("dv") && got&(got+1) != 0 {
			c.Failf("asked for %d entries, got %d, which is not 2^n - 1", n, got)
		}
		c.NoErr("destroy_cq", cq.Destroy(c.T))
	}
}

func vectorOutside(c *spec.C) {
	e := kit.Open(c)
	n := e.Ctx.NumCompVectors()
	c.True("vectors", n > 0, "num_comp_vectors is %d", n)
	c.Errno("create_cq on vector num_comp_vectors", create(c, e, verbs.CQAttr{CQE: 8, CompVector: n}), syscall.EINVAL)
	c.Errno("create_cq on a vector far outside", create(c, e, verbs.CQAttr{CQE: 8, CompVector: n + 1000}), syscall.EINVAL)
	c.Errno("create_cq on the last vector", create(c, e, verbs.CQAttr{CQE: 8, CompVector: n - 1}), 0)
}

func everyVector(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	c.ObservePlatform("vectors", e.Ctx.NumCompVectors()) // one for each processor, up to those of the device
	for v := range e.Ctx.NumCompVectors() {
		ch, err := e.Ctx.CreateCompChannel(c.T)
		c.NoErr("create_comp_channel", err)
		cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 16, Channel: ch, CompVector: v})
		c.NoErr("create_cq", err)
		o := kit.Default()
		o.SendCQ = cq
		p := e.Pair(c, o)
		c.NoErr("req_notify_cq", cq.ReqNotify(c.T, false))
		p.A.Post(c, kit.Write(1, mem, 32, mem.SGE(0, 8)))
		got, err := ch.Event(c.T, kit.CompletionTimeout)
		c.NoErr("get_cq_event", err)
		c.True("event", got == cq, "the event names another CQ")
		ch.Ack(c.T, got, 1)
		kit.ExpectSuccess(c, cq, 1)
		p.A.DestroyNow(c)
		p.B.DestroyNow(c)
		c.NoErr("destroy_cq", cq.Destroy(c.T))
		c.NoErr("destroy_comp_channel", ch.Destroy(c.T))
	}
}

// comp_mask bits of ibv_cq_init_attr_ex.
const (
	maskFlags = 1 << 0
	maskPD    = 1 << 1
)

func unknownFlags(c *spec.C) {
	e := kit.Open(c)
	set := []syscall.Errno{syscall.EINVAL, syscall.EOPNOTSUPP}
	for _, bit := range []uint{8, 16, 31} {
		c.ErrnoIn("unknown comp_mask bit", create(c, e, verbs.CQAttr{CQE: 8, Ex: true, CompMask: 1 << bit}), set...)
		c.ErrnoIn("unknown flag", create(c, e, verbs.CQAttr{CQE: 8, Ex: true, CompMask: maskFlags, Flags: 1 << bit}), set...)
	}
	c.Errno("no mask and no flag", create(c, e, verbs.CQAttr{CQE: 8, Ex: true}), 0)
}

func unknownWCFlags(c *spec.C) {
	e := kit.Open(c)
	for _, bit := range []uint{24, 40, 63} {
		c.ErrnoIn("unknown wc_flags bit", create(c, e, verbs.CQAttr{CQE: 8, Ex: true, WCFlags: 1 << bit}),
			syscall.ENOTSUP, syscall.EINVAL)
	}
}

func plainPDAsParent(c *spec.C) {
	e := kit.Open(c)
	a := verbs.CQAttr{CQE: 8, Ex: true, CompMask: maskPD, ParentDomain: e.PD}
	c.Errno("create_cq_ex with a plain PD as parent domain", create(c, e, a), syscall.EINVAL)
}

func cqeSize(c *spec.C) {
	e := kit.Open(c)
	for _, n := range []int{1, 32, 65, 96, 127, 256} {
		c.Errno("mlx5dv_create_cq with a bad CQE size", create(c, e, verbs.CQAttr{CQE: 8, Ex: true, CQESize: n}), syscall.EINVAL)
	}
	for _, n := range []int{64, 128} {
		c.Errno("mlx5dv_create_cq with a good CQE size", create(c, e, verbs.CQAttr{CQE: 8, Ex: true, CQESize: n}), 0)
	}
}

func cqePadding(c *spec.C) {
	e := kit.Open(c)
	c.Errno("mlx5dv_create_cq with padding and CQEs of 64 bytes",
		create(c, e, verbs.CQAttr{CQE: 8, Ex: true, CQESize: 64, CQEPad: true}), syscall.EINVAL)
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 8, Ex: true, CQESize: 128, CQEPad: true})
	if c.ErrnoIn("mlx5dv_create_cq with padding and CQEs of 128 bytes", err, 0, syscall.EINVAL) != 0 {
		return
	}
	kit.DestroyOnce(c, "destroy_cq", cq.Destroy)
	oneByOne(c, e, cq)
}

// oneByOne completes writes on a CQ, each behind the one before.
func oneByOne(c *spec.C, e *kit.Env, cq verbs.CQ) {
	o := kit.Default()
	o.SendCQ = cq
	p := e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for i := range uint64(20) {
		c.Status("write", p.A.PostAndPoll(c, kit.Write(i, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
	}
}

// cqeCompression asks for each format alone and for several. Completions come one by one,
// so that there is nothing to compress: not every library reads compressed ones.
func cqeCompression(c *spec.C) {
	e := kit.Open(c)
	attr, err := e.Ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device", err)
	c.Observe("cqe_comp_caps", attr.CQEComp)
	of := func(format uint8) verbs.CQAttr { return verbs.CQAttr{CQE: 63, Ex: true, CQECompression: format} }
	for _, f := range []uint8{verbs.CQECompHash, verbs.CQECompCsum, verbs.CQECompCsumStrideIndex} {
		if attr.CQEComp.Formats&uint32(f) == 0 {
			continue
		}
		cq, err := e.Ctx.CreateCQ(c.T, of(f))
		c.NoErr(fmt.Sprintf("mlx5dv_create_cq with compression, format %d", f), err)
		kit.DestroyOnce(c, "destroy_cq", cq.Destroy)
		oneByOne(c, e, cq)
	}
	for _, f := range []uint8{
		verbs.CQECompHash | verbs.CQECompCsum, verbs.CQECompHash | verbs.CQECompCsumStrideIndex,
		verbs.CQECompCsum | verbs.CQECompCsumStrideIndex, verbs.CQECompHash | verbs.CQECompCsum | verbs.CQECompCsumStrideIndex,
	} {
		c.Errno(fmt.Sprintf("mlx5dv_create_cq with compression, formats %#x", f), create(c, e, of(f)), syscall.EINVAL)
	}
}

func busyByQP(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, dst := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	c.Errno("destroy the send CQ", p.A.SendCQ.Destroy(c.T), syscall.EBUSY)
	c.Errno("destroy the receive CQ", p.B.RecvCQ.Destroy(c.T), syscall.EBUSY)
	want := src.FillRandom(c)
	p.B.RecvInto(c, 9, dst.All())
	c.Status("send", p.A.PostAndPoll(c, kit.Send(1, src.All())), verbs.WCSuccess)
	c.Status("receive", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes", want)
}
