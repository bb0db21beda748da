//go:build linux

package uverbs

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
	"github.com/rdmasim/rdmasim/verbs"
)

// packetRig is a program that may have raw packets, with a region of a page.
func packetRig(t *testing.T, m *machine) (x *rig, pd uint32, cq *testCQ, mem []byte, addr uint64, key uint32) {
	x = newRig(t, m)
	x.proc.kern.NetRaw = true
	x.open()
	pd, cq = x.pd(), x.cq(-1, 1)
	addr, mem = x.proc.Alloc(4096)
	_, key = x.mr(pd, addr, len(mem))
	return x, pd, cq, mem, addr, key
}

// rawQP makes a raw packet QP and brings it to RTS.
func (x *rig) rawQP(pd uint32, cq *testCQ) *testQP {
	x.Helper()
	var sq uint64
	c, q, rsp := x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) {
		sq = d.BufAddr() + rqCount<<rqShift
		d.SetSQBufAddr(sq)
	})
	c.Attr(uapi.QPCreateType).SetData(uint64(verbs.QPTRawPacket))
	x.do("QP_CREATE", c)
	q.handle = uint32(c.Result(uapi.QPCreateHandle))
	q.qpn, _ = rsp()
	x.modify(false, q, 0x21, func(m uapi.ModifyQP) { m.SetState(1); m.SetPort(1) })
	x.modify(false, q, 1, func(m uapi.ModifyQP) { m.SetState(2) })
	x.modify(false, q, 1, func(m uapi.ModifyQP) { m.SetState(3) })
	return q
}

// flowCall is EX_CREATE_FLOW of packets to an address.
func (x *rig) flowCall(qp uint32, to []byte) (*client.Call, []byte) {
	b := make([]byte, uapi.CreateFlowSize+uapi.FlowSpecHeaderSize+32)
	r := uapi.CreateFlow(b[:uapi.CreateFlowSize])
	r.SetQPHandle(qp)
	r.SetSpecs(1)
	r.SetPort(1)
	r.SetSize(uint16(len(b) - uapi.CreateFlowSize))
	s := uapi.FlowSpecHeader(b[uapi.CreateFlowSize:][:uapi.FlowSpecHeaderSize])
	s.SetType(kernel.FlowSpecEth)
	s.SetSize(uint16(len(b) - uapi.CreateFlowSize))
	body := b[uapi.CreateFlowSize+uapi.FlowSpecHeaderSize:]
	copy(body, to)
	copy(body[16:], bytes.Repeat([]byte{0xff}, 6))
	return x.write(uapi.CmdCreateFlow|uapi.CmdExtended, b, uapi.CreateFlowRespSize)
}

// frame is a multicast packet of n bytes.
func frame(n int) []byte {
	b := make([]byte, n)
	copy(b, []byte{1, 0x50, 0x56, 0x19, 0x20, 0xa7, 0x24, 0x8a, 7, 0xa5, 0x28, 0xc8, 0x88, 0xb5})
	for i := 14; i < n; i++ {
		b[i] = byte(i)
	}
	return b
}

// sendFrame posts a packet that lies at addr.
func (x *rig) sendFrame(q *testQP, n int, key uint32, addr uint64) {
	x.post(q, prm.WQEOpSend, make([]byte, 16), data(uint32(n), key, addr))
	x.settle(x.T)
}

// TestRawPackets: a packet of one program comes to the QP of another for which a flow asks, and to
// nobody without a flow. A QP to which a flow leads stays.
func TestRawPackets(t *testing.T) {
	m := newMachine(t)
	a, apd, acq, amem, aaddr, akey := packetRig(t, m)
	b, bpd, bcq, bmem, baddr, bkey := packetRig(t, m)
	from, to := a.rawQP(apd, acq), b.rawQP(bpd, bcq)
	sent := frame(200)
	copy(amem, sent)
	to.recv(0, 2048, bkey, baddr)
	a.sendFrame(from, len(sent), akey, aaddr)
	if acq.poll() == nil || bcq.poll() != nil {
		t.Error("without a flow: no completion of the sender, or one of the receiver")
	}
	c, rsp := b.flowCall(to.handle, sent[:6])
	b.do("CREATE_FLOW", c)
	flow := uapi.CreateFlowResp(rsp).FlowHandle()
	b.refuse("a QP with a flow", client.New(b.proc, uapi.ObjectQP, uapi.QPDestroy).Object(uapi.QPDestroyHandle, uint64(to.handle)), syscall.EINVAL)
	a.sendFrame(from, len(sent), akey, aaddr)
	e := bcq.poll()
	if e == nil || e.ByteCnt() != uint32(len(sent)) || !bytes.Equal(bmem[:len(sent)], sent) {
		t.Fatalf("CQE % x, % x", []byte(e), bmem[:len(sent)])
	}
	b.do("FLOW_DESTROY", client.New(b.proc, uapi.ObjectFlow, uapi.FlowDestroy).Object(uapi.FlowDestroyHandle, uint64(flow)))
	b.destroyQP(to)
	a.file.Close()
	b.file.Close()
}

