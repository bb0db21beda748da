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

// machine is a device with its driver, and a cable whose other end is open: what it sends to its
// own address stays inside.
type machine struct {
	eng  *sim.Engine
	mem  *mem.Memory
	link *pcie.Link
	kern *kernel.Device
}

type unplugged struct{}

func (unplugged) Receive(f *roce.Frame) { f.Release() }

func newMachine(t testing.TB) *machine { return newMachineOf(t, func(*hca.Params) {}) }

func newMachineOf(t testing.TB, edit func(p *hca.Params)) *machine {
	t.Helper()
	p, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	edit(&p.HCA)
	m := &machine{eng: sim.New(sim.Options{Seed: 1}), mem: mem.New(1 << 30)}
	m.link = pcie.NewLink(m.eng, m.mem, p.PCIe)
	id := hca.Identity{GUID: 0x0002c90300000101, MAC: [6]byte{2, 2, 0xc9, 0, 1, 1}, IPv4: [4]byte{10, 1, 0, 1}, BoardID: "SIM0000000001", Packets: true}
	d := hca.New(m.eng, "mlx5_0", m.link, p.HCA, id)
	m.link.Attach(d, func(v int) { m.kern.Interrupt(v) })
	c := link.NewCable(m.eng, p.Link, "mlx5_0", "open")
	c.End(0).Attach(d)
	d.SetWire(c.End(0))
	c.End(1).Attach(unplugged{})
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
	held   int  // files
	kern   *kernel.Process
	// dmabufs are what descriptors of DMA-BUFs are, nil: memory that cannot be mapped.
	dmabufs map[int]kernel.Exporter
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

func (p *process) Dmabuf(fd int) (kernel.Exporter, error) {
	x, ok := p.dmabufs[fd]
	switch {
	case p.fds[fd] != nil:
		return nil, fmt.Errorf("descriptor %d: %w", fd, syscall.EINVAL)
	case !ok:
		return nil, fmt.Errorf("descriptor %d: %w", fd, syscall.EBADF)
	case x == nil:
		return nil, ErrUnmappable
	}
	return x, nil
}

func (p *process) Hold(fd int) (Inode, func(), error) {
	in, err := p.Inode(fd)
	if err != nil {
		return in, nil, err
	}
	n, err := unix.Dup(fd)
	if err != nil {
		return in, nil, err
	}
	p.held++
	return in, func() {
		p.held--
		_ = unix.Close(n)
	}, nil
}

// pages records what a session is told.
type pages struct {
	uars   map[uint64]*cpu.Mapping
	qps    map[uint32]*QP
	cqs    map[uint32]*CQ
	srqs   map[uint32]*SRQ
	others map[uint64]int  // queues of commands, by where they ring
	clocks map[uint64]bool // pages about the clock: of what turns cycles into time
	memory map[uint64]int  // pages of device memory
	fail   error
}

func newPages() *pages {
	return &pages{uars: map[uint64]*cpu.Mapping{}, qps: map[uint32]*QP{}, cqs: map[uint32]*CQ{}, srqs: map[uint32]*SRQ{}, clocks: map[uint64]bool{}, others: map[uint64]int{}, memory: map[uint64]int{}}
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
func (p *pages) AddOther(off uint64)    { p.others[off]++ }
func (p *pages) RemoveOther(off uint64) { p.others[off]-- }
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
