//go:build linux

package uverbs

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
	"github.com/rdmasim/rdmasim/verbs"
)

// A child has the file, but its memory is another.
func TestChildOfTheOpener(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, cq := x.pd(), x.cq(-1, 1)
	parent := x.proc.kern
	x.proc.kern = &kernel.Process{Name: "child"}
	c, _, _ := x.cqCall(-1, 1, nil)
	x.refuse("CQ_CREATE", c, syscall.EOPNOTSUPP)
	c, _, _ = x.qpCall(pd, cq, nil)
	x.refuse("QP_CREATE", c, syscall.EOPNOTSUPP)
	c, _ = x.write(uapi.CmdRegMR, make([]byte, uapi.RegMRSize), uapi.RegMRRespSize)
	x.refuse("REG_MR", c, syscall.EOPNOTSUPP)
	x.destroyCQ(cq)
	x.do("PD_DESTROY", client.New(x.proc, uapi.ObjectPD, uapi.PDDestroy).Object(uapi.PDDestroyHandle, uint64(pd)))
	x.proc.kern = parent
	x.pd()
}

// Each line of the table is what a program gets.
func TestRefused(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, cq := x.pd(), x.cq(-1, 1)
	qpOf := func(typ uint64) *client.Call {
		c, _, _ := x.qpCall(pd, cq, nil)
		c.Attr(uapi.QPCreateType).SetData(typ)
		return c
	}
	cmd := func(cmd uint32) *client.Call { c, _ := x.write(cmd, make([]byte, 64), 64); return c }
	for flags, what := range map[uint32]string{0: "neither DCT nor DCI", dcEnds: "both", uapi.QPFlagTypeDCT: "DCT without an SRQ", uapi.QPFlagTypeDCI: "receives of a DCI"} {
		dc, _, _ := x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) { d.SetFlags(flags) })
		dc.Attr(uapi.QPCreateType).SetData(0xff)
		x.refuse(what, dc, syscall.EINVAL)
	}
	x.refuse("raw packet without capability", qpOf(8), syscall.EPERM)
	x.refuse("no type", qpOf(77), syscall.EINVAL)
	x.refuse("flow without capability", cmd(uapi.CmdCreateFlow|uapi.CmdExtended), syscall.EPERM)
	x.refuse("WQ by the command before the method", cmd(uapi.CmdCreateWQ|uapi.CmdExtended), syscall.EOPNOTSUPP)
	for _, o := range [][2]uint16{{uapi.ObjectDEVX, 0x1001}, {uapi.ObjectCounters, 0}, {uapi.ObjectMR, 5}} {
		x.refuse(fmt.Sprintf("method %x", o), client.New(x.proc, o[0], o[1]), syscall.EPROTONOSUPPORT)
	}
	x.proc.dmabufs = map[int]kernel.Exporter{77: nil}
	x.refuse("DMA-BUF", x.dmabufCall(pd, 77), syscall.EOPNOTSUPP)
	for flags, want := range map[uint32]syscall.Errno{uapi.QPFlagSignature: syscall.EOPNOTSUPP, uapi.QPFlagTypeDCI: syscall.EINVAL, uapi.QPFlagDCIStream: syscall.EINVAL, 1 << 30: syscall.EINVAL} {
		c, _, _ := x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) { d.SetFlags(flags) })
		x.refuse(fmt.Sprintf("driver flags %#x", flags), c, want)
	}
	c, _, _ := x.cqCall(-1, 1, func(d uapi.MLX5CreateCQ) { d.SetCQECompEn(1) })
	x.refuse("compressed CQEs of no format", c, syscall.EINVAL)
	c, _, _ = x.cqCall(-1, 1, func(d uapi.MLX5CreateCQ) {
		d.SetCQECompEn(1)
		d.SetCQECompResFormat(verbs.CQECompHash | verbs.CQECompCsum)
	})
	x.refuse("compressed CQEs of two formats", c, syscall.EINVAL)
	c, _, _ = x.cqCall(-1, 1, func(d uapi.MLX5CreateCQ) { d.SetFlags(uapi.CQFlag128BPad) })
	x.refuse("padded CQEs of 64 bytes", c, syscall.EOPNOTSUPP)
	c, _, _ = x.cqCall(-1, 1, func(d uapi.MLX5CreateCQ) { d.SetFlags(uapi.CQFlagRealTimeTS) })
	x.refuse("real time stamps", c, syscall.EOPNOTSUPP)
	c, _, _ = x.cqCall(-1, 1, func(d uapi.MLX5CreateCQ) { d.SetCQESize(32) })
	x.refuse("CQEs of 32 bytes", c, syscall.EINVAL)
	for _, r := range Refused() {
		if r.What == "" || r.Errno == 0 || r.How == "" {
			t.Errorf("%+v", r)
		}
	}
}

