//go:build linux

package uverbs

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
	"github.com/rdmasim/rdmasim/verbs"
)

// steerer is a program with raw packets that may send commands of its own.
type steerer struct {
	*rig
	pd   uint32
	cq   *testCQ
	mem  []byte
	addr uint64
	key  uint32
}

func newSteerer(t *testing.T, m *machine) *steerer {
	x := newRig(t, m)
	x.proc.kern.NetRaw, x.proc.kern.RawIO, x.file.DynamicUARs = true, true, true
	r := uapi.AllocUcontextReq(make([]byte, uapi.AllocUcontextReqSize))
	r.SetTotalBFRegs(16)
	r.SetLowLatBFRegs(4)
	r.SetMaxCQEVersion(1)
	r.SetFlags(uapi.UctxDEVX)
	c := client.New(x.proc, uapi.ObjectDevice, uapi.DeviceGetContext).In(uapi.AttrUHWIn, r)
	c.Out(uapi.AttrUHWOut, uapi.AllocUcontextRespSize)
	x.do("GET_CONTEXT", c)
	s := &steerer{rig: x, pd: x.pd(), cq: x.cq(-1, 1)}
	s.addr, s.mem = x.proc.Alloc(4096)
	_, s.key = x.mr(s.pd, s.addr, len(s.mem))
	return s
}

// create is DEVX_OBJ_CREATE.
func (x *steerer) create(in []byte, room int) (*client.Call, []byte) {
	c := client.New(x.proc, uapi.ObjectDEVXObj, uapi.DEVXObjCreate).New(uapi.DEVXObjCreateHandle).In(uapi.DEVXObjCreateIn, in)
	return c, c.Out(uapi.DEVXObjCreateOut, room)
}

func (x *steerer) object(what string, in []byte) (h uint64, out []byte) {
	x.Helper()
	c, out := x.create(in, 16)
	x.do(what, c)
	return c.Result(uapi.DEVXObjCreateHandle), out
}

func (x *steerer) destroy(h uint64) *client.Call {
	return client.New(x.proc, uapi.ObjectDEVXObj, uapi.DEVXObjDestroy).Object(uapi.DEVXObjDestroyHandle, h)
}

func (x *steerer) matcher(attr uint16, v uint64) *client.Call {
	return client.New(x.proc, uapi.ObjectFlowMatcher, uapi.MatcherCreate).New(uapi.MatcherCreateHandle).In(uapi.MatcherCreateMask, make([]byte, 64)).
		Value(uapi.MatcherCreateType, 2, 0).Value(uapi.MatcherCreateCriteria, 1, 0).Value(attr, 8, v)
}

// flow is CREATE_FLOW of all packets.
func (x *steerer) flow(matcher uint64) *client.Call {
	return client.New(x.proc, uapi.ObjectFlow, uapi.FlowCreate).New(uapi.FlowCreateHandle).In(uapi.FlowCreateValue, make([]byte, 64)).Object(uapi.FlowCreateMatcher, matcher)
}

