//go:build linux && amd64

package pci

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/pci/vfiouser/client"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/uapi"
)

// The kit below is a virtual machine and its driver: it maps memory, writes registers and lays real
// bytes into rings, in the order in which mlx5_core does.

// hangs is how long anything may take before the test says that it hangs.
const hangs = 5 * time.Minute

const rw = uapi.VFIODMARead | uapi.VFIODMAWrite

// said collects what a server says.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *said) has(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.lines, "\n"), what)
}

func config(t testing.TB, functions int, name string) *Config {
	t.Helper()
	p, err := profile.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return &Config{Socket: filepath.Join(t.TempDir(), "s"), Functions: functions, Profile: p, Seed: 1, Logf: new(said).logf}
}

func start(t testing.TB, cfg *Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t testing.TB, s *Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// guest is a virtual machine with 16 MiB of memory and one function.
type guest struct {
	t      testing.TB
	c      *client.Client
	fd     int // of its memory
	ram    []byte
	top    uint64 // memory below is given out
	vector [4]int // eventfds
	queue  uint64 // the command queue
	token  uint8
	ceq    *guestEQ // of commands: nil, the driver polls
	uar    uint32
	pd     uint32
	eqn    uint32
	bf     bool // the device offers BlueFlame
}

const ramSize = 16 << 20

// dial connects a virtual machine, with its memory mapped as a PC's firmware leaves it.
func dial(t testing.TB, path string) *guest {
	t.Helper()
	g := &guest{t: t, top: 0x200000}
	var err error
	if g.c, err = client.Dial(path); err == nil {
		_, err = g.c.Version()
	}
	if err != nil {
		t.Fatal(err)
	}
	if g.fd, err = unix.MemfdCreate("guest", unix.MFD_CLOEXEC); err == nil {
		err = unix.Ftruncate(g.fd, ramSize)
	}
	if err == nil {
		g.ram, err = unix.Mmap(g.fd, 0, ramSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.check(g.c.Map(0, 0xa0000, rw, g.fd, 0))
	g.check(g.c.Map(0xc0000, 0x40000, uapi.VFIODMARead, -1, 0))
	g.check(g.c.Map(0x100000, ramSize-0x100000, rw, g.fd, 0x100000))
	g.setCommand(uapi.PCICommandMemory | uapi.PCICommandMaster)
	for i := range g.vector {
		if g.vector[i], err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			t.Fatal(err)
		}
	}
	g.check(g.c.SetIRQs(uapi.VFIOIRQMSIX, uapi.VFIOIRQDataEventFD|uapi.VFIOIRQActionTrigger, 0, uint32(len(g.vector)), nil, g.vector[:]...))
	return g
}

// kill ends the virtual machine without a word to the device.
func (g *guest) kill() {
	_ = g.c.Close()
	_ = unix.Munmap(g.ram)
	_ = unix.Close(g.fd)
	for _, fd := range g.vector {
		_ = unix.Close(fd)
	}
}

func (g *guest) check(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *guest) setCommand(v uint16) {
	g.t.Helper()
	g.check(g.c.Write(uapi.VFIORegionConfig, 4, []byte{byte(v), byte(v >> 8)}))
}

// alloc is memory of the guest: pages that are zero.
func (g *guest) alloc(n uint64) uint64 {
	g.t.Helper()
	at := g.top
	g.top += (n + 4095) &^ 4095
	if g.top > ramSize {
		g.t.Fatal("the guest has no memory left")
	}
	return at
}

func (g *guest) at(pa uint64, n int) []byte { return g.ram[pa:][:n:n] }

// until waits for what the device does by itself.
func (g *guest) until(what string, done func() bool) {
	g.t.Helper()
	for end := time.Now().Add(hangs); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			g.t.Fatalf("%s: not after %v", what, hangs)
		}
	}
}

// last is the last byte of an entry of the device, read before all else of it.
func (g *guest) last(pa uint64, n int) byte {
	w := atomic.LoadUint64((*uint64)(unsafe.Pointer(&g.ram[pa+uint64(n)-8])))
	return byte(w >> 56)
}

func (g *guest) reg(off uint64) uint32 {
	g.t.Helper()
	var b [4]byte
	g.check(g.c.Read(uapi.VFIORegionBAR0, off, b[:]))
	return prm.RegisterWord(b[:])
}

func (g *guest) setReg(off uint64, v uint32) {
	g.t.Helper()
	var b [4]byte
	prm.SetRegisterWord(b[:], v)
	g.check(g.c.Write(uapi.VFIORegionBAR0, off, b[:]))
}

