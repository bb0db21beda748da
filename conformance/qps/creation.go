package qps

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func registerCreation(s *spec.Suite) {
	s.Case("QPS-012", grantedCaps)
	s.Case("QPS-013", aboveDeviceLimits)
	s.Case("QPS-014", absurdInline)
	s.Case("QPS-015", missingCQ)
	s.Case("QPS-039", sourceQPNFlag)
}

func grantedCaps(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 4096, kit.AllAccess)
	for _, want := range []verbs.QPCap{
		{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
		{MaxSendWR: 17, MaxRecvWR: 33, MaxSendSGE: 3, MaxRecvSGE: 5, MaxInline: 33},
		{MaxSendWR: 100, MaxRecvWR: 200, MaxSendSGE: 8, MaxRecvSGE: 1, MaxInline: 200},
		{MaxSendWR: 128, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 2, MaxInline: 1},
	} {
		o := kit.Default()
		o.Cap, o.CQE = want, 1023
		p := e.Pair(c, o)
		got := p.A.Caps()
		step := fmt.Sprintf("asked for %+v", want)
		c.Observe(step, fmt.Sprintf("%+v", got))
		c.True(step, got.MaxSendWR >= want.MaxSendWR && got.MaxRecvWR >= want.MaxRecvWR && got.MaxSendSGE >= want.MaxSendSGE &&
			got.MaxRecvSGE >= want.MaxRecvSGE && got.MaxInline >= want.MaxInline, "granted %+v", got)
		fillQueues(c, p, mem)
	}
}

// fillQueues posts as many requests of the largest kind as the caps say, on both
// queues, and has them complete.
func fillQueues(c *spec.C, p *kit.Pair, mem *kit.Buffer) {
	caps, bcaps := p.A.Caps(), p.B.Caps()
	sges := func(n uint32) []verbs.SGE {
		out := make([]verbs.SGE, n)
		for i := range out {
			out[i] = mem.SGE(8*i, 8)
		}
		return out
	}
	for i := range caps.MaxSendWR {
		wr := kit.Write(uint64(i), mem, 2048, sges(caps.MaxSendSGE)...)
		if i == 0 && caps.MaxInline > 0 {
			wr.SGEs, wr.Flags = []verbs.SGE{mem.SGE(0, int(caps.MaxInline))}, wr.Flags|verbs.SendInline
		}
		p.A.Post(c, wr)
	}
	kit.ExpectSuccess(c, p.A.SendCQ, int(caps.MaxSendWR))
	for i := range bcaps.MaxRecvWR {
		p.B.RecvInto(c, uint64(i), sges(bcaps.MaxRecvSGE)...)
	}
	for i := range bcaps.MaxRecvWR {
		p.A.Post(c, kit.Send(uint64(i), mem.SGE(0, 8)))
		kit.ExpectSuccess(c, p.A.SendCQ, 1)
	}
	kit.ExpectSuccess(c, p.B.RecvCQ, int(bcaps.MaxRecvWR))
	c.NoErr("filled both queues", nil)
}

// create makes a QP that is expected to be refused; one that is not is destroyed.
func create(c *spec.C, e *kit.Env, a verbs.QPInitAttr) error {
	qp, err := e.PD.CreateQP(c.T, a)
	if err == nil {
		kit.DestroyOnce(c, "destroy_qp", qp.Destroy)
	}
	return err
}

func initAttr(c *spec.C, e *kit.Env) verbs.QPInitAttr {
	cq := e.CreateCQ(c, 16)
	return verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq,
		Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}}
}

func aboveDeviceLimits(c *spec.C) {
	e := kit.Open(c)
	dev, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	for _, tc := range []struct {
		name  string
		limit int
		field func(*verbs.QPCap) *uint32
	}{
		{"max_send_wr", dev.MaxQPWR, func(q *verbs.QPCap) *uint32 { return &q.MaxSendWR }},
		{"max_recv_wr", dev.MaxQPWR, func(q *verbs.QPCap) *uint32 { return &q.MaxRecvWR }},
		{"max_send_sge", dev.MaxSGE, func(q *verbs.QPCap) *uint32 { return &q.MaxSendSGE }},
		{"max_recv_sge", dev.MaxSGE, func(q *verbs.QPCap) *uint32 { return &q.MaxRecvSGE }},
	} {
		a := initAttr(c, e)
		*tc.field(&a.Cap) = uint32(tc.limit) + 1
		err := create(c, e, a)
		if c.ErrnoIn("one more "+tc.name+" than the device has", err, syscall.EINVAL, syscall.ENOMEM) == 0 {
			realLimit(c, e, tc.name, tc.field)
		}
	}
}

// realLimit looks for the limit of a device that is known to grant more than it
// reports: asking for one more than was granted must be refused at last.
func realLimit(c *spec.C, e *kit.Env, name string, field func(*verbs.QPCap) *uint32) {
	a := initAttr(c, e)
	limit := uint32(1)
	for limit < 1<<22 {
		*field(&a.Cap) = limit + 1
		qp, err := e.PD.CreateQP(c.T, a)
		if err != nil {
			c.ErrnoIn("one more "+name+" than is ever granted", err, syscall.EINVAL, syscall.ENOMEM)
			c.Observe(name+" granted", limit)
			return
		}
		caps := qp.Caps()
		kit.Must(c, "destroy_qp", qp.Destroy(c.T))
		if got := *field(&caps); got <= limit {
			c.Failf("%s: granted %d where %d were asked for", name, got, limit+1)
		} else {
			limit = got
		}
	}
	c.Failf("%s has no limit: %d were granted", name, limit)
}

func absurdInline(c *spec.C) {
	e := kit.Open(c)
	for _, n := range []uint32{1 << 20, 1<<32 - 1} {
		a := initAttr(c, e)
		a.Cap.MaxInline = n
		c.ErrnoIn(fmt.Sprintf("max_inline_data %d", n), create(c, e, a), syscall.EINVAL, syscall.ENOMEM)
	}
}

func missingCQ(c *spec.C) {
	e := kit.Open(c)
	a := initAttr(c, e)
	a.SendCQ = nil
	c.ErrnoIn("no send CQ", create(c, e, a), syscall.EINVAL)
	a = initAttr(c, e)
	a.RecvCQ = nil
	c.ErrnoIn("no receive CQ", create(c, e, a), syscall.EINVAL)
}

// sourceQPNFlag: the creation flag is bit 10, behind comp_mask bit 3 of
// ibv_qp_init_attr_ex.
func sourceQPNFlag(c *spec.C) {
	const compMaskCreateFlags, createSourceQPN = 1 << 3, 1 << 10
	e := kit.Open(c)
	a := initAttr(c, e)
	a.CompMask, a.CreateFlags, a.SourceQPN = compMaskCreateFlags, createSourceQPN, 0x123
	c.Errno("source QPN on RC", create(c, e, a), syscall.EINVAL)
}
