package hca

import "github.com/rdmasim/rdmasim/prm"

// Sizes of packet queues: what drivers may ask for.
const (
	logMaxPacketQueue = 15
	logMaxLSO         = 16 // bytes
	logRSSTable       = 7
)

// fillNIC is what the capability pages say of a function whose port can be a network interface.
func (f *firmware) fillNIC(p *Params) {
	c := prm.HCACap(f.caps[prm.CapGeneral].max[:])
	c.SetEthNetOffloads(true)
	c.SetNICFlowTable(true)
	c.SetLogMaxSQ(uint32(p.LogMaxQP))
	c.SetLogMaxRQ(uint32(p.LogMaxQP))
	c.SetLogMaxTIR(logMaxTIR)
	c.SetLogMaxTIS(logMaxTIS)
	c.SetLogMaxRQT(logMaxRQT)
	c.SetLogMaxRQTSize(logMaxRQTSize)
	c.SetLogMaxWQSz(logMaxPacketQueue)
	c.SetMaxWQESzSQ(prm.MaxWQEBytes)
	eth := f.page(prm.CapEth)
	fillEth(prm.EthCap(eth.max[:]))
	tables := f.page(prm.CapNICFlowTable)
	fillFlowTables(prm.NICFlowTableCap(tables.max[:]))
	pages := []*capPage{f.caps[prm.CapGeneral], eth, tables}
	if p.SWSteering {
		if f.caps[prm.CapDeviceMem] == nil {
			f.page(prm.CapDeviceMem)
		}
		pages = append(pages, f.caps[prm.CapDeviceMem], f.caps[prm.CapRoCE])
		f.fillSWSteering(prm.NICFlowTableCap(tables.max[:]))
	}
	for _, page := range pages {
		page.cur = page.max
	}
}

// fillSWSteering offers what programs need to write flow table entries by themselves, and what
// these can do.
func (f *firmware) fillSWSteering(t prm.NICFlowTableCap) {
	g := prm.HCACap(f.caps[prm.CapGeneral].max[:])
	g.SetGeneralObjTypes(g.GeneralObjTypes() | 1<<prm.ObjTypeSWICM | 1<<prm.ObjTypeFlowSampler)
	g.SetDeviceMemory(true)
	m := prm.DeviceMemCap(f.caps[prm.CapDeviceMem].max[:])
	m.SetSteeringICMStart(icmEntries)
	m.SetLogSteeringICMSize(logICMEntries)
	m.SetModifyHeaderICMStart(icmChanges)
	m.SetLogModifyHeaderICMSize(logICMChanges)
	m.SetLogICMGranularity(logICMGranularity)
	// Programs write entries by RDMA to themselves.
	prm.RoCECap(f.caps[prm.CapRoCE].max[:]).SetFLRCQPWhenRoCEEnabled(true)

	t.SetEncapGeneralHeader(true)
	t.SetLogMaxReformatContext(logTunnels)
	t.SetMaxEncapHeaderSize(maxTunnelHeaders)
	t.SetRxDropICM(icmDropRx)
	t.SetTxDropICM(icmDropTx)
	t.SetTxAllowICM(icmAllowTx)
	fillTables(t.Transmit())
	t.Receive().SetDecap(true)
	for _, r := range []prm.FlowTableProperties{t.Receive(), t.Transmit()} {
		r.SetReformat(true)
		r.SetReformatAndModify(true)
		r.SetSWOwner(true)
		r.SetTerminationTable(true)
		r.SetLogMaxModifyHeader(logRewrites)
		r.SetMaxModifyHeaderActions(maxRewrite)
	}
}

// fillEth offers checksums, long sends and hashes, which Linux uses without looking whether they
// are there, the FCS of received packets, and nothing else. VLAN tags and headers are the driver's
// to write.
func fillEth(c prm.EthCap) {
	c.SetCsumCap(true)
	c.SetVLANCap(true)
	c.SetScatterFCS(true)
	c.SetMaxLSOCap(logMaxLSO)
	c.SetWQEInlineMode(prm.WQEInlineNone)
	c.SetRSSIndTblCap(logRSSTable)
	c.SetSelfLBEnModifiable(true)
}

func fillFlowTables(c prm.NICFlowTableCap) {
	c.SetMultiPathTIRs(true)
	fillTables(c.Receive())
}

// fillTables is what the flow tables of a kind can do.
func fillTables(r prm.FlowTableProperties) {
	r.SetSupport(true)
	r.SetFlowCounter(true)
	r.SetFlowModifyEn(true)
	r.SetModifyRoot(true)
	r.SetIdentifiedMissTableMode(true)
	r.SetFlowTableModify(true)
	r.SetLogMaxSize(logFlowTableSize)
	r.SetMaxLevel(maxFlowLevel)
	r.SetLogMaxTables(logFlowTables)
	r.SetLogMaxFlowCounter(1)
	r.SetLogMaxDestination(logFlowDestinations)
	r.SetLogMaxFlow(logFlowTableSize)
	for _, f := range []prm.FlowTableFields{r.Fields(), r.FieldBitmasks()} {
		for _, set := range []func(bool){
			f.SetDMAC, f.SetSMAC, f.SetEtherType, f.SetIPVersion, f.SetFirstPrio, f.SetFirstCFI, f.SetFirstVID, f.SetIPv4TTL, f.SetSIP, f.SetDIP,
			f.SetFrag, f.SetIPProtocol, f.SetIPECN, f.SetIPDSCP, f.SetUDPSport, f.SetUDPDport, f.SetTCPSport, f.SetTCPDport, f.SetTCPFlags,
		} {
			set(true)
		}
	}
}