// makeQueue gives the device the command queue.
func (g *guest) makeQueue() {
	g.t.Helper()
	g.queue = g.alloc(4096)
	g.setReg(prm.InitSegCommandQueue, uint32(g.queue>>32))
	g.setReg(prm.InitSegCommandQueue+4, uint32(g.queue))
}

// chain lays a mailbox into blocks and returns the first.
func (g *guest) chain(b []byte, token uint8) uint64 {
	var first uint64
	var link func(uint64)
	for n := uint32(0); len(b) > 0; n++ {
		pa := g.alloc(prm.CommandBlockSize)
		x := prm.CommandBlock(g.at(pa, prm.CommandBlockSize))
		clear(x)
		x.SetNumber(n)
		x.SetToken(token)
		b = b[copy(x.Data(), b):]
		if first == 0 {
			first = pa
		} else {
			link(pa)
		}
		link = x.SetNext
	}
	return first
}

// post fills an entry and returns a function that waits for its answer.
func (g *guest) post(i int, in []byte, out int) (answer func() ([]byte, prm.CommandDelivery)) {
	g.t.Helper()
	g.token++
	pa := g.queue + uint64(i)*prm.CommandEntrySize
	e := prm.CommandEntry(g.at(pa, prm.CommandEntrySize))
	clear(e)
	e.SetType(prm.CommandTransportPCI)
	e.SetInLength(uint32(len(in)))
	e.SetOutLength(uint32(out))
	e.SetToken(g.token)
	n := copy(e.In(), in)
	top := g.top
	e.SetInMailbox(g.chain(in[n:], g.token))
	e.SetOutMailbox(g.chain(make([]byte, max(0, out-prm.CommandInline)), g.token))
	e.SetDeviceOwns(true)
	return func() ([]byte, prm.CommandDelivery) {
		g.t.Helper()
		g.until(fmt.Sprintf("%v", prm.CmdIn(in).Opcode()), func() bool { return g.last(pa, prm.CommandEntrySize)&1 == 0 })
		b := bytes.Clone(e.Out()[:min(out, prm.CommandInline)])
		for at := e.OutMailbox(); len(b) < out; {
			x := prm.CommandBlock(g.at(at, prm.CommandBlockSize))
			b = append(b, x.Data()[:min(out-len(b), prm.CommandBlockData)]...)
			at = x.Next()
		}
		g.top = top
		return b, e.Delivery()
	}
}

func (g *guest) ring(mask uint32) {
	g.t.Helper()
	g.setReg(prm.InitSegCommandQueue+8, mask)
}

// try has a command carried out by entry 0.
func (g *guest) try(in []byte, out int) ([]byte, prm.Status) {
	g.t.Helper()
	answer := g.post(0, in, out)
	g.ring(1)
	if g.ceq != nil {
		g.expectDone(1)
	}
	b, d := answer()
	if d != prm.DeliveryOK {
		g.t.Fatalf("%v: delivery status %d", prm.CmdIn(in).Opcode(), d)
	}
	return b, prm.CmdOut(b).Status()
}

// cmd has a command carried out that must succeed.
func (g *guest) cmd(in []byte) []byte {
	g.t.Helper()
	op := prm.CmdIn(in).Opcode()
	b, st := g.try(in, len(prm.NewOut(op, 0)))
	if st != prm.StatusOK {
		g.t.Fatalf("%v: status %v", op, st)
	}
	return b
}

// expectDone waits for the events of entries.
func (g *guest) expectDone(mask uint32) {
	g.t.Helper()
	for mask != 0 {
		var e prm.EQE
		g.until("the event of a command", func() bool { e = g.ceq.next(); return e != nil })
		if e.Type() != prm.EventCmd || e.CmdVector()&^mask != 0 || e.CmdVector() == 0 {
			g.t.Fatalf("event %x, waiting for entries %#x", []byte(e), mask)
		}
		mask &^= e.CmdVector()
	}
	g.ceq.arm()
}

// guestEQ is an event queue of the driver.
type guestEQ struct {
	g    *guest
	pa   uint64
	size uint32
	ci   uint32
	n    uint32
}

