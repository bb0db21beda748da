//go:build linux

package uverbs

import (
	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// testCQ is a CQ as a library sees it.
type testCQ struct {
	handle, cqn uint32
	ring, rec   []byte
	ci          uint32
	sn          uint32
}

const cqEntries = 64

// cqCall is CQ_CREATE; change may change the driver data.
func (x *rig) cqCall(channel int, handle uint64, change func(uapi.MLX5CreateCQ)) (*client.Call, *testCQ, []byte) {
	q := &testCQ{}
	d := uapi.MLX5CreateCQ(make([]byte, uapi.MLX5CreateCQSize))
	var ring, rec uint64
	ring, q.ring = x.proc.Alloc(cqEntries * 64)
	rec, q.rec = x.proc.Alloc(4096)
	for i := range cqEntries {
		q.ring[i*64+63] = 0xf1 // invalid, owned by the device
	}
	d.SetBufAddr(ring)
	d.SetDBAddr(rec)
	d.SetCQESize(64)
	if change != nil {
		change(d)
	}
	c := client.New(x.proc, uapi.ObjectCQ, uapi.CQCreate).New(uapi.CQCreateHandle).Value(uapi.CQCreateCQE, 4, cqEntries-1).
		Value(uapi.CQCreateUserHandle, 8, handle).Value(uapi.CQCreateVector, 4, 0).In(uapi.AttrUHWIn, d)
	if channel >= 0 {
		c.Object(uapi.CQCreateChannel, uint64(channel))
	}
	c.Out(uapi.CQCreateRspCQE, 4)
	return c, q, c.Out(uapi.AttrUHWOut, uapi.MLX5CreateCQRespSize)
}

func (x *rig) cq(channel int, handle uint64) *testCQ {
	x.Helper()
	var change func(uapi.MLX5CreateCQ)
	if x.file.DynamicUARs {
		uar := x.uar()
		change = func(d uapi.MLX5CreateCQ) {
			d.SetFlags(uapi.CQFlagUARPageIndex)
			d.SetUARPageIndex(uint16(uar))
		}
	}
	c, q, rsp := x.cqCall(channel, handle, change)
	x.do("CQ_CREATE", c)
	q.handle, q.cqn = uint32(c.Result(uapi.CQCreateHandle)), uapi.MLX5CreateCQResp(rsp).CQN()
	return q
}

// uar makes a UAR object and returns its page.
func (x *rig) uar() uint32 {
	x.Helper()
	c, page := x.uarCall()
	x.do("UAR_OBJ_ALLOC", c)
	return page()
}

func (x *rig) uarCall() (*client.Call, func() uint32) {
	c := client.New(x.proc, uapi.ObjectUAR, uapi.UARAlloc).New(uapi.UARAllocHandle).Value(uapi.UARAllocType, 8, 0)
	c.Out(uapi.UARAllocOffset, 8)
	c.Out(uapi.UARAllocLength, 4)
	id := c.Out(uapi.UARAllocPageID, 4)
	return c, func() uint32 { return uint32(id[0]) | uint32(id[1])<<8 | uint32(id[2])<<16 | uint32(id[3])<<24 }
}

// testQP is a QP as a library sees it.
type testQP struct {
	handle, qpn uint32
	buf, rec    []byte
	sq          int // where in buf the send ring begins
	sent        uint16
	half        uint32
	answer      uapi.MLX5CreateQPResp
}

const (
	rqCount = 16
	rqShift = 5
	sqCount = 64
)

// qpCall is QP_CREATE of an RC QP.
func (x *rig) qpCall(pd uint32, cq *testCQ, change func(uapi.MLX5CreateQP)) (*client.Call, *testQP, func() (qpn, bfreg uint32)) {
	q := &testQP{sq: rqCount << rqShift}
	d := uapi.MLX5CreateQP(make([]byte, uapi.MLX5CreateQPSize))
	var buf, rec uint64
	buf, q.buf = x.proc.Alloc(rqCount<<rqShift + sqCount*64)
	rec, q.rec = x.proc.Alloc(4096)
	d.SetBufAddr(buf)
	d.SetDBAddr(rec)
	d.SetSQWQECount(sqCount)
	d.SetRQWQECount(rqCount)
	d.SetRQWQEShift(rqShift)
	d.SetUIDX(uint32(len(x.pages.qps)) + 1)
	if x.file.DynamicUARs {
		d.SetFlags(uapi.QPFlagUARPageIndex)
		d.SetBFRegIndex(x.uar())
	}
	if change != nil {
		change(d)
	}
	n := uapi.QPCap(make([]byte, uapi.QPCapSize))
	n.SetMaxSendWR(sqCount / 2)
	n.SetMaxRecvWR(rqCount)
	n.SetMaxSendSGE(1)
	n.SetMaxRecvSGE(1)
	c := client.New(x.proc, uapi.ObjectQP, uapi.QPCreate).New(uapi.QPCreateHandle).Object(uapi.QPCreatePD, uint64(pd)).
		Object(uapi.QPCreateSendCQ, uint64(cq.handle)).Object(uapi.QPCreateRecvCQ, uint64(cq.handle)).
		Value(uapi.QPCreateUserHandle, 8, 0xabc0).Value(uapi.QPCreateType, 8, 2).In(uapi.QPCreateCap, n).In(uapi.AttrUHWIn, d)
	c.Out(uapi.QPCreateRspCap, uapi.QPCapSize)
	qpn := c.Out(uapi.QPCreateRspQPN, 4)
	uhw := c.Out(uapi.AttrUHWOut, uapi.MLX5CreateQPRespSize)
	q.answer = uhw
	return c, q, func() (uint32, uint32) {
		return uint32(qpn[0]) | uint32(qpn[1])<<8 | uint32(qpn[2])<<16, uapi.MLX5CreateQPResp(uhw).BFRegIndex()
	}
}

func (x *rig) qp(pd uint32, cq *testCQ) *testQP {
	x.Helper()
	c, q, rsp := x.qpCall(pd, cq, nil)
	x.do("QP_CREATE", c)
	q.handle = uint32(c.Result(uapi.QPCreateHandle))
	q.qpn, _ = rsp()
	if x.pages.qps[q.qpn] == nil {
		x.Fatalf("the session does not know QP %#x", q.qpn)
	}
	return q
}

// modify sets attributes by the command, or its extended form.
func (x *rig) modify(ex bool, q *testQP, mask uint32, set func(m uapi.ModifyQP)) {
	x.Helper()
	n, cmd, room := uapi.ModifyQPSize, uint32(uapi.CmdModifyQP), 0
	if ex {
		n, cmd, room = uapi.ExModifyQPSize, uapi.CmdModifyQP|uapi.CmdExtended, uapi.ExModifyQPRespSize
	}
	b := make([]byte, n)
	m := uapi.ModifyQP(b)
	m.SetQPHandle(q.handle)
	m.SetAttrMask(mask)
	set(m)
	c, rsp := x.write(cmd, b, room)
	x.do("MODIFY_QP", c)
	if ex && uapi.ExModifyQPResp(rsp).ResponseLength() != uapi.ExModifyQPRespSize {
		x.Errorf("response length %d", uapi.ExModifyQPResp(rsp).ResponseLength())
	}
}

// connect brings a QP to RTS towards another QP of the same device, with the masks
// that ibv_rc_pingpong uses.
func (x *rig) connect(ex bool, q *testQP, dest uint32) {
	x.Helper()
	gid, index := x.gid()
	x.modify(ex, q, 0x39, func(m uapi.ModifyQP) { m.SetState(1); m.SetPort(1); m.SetAccessFlags(0xf) })
	x.modify(ex, q, 0x129181, func(m uapi.ModifyQP) {
		m.SetState(2)
		m.SetPathMTU(3)
		m.SetDestQPN(dest)
		m.SetRQPSN(77)
		m.SetMaxDestRdAtomic(1)
		m.SetMinRNRTimer(12)
		d := m.Dest()
		copy(d.DGID(), gid)
		d.SetSGIDIndex(index)
		d.SetHopLimit(64)
		d.SetIsGlobal(1)
		d.SetPort(1)
	})
	x.modify(ex, q, 0x12e01, func(m uapi.ModifyQP) {
		m.SetState(3)
		m.SetTimeout(14)
		m.SetRetryCnt(7)
		m.SetRNRRetry(7)
		m.SetSQPSN(77)
		m.SetMaxRdAtomic(1)
	})
}

// gid is the RoCEv2 entry with an IPv4 address.
func (x *rig) gid() (gid []byte, index uint8) {
	x.Helper()
	for i := uint64(0); i < 16; i++ {
		c := client.New(x.proc, uapi.ObjectDevice, uapi.DeviceQueryGIDEntry).Value(uapi.QueryGIDEntryPort, 8, 1).
			Value(uapi.QueryGIDEntryIndex, 8, i).Value(uapi.QueryGIDEntryFlags, 4, 0)
		e := uapi.GIDEntry(c.Out(uapi.QueryGIDEntryRsp, uapi.GIDEntrySize))
		if x.file.Ioctl(x.proc, c.Addr()) == 0 && e.Type() == 2 && e.GID()[10] == 0xff {
			return e.GID(), uint8(i)
		}
	}
	x.Fatal("no RoCEv2 GID with an IPv4 address")
	return nil, 0
}

// post puts a WQE into the send queue and rings by an 8-byte doorbell.
func (x *rig) post(q *testQP, op prm.WQEOpcode, segments ...[]byte) {
	x.Helper()
	w := make([]byte, 16, 128)
	for _, s := range segments {
		w = append(w, s...)
	}
	prm.CtrlSegment(w).Set(op, 0, q.sent, q.qpn, len(w)/16, prm.CtrlCQUpdate, 0)
	for at := 0; at < len(w); at += 64 {
		b := q.buf[q.sq+int(q.sent%sqCount)*64:][:64]
		clear(b)
		copy(b, w[at:])
		q.sent++
	}
	prm.QPDBRec(q.rec).SetSend(q.sent)
	s := x.pages.qps[q.qpn]
	k := s.BFReg
	if k == AnyBFReg {
		k = 0
	}
	x.link.PostNow(s.UAROff+uint64(prm.UARMap{LogBFRegSize: 9}.BFReg(k, q.half)), w[:8])
	q.half ^= 1
}

// recv posts a receive of one segment.
func (q *testQP) recv(index uint16, n, key uint32, addr uint64) {
	w := q.buf[int(index%rqCount)<<rqShift:][:1<<rqShift]
	prm.DataSegment(w).Set(n, key, addr)
	prm.DataSegment(w[16:]).Set(0, prm.InvalidLKey, 0)
	prm.QPDBRec(q.rec).SetRecv(index + 1)
}

func data(n, key uint32, addr uint64) []byte {
	b := prm.DataSegment(make([]byte, 16))
	b.Set(n, key, addr)
	return b
}

func raddr(addr uint64, key uint32) []byte {
	b := prm.RaddrSegment(make([]byte, 16))
	b.Set(addr, key)
	return b
}

// poll takes a completion; nil: there is none.
func (q *testCQ) poll() prm.CQE64 {
	c := prm.CQE64(q.ring[q.ci%cqEntries*64:][:64])
	if c.Opcode() == prm.CQEInvalid || uint32(c[63]&1) != q.ci/cqEntries&1 {
		return nil
	}
	q.ci++
	prm.CQDBRec(q.rec).SetCI(q.ci)
	return c
}

// arm asks for an event for the next completion.
func (x *rig) arm(q *testCQ) {
	w := prm.MakeArmWord(q.sn, false, q.ci)
	prm.CQDBRec(q.rec).SetArm(w)
	var b [8]byte
	prm.CQArmDoorbell(b[:]).Set(w, q.cqn)
	x.link.PostNow(x.pages.cqs[q.cqn].UAROff+prm.UARCQArm, b[:])
}

// event reads a record of a file; false: none is there.
func (x *rig) event(fd, size int) ([]byte, bool) {
	b := make([]byte, size)
	n, err := unix.Read(fd, b)
	if err != nil && err != unix.EAGAIN {
		x.Fatal(err)
	}
	return b, n == size
}

func (x *rig) destroyCQ(q *testCQ) (comp, async uint32) {
	x.Helper()
	c := client.New(x.proc, uapi.ObjectCQ, uapi.CQDestroy).Object(uapi.CQDestroyHandle, uint64(q.handle))
	r := uapi.DestroyCQResp(c.Out(uapi.CQDestroyRsp, uapi.DestroyCQRespSize))
	x.do("CQ_DESTROY", c)
	return r.CompEventsReported(), r.AsyncEventsReported()
}

func (x *rig) destroyQP(q *testQP) (events uint32) {
	x.Helper()
	c := client.New(x.proc, uapi.ObjectQP, uapi.QPDestroy).Object(uapi.QPDestroyHandle, uint64(q.handle))
	r := uapi.DestroyQPResp(c.Out(uapi.QPDestroyRsp, uapi.DestroyQPRespSize))
	x.do("QP_DESTROY", c)
	return r.EventsReported()
}