// TestRSS: packets are spread over WQs by the hash, and a matcher of the driver's leads to them as
// a flow does.
func TestRSS(t *testing.T) {
	m := newMachine(t)
	a, apd, acq, amem, aaddr, akey := packetRig(t, m)
	b, bpd, bcq, _, baddr, bkey := packetRig(t, m)
	from := a.rawQP(apd, acq)
	var wqs []uint32
	for range 2 {
		buf, ring := b.proc.Alloc(rqCount << rqShift)
		rec, record := b.proc.Alloc(4096)
		d := uapi.MLX5CreateWQ(make([]byte, uapi.MLX5CreateWQSize))
		d.SetBufAddr(buf)
		d.SetDBAddr(rec)
		d.SetRQWQECount(rqCount)
		d.SetRQWQEShift(rqShift)
		c := client.New(b.proc, uapi.ObjectWQ, uapi.WQCreate).New(uapi.WQCreateHandle).Object(uapi.WQCreatePD, uint64(bpd)).Object(uapi.WQCreateCQ, uint64(bcq.handle)).
			Value(uapi.WQCreateType, 8, uapi.WQTypeRQ).Value(uapi.WQCreateUserHandle, 8, 0).Value(uapi.WQCreateMaxWR, 4, rqCount).Value(uapi.WQCreateMaxSGE, 4, 1).In(uapi.AttrUHWIn, d)
		c.Out(uapi.WQCreateRspMaxWR, 4)
		c.Out(uapi.WQCreateRspMaxSGE, 4)
		b.do("WQ_CREATE", c)
		h := uint32(c.Result(uapi.WQCreateHandle))
		r := uapi.ExModifyWQ(make([]byte, uapi.ExModifyWQSize))
		r.SetAttrMask(uapi.ModifyWQState)
		r.SetWQHandle(h)
		r.SetState(uint32(kernel.WQReady))
		c, _ = b.write(uapi.CmdModifyWQ|uapi.CmdExtended, r, 0)
		b.do("MODIFY_WQ", c)
		wqs = append(wqs, h)
		q := &testQP{buf: ring, rec: record}
		for i := range uint16(rqCount) {
			q.recv(i, 2048, bkey, baddr)
		}
	}
	req := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(uapi.ExCreateRWQIndTbl{0, 0, 0, 0, 1, 0, 0, 0}, wqs[0]), wqs[1])
	c, rsp := b.write(uapi.CmdCreateRWQIndTbl|uapi.CmdExtended, req, uapi.ExCreateRWQIndTblRespSize)
	b.do("CREATE_RWQ_IND_TBL", c)
	table := uapi.ExCreateRWQIndTblResp(rsp).Handle()
	d := uapi.MLX5CreateQPRSS(make([]byte, uapi.MLX5CreateQPRSSSize))
	d.SetFields(1) // the source of IPv4
	d.SetFunction(uapi.RSSToeplitz)
	d.SetKeyLen(40)
	for i := range 40 {
		d.Key()[i] = byte(37 * i)
	}
	rss := func() *client.Call {
		c := client.New(b.proc, uapi.ObjectQP, uapi.QPCreate).New(uapi.QPCreateHandle).Object(uapi.QPCreatePD, uint64(bpd)).Object(uapi.QPCreateIndTable, uint64(table)).
			Value(uapi.QPCreateUserHandle, 8, 0).Value(uapi.QPCreateType, 8, uint64(verbs.QPTRawPacket)).In(uapi.QPCreateCap, make([]byte, uapi.QPCapSize)).In(uapi.AttrUHWIn, d)
		c.Out(uapi.QPCreateRspCap, uapi.QPCapSize)
		c.Out(uapi.QPCreateRspQPN, 4)
		return c
	}
	c = rss()
	b.do("QP_CREATE", c)
	qp := uint64(c.Result(uapi.QPCreateHandle))
	d.SetFields(1 | 1<<2) // of IPv4 and of IPv6
	b.refuse("fields that exclude each other", rss(), syscall.EINVAL)
	b.refuse("a WQ of a table", client.New(b.proc, uapi.ObjectWQ, uapi.WQDestroy).Object(uapi.WQDestroyHandle, uint64(wqs[0])), syscall.EINVAL)

	mask := make([]byte, 64)
	prm.FlowHeaders(mask).SetMACs(append(bytes.Repeat([]byte{0xff}, 6), make([]byte, 6)...))
	value := make([]byte, 64)
	prm.FlowHeaders(value).SetMACs(frame(14)[:12])
	c = client.New(b.proc, uapi.ObjectFlowMatcher, uapi.MatcherCreate).New(uapi.MatcherCreateHandle).In(uapi.MatcherCreateMask, mask).
		Value(uapi.MatcherCreateType, 2, 0).Value(uapi.MatcherCreateCriteria, 1, prm.FlowMatchOuter)
	b.do("FLOW_MATCHER_CREATE", c)
	matcher := c.Result(uapi.MatcherCreateHandle)
	c = client.New(b.proc, uapi.ObjectFlow, uapi.FlowCreate).New(uapi.FlowCreateHandle).In(uapi.FlowCreateValue, value).Object(uapi.FlowCreateMatcher, matcher).
		Object(uapi.FlowCreateQP, qp).Value(uapi.FlowCreateTag, 4, 77)
	b.do("MLX5_CREATE_FLOW", c)
	b.refuse("a matcher with a flow", client.New(b.proc, uapi.ObjectFlowMatcher, uapi.MatcherDestroy).Object(uapi.MatcherDestroyHandle, matcher), syscall.EBUSY)

	const packets = 16
	var queues []uint16
	for i := range packets {
		p := slices.Concat(frame(14)[:12], []byte{8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, byte(i), 10, 0, 1, 1}, make([]byte, 40))
		copy(amem, p)
		a.sendFrame(from, len(p), akey, aaddr)
		e := bcq.poll()
		if e == nil || e.FlowTag() != 77 || e.RSSHashType() != prm.CQERSSIPv4 {
			t.Fatalf("packet %d: CQE % x", i, []byte(e))
		}
		queues = append(queues, uint16(e.RSSHash()&1))
	}
	if !slices.Contains(queues, 0) || !slices.Contains(queues, 1) {
		t.Errorf("one queue got all packets: %v", queues)
	}
	a.file.Close()
	b.file.Close()
}

