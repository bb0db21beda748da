//go:build linux && amd64

package exec

import (
	"bufio"
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
)

// uarLog writes a line for each store to a bfreg.
type uarLog struct {
	w *bufio.Writer
	n int
}

// ring logs a store: number, device, UAR page, bfreg, half, kind, and the bytes, of
// a doorbell or of the pushed WQE. Write errors show when the log is flushed.
func (l *uarLog) ring(p *page, reg, half uint32, b []byte, pushed bool) {
	l.n++
	kind := "blueflame"
	if !pushed {
		kind = "doorbell"
	}
	c := prm.CtrlSegment(b)
	fmt.Fprintf(l.w, "%d %s uar=%d bfreg=%d half=%d %s qpn=%#x index=%d bytes=%x\n",
		l.n, p.f.dev.name, p.uar.bar/prm.UARPageSize, reg, half, kind, c.QPN(), c.WQEIndex(), b)
}
