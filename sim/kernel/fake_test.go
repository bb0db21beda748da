package kernel

import (
	"net/netip"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/verbs"
)

// fakeFunction answers every command with OK and fresh numbers, keeps QP contexts as a
// device would that takes whatever it is told, and records what it saw.
type fakeFunction struct {
	seen   []prm.Opcode
	last   map[prm.Opcode][]byte // the last in mailbox of each opcode
	fail   map[prm.Opcode]prm.Status
	next   uint32
	live   map[prm.Opcode]int // made minus destroyed, by the command that makes
	gone   []gone             // what was destroyed, in order
	caps   map[uint16][]byte
	qpcs   map[uint32]prm.QPC
	arms   []uint32 // consumer indexes of EQ doorbells
	down   bool
	took   sim.Time // of a command
	gids   map[uint32]prm.RoCEAddr
	eqPAs  []uint64
	eqLogs []uint32

	m    *mem.Memory
	ring mem.PA          // of the driver's queue for UMRs
	free map[uint32]bool // memory keys, by index
	pds  map[uint32]uint32
	umr  prm.SendWQE // the last UMR
	umrs int         // how many there were

	*fakePaging // or nil
}

var fakeMAC = MAC{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}

func newFake() *fakeFunction {
	f := &fakeFunction{
		last: map[prm.Opcode][]byte{}, fail: map[prm.Opcode]prm.Status{}, next: 16, live: map[prm.Opcode]int{},
		caps: map[uint16][]byte{}, qpcs: map[uint32]prm.QPC{}, gids: map[uint32]prm.RoCEAddr{}, free: map[uint32]bool{}, pds: map[uint32]uint32{},
	}
	for _, page := range []uint16{prm.CapGeneral, prm.CapAtomic, prm.CapRoCE} {
		f.caps[page] = make([]byte, 0x1000)
	}
	g := prm.HCACap(f.caps[prm.CapGeneral])
	g.SetLogMaxQP(18)
	g.SetLogMaxQPSz(15)
	g.SetLogMaxMCG(21)
	g.SetMaxQPMCG(240)
	g.SetLogMaxCQ(24)
	g.SetLogMaxCQSz(22)
	g.SetCQResize(true)
	g.SetLogMaxMKey(24)
	g.SetLogMaxPD(24)
	g.SetLogMaxMsg(30)
	g.SetLogMaxEQ(7)
	g.SetLogMaxRAReqQP(4)
	g.SetLogMaxRAResQP(4)
	g.SetMaxWQESzSQ(1024)
	g.SetMaxWQESzRQ(512)
	g.SetMaxQPCnt(8)
	g.SetNumPorts(1)
	g.SetPortType(prm.PortTypeEth)
	g.SetRoCE(true)
	g.SetAtomic(true)
	g.SetBF(true)
	g.SetLogBFRegSize(9)
	g.SetCQEVersion(1)
	g.SetLogPGSz(12)
	g.SetLogMaxTransportDomain(10)
	g.SetSctrDataCQE(true)
	g.SetDeviceFrequencyKHz(156250)
	a := prm.AtomicCap(f.caps[prm.CapAtomic])
	a.SetAtomicOperations(prm.AtomicOpCmpSwap | prm.AtomicOpFetchAdd)
	a.SetAtomicSizeQP(8)
	a.SetSupportedAtomicReq8BEndiannessMode1(true)
	r := prm.RoCECap(f.caps[prm.CapRoCE])
	r.SetRoCEAddressTableSize(16)
	return f
}

func (f *fakeFunction) BAR0Size() uint64            { return 1 << 24 }
func (f *fakeFunction) MMIORead(_ uint64, p []byte) { clear(p) }

func (f *fakeFunction) MMIOWrite(off uint64, p []byte) {
	if off%prm.UARPageSize == prm.UAREQArm {
		f.arms = append(f.arms, prm.EQDoorbell(p).CI())
	}
	if off%prm.UARPageSize == prm.UARBFOffset {
		f.runUMR(prm.CtrlSegment(p).WQEIndex())
	}
}

