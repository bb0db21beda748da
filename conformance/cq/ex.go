package cq

import (
	"errors"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// createEx creates a CQ by the extended call.
func createEx(c *spec.C, e *kit.Env, wcFlags uint64) verbs.CQEx {
	cq := e.CreateCQWith(c, verbs.CQAttr{CQE: 255, Ex: true, WCFlags: wcFlags})
	ex, isEx := cq.(verbs.CQEx)
	if !isEx {
		c.Failf("the extended call made a CQ that cannot be polled the extended way")
	}
	return ex
}

// pairWithSendCQ is a pair whose send CQ is given.
func pairWithSendCQ(c *spec.C, e *kit.Env, cq verbs.CQ) *kit.Pair {
	o := kit.Default()
	o.SendCQ = cq
	return e.Pair(c, o)
}

func pollEmpty(c *spec.C) {
	e := kit.Open(c)
	n, err := e.CreateCQ(c, 15).Poll(c.T, make([]verbs.WC, 4))
	c.NoErr("poll_cq of an empty CQ", err)
	c.Equal("completions", n, 0)
	if !c.Has("cq_ex") {
		return
	}
	cq := createEx(c, e, 0)
	for range 3 {
		c.Errno("start_poll of an empty CQ", cq.StartPoll(c.T, 0), syscall.ENOENT)
	}
	// Nothing is held: another thread may poll, and this one may again.
	p := pairWithSendCQ(c, e, cq)
	mem := e.Buffer(c, 64, kit.AllAccess)
	p.A.Post(c, kit.Write(7, mem, 32, mem.SGE(0, 8)))
	awaitQuiet(c)
	kit.JoinThreads(c, c.Go("poller", -1, func(c *spec.C) {
		c.Errno("start_poll in another thread", startPoll(c, cq), 0)
		c.Equal("wr_id", cq.WRID(), uint64(7))
		cq.EndPoll(c.T)
	}))
	c.Errno("start_poll after it", cq.StartPoll(c.T, 0), syscall.ENOENT)
}

// startPoll begins to poll a completion that is due: a device that others keep busy may need longer
// than the case has waited.
func startPoll(c *spec.C, cq verbs.CQEx) error {
	err := cq.StartPoll(c.T, 0)
	for end := c.T.Now() + kit.CompletionTimeout; errors.Is(err, syscall.ENOENT) && c.T.Now() < end; {
		awaitQuiet(c)
		err = cq.StartPoll(c.T, 0)
	}
	return err
}

func pollPastLast(c *spec.C) {
	e := kit.Open(c)
	cq := createEx(c, e, 0)
	p := pairWithSendCQ(c, e, cq)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, n := range []uint64{1, 2, 10} {
		for i := range n {
			p.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
		}
		awaitQuiet(c)
		c.Errno("start_poll", cq.StartPoll(c.T, 0), 0)
		for i := range n {
			c.Equal("wr_id", cq.WRID(), i)
			c.Equal("status", cq.Status(), verbs.WCSuccess)
			want := syscall.Errno(0)
			if i == n-1 {
				want = syscall.ENOENT
			}
			c.Errno("next_poll", cq.NextPoll(c.T), want)
		}
		cq.EndPoll(c.T)
		err := cq.StartPoll(c.T, 0)
		c.Errno("start_poll after the last", err, syscall.ENOENT)
		if err == nil {
			return // known to: what it reads now was never completed
		}
	}
	// A poll may be ended before the last.
	for i := range uint64(3) {
		p.A.Post(c, kit.Write(i, mem, 32, mem.SGE(0, 8)))
	}
	awaitQuiet(c)
	for i := range uint64(3) {
		c.Errno("start_poll for one", startPoll(c, cq), 0)
		c.Equal("wr_id", cq.WRID(), i)
		cq.EndPoll(c.T)
	}
}

func timestamps(c *spec.C) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device_ex", err)
	mask := a.CompletionTimestampMask
	c.True("timestamp mask", mask != 0, "it is 0")
	cq := createEx(c, e, verbs.WCExCompletionTimestamp)
	p := pairWithSendCQ(c, e, cq)
	mem := e.Buffer(c, 8192, kit.AllAccess)
	var last uint64
	rose := 0
	for round := range 10 {
		for i := range uint64(20) {
			p.A.Post(c, kit.Write(i, mem, 4096, mem.SGE(0, 1+c.Rand().Intn(4096))))
		}
		awaitQuiet(c)
		for i := range 20 {
			next := cq.NextPoll
			if i == 0 {
				next = func(t verbs.Thread) error { return cq.StartPoll(t, 0) }
			}
			err := next(c.T)
			for end := c.T.Now() + kit.CompletionTimeout; errors.Is(err, syscall.ENOENT) && c.T.Now() < end; {
				awaitQuiet(c)
				err = next(c.T)
			}
			kit.Must(c, "poll", err)
			ts := cq.ReadCompletionTS() & mask
			if (ts-last)&mask > mask/2 && (round > 0 || i > 0) {
				c.Failf("completion %d of round %d has timestamp %d, the one before it %d", i, round, ts, last)
			}
			if ts != last {
				rose++
			}
			last = ts
		}
		cq.EndPoll(c.T)
	}
	c.True("timestamps rise", rose > 10, "%d of 200 differ from the one before", rose)
}

