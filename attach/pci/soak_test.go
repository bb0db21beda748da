//go:build linux && amd64

package pci

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/uapi"
)

var (
	sequences = flag.Int("sequences", 20000, "steps of TestRandomGuest: writes and reads of registers, commands and messages")
	first     = flag.Int64("first", 1, "seed of TestRandomGuest")
)

// wild is a guest that does anything.
type wild struct {
	*guest
	k    int // of the function
	draw *rand.Rand
	ops  []prm.Opcode
	qp   *guestQP
	mr   guestMR
}

// knownOps are the opcodes that have a layout.
func knownOps() (ops []prm.Opcode) {
	for op := prm.Opcode(0); op < 0xc00; op++ {
		if !strings.HasPrefix(op.String(), "Opcode(") {
			ops = append(ops, op)
		}
	}
	return ops
}

// number is small, near a power of two, an address of the guest's memory, or anything.
func (w *wild) number() uint64 {
	switch w.draw.Intn(5) {
	case 0:
		return uint64(w.draw.Intn(20))
	case 1:
		return 1<<w.draw.Intn(64) - uint64(w.draw.Intn(3)) + 1
	case 2:
		return uint64(w.draw.Intn(ramSize/4096)) * 4096
	case 3:
		return uint64(w.draw.Intn(ramSize))
	}
	return w.draw.Uint64()
}

// spoil overwrites some words.
func (w *wild) spoil(b []byte, most int) {
	for range w.draw.Intn(most + 1) {
		at := w.draw.Intn(len(b)/4) * 4
		prm.SetRegisterWord(b[at:], uint32(w.number()))
	}
}

// command has something like a command carried out.
func (w *wild) command() {
	op := w.ops[w.draw.Intn(len(w.ops))]
	if (op == prm.OpTeardownHCA || op == prm.OpDisableHCA) && w.draw.Intn(50) > 0 {
		op = prm.OpNOP
	}
	in := prm.NewIn(op, w.draw.Intn(20)*16)
	w.spoil(in[8:], 12)
	if w.draw.Intn(3) == 0 { // what a driver of this guest has, in every place that looks like it
		prm.SetRegisterWord(in[8:], uint32(w.draw.Intn(80)))
	}
	top := w.top
	_ = w.post(w.draw.Intn(32), in, len(prm.NewOut(op, 0))+w.draw.Intn(3)*16)
	if w.draw.Intn(10) == 0 {
		w.spoil(w.at(w.queue, 4096), 5)
	}
	w.top = top
	w.ring(uint32(w.number()))
	if w.draw.Intn(4) == 0 {
		w.ring(1<<32 - 1)
	}
}

func (w *wild) registers() {
	b := make([]byte, 1<<w.draw.Intn(4))
	w.draw.Read(b)
	if w.draw.Intn(2) == 0 && len(b) == 8 { // a doorbell of a queue that may exist
		prm.SetRegisterWord(b, uint32(w.draw.Intn(1<<16))<<8)
		prm.SetRegisterWord(b[4:], uint32(0x40+w.draw.Intn(8))<<8|uint32(w.draw.Intn(8)))
	}
	off := w.number() % (32<<20 - 8)
	switch w.draw.Intn(4) {
	case 0:
		off %= prm.InitSegSize
		if off/4 == (prm.InitSegCommandQueue+4)/4 || off/4 == prm.InitSegCommandQueue/4 {
			off = 0x200 // the queue stays where it is, most of the time
		}
	case 1:
		off = uint64(w.uar)*4096 + off%4096&^7
	}
	if w.draw.Intn(3) == 0 {
		w.check(w.c.Read(uapi.VFIORegionBAR0, off, b))
		return
	}
	w.check(w.c.Write(uapi.VFIORegionBAR0, off, b))
}

func (w *wild) config() {
	b := make([]byte, 1<<w.draw.Intn(3))
	off := w.draw.Intn(configSize - 8)
	if w.draw.Intn(2) == 0 {
		off = w.draw.Intn(0xb0)
	}
	w.draw.Read(b)
	if w.draw.Intn(2) == 0 {
		w.check(w.c.Read(uapi.VFIORegionConfig, uint64(off), b))
		return
	}
	w.check(w.c.Write(uapi.VFIORegionConfig, uint64(off), b))
	w.setCommand(uapi.PCICommandMemory | uapi.PCICommandMaster)
}

// windows maps and unmaps memory, some of it under what the device does.
func (w *wild) windows() {
	at := 1<<32 + uint64(w.draw.Intn(16))*0x10000
	if w.draw.Intn(2) == 0 {
		_ = w.c.Unmap(at, 0x10000, 0)
		return
	}
	_ = w.c.Map(at, 0x10000, rw, w.fd, uint64(w.draw.Intn(100))*4096)
}