// runUMR notes a UMR, and whether it makes its key free.
func (f *fakeFunction) runUMR(idx uint16) {
	b := make([]byte, 3*prm.WQEBBSize)
	for i := range 3 {
		f.m.Read(f.ring+mem.PA((int(idx)+i)%(1<<logUMRBlocks)*prm.WQEBBSize), b[i*prm.WQEBBSize:(i+1)*prm.WQEBBSize])
	}
	if err := prm.ParseSendWQE(b, prm.STRegUMR, &f.umr); err != nil {
		panic(err)
	}
	f.umrs++
	if f.fakePaging != nil {
		f.takeUMR(f.m, &f.umr)
	}
	if f.umr.UMR.MKeyMask()&prm.MKeyMaskFree != 0 {
		f.free[f.umr.Ctrl.Imm()>>8] = f.umr.MKC.Free()
	}
	if f.umr.UMR.MKeyMask()&prm.MKeyMaskPD != 0 {
		f.pds[f.umr.Ctrl.Imm()>>8] = f.umr.MKC.PD()
	}
}

func (f *fakeFunction) number(made prm.Opcode) uint32 {
	f.live[made]++
	f.next++
	return f.next
}

func (f *fakeFunction) Command(in, out []byte) sim.Time {
	op, st := prm.CheckCommand(in, out)
	if st == prm.StatusOK {
		f.seen = append(f.seen, op)
		f.last[op] = in
		st = f.fail[op]
	}
	clear(out)
	if st != prm.StatusOK {
		prm.Fail(out, st, 0x1234)
		return f.took
	}
	if !f.makes(op, in, out) && !f.destroys(op, in) {
		f.others(op, in, out)
	}
	return f.took
}

func (f *fakeFunction) makes(op prm.Opcode, in, out []byte) bool {
	switch op {
	case prm.OpAllocXRCD:
		prm.AllocXRCDOut(out).SetXRCD(f.number(prm.OpAllocXRCD))
	case prm.OpAllocPD:
		prm.AllocPDOut(out).SetPD(f.number(op))
	case prm.OpAllocUAR:
		prm.AllocUAROut(out).SetUAR(f.number(op))
	case prm.OpAllocTransportDomain:
		prm.AllocTransportDomainOut(out).SetTransportDomain(f.number(op))
	case prm.OpAllocQCounter:
		prm.AllocQCounterOut(out).SetCounterSetID(f.number(op))
	case prm.OpAllocMemic:
		prm.AllocMemicOut(out).SetMemicStartAddr(prm.AllocMemicIn(in).RangeStartAddr())
	case prm.OpCreateMKey:
		n := f.number(op)
		f.free[n] = prm.CreateMKeyIn(in).MKC().Free()
		if f.fakePaging != nil {
			f.keys[n] = &fakeKey{mode: prm.CreateMKeyIn(in).MKC().AccessMode(), pages: map[uint64]uint64{}, slots: map[uint64]fakeSlot{}}
		}
		prm.CreateMKeyOut(out).SetMKeyIndex(n)
	case prm.OpCreateEQ:
		prm.CreateEQOut(out).SetEQNumber(f.number(op))
		f.eqPAs = append(f.eqPAs, prm.CreateEQIn(in).PAS().At(0))
		f.eqLogs = append(f.eqLogs, prm.CreateEQIn(in).EQC().LogEQSize())
	case prm.OpCreateCQ:
		prm.CreateCQOut(out).SetCQN(f.number(op))
	case prm.OpCreateQP:
		n := f.number(op)
		prm.CreateQPOut(out).SetQPN(n)
		f.qpcs[n] = append(prm.QPC(nil), prm.CreateQPIn(in).QPC()...)
		if m := prm.CreateQPIn(in); m.QPC().ST() == prm.STRegUMR {
			f.ring = mem.PA(m.PAS().At(0))
		}
	default:
		return false
	}
	return true
}

// gone is an object that was destroyed.
type gone struct {
	by     prm.Opcode
	number uint32
}

