//go:build linux && amd64

package pci

import (
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/uapi"
)

// reset is a server with a virtual machine whose driver has only made the command queue.
func reset(t *testing.T, log *said) (*Server, *guest) {
	t.Helper()
	cfg := config(t, 1, "connectx-5")
	cfg.Logf = log.logf
	s := start(t, cfg)
	t.Cleanup(func() { closed(t, s) })
	g := dial(t, s.Sockets()[0])
	t.Cleanup(g.kill)
	g.makeQueue()
	return s, g
}

// TestBrokenEntries: an entry that cannot be read as a command is answered with a delivery status,
// and nothing runs.
func TestBrokenEntries(t *testing.T) {
	log := new(said)
	_, g := reset(t, log)
	in := prm.NewIn(prm.OpCreateEQ, 3000) // some blocks
	const outSize = 2000
	for _, x := range []struct {
		name  string
		spoil func(e prm.CommandEntry, in, in2, out prm.CommandBlock)
		want  prm.CommandDelivery
	}{
		{"type", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetType(6) }, prm.DeliveryDescriptor},
		{"no length", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetInLength(7) }, prm.DeliveryInLength},
		{"far length", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetInLength(1 << 31) }, prm.DeliveryInLength},
		{"no answer", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetOutLength(0) }, prm.DeliveryOutLength},
		{"far answer", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetOutLength(1<<32 - 1) }, prm.DeliveryOutLength},
		{"no mailbox", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetInMailbox(0) }, prm.DeliveryInPointer},
		{"odd mailbox", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetInMailbox(e.InMailbox() + 512) }, prm.DeliveryInPointer},
		{"mailbox outside", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetInMailbox(1 << 40) }, prm.DeliveryToken},
		{"no block more", func(_ prm.CommandEntry, in, _, _ prm.CommandBlock) { in.SetNext(0) }, prm.DeliveryInPointer},
		{"a circle", func(_ prm.CommandEntry, _, in2, _ prm.CommandBlock) { in2.SetNext(in2.Next() - 4096) }, prm.DeliveryBlockNumber},
		{"token", func(_ prm.CommandEntry, _, in2, _ prm.CommandBlock) { in2.SetToken(in2.Token() + 1) }, prm.DeliveryToken},
		{"number", func(_ prm.CommandEntry, in, _, _ prm.CommandBlock) { in.SetNumber(1) }, prm.DeliveryBlockNumber},
		{"answer nowhere", func(e prm.CommandEntry, _, _, _ prm.CommandBlock) { e.SetOutMailbox(8) }, prm.DeliveryOutPointer},
		{"answer's token", func(_ prm.CommandEntry, _, _, out prm.CommandBlock) { out.SetToken(out.Token() + 1) }, prm.DeliveryToken},
		{"answer too short", func(_ prm.CommandEntry, _, _, out prm.CommandBlock) { out.SetNext(0) }, prm.DeliveryOutPointer},
	} {
		answer := g.post(3, in, outSize)
		e := prm.CommandEntry(g.at(g.queue+3*prm.CommandEntrySize, prm.CommandEntrySize))
		first := prm.CommandBlock(g.at(e.InMailbox(), prm.CommandBlockSize))
		second := prm.CommandBlock(g.at(first.Next(), prm.CommandBlockSize))
		out := prm.CommandBlock(g.at(e.OutMailbox(), prm.CommandBlockSize))
		x.spoil(e, first, second, out)
		g.ring(1 << 3)
		g.until(x.name, func() bool { return g.last(g.queue+3*prm.CommandEntrySize, prm.CommandEntrySize)&1 == 0 })
		if e.Delivery() != x.want || prm.CmdOut(e.Out()).Status() != 0 {
			t.Errorf("%s: delivery status %d, want %d; %x", x.name, e.Delivery(), x.want, e.Out())
		}
		_ = answer
	}
	if !log.has("broken") {
		t.Errorf("%q", log.lines)
	}
	g.cmd(prm.NewIn(prm.OpEnableHCA, 0))
}