// fields are what an accessor and a legacy poll must agree on, with QPNs as roles.
type fields struct {
	ID           uint64
	Status       string
	Opcode       verbs.WCOpcode
	Len, Imm     uint32
	QP, Src      string
	Flags        verbs.WCFlags
	SL, PathBits uint8
}

// meaningful clears what a completion of this kind does not define.
func (f *fields) meaningful() {
	if f.Opcode < verbs.WCOpRecv {
		f.Src, f.SL, f.PathBits, f.Flags = "", 0, 0, 0
		if f.Opcode == verbs.WCOpSend || f.Opcode == verbs.WCOpRDMAWrite {
			f.Len = 0
		}
	}
	if f.Flags&verbs.WCWithImm == 0 || f.Opcode < verbs.WCOpRecv {
		f.Imm = 0
	}
}

// sendAndRead has A send to B and read from B, and returns the completions of both CQs.
func sendAndRead(c *spec.C, e *kit.Env, mem *kit.Buffer, cq verbs.CQ, read func(role func(uint32) string) fields) []fields {
	o := kit.Default()
	o.SendCQ, o.RecvCQ = cq, cq
	p := e.Pair(c, o)
	role := func(qpn uint32) string {
		switch qpn {
		case p.A.QPN():
			return "A"
		case p.B.QPN():
			return "B"
		}
		return "neither"
	}
	imm := kit.Send(3, mem.SGE(0, 24))
	imm.Opcode, imm.Imm = verbs.WRSendImm, 0x12345678
	wimm := kit.Write(4, mem, 512, mem.SGE(0, 100))
	wimm.Opcode, wimm.Imm = verbs.WRRDMAWriteImm, 0xcafe0001
	wrs := []verbs.SendWR{kit.Send(1, mem.SGE(0, 8)), kit.Write(2, mem, 512, mem.SGE(0, 300)), imm, wimm, kit.Read(5, mem, 512, mem.SGE(0, 77))}
	if c.Has("atomic") {
		off := 768
		for mem.Addr(off)%8 != 0 {
			off++
		}
		wrs = append(wrs, kit.FetchAdd(6, mem, off, 1, mem.SGE(0, 8)), kit.CmpSwap(7, mem, off, 1, 2, mem.SGE(0, 8)))
	}
	var all []fields
	for _, wr := range wrs {
		n := 1
		if wr.Opcode == verbs.WRSend || wr.Opcode == verbs.WRSendImm || wr.Opcode == verbs.WRRDMAWriteImm {
			p.B.RecvInto(c, 100+wr.ID, mem.SGE(256, 128))
			n = 2
		}
		p.A.Post(c, wr)
		awaitQuiet(c)
		got := make([]fields, 2)
		for range n {
			f := read(role)
			f.meaningful()
			got[min(f.ID/100, 1)] = f // which side completes first is not an observation
		}
		all = append(all, got...)
	}
	return all
}