func (f *fakeFunction) destroys(op prm.Opcode, in []byte) bool {
	var made prm.Opcode
	g := gone{by: op}
	switch op {
	case prm.OpDeallocPD:
		made, g.number = prm.OpAllocPD, prm.DeallocPDIn(in).PD()
	case prm.OpDeallocUAR:
		made, g.number = prm.OpAllocUAR, prm.DeallocUARIn(in).UAR()
	case prm.OpDestroyMKey:
		made, g.number = prm.OpCreateMKey, prm.DestroyMKeyIn(in).MKeyIndex()
	case prm.OpDestroyCQ:
		made, g.number = prm.OpCreateCQ, prm.DestroyCQIn(in).CQN()
	case prm.OpDestroyQP:
		made, g.number = prm.OpCreateQP, prm.DestroyQPIn(in).QPN()
	case prm.OpDeallocTransportDomain:
		made, g.number = prm.OpAllocTransportDomain, prm.DeallocTransportDomainIn(in).TransportDomain()
	default:
		return false
	}
	f.live[made]--
	f.gone = append(f.gone, g)
	return true
}

// others answers queries and transitions. A transition puts the whole context it
// carries in place of the QP's and sets the state it leads to.
func (f *fakeFunction) others(op prm.Opcode, in, out []byte) {
	to := map[prm.Opcode]uint32{
		prm.OpRst2InitQP: prm.QPStateINIT, prm.OpInit2InitQP: prm.QPStateINIT, prm.OpInit2RTRQP: prm.QPStateRTR,
		prm.OpRTR2RTSQP: prm.QPStateRTS, prm.OpRTS2RTSQP: prm.QPStateRTS, prm.OpSQErr2RTSQP: prm.QPStateRTS,
		prm.OpSQDRTSQP: prm.QPStateRTS, prm.Op2RstQP: prm.QPStateRST, prm.Op2ErrQP: prm.QPStateERR,
	}
	if s, ok := to[op]; ok {
		c := f.qpcs[prm.ModifyQPIn(in).QPN()]
		if len(in) >= prm.ModifyQPInSize {
			copy(c, prm.ModifyQPIn(in).QPC())
		}
		c.SetState(s)
		return
	}
	if f.fakePaging != nil && f.answer(op, in, out) {
		return
	}
	switch op {
	case prm.OpQueryISSI:
		prm.QueryISSIOut(out).SetSupportedISSIDW0(3)
	case prm.OpQueryHCACap:
		copy(prm.QueryHCACapOut(out).Capability(), f.caps[prm.CmdIn(in).OpMod()>>1])
	case prm.OpSetHCACap:
		page, body := prm.CmdIn(in).OpMod()>>1, prm.SetHCACapIn(in).Capability()
		if page == prm.CapAtomic { // the one field that can be set
			prm.AtomicCap(f.caps[page]).SetAtomicReq8BEndiannessMode(prm.AtomicCap(body).AtomicReq8BEndiannessMode())
			return
		}
		copy(f.caps[page], body)
	case prm.OpQueryNICVportContext:
		v := prm.QueryNICVportContextOut(out).Context()
		v.SetNodeGUID(0x1122334455667788)
		copy(v.PermanentAddress(), fakeMAC[:])
	case prm.OpQueryVportState:
		if !f.down {
			prm.QueryVportStateOut(out).SetState(prm.VportStateUp)
		}
	case prm.OpSetRoCEAddress:
		f.gids[prm.SetRoCEAddressIn(in).RoCEAddressIndex()] = prm.SetRoCEAddressIn(in).Addr()
	case prm.OpQueryMKey:
		c, n := prm.QueryMKeyOut(out).MKC(), prm.QueryMKeyIn(in).MKeyIndex()
		c.SetFree(f.free[n])
		c.SetPD(f.pds[n])
	case prm.OpQueryQP:
		copy(prm.QueryQPOut(out).QPC(), f.qpcs[prm.QueryQPIn(in).QPN()])
	}
}

// setup is a device over a fakeFunction with a process and a thread.
type setup struct {
	t    *testing.T
	e    *sim.Engine
	m    *mem.Memory
	f    *fakeFunction
	d    *Device
	proc *Process
}

