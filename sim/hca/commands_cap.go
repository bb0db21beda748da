package hca

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// capPage is one capability page: what could be, and what is.
type capPage struct{ max, cur [0x1000]byte }

// firmware is the state that is neither a queue nor a table.
type firmware struct {
	phase phase
	issi  uint8
	caps  map[uint16]*capPage // by type; looked up, never walked
	vport [prm.NICVportContextSize]byte
	board string
}

func newFirmware(p *Params, id *Identity) firmware {
	f := firmware{board: id.BoardID, caps: map[uint16]*capPage{}}
	general := f.page(prm.CapGeneral)
	fillGeneral(prm.HCACap(general.max[:]), p)
	odp := f.page(prm.CapODP)
	_ = odp // all zero: no on-demand paging yet
	atomic := f.page(prm.CapAtomic)
	a := prm.AtomicCap(atomic.max[:])
	if p.Atomics {
		a.SetAtomicReq8BEndiannessMode(1)
		a.SetSupportedAtomicReq8BEndiannessMode1(true)
		a.SetAtomicOperations(prm.AtomicOpCmpSwap | prm.AtomicOpFetchAdd)
		a.SetAtomicSizeQP(1 << 3)
	}
	roce := f.page(prm.CapRoCE)
	r := prm.RoCECap(roce.max[:])
	r.SetSWRRoCESrcUDPPort(true)
	r.SetQPTSFormat(0)
	r.SetL3Type(1<<1 | 1<<2)
	r.SetRoCEVersion(prm.RoCEVersion1Cap | prm.RoCEVersion2Cap)
	r.SetRRoCEDestUDPPort(4791)
	r.SetRRoCEMinSrcUDPPort(0xc000)
	r.SetRRoCEMaxSrcUDPPort(0xffff)
	r.SetRoCEAddressTableSize(uint32(p.GIDTableSize))
	if p.LinkLayer == InfiniBand {
		fillIB(prm.HCACap(general.max[:]))
		delete(f.caps, prm.CapRoCE)
	}
	pages := []*capPage{general, atomic, roce}
	if p.MemicSize > 0 {
		prm.HCACap(general.max[:]).SetDeviceMemory(true)
		memory := f.page(prm.CapDeviceMem)
		fillMemic(prm.DeviceMemCap(memory.max[:]), p)
		pages = append(pages, memory)
	}
	for _, c := range pages {
		c.cur = c.max
	}
	v := prm.NICVportContext(f.vport[:])
	v.SetMTU(9216)
	v.SetSystemImageGUID(id.GUID)
	v.SetPortGUID(id.GUID)
	v.SetNodeGUID(id.GUID)
	copy(v.PermanentAddress(), id.MAC[:])
	return f
}

func (f *firmware) page(t uint16) *capPage {
	c := new(capPage)
	f.caps[t] = c
	return c
}