func accessors(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 1024, kit.AllAccess)
	const asked = verbs.WCExByteLen | verbs.WCExImm | verbs.WCExQPNum | verbs.WCExSrcQP | verbs.WCExSL | verbs.WCExDLIDPathBits
	legacy := e.CreateCQ(c, 255)
	want := sendAndRead(c, e, mem, legacy, func(role func(uint32) string) fields {
		w := kit.PollOne(c, legacy)
		return fields{ID: w.ID, Status: w.Status.String(), Opcode: w.Opcode, Len: w.ByteLen, Imm: w.Imm, QP: role(w.QPN),
			Src: role(w.SrcQP), Flags: w.Flags, SL: w.SL, PathBits: w.DLIDPathBits}
	})
	ex := createEx(c, e, asked)
	got := sendAndRead(c, e, mem, ex, func(role func(uint32) string) fields {
		kit.Must(c, "start_poll", startPoll(c, ex))
		defer ex.EndPoll(c.T)
		return fields{ID: ex.WRID(), Status: ex.Status().String(), Opcode: ex.ReadOpcode(), Len: ex.ReadByteLen(), Imm: ex.ReadImmData(),
			QP: role(ex.ReadQPNum()), Src: role(ex.ReadSrcQP()), Flags: ex.ReadWCFlags(), SL: ex.ReadSL(), PathBits: ex.ReadDLIDPathBits()}
	})
	c.Equal("completions", len(got), len(want))
	for i := range want {
		c.Equal("fields", got[i], want[i])
	}
}

func moderation(c *spec.C) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device_ex", err)
	c.True("caps", a.MaxCQCount > 0 || a.MaxCQPeriod > 0, "there is no moderation")
	ch := e.Channel(c)
	cq := e.CreateCQWith(c, verbs.CQAttr{CQE: 255, Channel: ch})
	set := []syscall.Errno{syscall.EINVAL, syscall.EOPNOTSUPP}
	if a.MaxCQPeriod < 1<<16-1 {
		c.ErrnoIn("modify_cq with a period beyond the cap", cq.Modify(c.T, verbs.CQModeration{Count: 1, Period: a.MaxCQPeriod + 1}), set...)
	}
	if a.MaxCQCount < 1<<16-1 {
		c.ErrnoIn("modify_cq with a count beyond the cap", cq.Modify(c.T, verbs.CQModeration{Count: a.MaxCQCount + 1, Period: 1}), set...)
	}
	c.Errno("modify_cq to the caps", cq.Modify(c.T, verbs.CQModeration{Count: a.MaxCQCount, Period: a.MaxCQPeriod}), 0)

	// The event comes all the same: by the period, then without moderation.
	p := pairWithSendCQ(c, e, cq)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, m := range []verbs.CQModeration{{Count: 8, Period: min(1000, a.MaxCQPeriod)}, {}} {
		c.Errno("modify_cq", cq.Modify(c.T, m), 0)
		for _, n := range []int{1, 8} {
			kit.Must(c, "req_notify_cq", cq.ReqNotify(c.T, false))
			for i := range n {
				p.A.Post(c, kit.Write(uint64(i), mem, 32, mem.SGE(0, 8)))
			}
			got, err := ch.Event(c.T, kit.CompletionTimeout+time.Duration(m.Period)*time.Microsecond)
			c.Errno("get_cq_event", err, 0)
			ch.Ack(c.T, got, 1)
			kit.ExpectSuccess(c, cq, n)
		}
	}
}