// TestCommandsOfPrograms: a program makes a CQ by a command of its own, of memory that it has
// registered; a command may name nothing of others, nor bus addresses, and the memory ends with the
// context.
func TestCommandsOfPrograms(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.file.DynamicUARs = true
	r := uapi.AllocUcontextReq(make([]byte, uapi.AllocUcontextReqSize))
	r.SetTotalBFRegs(16)
	r.SetLowLatBFRegs(4)
	r.SetMaxCQEVersion(1)
	r.SetLibCaps(kernel.LibCapDynUAR)
	r.SetFlags(uapi.UctxDEVX)
	c := client.New(x.proc, uapi.ObjectDevice, uapi.DeviceGetContext).In(uapi.AttrUHWIn, r)
	c.Out(uapi.AttrUHWOut, uapi.AllocUcontextRespSize)
	x.do("GET_CONTEXT", c)
	uar := x.uar()
	addr, _ := x.proc.Alloc(8192)
	c = client.New(x.proc, uapi.ObjectDEVXUmem, uapi.UmemReg).New(uapi.UmemRegHandle).Value(uapi.UmemRegAddr, 8, addr).Value(uapi.UmemRegLen, 8, 8192).
		Value(uapi.UmemRegAccess, 4, uint64(verbs.AccessLocalWrite))
	id := c.Out(uapi.UmemRegID, 4)
	x.do("DEVX_UMEM_REG", c)
	umemHandle, umem := c.Result(uapi.UmemRegHandle), binary.LittleEndian.Uint32(id)
	eq := client.New(x.proc, uapi.ObjectDEVX, uapi.DEVXQueryEQN).Value(uapi.DEVXEQNVector, 4, 0)
	eqn := eq.Out(uapi.DEVXEQNNumber, 4)
	x.do("DEVX_QUERY_EQN", eq)
	create := func(edit func(m prm.CreateCQIn)) (*client.Call, []byte) {
		in := prm.NewIn(prm.OpCreateCQ, 0)
		m := prm.CreateCQIn(in)
		m.SetCQUmemValid(true)
		m.SetCQUmemID(umem)
		q := m.CQC()
		q.SetDBRUmemValid(true)
		q.SetDBRUmemID(umem)
		q.SetDBRAddr(4096)
		q.SetLogCQSize(4)
		q.SetUARPage(uar)
		q.SetEQN(binary.LittleEndian.Uint32(eqn))
		edit(m)
		c := client.New(x.proc, uapi.ObjectDEVXObj, uapi.DEVXObjCreate).New(uapi.DEVXObjCreateHandle).In(uapi.DEVXObjCreateIn, in)
		return c, c.Out(uapi.DEVXObjCreateOut, prm.CreateCQOutSize)
	}
	c, _ = create(func(prm.CreateCQIn) {})
	x.do("CREATE_CQ", c)
	h := c.Result(uapi.DEVXObjCreateHandle)
	if n := x.pages.others[uint64(uar)*prm.UARPageSize]; n != 1 {
		t.Errorf("%d queues ring the page", n)
	}
	q := client.New(x.proc, uapi.ObjectDEVXObj, uapi.DEVXObjQuery).Object(uapi.DEVXObjModifyHandle, h).In(uapi.DEVXObjModifyIn, prm.NewIn(prm.OpQueryCQ, 0))
	q.Out(uapi.DEVXObjModifyOut, prm.QueryCQOutSize)
	x.refuse("a query of another CQ", q, syscall.EINVAL)
	c, _ = create(func(m prm.CreateCQIn) { m.SetCQUmemValid(false); m.CQC().SetDBRUmemValid(false) }) // the driver sets them
	x.do("CREATE_CQ that does not name its memory as such", c)
	x.do("DEVX_OBJ_DESTROY", client.New(x.proc, uapi.ObjectDEVXObj, uapi.DEVXObjDestroy).Object(uapi.DEVXObjDestroyHandle, c.Result(uapi.DEVXObjCreateHandle)))
	for what, edit := range map[string]func(m prm.CreateCQIn){
		"memory of others":     func(m prm.CreateCQIn) { m.SetCQUmemID(umem + 1) },
		"more than the memory": func(m prm.CreateCQIn) { m.CQC().SetLogCQSize(8) },
		"a record behind it":   func(m prm.CreateCQIn) { m.CQC().SetDBRAddr(8192) },
	} {
		c, out := create(edit)
		x.refuse(what, c, syscall.EREMOTEIO)
		if st := prm.CmdOut(out).Status(); st != prm.StatusBadParam {
			t.Errorf("%s: status %v", what, st)
		}
	}
	short := client.New(x.proc, uapi.ObjectDEVXObj, uapi.DEVXObjCreate).New(uapi.DEVXObjCreateHandle).In(uapi.DEVXObjCreateIn, prm.NewIn(prm.OpCreateQP, 0)[:16])
	short.Out(uapi.DEVXObjCreateOut, 16)
	x.refuse("a short command", short, syscall.EREMOTEIO)
	x.refuse("memory of a CQ", client.New(x.proc, uapi.ObjectDEVXUmem, uapi.UmemDereg).Object(uapi.UmemDeregHandle, umemHandle), syscall.EINVAL)
	x.do("DEVX_OBJ_DESTROY", client.New(x.proc, uapi.ObjectDEVXObj, uapi.DEVXObjDestroy).Object(uapi.DEVXObjDestroyHandle, h))
	if n := x.pages.others[uint64(uar)*prm.UARPageSize]; n != 0 {
		t.Errorf("%d queues ring the page", n)
	}
	x.file.Close()
	if x.machine.kern.Resources().PinnedPages != 0 {
		t.Errorf("%d pages are pinned", x.machine.kern.Resources().PinnedPages)
	}
}
