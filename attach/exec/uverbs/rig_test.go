//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// machine is a device with its driver, and a cable to nobody: what it sends to its own
// address stays inside.
type machine struct {
	eng  *sim.Engine
	mem  *mem.Memory
	link *pcie.Link
	kern *kernel.Device
}

type nobodyThere struct{}

func (nobodyThere) Receive(f *roce.Frame) { f.Release() }

func newMachine(t testing.TB) *machine {
	t.Helper()
	p, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{eng: sim.New(sim.Options{Seed: 1}), mem: mem.New(1 << 30)}
	m.link = pcie.NewLink(m.eng, m.mem, p.PCIe)
	id := hca.Identity{GUID: 0x0002c90300000101, MAC: [6]byte{2, 2, 0xc9, 0, 1, 1}, IPv4: [4]byte{10, 1, 0, 1}, BoardID: "SIM0000000001"}
	d := hca.New(m.eng, "mlx5_0", m.link, p.HCA, id)
	m.link.Attach(d, func(v int) { m.kern.Interrupt(v) })
	c := link.NewCable(m.eng, p.Link, "mlx5_0", "open")
	c.End(0).Attach(d)
	d.SetWire(c.End(0))
	c.End(1).Attach(nobodyThere{})
	if m.kern, err = kernel.NewDevice(m.eng, "mlx5_0", m.link, m.mem, p.Kernel); err != nil {
		t.Fatal(err)
	}
	m.kern.SetNeighbours(func(uint16, netip.Addr) (kernel.MAC, bool) { return id.MAC, true })
	if err := m.kern.AddIP(netip.AddrFrom4(id.IPv4)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.eng.Close)
	return m
}

// settle runs until nothing is left to happen.
func (m *machine) settle(t *testing.T) {
	t.Helper()
	if err := m.eng.Run(sim.Never - 1); err != nil {
		t.Fatal(err)
	}
}

// process is a program that does not exist: fake memory and descriptors.
type process struct {
	client.Fake
	fds    map[int]*os.File
	noRoom bool // Inject fails
	kern   *kernel.Process
}

func (p *process) Process() *kernel.Process { return p.kern }

var _ Identified = (*process)(nil)

// ReadAt and WriteAt make it a mem.Foreign.
func (p *process) ReadAt(va mem.VA, b []byte) error  { return p.Read(uint64(va), b) }
func (p *process) WriteAt(va mem.VA, b []byte) error { return p.Write(uint64(va), b) }

func (p *process) Inject(f *os.File) (int, error) {
	if p.noRoom {
		return 0, syscall.EMFILE
	}
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		return 0, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return 0, err
	}
	p.fds[fd] = os.NewFile(uintptr(fd), "injected")
	return fd, nil
}

func (p *process) Retract(fd int) {
	p.fds[fd].Close()
	delete(p.fds, fd)
}

func (p *process) Inode(fd int) (Inode, error) {
	var st unix.Stat_t
	if p.fds[fd] == nil {
		return Inode{}, fmt.Errorf("descriptor %d: %w", fd, syscall.EBADF)
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return Inode{}, err
	}
	return Inode{st.Dev, st.Ino}, nil
}

// pages records what a session is told.
type pages struct {
	uars   map[uint64]*cpu.Mapping
	qps    map[uint32]*QP
	cqs    map[uint32]*CQ
	srqs   map[uint32]*SRQ
	clocks map[uint64]bool // pages about the clock: of what turns cycles into time
	memory map[uint64]int  // pages of device memory
	fail   error
}

func newPages() *pages {
	return &pages{uars: map[uint64]*cpu.Mapping{}, qps: map[uint32]*QP{}, cqs: map[uint32]*CQ{}, srqs: map[uint32]*SRQ{}, clocks: map[uint64]bool{}, memory: map[uint64]int{}}
}

func (p *pages) MapUAR(page uint64, m *cpu.Mapping) error {
	if p.fail != nil {
		return p.fail
	}
	if p.uars[page] != nil {
		return errors.New("mapped twice")
	}
	p.uars[page] = m
	return nil
}

func (p *pages) UnmapUAR(page uint64)   { delete(p.uars, page) }
func (p *pages) AddQP(q *QP)            { p.qps[q.QPN] = q }
func (p *pages) RemoveQP(q *QP)         { delete(p.qps, q.QPN) }
func (p *pages) AddCQ(q *CQ)            { p.cqs[q.CQN] = q }
func (p *pages) RemoveCQ(q *CQ)         { delete(p.cqs, q.CQN) }
func (p *pages) AddSRQ(q *SRQ)          { p.srqs[q.SRQN] = q }
func (p *pages) RemoveSRQ(q *SRQ)       { delete(p.srqs, q.SRQN) }
func (p *pages) UnmapClock(page uint64) { delete(p.clocks, page) }

func (p *pages) MapMemory(page uint64, n int, bar uint64) error {
	if p.fail == nil {
		p.memory[page] = n
	}
	return p.fail
}

func (p *pages) UnmapMemory(page uint64) { delete(p.memory, page) }

func (p *pages) MapClock(page uint64, info bool) error {
	if _, again := p.clocks[page]; again {
		return errors.New("mapped twice")
	}
	if p.fail == nil {
		p.clocks[page] = info
	}
	return p.fail
}