// again brings the device up, as what came before may have left it in any state.
func (w *wild) again() {
	_, err := w.c.Do(uapi.VFIOUserResetCmd, nil)
	w.check(err)
	clear(w.ram)
	w.top, w.ceq = 0x200000, nil
	w.setCommand(uapi.PCICommandMemory | uapi.PCICommandMaster)
	w.bringUp()
	w.setGID(w.k)
	w.qp, w.mr = w.newQP(), w.newMR(64<<10)
	w.qp.connect(1-w.k, w.qp.n) // numbers begin anew, so the peer's is the same
	w.ceq = nil                 // nobody looks at its events any more
}

// traffic posts messages of which some are right, and overwrites parts of what describes them.
func (w *wild) traffic() {
	ops := []prm.WQEOpcode{prm.WQEOpSend, prm.WQEOpRDMAWrite, prm.WQEOpRDMARead, prm.WQEOpcode(w.draw.Intn(0x40))}
	for range 1 + w.draw.Intn(8) {
		n := uint32(1) << w.draw.Intn(16)
		w.qp.recv(w.mr, uint64(w.draw.Intn(4096)), n)
		if w.draw.Intn(4) == 0 {
			w.spoil(w.at(w.qp.rq, 4096), 3)
			w.spoil(w.at(w.qp.db, 8), 1)
			w.spoil(w.at(w.qp.cq.db, 8), 1)
		}
		w.qp.post(ops[w.draw.Intn(len(ops))], w.mr, uint64(w.draw.Intn(4096)), n, w.mr.pa+uint64(w.draw.Intn(4096)), w.mr.key)
	}
	prm.CQDBRec(w.at(w.qp.cq.db, 8)).SetCI(uint32(w.draw.Intn(1 << 24))) // nobody takes the completions
}

// TestRandomGuest lets two guests do anything with registers, configuration space, the command
// queue, their queues' memory and their windows. Whatever comes of it, the device answers, and what
// lies outside the windows stays as it is.
func TestRandomGuest(t *testing.T) {
	log := new(said)
	cfg := config(t, 2, "connectx-5")
	cfg.Logf = log.logf
	s := start(t, cfg)
	draw := rand.New(rand.NewSource(*first))
	var all []*wild
	for k := range 2 {
		w := &wild{guest: dial(t, s.Sockets()[k]), k: k, draw: draw, ops: knownOps()}
		w.again()
		all = append(all, w)
	}
	// The hole between the windows of a PC is part of the file, and nobody may write there.
	const hole, holeEnd = 0xa0000, 0x100000
	steps := *sequences
	if testing.Short() {
		steps /= 10
	}
	for n := range steps {
		w := all[draw.Intn(2)]
		switch draw.Intn(40) {
		case 0:
			w.config()
		case 1:
			w.windows()
		case 2:
			if draw.Intn(5) == 0 {
				for _, w := range all {
					w.again()
				}
			}
		case 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
			w.command()
		case 13, 14, 15:
			w.traffic()
		case 16:
			w.spoil(w.at(0x200000, 1<<20), 50)
		default:
			w.registers()
		}
		if n%1000 == 0 {
			for _, w := range all {
				for i, b := range w.at(hole, holeEnd-hole) {
					if b != 0 {
						t.Fatalf("step %d: byte %#x, outside all windows, is %#x", n, hole+i, b)
					}
				}
			}
		}
	}
	for _, w := range all {
		w.again()
		w.cmd(prm.NewIn(prm.OpNOP, 0))
		w.kill()
	}
	closed(t, s)
	if testing.Verbose() {
		t.Log(strings.Join(log.lines, "\n"))
	}
}

// holds counts what this process has open and mapped.
func holds(t *testing.T) (files, maps int) {
	t.Helper()
	l, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(l), strings.Count(string(b), "memfd:guest")
}

// TestNothingIsLeftOfLives has virtual machines come and be killed, each in another state.
func TestNothingIsLeftOfLives(t *testing.T) {
	s := start(t, config(t, 1, "connectx-5"))
	dial(t, s.Sockets()[0]).kill()
	var files, maps int
	for n := range 50 {
		g := dial(t, s.Sockets()[0])
		switch n % 5 {
		case 1:
			g.makeQueue()
			_ = g.post(0, prm.NewIn(prm.OpEnableHCA, 0), 12)
			g.ring(1)
		case 2, 3:
			g.bringUp()
			g.newQP()
			g.newMR(1 << 20)
		case 4:
			_ = unix.Ftruncate(g.fd, 0)
			g.setReg(prm.InitSegCommandQueue+8, 1)
		}
		g.kill()
		// The next connection waits until all of this life is given back.
		g = dial(t, s.Sockets()[0])
		f, m := holds(t)
		if n == 0 {
			files, maps = f, m
		}
		if f > files || m > maps {
			t.Fatalf("life %d: %d files and %d windows, after the first %d and %d", n, f, m, files, maps)
		}
		g.kill()
	}
	closed(t, s)
	if _, maps := holds(t); maps != 0 {
		t.Errorf("%d windows are still mapped", maps)
	}
	if f := s.m.fns[0]; len(f.mapped) != 0 || fmt.Sprint(f.lives) != "101" {
		t.Errorf("%d windows, %d lives", len(f.mapped), f.lives)
	}
}
