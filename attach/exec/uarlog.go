//go:build linux && amd64

package exec

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// uarLog tells of each store to a bfreg, in order.
type uarLog struct {
	text  *uarText     // nil: nobody asked for a file
	bench *registerLog // of a tester, or nil
	lines []*uarLine   // not told yet, in order: the first is open
}

// uarText writes a line for each store: number, device, UAR page, bfreg, half, kind, and the bytes,
// of a doorbell or of the pushed WQE.
type uarText struct {
	w *bufio.Writer
	n int
}

// uarLine is a store. While it is open it may still turn out to be a push, of which
// only the first bytes were there when it was found.
type uarLine struct {
	p         *page
	reg, half uint32
	at        sim.Time
	b         []byte
	arrived   int // of b, at the device
	push      bool
	open      bool
}

// add logs a store, of which the device has had the first bytes. Write errors show when the log is
// flushed.
func (l *uarLog) add(x uarLine) *uarLine {
	x.b = bytes.Clone(x.b)
	l.lines = append(l.lines, &x)
	l.tell()
	return &x
}

// tell tells of the stores up to the first open one.
func (l *uarLog) tell() {
	for len(l.lines) > 0 && !l.lines[0].open {
		x := l.lines[0]
		l.lines = l.lines[1:]
		if l.text != nil {
			l.text.write(x)
		}
		if l.bench != nil {
			l.bench.add(x)
		}
	}
}

func (t *uarText) write(x *uarLine) {
	kind := "doorbell"
	if x.push {
		kind = "blueflame"
	}
	t.n++
	c := prm.CtrlSegment(x.b)
	fmt.Fprintf(t.w, "%d %s uar=%d bfreg=%d half=%d %s qpn=%#x index=%d bytes=%x\n", t.n, x.p.f.dev.name, x.p.uar.bar/prm.UARPageSize, x.reg, x.half,
		kind, c.QPN(), c.WQEIndex(), x.b)
}

// undecided is the last store to a register that looked like a doorbell, with the WQE
// that was pushed if it was a push. A library stores to the other half next, and by
// then all of a push has come.
type undecided struct {
	line *uarLine
	h    uint32
	half []byte // half h
	wqe  []byte
}

// keep remembers a store that may be a push.
func (u *undecided) keep(line *uarLine, h uint32, half, wqe []byte) {
	u.line, u.h, u.half, u.wqe = line, h, half, append(u.wqe[:0], wqe...)
}

// decide decides, when something was stored to half next, or when the page goes.
func (u *undecided) decide(l *uarLog, next uint32) {
	if u.line == nil {
		return
	}
	// The bytes in the same half belong to the later store. A WQE of nothing but a control
	// segment, whose rest may be zero, is never pushed (qp.c, post_send_db).
	if rest := u.half[prm.DoorbellSize:len(u.wqe)]; u.h != next && !allZero(rest) && bytes.Equal(rest, u.wqe[prm.DoorbellSize:]) {
		u.line.push, u.line.b = true, bytes.Clone(u.wqe)
		u.line.arrived = len(u.wqe)
		clear(u.half[prm.DoorbellSize:])
	}
	u.line.open = false
	u.line = nil
	l.tell()
}
