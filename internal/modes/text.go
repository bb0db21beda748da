package modes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/verbs"
)

// writeWC appends what a completion says. Of an error only four fields have a meaning.
func writeWC(b *strings.Builder, w *verbs.WC) {
	if w.Status != verbs.WCSuccess {
		fmt.Fprintf(b, " {%#x %v qp %#x %#x}", w.ID, w.Status, w.QPN, w.VendorErr)
		return
	}
	fmt.Fprintf(b, " {%#x op %d len %d imm %#x qp %#x src %#x fl %#x %d %d %d %d}", w.ID, w.Opcode, w.ByteLen, w.Imm, w.QPN, w.SrcQP, w.Flags, w.PKeyIndex, w.SLID, w.SL, w.DLIDPathBits)
}

// counters reads the hardware's counters of the endpoint's host, in order.
func (r *runner) counters(e *endpoint) (string, error) {
	for i, h := range r.tb.Hosts() {
		if h != e.proc.Host() {
			continue
		}
		all, err := r.tb.HardwareCounters(r.t, i)
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name] != 0 {
				fmt.Fprintf(&b, " %s %d", name, all[name])
			}
		}
		return b.String(), err
	}
	return "", nil
}
