package hca

import "github.com/rdmasim/rdmasim/prm"

// readROCEAccl gives the modes of retransmission.
func readROCEAccl(d *Device, r []byte) prm.Status {
	if !d.p.RoCEAccl {
		return prm.StatusBadParam
	}
	clear(r)
	a := prm.ROCEAcclReg(r)
	a.SetHasAdpRetrans(true)
	a.SetHasSlowRestart(true)
	a.SetHasMinAckTimeoutLimitDisabled(true)
	a.SetAdpRetransEn(d.accl.adaptive)
	a.SetSlowRestartEn(d.accl.slowRestart)
	a.SetMinAckTimeoutLimitDisabled(d.accl.unlimited)
	return prm.StatusOK
}

// writeROCEAccl takes the modes that the driver selects. Connections that are in RTS already keep
// theirs, which is assumed: whoever measured the register made new ones.
func writeROCEAccl(d *Device, r []byte) prm.Status {
	if !d.p.RoCEAccl {
		return prm.StatusBadParam
	}
	a := prm.ROCEAcclReg(r)
	if a.HasAdpRetrans() {
		d.accl.adaptive = a.AdpRetransEn()
	}
	if a.HasSlowRestart() {
		d.accl.slowRestart = a.SlowRestartEn()
	}
	if a.HasMinAckTimeoutLimitDisabled() {
		d.accl.unlimited = a.MinAckTimeoutLimitDisabled()
	}
	return prm.StatusOK
}
