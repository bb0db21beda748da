package hca

import (
	"cmp"
	"math/bits"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// phase is how far the function has been brought up.
type phase uint8

const (
	phaseReset phase = iota
	phaseEnabled
	phaseRunning
)

// capPage is one capability page: what could be, and what is.
type capPage struct{ max, cur [0x1000]byte }

// firmware is the state that is neither a queue nor a table.
type firmware struct {
	phase phase
	issi  uint8
	caps  map[uint16]*capPage // by type; looked up, never walked
	board string
}

func newFirmware(p *Params, id *Identity) firmware {
	f := firmware{board: id.BoardID, caps: map[uint16]*capPage{}}
	general := f.page(prm.CapGeneral)
	fillGeneral(prm.HCACap(general.max[:]), p)
	paging := f.page(prm.CapODP)
	fillODP(prm.ODPCap(paging.max[:]), prm.HCACap(general.max[:]), &p.ODP)
	atomic := f.page(prm.CapAtomic)
	a := prm.AtomicCap(atomic.max[:])
	if p.Atomics {
		a.SetAtomicReq8BEndiannessMode(1)
		a.SetSupportedAtomicReq8BEndiannessMode1(true)
		a.SetAtomicOperations(prm.AtomicOpCmpSwap | prm.AtomicOpFetchAdd)
		a.SetAtomicSizeQP(1 << 3)
		if p.DCT {
			a.SetAtomicSizeDC(1 << 3)
		}
	}
	roce := f.page(prm.CapRoCE)
	r := prm.RoCECap(roce.max[:])
	r.SetSWRRoCESrcUDPPort(true)
	r.SetQPTSFormat(0)
	r.SetL3Type(1<<1 | 1<<2)
	r.SetRoCEVersion(prm.RoCEVersion1Cap | prm.RoCEVersion2Cap)
	if id.RoCEv2 {
		r.SetRoCEVersion(prm.RoCEVersion2Cap)
	}
	r.SetRRoCEDestUDPPort(4791)
	r.SetRRoCEMinSrcUDPPort(0xc000)
	r.SetRRoCEMaxSrcUDPPort(0xffff)
	r.SetRoCEAddressTableSize(uint32(p.GIDTableSize))
	if p.LinkLayer == InfiniBand {
		fillIB(prm.HCACap(general.max[:]))
		delete(f.caps, prm.CapRoCE)
	}
	pages := []*capPage{general, atomic, roce, paging}
	if p.MemicSize > 0 {
		prm.HCACap(general.max[:]).SetDeviceMemory(true)
		memory := f.page(prm.CapDeviceMem)
		fillMemic(prm.DeviceMemCap(memory.max[:]), p)
		pages = append(pages, memory)
	}
	if p.ReservedNumbers > 0 {
		g := prm.HCACap(general.max[:])
		g.SetGeneralObjTypes(g.GeneralObjTypes() | 1<<prm.ObjTypeReservedQPN)
		g.SetHCACap2(true)
		second := f.page(prm.CapGeneral2)
		prm.HCACap2Page(second.max[:]).SetLogReservedQPNGranularity(uint32(p.ReservedNumbers))
		pages = append(pages, second)
	}
	for _, c := range pages {
		c.cur = c.max
	}
	prm.ODPCap(paging.cur[:]).SetMemPageFault(false)
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
	if p.CopyLogMax > 0 {
		c.SetDMAMMOSQ(true)
		c.SetLogDMAMMOMaxSize(uint32(p.CopyLogMax))
	}
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
	c.SetRoCEAccl(p.RoCEAccl)
	c.SetEnhancedErrorQCounters(true)
	c.SetRTS2RTSQPCountersSetID(true)
	c.SetRTS2RTSQPUDPSport(p.UDPSport)
	c.SetMaxQPCnt(uint32(p.MaxQCounters))
	c.SetLocalCAAckDelay(uint32(p.LocalCAAckDelay))
	c.SetPortType(prm.PortTypeEth)
	c.SetNumPorts(1)
	c.SetLogMaxMsg(uint32(p.LogMaxMsg))
	c.SetCQEVersion(uint32(p.CQEVersion))
	c.SetIMAICL(true)
	c.SetBlockLBMC(true)
	c.SetDumpFillMKey(p.DumpFillMkey)
	c.SetRelaxedOrderingWriteUMR(true)
	c.SetRelaxedOrderingReadUMR(true)
	// The bus may reorder what a key with these rights moves; this one does not.
	c.SetRelaxedOrderingWrite(true)
	c.SetRelaxedOrderingRead(true)
	c.SetSctrDataCQE(p.ScatterToCQE)
	c.SetRoCE(true)
	c.SetRoCERWSupported(true)
	c.SetAtomic(p.Atomics)
	c.SetPKV(true)
	c.SetQKV(true)
	c.SetRC(true)
	c.SetUC(true)
	c.SetUD(true)
	c.SetXRC(true) // the domains and SRQs; without it mlx5_ib does not load
	if p.DCT {
		c.SetDCT(true)
		c.SetMaxWQESzSQDC(uint32(p.MaxWQESizeSQ))
		c.SetLogMaxRAReqDC(uint32(p.LogMaxRAReq))
		c.SetLogMaxRAResDC(uint32(p.LogMaxRARes))
		c.SetLogMaxDCIStreamChannels(uint32(p.DCIStreams))
		c.SetLogMaxDCIErroredStreams(uint32(p.DCIStreams))
		c.SetQPCExtension(p.DCIStreams > 0)
	}
	c.SetUARSz(uint32(max(0, bits.Len(uint(p.BARSize>>20))-1)))
	c.SetUmemUID0(true)
	c.SetLogPGSz(prm.PageShift)
	c.SetBF(p.BFRegSize > 0)
	// The registers of a device without BlueFlame are where those of others are: mlx5_ib rings the
	// queue for UMRs at the third.
	c.SetLogBFRegSize(uint32(bits.Len(uint(cmp.Or(p.BFRegSize, plainRegSize))) - 1))
	c.SetMaxWQESzSQ(uint32(p.MaxWQESizeSQ))
	c.SetMaxWQESzRQ(uint32(p.MaxWQESizeRQ))
	c.SetLogMaxPD(uint32(p.LogMaxPD))
	c.SetLogMaxXRCD(uint32(p.LogMaxXRCD))
	c.SetLogMaxTransportDomain(uint32(p.LogMaxPD))
	c.SetLogMaxMCG(uint32(p.LogMaxMCG))
	c.SetMaxQPMCG(uint32(p.MaxQPMCG))
	c.SetLogMaxCurrentUCList(logMaxVportList[prm.VportListUC])
	c.SetLogMaxCurrentMCList(logMaxVportList[prm.VportListMC])
	c.SetLogMaxVLANList(logMaxVportList[prm.VportListVLAN])
	c.SetDeviceFrequencyMHz(uint32(p.CoreClockKHz / 1000))
	c.SetDeviceFrequencyKHz(uint32(p.CoreClockKHz))
	c.SetNumOfUARsPerPage(1)
}

// plainRegSize is the size of a register of sim/uar without BlueFlame.
const plainRegSize = 512

// general is the current general page.
func (f *firmware) general() prm.HCACap { return prm.HCACap(f.caps[prm.CapGeneral].cur[:]) }

// fillIB is what the general page says of a device with an InfiniBand port.
func fillIB(c prm.HCACap) {
	c.SetPortType(prm.PortTypeIB)
	c.SetIBVirt(true)
	c.SetGIDTableSize(ibGIDCode)
	c.SetPKeyTableSize(ibPKeyCode)
	c.SetRoCE(false)
	c.SetRoCERWSupported(false)
	c.SetLogMaxCurrentUCList(0)
	c.SetLogMaxCurrentMCList(0)
	c.SetLogMaxVLANList(0)
}

// fillMemic writes the capability page.
func fillMemic(c prm.DeviceMemCap, p *Params) {
	m := newMemory(p)
	c.SetMemic(true)
	c.SetLogMinMemicAllocSize(6)
	c.SetLogMaxMemicAddrAlignment(prm.PageShift - 6)
	c.SetMemicBARStartAddr(m.start)
	c.SetMemicBARSize(uint32(len(m.pages) * pageBytes))
	c.SetMaxMemicSize(uint32(p.MemicSize))
	if p.MemicOps {
		c.SetMemicOperations(1<<prm.MemicIncrement | 1<<prm.MemicTestAndSet)
		c.SetMemicIncrementSizes(1) // of 1 byte
		c.SetMemicTestAndSetSizes(1)
	}
}