// TestManyEntries has all entries carried out by one doorbell, before and after there are events.
func TestManyEntries(t *testing.T) {
	_, g := reset(t, new(said))
	g.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	in := prm.NewIn(prm.OpQueryHCACap, 0)
	prm.CmdIn(in).SetOpMod(uint16(prm.CapGeneral)<<1 | 1)
	round := func(entries int) {
		t.Helper()
		top := g.top
		var answers []func() ([]byte, prm.CommandDelivery)
		for i := range entries {
			answers = append(answers, g.post(i, in, prm.QueryHCACapOutSize))
		}
		g.ring(1<<entries - 1)
		if g.ceq != nil {
			g.expectDone(1<<entries - 1)
		}
		for i, a := range answers {
			b, d := a()
			if c := prm.HCACap(prm.QueryHCACapOut(b).Capability()); d != prm.DeliveryOK || prm.CmdOut(b).Status() != prm.StatusOK || c.LogMaxQP() == 0 {
				t.Fatalf("entry %d: %d, %x", i, d, b[:16])
			}
		}
		g.top = top
	}
	round(32)
	g.cmd(prm.NewIn(prm.OpInitHCA, 0))
	g.uar = prm.AllocUAROut(g.cmd(prm.NewIn(prm.OpAllocUAR, 0))).UAR()
	g.ceq = g.newEQ(2, 1<<prm.EventCmd)
	g.ceq.arm()
	round(32)
	round(7)
	if e := g.ceq.next(); e != nil {
		t.Errorf("one event too many: %x", []byte(e))
	}
	// An entry that is the driver's is not touched.
	g.ring(1 << 9)
	// Destroying the EQ is not reported there, and nothing is reported afterwards.
	q := g.ceq
	g.ceq = nil
	in = prm.NewIn(prm.OpDestroyEQ, 0)
	prm.DestroyEQIn(in).SetEQNumber(q.n)
	g.cmd(in)
	g.cmd(prm.NewIn(prm.OpNOP, 0))
	if e := q.next(); e != nil {
		t.Errorf("an event on an EQ that is gone: %x", []byte(e))
	}
}

// TestQueueThatMoves: a doorbell before there is a queue does nothing, and a command is answered
// where it was read.
func TestQueueThatMoves(t *testing.T) {
	cfg := config(t, 1, "connectx-5")
	s := start(t, cfg)
	defer closed(t, s)
	g := dial(t, s.Sockets()[0])
	defer g.kill()
	entry := prm.CommandEntry(g.at(0, prm.CommandEntrySize)) // physical address 0
	_ = g.post(0, prm.NewIn(prm.OpEnableHCA, 0), 12)         // the queue of the kit is still there
	g.ring(1)
	if !entry.DeviceOwns() {
		t.Error("address 0 was taken for a queue")
	}
	clear(entry)
	g.makeQueue()
	g.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	old := g.queue
	answer := g.post(0, prm.NewIn(prm.OpNOP, 0), 16)
	s.m.mu.Lock() // the answer waits for the engine
	q := s.m.fns[0].queue
	q.write(prm.InitSegCommandQueue+8, 1)
	q.write(prm.InitSegCommandQueue+4, uint32(old)+0x1000)
	s.m.mu.Unlock()
	g.reg(0)
	if _, d := answer(); d != prm.DeliveryOK {
		t.Errorf("delivery %d", d)
	}
}

// TestRefusals: what the device does not know is said once, and the interface can be taken down.
func TestRefusals(t *testing.T) {
	log := new(said)
	_, g := reset(t, log)
	g.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	in := make([]byte, 16)
	prm.CmdIn(in).SetOpcode(0x9fe)
	for range 3 {
		if _, st := g.try(in, 16); st != prm.StatusBadOp {
			t.Errorf("status %v", st)
		}
	}
	if n := countOf(log, "0x9fe"); n != 1 {
		t.Errorf("said %d times: %q", n, log.lines)
	}
	const disabled = 1
	g.setReg(prm.InitSegCommandQueue+4, uint32(g.queue)|disabled<<8)
	if v := g.reg(prm.InitSegCommandQueue + 4); v>>8&7 != disabled {
		t.Errorf("%#x", v)
	}
	_ = g.post(0, prm.NewIn(prm.OpNOP, 0), 16)
	g.ring(1)
	if g.last(g.queue, prm.CommandEntrySize)&1 == 0 {
		t.Error("a command is carried out on an interface that is down")
	}
	g.setReg(prm.InitSegCommandQueue+4, uint32(g.queue))
	g.cmd(prm.NewIn(prm.OpNOP, 0))
}

