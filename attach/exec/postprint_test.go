//go:build linux && amd64

package exec

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

func (x *simPosts) printRing(id int, now uint16) {
	q := x.queues[id]
	if q.sent == now {
		return
	}
	fmt.Fprintf(x, "wqes %d %d ", id, q.sent)
	for ; q.sent != now; q.sent++ {
		var b [prm.WQEBBSize]byte
		must("send queue", q.QP.(verbs.Mlx5QP).SendQueue(x.t, int(q.sent)%q.ring*prm.WQEBBSize, b[:]))
		fmt.Fprintf(x, "%x", b)
	}
	fmt.Fprintln(x)
}

// printStores prints the stores to registers as uarLog does. Pushes come in blocks.
func (x *simPosts) printStores(l []verbs.MMIOWrite) {
	m := prm.UARMap{LogBFRegSize: 9}
	for i := 0; i < len(l); i++ {
		w := l[i]
		a := m.Decode(uint64(w.Offset))
		if a.Kind != prm.UARKindBF {
			continue
		}
		kind := "doorbell"
		if w.Kind == verbs.MMIOBlueFlame {
			kind = "blueflame"
			for i+1 < len(l) && l[i+1].UARPage == w.UARPage && int(l[i+1].Offset) == int(w.Offset)+len(w.Data) {
				i++
				w.Data = append(w.Data, l[i].Data...)
			}
		}
		fmt.Fprintf(x, "ring uar=%d bfreg=%d half=%d %s qpn=%#x index=%d bytes=%x\n", w.UARPage, a.Reg, a.Half, kind, w.QPN, w.Index, w.Data)
	}
}