func (p *pages) MoveCQ(q *CQ, was CQ) {
	if p.cqs[q.CQN] != q || was.CQN != q.CQN || was.Addr == q.Addr {
		panic("a CQ that has not moved")
	}
}

// left says what the session is still told of.
func (p *pages) left() string {
	if len(p.uars)+len(p.qps)+len(p.cqs)+len(p.srqs)+len(p.clocks) == 0 {
		return ""
	}
	return fmt.Sprintf("%d pages, %d QPs, %d CQs, %d SRQs, %d clocks", len(p.uars), len(p.qps), len(p.cqs), len(p.srqs), len(p.clocks))
}

// rig is a program with an open device file.
type rig struct {
	*testing.T
	*machine
	proc  *process
	pages *pages
	file  *File
}

func newRig(t *testing.T, m *machine) *rig {
	t.Helper()
	x := &rig{T: t, machine: m, proc: &process{fds: map[int]*os.File{}},
		pages: newPages()}
	space, err := mem.NewForeignSpace(m.mem, x.proc)
	if err != nil {
		t.Fatal(err)
	}
	x.proc.kern = &kernel.Process{Name: "fake", Space: space, IPCLock: true}
	x.file = Open(m.kern, x.proc.kern, x.pages)
	x.file.Logf = t.Logf
	t.Cleanup(func() {
		for fd := range x.proc.fds {
			x.proc.Retract(fd)
		}
	})
	return x
}

// do makes a call that must succeed.
func (x *rig) do(what string, c *client.Call) {
	x.Helper()
	if e := x.file.Ioctl(x.proc, c.Addr()); e != 0 {
		x.Fatalf("%s: %v", what, e)
	}
}

// refuse makes a call that must fail so.
func (x *rig) refuse(what string, c *client.Call, want syscall.Errno) {
	x.Helper()
	if e := x.file.Ioctl(x.proc, c.Addr()); e != want {
		x.Errorf("%s: got %d (%v), want %v", what, uintptr(e), e, want)
	}
}

// getContext is GET_CONTEXT as libmlx5 asks for it.
func (x *rig) getContext() (*client.Call, uapi.AllocUcontextResp) {
	r := uapi.AllocUcontextReq(make([]byte, uapi.AllocUcontextReqSize))
	r.SetTotalBFRegs(16)
	r.SetLowLatBFRegs(4)
	r.SetMaxCQEVersion(1)
	r.SetLibCaps(kernel.LibCap4KUAR | kernel.LibCapDynUAR)
	c := client.New(x.proc, uapi.ObjectDevice, uapi.DeviceGetContext)
	c.Out(uapi.GetContextVec, 4)
	c.Out(uapi.GetContextSup, 8)
	c.In(uapi.AttrUHWIn, r)
	return c, uapi.AllocUcontextResp(c.Out(uapi.AttrUHWOut, uapi.AllocUcontextRespSize))
}

func (x *rig) open() uapi.AllocUcontextResp {
	x.Helper()
	c, resp := x.getContext()
	x.do("GET_CONTEXT", c)
	return resp
}

// write is a command with room for an answer.
func (x *rig) write(cmd uint32, req []byte, room int) (*client.Call, []byte) {
	c := client.NewWrite(x.proc, cmd, req)
	if room == 0 {
		return c, nil
	}
	return c, c.Out(uapi.InvokeWriteCoreOut, room)
}

func (x *rig) pd() uint32 {
	x.Helper()
	c, rsp := x.write(uapi.CmdAllocPD, make([]byte, 8), uapi.AllocPDRespSize)
	pdn := uapi.MLX5AllocPDResp(c.Out(uapi.AttrUHWOut, uapi.MLX5AllocPDRespSize))
	x.do("ALLOC_PD", c)
	if pdn.PDN() == 0 {
		x.Fatal("no PD number")
	}
	return uapi.AllocPDResp(rsp).PDHandle()
}

// mr registers a buffer.
func (x *rig) mr(pd uint32, addr uint64, n int) (handle, key uint32) {
	x.Helper()
	r := uapi.RegMR(make([]byte, uapi.RegMRSize))
	r.SetStart(addr)
	r.SetHCAVA(addr)
	r.SetLength(uint64(n))
	r.SetPDHandle(pd)
	r.SetAccessFlags(0xf)
	c, rsp := x.write(uapi.CmdRegMR, r, uapi.RegMRRespSize)
	x.do("REG_MR", c)
	a := uapi.RegMRResp(rsp)
	if a.LKey() == 0 || a.LKey() != a.RKey() {
		x.Fatalf("keys %#x, %#x", a.LKey(), a.RKey())
	}
	return a.MRHandle(), a.LKey()
}

func (x *rig) channel() int {
	x.Helper()
	c, rsp := x.write(uapi.CmdCreateCompChannel, make([]byte, 8), uapi.CreateCompChannelRespSize)
	x.do("CREATE_COMP_CHANNEL", c)
	return int(uapi.CreateCompChannelResp(rsp).FD())
}

func (x *rig) asyncFD() int {
	x.Helper()
	c := client.New(x.proc, uapi.ObjectAsyncEvent, uapi.AsyncEventAlloc).New(uapi.AsyncEventAllocFD)
	x.do("ASYNC_EVENT_ALLOC", c)
	return int(c.Result(uapi.AsyncEventAllocFD))
}

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
