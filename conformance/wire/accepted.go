package wire

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// accepted sends every kind of request in many sizes and orders, without loss and
// with, and has the oracle judge each recording as a whole.
func accepted(c *spec.C) {
	for _, loss := range []int{0, 7, 23} {
		l := connect(c, options(c))
		l.far.Set(c, 0, make([]byte, 64))
		if loss > 0 {
			for i := range 6 {
				kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: l.b.QPN, Skip: loss * (i + 1), Count: 1, Action: verbs.WireDrop})
				kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: l.a.QPN(), Skip: loss * (i + 1), Count: 1, Action: verbs.WireDrop})
			}
		}
		packets := l.tap(c, func() {
			for round := range 20 {
				l.b.Recv(c, l.far, 2)
				n := []int{0, 1, mtu, mtu + 1, 3 * mtu, 9*mtu + 5}[round%6]
				imm := l.write(4, n)
				imm.Opcode, imm.Imm = verbs.WRRDMAWriteImm, uint32(round)
				l.postSuccessfully(c, l.write(1, n), l.read(2, n), kit.Send(3, l.mem.SGE(0, n)), imm,
					l.far.FetchAdd(5, 0, 1, l.mem.SGE(0, 8)), l.read(6, 8))
				l.b.Process.AwaitStatuses(c, 2, kit.CompletionTimeout)
			}
		})
		kit.ClearRules(c)
		lost := 0
		for _, p := range packets {
			if p.Acted == verbs.WireDrop {
				lost++
			}
		}
		c.True("loss", (lost > 0) == (loss > 0), "%d packets lost", lost)
		c.Observe(fmt.Sprintf("recording %d accepted", loss), len(l.requests(packets, roce.RCReadRequest)) >= 40)
	}
}