func (g *guest) newEQ(vector uint32, mask uint64) *guestEQ {
	g.t.Helper()
	const log = 8
	q := &guestEQ{g: g, size: 1 << log}
	n := uint64(q.size) * prm.EQESize
	q.pa = g.alloc(n)
	for i := range uint64(q.size) {
		g.ram[q.pa+(i+1)*prm.EQESize-1] = prm.EQEOwnerInit
	}
	in := prm.NewIn(prm.OpCreateEQ, int(n/4096)*8)
	m := prm.CreateEQIn(in)
	m.EQC().SetLogEQSize(log)
	m.EQC().SetUARPage(g.uar)
	m.EQC().SetIntr(vector)
	m.SetEventBitmask(0, mask)
	for i := range n / 4096 {
		m.PAS().Set(int(i), q.pa+i*4096)
	}
	q.n = prm.CreateEQOut(g.cmd(in)).EQNumber()
	return q
}

func (q *guestEQ) next() prm.EQE {
	pa := q.pa + uint64(q.ci&(q.size-1))*prm.EQESize
	q.g.last(pa, prm.EQESize)
	e := prm.EQE(bytes.Clone(q.g.at(pa, prm.EQESize)))
	if !e.Ready(q.ci, q.size) {
		return nil
	}
	q.ci++
	return e
}

func (q *guestEQ) arm() {
	q.g.t.Helper()
	db := make(prm.EQDoorbell, prm.EQDoorbellSize)
	db.Set(uint8(q.n), q.ci)
	q.g.check(q.g.c.Write(uapi.VFIORegionBAR0, uint64(q.g.uar)*4096+prm.UAREQArm, db))
}

// bringUp does what mlx5_core does until the device runs, with the EQs of commands, events and
// completions.
func (g *guest) bringUp() {
	g.t.Helper()
	g.until("initializing", func() bool { return g.reg(prm.InitSegInitializing)>>31 == 0 })
	if v := g.reg(4); v&0xffff != prm.CmdIfRevision && v>>16 != prm.CmdIfRevision {
		g.t.Fatalf("command interface %#x", v)
	}
	if v := g.reg(prm.InitSegCommandQueue + 4); v&0xff != logEntries<<4|logStride {
		g.t.Fatalf("command queue %#x", v)
	}
	g.makeQueue()
	if v := g.reg(prm.InitSegCommandQueue + 4); uint64(v)&^0xfff != g.queue || v&0xfff != logEntries<<4|logStride {
		g.t.Fatalf("command queue %#x", v)
	}
	g.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	if prm.QueryISSIOut(g.cmd(prm.NewIn(prm.OpQueryISSI, 0))).SupportedISSIDW0()&2 == 0 {
		g.t.Fatal("ISSI 1 is not supported")
	}
	in := prm.NewIn(prm.OpSetISSI, 0)
	prm.SetISSIIn(in).SetCurrentISSI(1)
	g.cmd(in)
	g.pages(1)
	g.capabilities()
	g.pages(2)
	g.cmd(prm.NewIn(prm.OpInitHCA, 0))
	g.uar = prm.AllocUAROut(g.cmd(prm.NewIn(prm.OpAllocUAR, 0))).UAR()
	q := g.newEQ(0, 1<<prm.EventCmd)
	q.arm()
	g.ceq = q // from here on there are events
	g.newEQ(0, 1<<prm.EventPortChange|1<<prm.EventWQAccessError|1<<prm.EventCQError).arm()
	g.eqn = g.newEQ(1, 0).n
	g.pd = prm.AllocPDOut(g.cmd(prm.NewIn(prm.OpAllocPD, 0))).PD()
}

func (g *guest) pages(which uint16) {
	g.t.Helper()
	in := prm.NewIn(prm.OpQueryPages, 0)
	prm.CmdIn(in).SetOpMod(which)
	if n := prm.QueryPagesOut(g.cmd(in)).NumPages(); n != 0 {
		g.t.Fatalf("the device asks for %d pages", n)
	}
}

// capabilities reads the general page, and sets it as mlx5_core does.
func (g *guest) capabilities() {
	g.t.Helper()
	in := prm.NewIn(prm.OpQueryHCACap, 0)
	prm.CmdIn(in).SetOpMod(uint16(prm.CapGeneral)<<1 | 1)
	c := prm.HCACap(prm.QueryHCACapOut(g.cmd(in)).Capability())
	if g.bf = c.BF(); c.LogBFRegSize() != 9 {
		g.t.Error("the registers of doorbells lie elsewhere")
	}
	set := prm.NewIn(prm.OpSetHCACap, 0)
	prm.CmdIn(set).SetOpMod(uint16(prm.CapGeneral) << 1)
	copy(prm.SetHCACapIn(set).Capability(), c)
	g.cmd(set)
}