func countOf(log *said, what string) (n int) {
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, l := range log.lines {
		if strings.Contains(l, what) {
			n++
		}
	}
	return n
}

// TestResetEndsDriversWork: a function-level reset, and one by the monitor, end the driver's work;
// the next one begins anew.
func TestResetEndsDriversWork(t *testing.T) {
	for name, reset := range map[string]func(g *guest) error{
		"FLR": func(g *guest) error {
			return g.c.Write(uapi.VFIORegionConfig, atExpress+8, []byte{0, 0x80})
		},
		"monitor": func(g *guest) error { _, err := g.c.Do(uapi.VFIOUserResetCmd, nil); return err },
	} {
		s := start(t, config(t, 1, "connectx-5"))
		g := dial(t, s.Sockets()[0])
		for range 3 {
			g.bringUp()
			g.newQP()
			g.newMR(4096)
			g.ceq = nil
			g.check(reset(g))
			if v := g.reg(prm.InitSegCommandQueue + 4); v != nicDisabled<<8|logEntries<<4|logStride { // a driver notices that
				t.Errorf("%s: the queue is at %#x", name, v)
			}
			var b [2]byte
			if g.check(g.c.Read(uapi.VFIORegionConfig, 4, b[:])); b != [2]byte{} {
				t.Errorf("%s: command register %x", name, b)
			}
			g.setCommand(uapi.PCICommandMemory | uapi.PCICommandMaster)
		}
		g.kill()
		closed(t, s)
	}
}

// TestConfigurationSpace checks what a kernel looks at, and that nothing else can be written.
func TestConfigurationSpace(t *testing.T) {
	_, g := reset(t, new(said))
	read := func() []byte {
		b := make([]byte, configSize)
		g.check(g.c.Read(uapi.VFIORegionConfig, 0, b))
		return b
	}
	b := read()
	h := uapi.PCIHeader(b)
	if h.VendorID() != 0x15b3 || h.DeviceID() != 0x1017 || h.Class() != classEthernet || h.InterruptPin() != 0 || h.BAR0()&0xf != 0xc || h.Status() != 0x10 {
		t.Errorf("header %x", b[:64])
	}
	var ids []byte
	for at := h.Capabilities(); at != 0; at = b[at+1] {
		ids = append(ids, b[at])
	}
	x, m := uapi.PCIExpressCap(b[atExpress:]), uapi.PCIMSIXCap(b[atMSIX:])
	if string(ids) != "\x10\x11" || x.Flags() != 2 || x.DeviceCap()&uapi.PCIExpressFLR == 0 || m.Control()&0x7ff != 63 || m.Table() != 0x2000 || m.PBA() != 0x3000 {
		t.Errorf("capabilities %x, %x, %x", ids, []byte(x[:0x3c]), []byte(m[:12]))
	}
	// The size of the BAR, as every firmware asks for it.
	g.check(g.c.Write(uapi.VFIORegionConfig, 0x10, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}))
	if h := uapi.PCIHeader(read()); -(uint64(h.BAR1())<<32 | uint64(h.BAR0()&^0xf)) != 32<<20 {
		t.Errorf("BAR %#x %#x", h.BAR1(), h.BAR0())
	}
	ones := make([]byte, configSize)
	for i := range ones {
		ones[i] = 0xff
	}
	ones[atExpress+9] = 0x7f // not the reset
	g.check(g.c.Write(uapi.VFIORegionConfig, 0, ones))
	after := read()
	changed := 0
	for i := range after {
		if after[i] != b[i] {
			changed++
		}
	}
	if a := uapi.PCIHeader(after); a.VendorID() != 0x15b3 || a.Status() != 0x10 || changed > 24 || uapi.PCIMSIXCap(after[atMSIX:]).Control() != 0xc03f {
		t.Errorf("%d bytes changed: %x", changed, after[:0xb0])
	}
}