func testParams() Params {
	return Params{
		PageSize: mem.PageSize, CacheLine: 64, CompVectors: 4, NetMTU: 4200, PCIDevice: 0x1017, LinkWidth: 2, LinkSpeed: 32,
		Syscall: 100 * sim.Nanosecond, CreateQP: sim.Microsecond, CreateCQ: sim.Microsecond,
		RegMRBase: sim.Microsecond, RegMRPage: 10 * sim.Nanosecond,
		Interrupt: sim.Microsecond, Wakeup: 2 * sim.Microsecond, ARPTimeout: sim.Second,
		MinorFault: sim.Microsecond / 2, MajorFault: 60 * sim.Microsecond, PageFault: 5 * sim.Microsecond, PageFaultPage: 100 * sim.Nanosecond, PageUpdate: 5 * sim.Microsecond, PageUpdatePage: 15 * sim.Nanosecond,
		Invalidate: 17 * sim.Microsecond, InvalidatePage: 43 * sim.Nanosecond,
	}
}

func (*setup) pcieParams() pcie.Params {
	return pcie.Params{
		Bandwidth: 1e11, PostedLatency: 100 * sim.Nanosecond, ReadLatency: 400 * sim.Nanosecond,
		MPS: 256, MRRS: 512, RCB: 64, WriteHeader: 24, ReadHeader: 24, CplHeader: 20, ReadsInFlight: 16,
		PostedCredits: 64, MemoryLatency: 50 * sim.Nanosecond,
	}
}

func newSetup(t *testing.T, p Params) *setup {
	t.Helper()
	return newSetupOf(t, p, func(*fakeFunction) {})
}

// newSetupOf lets the device be changed before it is brought up.
func newSetupOf(t *testing.T, p Params, change func(*fakeFunction)) *setup {
	t.Helper()
	s := &setup{t: t, e: sim.New(sim.Options{}), m: mem.New(1 << 32), f: newFake()}
	s.f.m = s.m
	change(s.f)
	link := pcie.NewLink(s.e, s.m, s.pcieParams())
	link.Attach(s.f, func(v int) { s.d.Interrupt(v) })
	var err error
	if s.d, err = NewDevice(s.e, "mlx5_0", link, s.m, p); err != nil {
		t.Fatal(err)
	}
	if err := s.d.AddIP(netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	s.proc = &Process{Name: "test", Space: mem.NewSpace(s.m), IPCLock: true}
	return s
}

func (s *setup) open() *Ucontext {
	s.t.Helper()
	u, _, err := s.d.AllocUcontext(Caller{}, s.proc, UcontextReq{
		TotalBFRegs: 16, LowLatBFRegs: 4, LibCaps: LibCapDynUAR, MaxCQEVersion: 1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

func (s *setup) buf(n uint64, prot mem.Prot) uint64 {
	s.t.Helper()
	va, err := s.proc.Space.Map(n, prot)
	if err != nil {
		s.t.Fatal(err)
	}
	return uint64(va)
}

func (s *setup) pd(u *Ucontext) Handle {
	s.t.Helper()
	h, _, err := u.AllocPD(Caller{})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *setup) cqReq(u *Ucontext, cqe uint32) CQReq {
	n, _ := u.dev.cqEntries(cqe)
	return CQReq{
		CQE: cqe, CQESize: 64, BufAddr: s.buf(uint64(n)*64, mem.Read|mem.Write),
		DBAddr: s.buf(mem.PageSize, mem.Read|mem.Write), UARValid: true, UARPage: 7,
	}
}

func (s *setup) cq(u *Ucontext) Handle {
	s.t.Helper()
	h, _, err := u.CreateCQ(Caller{}, s.cqReq(u, 15))
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *setup) qpReq(pd, cq Handle, typ verbs.QPType) QPReq {
	return QPReq{
		Type: typ, PD: pd, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1},
		BufAddr: s.buf(16*64+64*64, mem.Read|mem.Write), DBAddr: s.buf(mem.PageSize, mem.Read|mem.Write),
		SQWQECount: 64, RQWQECount: 16, RQWQEShift: 6, BFRegMode: BFRegUARPage, BFRegIndex: 9, UIDX: 5,
	}
}

func (s *setup) qp(u *Ucontext, pd, cq Handle, typ verbs.QPType) Handle {
	s.t.Helper()
	h, _, err := u.CreateQP(Caller{}, s.qpReq(pd, cq, typ))
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}
