//go:build linux && amd64

package exec

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
)

// uarLog writes a line for each store to a bfreg: number, device, UAR page, bfreg,
// half, kind, and the bytes, of a doorbell or of the pushed WQE.
type uarLog struct {
	w     *bufio.Writer
	n     int
	lines []*uarLine // not written yet, in order: the first is open
}

// uarLine is a store. While it is open it may still turn out to be a push, of which
// only the first bytes were there when it was found.
type uarLine struct {
	head string
	b    []byte
	push bool
	open bool
}

// add logs a store. Write errors show when the log is flushed.
func (l *uarLog) add(p *page, reg, half uint32, b []byte, pushed, open bool) *uarLine {
	l.n++
	x := &uarLine{
		head: fmt.Sprintf("%d %s uar=%d bfreg=%d half=%d", l.n, p.f.dev.name, p.uar.bar/prm.UARPageSize, reg, half),
		b:    bytes.Clone(b), push: pushed, open: open,
	}
	l.lines = append(l.lines, x)
	l.write()
	return x
}

// write writes the lines up to the first open one.
func (l *uarLog) write() {
	for len(l.lines) > 0 && !l.lines[0].open {
		x := l.lines[0]
		l.lines = l.lines[1:]
		kind := "doorbell"
		if x.push {
			kind = "blueflame"
		}
		c := prm.CtrlSegment(x.b)
		fmt.Fprintf(l.w, "%s %s qpn=%#x index=%d bytes=%x\n", x.head, kind, c.QPN(), c.WQEIndex(), x.b)
	}
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
		clear(u.half[prm.DoorbellSize:])
	}
	u.line.open = false
	u.line = nil
	l.write()
}
