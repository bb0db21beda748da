//go:build linux && amd64

package pci

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
)

// A guest's driver reads the modes of retransmission from ROCE_ACCL, and selects them on RoCE.
// InfiniBand has no such register.
func TestRetransmissionModes(t *testing.T) {
	for name, want := range map[string]prm.Status{"connectx-5": prm.StatusOK, "connectx-5-ib": prm.StatusBadParam} {
		s := start(t, config(t, 1, name))
		g := dial(t, s.Sockets()[0])
		g.bringUp()
		access := func(method uint16, edit func(prm.ROCEAcclReg)) prm.ROCEAcclReg {
			in := prm.NewIn(prm.OpAccessReg, prm.ROCEAcclRegSize)
			prm.CmdIn(in).SetOpMod(method)
			prm.AccessRegIn(in).SetRegisterID(prm.RegROCEAccl)
			if edit != nil {
				edit(prm.ROCEAcclReg(prm.AccessRegIn(in).Data()))
			}
			out, st := g.try(in, len(prm.NewOut(prm.OpAccessReg, prm.ROCEAcclRegSize)))
			if st != want {
				t.Fatalf("%s: ACCESS_REG of ROCE_ACCL: %v, want %v", name, st, want)
			}
			return prm.ROCEAcclReg(prm.AccessRegOut(out).Data())
		}
		first := access(prm.AccessRegRead, nil)
		if want == prm.StatusOK {
			if !first.AdpRetransEn() || !first.SlowRestartEn() || first.MinAckTimeoutLimitDisabled() {
				t.Errorf("%s after power-on: adaptive %v, slow restart %v, no floor %v", name, first.AdpRetransEn(), first.SlowRestartEn(), first.MinAckTimeoutLimitDisabled())
			}
			access(prm.AccessRegWrite, func(a prm.ROCEAcclReg) {
				a.SetHasMinAckTimeoutLimitDisabled(true)
				a.SetMinAckTimeoutLimitDisabled(true)
			})
			if a := access(prm.AccessRegRead, nil); !a.AdpRetransEn() || !a.SlowRestartEn() || !a.MinAckTimeoutLimitDisabled() {
				t.Errorf("%s without the floor: adaptive %v, slow restart %v, no floor %v", name, a.AdpRetransEn(), a.SlowRestartEn(), a.MinAckTimeoutLimitDisabled())
			}
		}
		g.kill()
		closed(t, s)
	}
}