// fillGeneral writes the general page: what this model does, and no more.
func fillGeneral(c prm.HCACap, p *Params) {
	c.SetPageRequestDisable(true)
	c.SetLogMaxQP(uint32(p.LogMaxQP))
	c.SetLogMaxQPSz(uint32(p.LogMaxQPSize))
	c.SetLogMaxSRQ(uint32(p.LogMaxSRQ))
	c.SetLogMaxSRQSz(uint32(p.LogMaxSRQSz))
	c.SetLogMaxRMP(uint32(p.LogMaxSRQ))
	c.SetGoBackN(true)
	c.SetMaxSGLForOptimizedPerformance(uint32((p.MaxWQESizeSQ - 32) / 16))
	c.SetLogMaxCQ(uint32(p.LogMaxCQ))
	c.SetLogMaxCQSz(uint32(p.LogMaxCQSize))
	c.SetCQResize(true)
	c.SetCQModeration(true)
	c.SetCQE128Always(true)
	if p.CQECompMax > 0 {
		c.SetCQECompression(true)
		c.SetCQECompression128(true)
		c.SetMiniCQERespStrideIndex(true)
		c.SetCQECompressionTimeout(uint32(p.CQECompTimeout / sim.Microsecond))
		c.SetCQECompressionMaxNum(uint32(p.CQECompMax))
	}
	c.SetLogMaxEQ(uint32(min(p.LogMaxEQ, 15)))
	c.SetLogMaxEQSz(uint32(p.LogMaxEQSize))
	c.SetMaxNumEQs(1<<p.LogMaxEQ - 1)
	c.SetLogMaxMKey(uint32(p.LogMaxMkey))
	c.SetLogMaxMRWSz(63)
	c.SetLogMaxKLMListSize(uint32(p.LogMaxKLMList))
	c.SetLogMaxRAReqQP(uint32(p.LogMaxRAReq))
	c.SetLogMaxRAResQP(uint32(p.LogMaxRARes))
	c.SetOutOfSeqCnt(true)
	c.SetVportCounters(true)
	c.SetRetransmissionQCounters(true)
	c.SetRoCEAccl(p.AdaptiveRetrans)
	c.SetEnhancedErrorQCounters(true)
	c.SetRTS2RTSQPCountersSetID(true)
	c.SetMaxQPCnt(uint32(p.MaxQCounters))
	c.SetLocalCAAckDelay(uint32(p.LocalCAAckDelay))
	c.SetPortType(prm.PortTypeEth)
	c.SetNumPorts(1)
	c.SetLogMaxMsg(uint32(p.LogMaxMsg))
	c.SetCQEVersion(uint32(p.CQEVersion))
	c.SetIMAICL(true)
	c.SetDumpFillMKey(p.DumpFillMkey)
	c.SetUMRModifyEntitySizeDisabled(true) // a UMR changes no translations
	c.SetRelaxedOrderingWriteUMR(true)
	c.SetRelaxedOrderingReadUMR(true)
	// The bus may reorder what a key with these rights moves; this one does not.
	c.SetRelaxedOrderingWrite(true)
	c.SetRelaxedOrderingRead(true)
	c.SetSctrDataCQE(p.ScatterToCQE)
	c.SetRoCE(true)
	c.SetRoCERWSupported(true)
	c.SetAtomic(p.Atomics)
	c.SetRC(true)
	c.SetUC(true)
	c.SetUD(true)
	c.SetUARSz(uint32(max(0, bits.Len(uint(p.BARSize>>20))-1)))
	c.SetUmemUID0(true)
	c.SetLogPGSz(prm.PageShift)
	if p.BFRegSize > 0 {
		c.SetBF(true)
		c.SetLogBFRegSize(uint32(bits.Len(uint(p.BFRegSize)) - 1))
	}
	c.SetMaxWQESzSQ(uint32(p.MaxWQESizeSQ))
	c.SetMaxWQESzRQ(uint32(p.MaxWQESizeRQ))
	c.SetLogMaxPD(uint32(p.LogMaxPD))
	c.SetLogMaxXRCD(uint32(p.LogMaxXRCD))
	c.SetLogMaxTransportDomain(uint32(p.LogMaxPD))
	c.SetLogMaxMCG(uint32(p.LogMaxMCG))
	c.SetDeviceFrequencyMHz(uint32(p.CoreClockKHz / 1000))
	c.SetDeviceFrequencyKHz(uint32(p.CoreClockKHz))
	c.SetNumOfUARsPerPage(1)
}

// general is the current general page.
func (f *firmware) general() prm.HCACap { return prm.HCACap(f.caps[prm.CapGeneral].cur[:]) }

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

// cmdSetHCACap takes a page over. Limits may be lowered, never raised above max.
func cmdSetHCACap(d *Device, in, _ []byte) prm.Status {
	t := prm.CmdIn(in).OpMod() >> 1
	c := d.fw.caps[t]
	if c == nil {
		return prm.StatusBadParam
	}
	body := prm.SetHCACapIn(in).Capability()
	if t == prm.CapGeneral {
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
		d.qpNums.limit = 1 << want.LogMaxQP()
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