// Events that do not fit into a pipe wait, in order.
func TestFullPipe(t *testing.T) {
	x := newRig(t, newMachine(t))
	p, fd, err := newEventPipe(x.proc, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	const n = 10000 // a pipe holds 8192
	rec := func(i int) record {
		e := uapi.CompEvent(make([]byte, 8))
		e.SetCQHandle(uint64(i))
		return record{uint64(i % 3), e}
	}
	for i := range n {
		p.push(rec(i))
	}
	if len(p.pending) == 0 {
		t.Fatal("everything fits")
	}
	for i := range 300 {
		if e, ok := x.event(fd, 8); !ok || uapi.CompEvent(e).CQHandle() != uint64(i) {
			t.Fatalf("record %d: %x", i, e)
		}
	}
	taken := p.forget(1)
	if want := uint32(n/3 - 100); taken != want {
		t.Errorf("%d taken back, want %d", taken, want)
	}
	for i := 300; i < n; {
		if i%3 == 1 {
			i++
			continue
		}
		e, ok := x.event(fd, 8)
		if !ok {
			p.flush()
			if e, ok = x.event(fd, 8); !ok {
				t.Fatalf("record %d is missing", i)
			}
		}
		if got := uapi.CompEvent(e).CQHandle(); got != uint64(i) {
			t.Fatalf("record %d where %d is due", got, i)
		}
		i++
	}
	if p.abandoned() {
		t.Error("abandoned while a descriptor is open")
	}
	x.proc.Retract(fd)
	if !p.abandoned() {
		t.Error("not abandoned")
	}
	p.push(rec(1))
}

// TestEventsThatNobodyReads fills a pipe and what waits behind it. The rest is lost, and counts as
// not read.
func TestEventsThatNobodyReads(t *testing.T) {
	x := newRig(t, newMachine(t))
	p, fd, err := newEventPipe(x.proc, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	const n = 3 * maxPending
	for i := range n {
		p.push(record{uint64(i % 2), make([]byte, 8)})
	}
	if len(p.pending) > maxPending {
		t.Errorf("%d events wait", len(p.pending))
	}
	if got := p.forget(1); got != n/2 {
		t.Errorf("%d of %d not read", got, n/2)
	}
	x.proc.Retract(fd)
}

// TestPipeThatIsWrittenTo takes events back while the program writes to its own pipe without a
// pause.
func TestPipeThatIsWrittenTo(t *testing.T) {
	x := newRig(t, newMachine(t))
	p, fd, err := newEventPipe(x.proc, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	other, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var quit atomic.Bool
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for b := make([]byte, 4096); !quit.Load(); {
				_, _ = unix.Write(other, b)
			}
		})
	}
	p.push(record{1, make([]byte, 8)})
	p.forget(1)
	quit.Store(true)
	x.proc.Retract(fd) // ends writers that wait for room
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("waited a minute for writers to the pipe to end after its reader")
	}
	_ = unix.Close(other)
}

// TestObjectsHaveALimit makes as many objects as a process may have, and one more.
func TestObjectsHaveALimit(t *testing.T) {
	x := newRig(t, newMachine(t))
	said := 0
	all := &Quota{Name: "objects of all processes", Most: 12, Errno: syscall.ENOMEM}
	x.file.Objects = &Quota{Name: "objects", Most: 10, Errno: syscall.ENOMEM, Up: all, OnFull: func() { said++ }}
	x.open()
	pd := x.pd()
	for i := x.file.Objects.used; i < 10; i++ {
		x.pd()
	}
	if said != 0 {
		t.Error("full too early")
	}
	c, _ := x.write(uapi.CmdAllocPD, make([]byte, 8), uapi.AllocPDRespSize)
	x.refuse("an object too many", c, syscall.ENOMEM)
	if said != 1 {
		t.Errorf("said %d times that there are too many", said)
	}
	d := client.New(x.proc, uapi.ObjectPD, uapi.PDDestroy)
	d.Object(uapi.PDDestroyHandle, uint64(pd))
	x.do("destroy PD", d)
	x.pd()
	x.file.Close()
	if x.file.Objects.used != 0 || all.used != 0 {
		t.Errorf("%d and %d objects are left", x.file.Objects.used, all.used)
	}
}
