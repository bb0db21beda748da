package hca

import (
	"github.com/rdmasim/rdmasim/prm"
)

func cmdQueryHCACap(d *Device, in, out []byte) prm.Status {
	mod := prm.CmdIn(in).OpMod()
	if prm.QueryHCACapIn(in).OtherFunction() {
		return prm.StatusBadParam
	}
	c := d.fw.caps[mod>>1]
	if c == nil {
		return prm.StatusBadParam
	}
	b := &c.max
	if mod&1 == prm.CapModeCurrent {
		b = &c.cur
	}
	copy(prm.QueryHCACapOut(out).Capability(), b[:])
	return prm.StatusOK
}

// cmdSetHCACap takes a page over. Limits may be lowered, never raised above max. Of the atomic page
// only the endianness of requests can be set: Linux leaves all else of the body 0
// (handle_hca_cap_atomic), and other pages not at all.
func cmdSetHCACap(d *Device, in, _ []byte) prm.Status {
	t := prm.CmdIn(in).OpMod() >> 1
	c := d.fw.caps[t]
	if c == nil {
		return prm.StatusBadParam
	}
	body := prm.SetHCACapIn(in).Capability()
	switch t {
	case prm.CapGeneral:
		want, top := prm.HCACap(body), prm.HCACap(c.max[:])
		for _, v := range [][2]uint32{
			{want.LogMaxQP(), top.LogMaxQP()}, {want.LogMaxQPSz(), top.LogMaxQPSz()},
			{want.LogMaxCQ(), top.LogMaxCQ()}, {want.LogMaxCQSz(), top.LogMaxCQSz()},
			{want.LogMaxMKey(), top.LogMaxMKey()}, {want.LogMaxPD(), top.LogMaxPD()},
			{want.LogMaxRAReqQP(), top.LogMaxRAReqQP()}, {want.LogMaxRAResQP(), top.LogMaxRAResQP()},
			{want.LogBFRegSize(), top.LogBFRegSize()},
		} {
			if v[0] > v[1] {
				return prm.StatusBadParam
			}
		}
		if d.qpNums.next > firstQPN {
			d.qpNums.limit = 1 << want.LogMaxQP()
		} else {
			d.limitQPs(want.LogMaxQP())
		}
	case prm.CapAtomic:
		mode := prm.AtomicCap(body).AtomicReq8BEndiannessMode()
		if mode > 1 || mode == 1 && !prm.AtomicCap(c.max[:]).SupportedAtomicReq8BEndiannessMode1() {
			return prm.StatusBadParam
		}
		prm.AtomicCap(c.cur[:]).SetAtomicReq8BEndiannessMode(mode)
		return prm.StatusOK
	case prm.CapODP:
		return d.setODP(c, body)
	case prm.CapRoCE:
	default:
		return prm.StatusBadParam
	}
	copy(c.cur[:], body)
	return prm.StatusOK
}

// vendorOUI is what the boards of this vendor report.
const vendorOUI = 0x0002c9

func cmdQueryAdapter(d *Device, _, out []byte) prm.Status {
	a := prm.AdapterInfo(prm.QueryAdapterOut(out).Adapter())
	a.SetIEEEVendorID(vendorOUI)
	copy(a.PSID(), d.fw.board)
	return prm.StatusOK
}