func list(h ...uint64) (b []byte) {
	for _, x := range h {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func steers(p *hca.Params) { p.SWSteering = true }

// TestFlowsOfActions: what one program sends is counted, gets another source and a tunnel; the
// tunnel ends where another receives it, by a table that it has made by commands.
func TestFlowsOfActions(t *testing.T) {
	m := newMachineOf(t, steers)
	a, b := newSteerer(t, m), newSteerer(t, m)
	from, to := a.rawQP(a.pd, a.cq), b.rawQP(b.pd, b.cq)
	c := a.matcher(uapi.MatcherCreateTable, 1)
	a.do("FLOW_MATCHER_CREATE", c)
	sent := c.Result(uapi.MatcherCreateHandle)
	change := prm.HeaderChange(make([]byte, prm.HeaderChangeSize))
	change.SetType(prm.HeaderSet)
	change.SetField(2)
	change.SetLength(16)
	change.SetData(0x9876)
	modify := func(x *steerer, table uint64, b []byte) *client.Call {
		return client.New(x.proc, uapi.ObjectFlowAction, uapi.ModifyHeaderCreate).New(uapi.ModifyHeaderHandle).In(uapi.ModifyHeaderActions, b).
			Value(uapi.ModifyHeaderTable, 8, table)
	}
	reformat := func(x *steerer, typ, table uint64, b []byte) *client.Call {
		c := client.New(x.proc, uapi.ObjectFlowAction, uapi.ReformatCreate).New(uapi.ReformatHandle).Value(uapi.ReformatType, 8, typ).Value(uapi.ReformatTable, 8, table)
		if b != nil {
			c.In(uapi.ReformatData, b)
		}
		return c
	}
	c = modify(a, 1, change)
	a.do("CREATE_MODIFY_HEADER", c)
	rewrite := c.Result(uapi.ModifyHeaderHandle)
	headers := append(frame(14)[:12], []byte{8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 99, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0}...)
	c = reformat(a, 1, 1, headers)
	a.do("CREATE_PACKET_REFORMAT", c)
	tunnel := c.Result(uapi.ReformatHandle)
	counter, out := a.object("ALLOC_FLOW_COUNTER", prm.NewIn(prm.OpAllocFlowCounter, 0))
	number := prm.AllocFlowCounterOut(out).ID()
	c = a.flow(sent).In(uapi.FlowCreateActions, list(rewrite, tunnel)).In(uapi.FlowCreateCounters, list(counter))
	a.do("CREATE_FLOW of what is sent", c)
	flow := c.Result(uapi.FlowCreateHandle)

	c = b.matcher(uapi.MatcherCreateTable, 0)
	b.do("FLOW_MATCHER_CREATE", c)
	received := c.Result(uapi.MatcherCreateHandle)
	c = reformat(b, 0, 0, nil)
	b.do("CREATE_PACKET_REFORMAT of one that ends", c)
	end := c.Result(uapi.ReformatHandle)
	in := prm.NewIn(prm.OpCreateFlowTable, 0)
	prm.CreateFlowTableIn(in).Context().SetLevel(60)
	table, out := b.object("CREATE_FLOW_TABLE", in)
	tableID := prm.CreateFlowTableOut(out).TableID()
	in = prm.NewIn(prm.OpCreateFlowGroup, 0)
	prm.CreateFlowGroupIn(in).SetTableID(tableID)
	group, out := b.object("CREATE_FLOW_GROUP", in)
	entry := func(tirn uint32) []byte {
		in := prm.NewIn(prm.OpSetFlowEntry, prm.FlowDestinationSize)
		e := prm.SetFlowEntryIn(in)
		e.SetTableID(tableID)
		e.Context().SetGroupID(prm.CreateFlowGroupOut(out).GroupID())
		e.Context().SetAction(prm.FlowActionForward)
		e.Context().SetDestinations(1)
		e.List().At(0).SetType(prm.FlowToTIR)
		e.List().At(0).SetID(tirn)
		return in
	}
	tirn := b.tirOf(to)
	fte, _ := b.object("SET_FLOW_TABLE_ENTRY", entry(tirn))
	stranger, _ := a.create(entry(tirn), 16)
	a.refuse("an entry of a table of others", stranger, syscall.EREMOTEIO)
	c = b.flow(received).Object(uapi.FlowCreateDEVX, table).In(uapi.FlowCreateActions, list(end))
	b.do("CREATE_FLOW to a table", c)
	to.recv(0, 2048, b.key, b.addr)
	packet := frame(100)
	copy(a.mem, packet)
	a.sendFrame(from, len(packet), a.key, a.addr)
	want := bytes.Clone(packet)
	want[10], want[11] = 0x98, 0x76
	if e := b.cq.poll(); e == nil || !bytes.Equal(b.mem[:e.ByteCnt()], want) {
		t.Fatalf("CQE % x, % x", []byte(e), b.mem[:120])
	}
	q := prm.NewIn(prm.OpQueryFlowCounter, 0)
	prm.QueryFlowCounterIn(q).SetID(number)
	query := func(id uint32) (*client.Call, []byte) {
		prm.QueryFlowCounterIn(q).SetID(id)
		c := client.New(a.proc, uapi.ObjectDEVXObj, uapi.DEVXObjQuery).Object(uapi.DEVXObjModifyHandle, counter).In(uapi.DEVXObjModifyIn, q)
		return c, c.Out(uapi.DEVXObjModifyOut, prm.QueryFlowCounterOutSize+16)
	}
	c, out = query(number)
	a.do("QUERY_FLOW_COUNTER", c)
	if s := prm.QueryFlowCounterOut(out).Statistics(); s.Packets(0) != 1 || s.Octets(0) != 100 {
		t.Errorf("%d packets, %d bytes", s.Packets(0), s.Octets(0))
	}
	c, _ = query(number + 1)
	a.refuse("another counter", c, syscall.EINVAL)

	for what, x := range map[string]struct {
		who  *steerer
		c    *client.Call
		want syscall.Errno
	}{
		"sent packets to a QP":               {a, a.flow(sent).Object(uapi.FlowCreateQP, uint64(from.handle)), syscall.EINVAL},
		"received ones to nowhere":           {b, b.flow(received), syscall.EINVAL},
		"a drop to a table":                  {b, b.flow(received).Object(uapi.FlowCreateDEVX, table).Value(uapi.FlowCreateFlags, 4, uapi.FlowCreateDrop), syscall.EINVAL},
		"to a group":                         {b, b.flow(received).Object(uapi.FlowCreateDEVX, group), syscall.EINVAL},
		"counted by a table":                 {b, b.flow(received).Object(uapi.FlowCreateDEVX, table).In(uapi.FlowCreateCounters, list(table)), syscall.EINVAL},
		"an action twice":                    {a, a.flow(sent).In(uapi.FlowCreateActions, list(tunnel, tunnel)), syscall.EINVAL},
		"three actions":                      {a, a.flow(sent).In(uapi.FlowCreateActions, list(tunnel, rewrite, rewrite)), syscall.EINVAL},
		"an action of none":                  {a, a.flow(sent).In(uapi.FlowCreateActions, list(flow)), syscall.EINVAL},
		"something else for the same":        {a, a.flow(sent).Value(uapi.FlowCreateFlags, 4, uapi.FlowCreateDrop), syscall.EEXIST},
		"to the default":                     {a, a.flow(sent).Value(uapi.FlowCreateFlags, 4, uapi.FlowCreateDefaultMiss), syscall.EOPNOTSUPP},
		"a counter with others":              {a, a.flow(sent).In(uapi.FlowCreateCounters, list(counter)).In(uapi.FlowCreateOffset, list(1)), syscall.EINVAL},
		"a matcher of both":                  {a, a.matcher(uapi.MatcherCreateTable, 1).Value(uapi.MatcherCreateFlags, 4, uapi.FlowEgress), syscall.EINVAL},
		"a matcher of another kind":          {a, a.matcher(uapi.MatcherCreateTable, 2), syscall.EOPNOTSUPP},
		"more changes than there may be":     {a, modify(a, 1, bytes.Repeat(change, 17)), syscall.EOPNOTSUPP},
		"changes of no type":                 {a, modify(a, 1, make([]byte, 8)), syscall.EINVAL},
		"changes for a switch":               {a, modify(a, 2, change), syscall.EOPNOTSUPP},
		"a tunnel that begins when received": {a, reformat(a, 1, 0, headers), syscall.EOPNOTSUPP},
		"a tunnel of layer 3":                {a, reformat(a, 3, 1, headers), syscall.EOPNOTSUPP},
		"a tunnel without headers":           {a, reformat(a, 1, 1, nil), syscall.EINVAL},
		"an action that a flow has":          {a, client.New(a.proc, uapi.ObjectFlowAction, uapi.FlowActionDestroy).Object(uapi.FlowActionDestroyHandle, tunnel), syscall.EBUSY},
		"a counter that a flow has":          {a, a.destroy(counter), syscall.EINVAL},
		"a table with a group":               {b, b.destroy(table), syscall.EINVAL},
	} {
		x.who.refuse(what, x.c, x.want)
	}
	a.do("FLOW_DESTROY", client.New(a.proc, uapi.ObjectFlow, uapi.FlowDestroy).Object(uapi.FlowDestroyHandle, flow))
	a.do("FLOW_ACTION_DESTROY", client.New(a.proc, uapi.ObjectFlowAction, uapi.FlowActionDestroy).Object(uapi.FlowActionDestroyHandle, tunnel))
	a.do("DEVX_OBJ_DESTROY", a.destroy(counter))
	// An older way to ask for packets that are sent.
	c = a.matcher(uapi.MatcherCreateFlags, uapi.FlowEgress)
	a.do("FLOW_MATCHER_CREATE by a flag", c)
	a.do("CREATE_FLOW that drops", a.flow(c.Result(uapi.MatcherCreateHandle)).Value(uapi.FlowCreateFlags, 4, uapi.FlowCreateDrop))
	to.recv(1, 2048, b.key, b.addr)
	a.sendFrame(from, len(packet), a.key, a.addr)
	if b.cq.poll() != nil {
		t.Error("a packet came that was to be dropped")
	}
	b.do("DEVX_OBJ_DESTROY of an entry", b.destroy(fte))
	a.file.Close()
	b.file.Close() // and all that is left
	if ether.VXLANPort != 0x12b5 {
		t.Error("the headers are of another port")
	}
}

// tirOf is the number of a QP's TIR, as QP_CREATE says it with the address.
func (x *steerer) tirOf(q *testQP) uint32 {
	x.Helper()
	const both = uapi.QPRespTIRN | uapi.QPRespTIRICMAddr
	if q.answer.CompMask()&both != both || q.answer.TIRN() == 0 || q.answer.TIRICMAddr() == 0 {
		x.Fatalf("answer % x", []byte(q.answer))
	}
	return q.answer.TIRN()
}

// TestSteeringMemory: a program gets memory of the device for entries where the device has it, and
// no other's by a command; it is given back with the context.
func TestSteeringMemory(t *testing.T) {
	m := newMachineOf(t, steers)
	x := newSteerer(t, m)
	alloc := func(x *steerer, typ, n uint64, align uint64) (*client.Call, []byte) {
		c := client.New(x.proc, uapi.ObjectDM, uapi.DMAlloc).New(uapi.DMAllocHandle).Value(uapi.DMAllocLength, 8, n).Value(uapi.DMAllocAlignment, 4, align).
			Value(uapi.DMAllocType, 8, typ)
		return c, c.Out(uapi.DMAllocStartOffset, 8)
	}
	var addrs []uint64
	var handles []uint64
	for _, n := range []uint64{1 << 12, 1<<16 - 1, 1 << 20} {
		c, out := alloc(x, 1, n, 20)
		x.do("DM_ALLOC", c)
		handles = append(handles, c.Result(uapi.DMAllocHandle))
		addrs = append(addrs, binary.LittleEndian.Uint64(out))
	}
	if addrs[0] == 0 || addrs[1] != addrs[0]+1<<20 || addrs[2] != addrs[1]+1<<20 {
		t.Errorf("at %#x", addrs)
	}
	reg := func(off, n uint64, rights uint64) *client.Call {
		c := client.New(x.proc, uapi.ObjectMR, uapi.DMMRReg).New(uapi.DMMRHandle).Value(uapi.DMMROffset, 8, off).Value(uapi.DMMRLength, 8, n).
			Object(uapi.DMMRPD, uint64(x.pd)).Value(uapi.DMMRAccess, 4, rights).Object(uapi.DMMRDM, handles[1])
		c.Out(uapi.DMMRLKey, 4)
		c.Out(uapi.DMMRRKey, 4)
		return c
	}
	const rights = uint64(verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessZeroBased)
	c := reg(4096, 1<<16-1-4096, rights)
	x.do("DM_MR_REG", c)
	x.refuse("more than there is", reg(4096, 1<<16-4096, rights), syscall.EINVAL)
	x.refuse("atomics", reg(0, 64, rights|uint64(verbs.AccessRemoteAtomic)), syscall.EINVAL)
	free := client.New(x.proc, uapi.ObjectDM, uapi.DMFree).Object(uapi.DMFreeHandle, handles[1])
	x.refuse("free under a region", free, syscall.EBUSY)
	x.do("MR_DESTROY", client.New(x.proc, uapi.ObjectMR, uapi.MRDestroy).Object(uapi.MRDestroyHandle, c.Result(uapi.DMMRHandle)))
	x.do("DM_FREE", free)
	c, out := alloc(x, 1, 1<<16, 12)
	x.do("DM_ALLOC again", c)
	if at := binary.LittleEndian.Uint64(out); at != addrs[0]+1<<12 {
		t.Errorf("at %#x: not the first that is free", at)
	}
	for what, y := range map[string]struct {
		typ, n, align uint64
		want          syscall.Errno
	}{
		"nothing": {1, 0, 0, syscall.EINVAL}, "too much": {1, 1 << 40, 0, syscall.ENOMEM}, "more than is left": {2, 1 << 22, 0, 0},
		"a type that there is not": {3, 64, 0, syscall.EOPNOTSUPP}, "an alignment": {1, 64, 40, syscall.EINVAL},
	} {
		c, _ := alloc(x, y.typ, y.n, y.align)
		if y.want == 0 {
			x.do(what, c)
			c, _ = alloc(x, y.typ, 1, 0)
			y.want = syscall.ENOMEM
		}
		x.refuse(what, c, y.want)
	}
	in := prm.NewIn(prm.OpCreateGeneralObject, prm.SWICMSize)
	prm.CreateGeneralObjectIn(in).SetObjType(prm.ObjTypeSWICM)
	c, _ = x.create(in, 16)
	x.refuse("memory by a command", c, syscall.EREMOTEIO)
	x.proc.kern.RawIO = false
	c, _ = alloc(x, 1, 64, 0)
	x.refuse("without CAP_SYS_RAWIO", c, syscall.EPERM)
	x.proc.kern.NetRaw = false
	c, _ = x.create(prm.NewIn(prm.OpAllocFlowCounter, 0), 16)
	x.refuse("a counter without CAP_NET_RAW", c, syscall.EREMOTEIO)
	general := func(op prm.Opcode, room int) *client.Call {
		c := client.New(x.proc, uapi.ObjectDEVX, uapi.DEVXOther).In(uapi.DEVXOtherIn, prm.NewIn(op, 0))
		c.Out(uapi.DEVXOtherOut, room)
		return c
	}
	x.do("SYNC_STEERING", general(prm.OpSyncSteering, 16))
	x.do("QUERY_NIC_VPORT_CONTEXT", general(prm.OpQueryNICVportContext, prm.QueryNICVportContextOutSize))
	x.refuse("a short answer", general(prm.OpQueryNICVportContext, 16), syscall.EREMOTEIO)
	x.refuse("a command of an object", general(prm.OpCreateCQ, 64), syscall.EINVAL)
	x.file.Close()
	y := newSteerer(t, m)
	c, out = alloc(y, 1, 1<<29, 0)
	y.do("DM_ALLOC of half of all", c)
	if at := binary.LittleEndian.Uint64(out); at != addrs[0] {
		t.Errorf("at %#x: a closed context has left some", at)
	}
	y.file.Close()

	old := newSteerer(t, newMachine(t))
	for what, c := range map[string]*client.Call{
		"memory":               func() *client.Call { c, _ := alloc(old, 1, 64, 0); return c }(),
		"a table":              func() *client.Call { c, _ := old.create(prm.NewIn(prm.OpCreateFlowTable, 0), 16); return c }(),
		"matchers of the sent": old.matcher(uapi.MatcherCreateTable, 1),
	} {
		old.refuse(what+" of a device without", c, syscall.EOPNOTSUPP)
	}
}

// TestQPOfACommand: the session knows of a QP that a program has made by a command where it rings,
// and where its record and its ring are.
func TestQPOfACommand(t *testing.T) {
	x := newSteerer(t, newMachineOf(t, steers))
	uar := x.uar()
	addr, _ := x.proc.Alloc(3 * 4096)
	c := client.New(x.proc, uapi.ObjectDEVXUmem, uapi.UmemReg).New(uapi.UmemRegHandle).Value(uapi.UmemRegAddr, 8, addr).Value(uapi.UmemRegLen, 8, 3*4096).
		Value(uapi.UmemRegAccess, 4, uint64(verbs.AccessLocalWrite))
	id := c.Out(uapi.UmemRegID, 4)
	x.do("DEVX_UMEM_REG", c)
	umem := binary.LittleEndian.Uint32(id)
	_, out := x.object("ALLOC_PD", prm.NewIn(prm.OpAllocPD, 0))
	in := prm.NewIn(prm.OpCreateQP, 0)
	m := prm.CreateQPIn(in)
	m.SetWQUmemID(umem)
	m.SetWQUmemOffset(4096)
	q := m.QPC()
	q.SetPD(prm.AllocPDOut(out).PD())
	q.SetCQNSnd(x.cq.cqn)
	q.SetCQNRcv(x.cq.cqn)
	q.SetUARPage(uar)
	q.SetLogSQSize(4)
	q.SetLogRQSize(3)
	q.SetLogRQStride(1)
	q.SetDBRUmemID(umem)
	q.SetDBRAddr(8192)
	h, out := x.object("CREATE_QP", in)
	got := x.pages.qps[prm.CreateQPOut(out).QPN()]
	want := QP{QPN: prm.CreateQPOut(out).QPN(), DBAddr: addr + 8192, RQAddr: addr + 4096, RQCount: 8, RQShift: 5, SQAddr: addr + 4096 + 8*32, SQCount: 16,
		UAROff: uint64(uar) * prm.UARPageSize, BFReg: AnyBFReg, ByCommand: true}
	if got == nil || *got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	x.do("DEVX_OBJ_DESTROY", x.destroy(h))
	if x.pages.qps[want.QPN] != nil {
		t.Error("the session still knows it")
	}
	x.object("CREATE_QP", in)
	x.file.Close()
	if s := x.pages.left(); s != "" {
		t.Error(s)
	}
}
