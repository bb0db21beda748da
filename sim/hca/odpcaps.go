package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// fillODP writes the capability page of paging on demand, and what the general page says of it.
func fillODP(c prm.ODPCap, general prm.HCACap, p *odp.Params) {
	if !p.On() {
		return
	}
	general.SetPG(true)
	general.SetUMRExtendedTranslationOffset(true)
	general.SetMaxIndirection(mkey.MaxIndirection)
	general.SetFixedBufferSize(p.Implicit)
	general.SetNullMKey(p.Implicit)
	general.SetUMRIndirectMKeyDisabled(!p.Implicit)
	schemes := []prm.ODPSchemeCap{c.Transport()}
	if p.MemoryScheme {
		schemes = append(schemes, c.Memory())
		c.Memory().SetPagePrefetch(true)
		c.SetMemPageFault(true)
	}
	for _, s := range schemes {
		s.SetRC(p.RC)
		s.SetUD(p.UD)
		s.SetXRC(p.XRC)
		s.SetDC(p.DC)
	}
}
