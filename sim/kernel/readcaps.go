package kernel

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// queryCap reads a capability page.
func (k *call) queryCap(page, mode uint16) ([]byte, error) {
	out, err := k.simple(prm.OpQueryHCACap, page<<1|mode)
	if err != nil {
		return nil, fmt.Errorf("capability page %#x: %w", page, err)
	}
	return prm.QueryHCACapOut(out).Capability(), nil
}

// changeCap copies the current page, lets f change it with the maxima in sight, and
// sets it when f says so.
func (k *call) changeCap(page uint16, f func(cur, most []byte) bool) error {
	cur, err := k.queryCap(page, prm.CapModeCurrent)
	if err != nil {
		return err
	}
	most, err := k.queryCap(page, prm.CapModeMax)
	if err != nil {
		return err
	}
	in := prm.NewIn(prm.OpSetHCACap, 0)
	prm.CmdIn(in).SetOpMod(page << 1)
	body := prm.SetHCACapIn(in).Capability()
	copy(body, cur)
	if !f(body, most) {
		return nil
	}
	return k.exec(in, prm.NewOut(prm.OpSetHCACap, 0))
}

// maxLogQP is what the driver's default profile asks for at most (2^18 QPs).
const maxLogQP = 18

// setCaps is set_hca_cap: general, atomic, ODP and RoCE pages.
func (d *Device) setCaps(k *call) error {
	var atomic, roce, paging bool
	err := k.changeCap(prm.CapGeneral, func(cur, most []byte) bool {
		c, m := prm.HCACap(cur), prm.HCACap(most)
		atomic, roce, paging = m.Atomic(), m.RoCE(), c.PG()
		c.SetLogMaxQP(min(maxLogQP, m.LogMaxQP()))
		c.SetPKeyTableSize(0)
		c.SetCmdifChecksum(0)
		c.SetLogUARPageSz(0)
		if m.CacheLine128byte() {
			c.SetCacheLine128byte(d.p.CacheLine >= 128)
		}
		if m.RoCERWSupported() {
			c.SetRoCE(true)
		}
		return true
	})
	if err != nil {
		return err
	}
	if atomic {
		err := k.changeCap(prm.CapAtomic, func(cur, most []byte) bool {
			if !prm.AtomicCap(most).SupportedAtomicReq8BEndiannessMode1() || prm.AtomicCap(cur).AtomicReq8BEndiannessMode() != 0 {
				return false
			}
			clear(cur) // the driver sends this one field
			prm.AtomicCap(cur).SetAtomicReq8BEndiannessMode(1)
			return true
		})
		if err != nil {
			return err
		}
	}
	if paging {
		if err := k.changeCap(prm.CapODP, choosePaging); err != nil {
			return err
		}
	}
	if !roce {
		return nil
	}
	return k.changeCap(prm.CapRoCE, func(cur, most []byte) bool {
		if prm.RoCECap(cur).SWRRoCESrcUDPPort() || !prm.RoCECap(most).SWRRoCESrcUDPPort() {
			return false
		}
		prm.RoCECap(cur).SetSWRRoCESrcUDPPort(true)
		return true
	})
}

// readCaps reads the pages that count from now on.
func (d *Device) readCaps(k *call) error {
	page, err := k.queryCap(prm.CapGeneral, prm.CapModeCurrent)
	if err != nil {
		return err
	}
	g := prm.HCACap(page)
	c := &d.caps
	switch {
	case g.PortType() == prm.PortTypeIB:
		if err := c.readIB(g); err != nil {
			return err
		}
	case g.PortType() != prm.PortTypeEth || !g.RoCE():
		return fmt.Errorf("port type %d, RoCE %v: neither RoCE nor InfiniBand: %w", g.PortType(), g.RoCE(), syscall.EOPNOTSUPP)
	}
	c.general(g)
	c.roceAccl = g.RoCEAccl()
	if err := errors.Join(c.specialKeys(k, g), c.deviceMemory(k, g), c.paging(k, g), c.packetCaps(k, g)); err != nil {
		return err
	}
	if g.Atomic() {
		page, err := k.queryCap(prm.CapAtomic, prm.CapModeCurrent)
		if err != nil {
			return err
		}
		c.atomic(prm.AtomicCap(page))
	}
	if c.ib {
		return nil
	}
	page, err = k.queryCap(prm.CapRoCE, prm.CapModeCurrent)
	if err != nil {
		return err
	}
	c.gids = int(prm.RoCECap(page).RoCEAddressTableSize())
	c.roceV2 = prm.RoCECap(page).RoCEVersion() == prm.RoCEVersion2Cap
	if prm.RoCECap(page).QPTSFormat() == 1 { // real time only
		c.tsFormat = 1
	}
	return nil
}

// specialKeys is mlx5r_cmd_query_special_mkeys.
func (c *caps) specialKeys(k *call, g prm.HCACap) error {
	c.endOfList = prm.InvalidLKey
	c.dumpFill = g.DumpFillMKey()
	if !c.dumpFill && !g.NullMKey() && !g.TerminateScatterListMKey() {
		return nil
	}
	out, err := k.simple(prm.OpQuerySpecialContexts, 0)
	if err != nil {
		return err
	}
	keys := prm.QuerySpecialContextsOut(out)
	if c.dumpFill {
		c.dumpFillKey = keys.DumpFillMKey()
	}
	if g.NullMKey() {
		c.nullKey = keys.NullMKey()
	}
	if g.TerminateScatterListMKey() {
		c.endOfList = keys.TerminateScatterListMKey()
	}
	return nil
}

func (c *caps) general(g prm.HCACap) {
	c.ports = int(g.NumPorts())
	c.logMaxQP, c.logMaxQPSz = g.LogMaxQP(), g.LogMaxQPSz()
	c.logMaxCQ, c.logCQSz = g.LogMaxCQ(), g.LogMaxCQSz()
	c.logMaxMKey, c.logMaxPD = g.LogMaxMKey(), g.LogMaxPD()
	c.logMaxSRQ, c.logSRQSz = g.LogMaxSRQ(), g.LogMaxSRQSz()
	c.logMaxMsg, c.logMaxMCG, c.logPGSz = g.LogMaxMsg(), g.LogMaxMCG(), g.LogPGSz()
	c.maxQPMCG = int(g.MaxQPMCG())
	c.logRAReq, c.logRARes = g.LogMaxRAReqQP(), g.LogMaxRAResQP()
	c.dct, c.logRAReqDC, c.logRAResDC = g.DCT(), g.LogMaxRAReqDC(), g.LogMaxRAResDC()
	c.maxWQESQ, c.maxWQERQ = int(g.MaxWQESzSQ()), int(g.MaxWQESzRQ())
	c.counterSets = int(g.MaxQPCnt())
	c.ackDelay = uint8(g.LocalCAAckDelay())
	c.pkeys = 128 << g.PKeyTableSize()
	c.statRates = g.StatRateSupport()
	c.cqeVersion = uint8(g.CQEVersion())
	if g.BF() {
		c.bfRegSize = 1 << g.LogBFRegSize()
	}
	c.clockKHz = uint64(g.DeviceFrequencyKHz())
	c.udpSport = g.RTS2RTSQPUDPSport()
	c.streams = DCIStreams{uint8(g.LogMaxDCIStreamChannels()), uint8(g.LogMaxDCIErroredStreams())}
	c.transportDomains = g.LogMaxTransportDomain() > 0
	c.pageAccess, c.xrc, c.memoryWindows = g.PG(), g.XRC(), g.IMAICL()
	c.scatterToCQE, c.cqResize, c.endPad = g.SctrDataCQE(), g.CQResize(), g.EndPad()
	c.cqModeration = g.CQModeration()
	c.cq128 = g.CQE128Always()
	c.cqeComp, c.cqeComp128 = g.CQECompression(), g.CQECompression128()
	c.miniStrideIndex, c.cqeCompMax = g.MiniCQERespStrideIndex(), g.CQECompressionMaxNum()
	if g.DMAMMOSQ() {
		if c.copyMax = prm.MMOMaxBytes; g.LogDMAMMOMaxSize() > 0 {
			c.copyMax = 1 << g.LogDMAMMOMaxSize()
		}
	}
	c.roWrite = g.RelaxedOrderingWrite()
	c.roRead = g.RelaxedOrderingRead() || g.RelaxedOrderingReadPCIEnabled()
	c.hasAtomics = g.Atomic()
	c.umrAtomic = !g.Atomic() || !g.UMRModifyAtomicDisabled()
	c.umrROWrite, c.umrRORead = g.RelaxedOrderingWriteUMR(), g.RelaxedOrderingReadUMR()
	c.pkv, c.qkv, c.apm = g.PKV(), g.QKV(), g.APM()
	c.blockLBMC = g.BlockLBMC()
	c.maxEQs = int(g.MaxNumEQs())
	if c.maxEQs == 0 {
		c.maxEQs = 1 << g.LogMaxEQ()
	}
}

// atomic chooses the mode of QPs (get_atomic_mode, atomic_size_to_mode) and what
// programs are shown of it (get_atomic_caps).
func (c *caps) atomic(a prm.AtomicCap) {
	const plain = prm.AtomicOpCmpSwap | prm.AtomicOpFetchAdd
	ops, sizes := a.AtomicOperations(), a.AtomicSizeQP()&0x1ff
	c.atomicMode, c.dcAtomicMode = atomicMode(ops, sizes), atomicMode(ops, a.AtomicSizeDC()&0x1ff)
	c.hostAtomics = ops&plain == plain && sizes&(1<<3) != 0 && a.AtomicReq8BEndiannessMode() != 0
}

// atomicMode is get_atomic_mode, for the sizes of a kind of queue; 0: it has no atomics.
func atomicMode(ops, sizes uint32) (mode uint32) {
	const plain = prm.AtomicOpCmpSwap | prm.AtomicOpFetchAdd
	switch {
	case ops&(prm.AtomicOpMaskedCmpSwap|prm.AtomicOpMaskedFetchAdd) != 0 && sizes != 0:
		mode = prm.AtomicModeUpTo8B
		for n := uint32(4); n < 9; n++ {
			if sizes>>n != 0 {
				mode = n
			}
		}
	case ops&plain == plain:
		mode = prm.AtomicModeIBComp
	}
	return mode
}

// readNICVport reads the MAC address and the GUIDs of a RoCE device.
func (d *Device) readNICVport(k *call) error {
	out, err := k.simple(prm.OpQueryNICVportContext, 0)
	if err != nil {
		return err
	}
	v := prm.QueryNICVportContextOut(out).Context()
	copy(d.caps.mac[:], v.PermanentAddress())
	d.caps.nodeGUID, d.caps.sysImageGUID = v.NodeGUID(), v.SystemImageGUID()
	return nil
}

// readVport reads what the port is called, and the board and firmware.
func (d *Device) readVport(k *call) error {
	c := &d.caps
	read := d.readNICVport
	if c.ib {
		read = d.readHCAVport
	}
	if err := read(k); err != nil {
		return err
	}
	if c.nodeGUID == 0 {
		return fmt.Errorf("the port has no node GUID: %w", syscall.EIO)
	}
	out, err := k.simple(prm.OpQueryAdapter, 0)
	if err != nil {
		return err
	}
	c.vendorID = prm.AdapterInfo(prm.QueryAdapterOut(out).Adapter()).IEEEVendorID()
	var head [prm.InitSegHeadSize]byte
	d.link.Function().MMIORead(0, head[:])
	seg := prm.InitSeg(head[:])
	c.fwMajor, c.fwMinor, c.fwSub = int(seg.FWMajor()), int(seg.FWMinor()), int(seg.FWSub())
	return nil
}

func (c *caps) deviceMemory(k *call, g prm.HCACap) error {
	if !g.DeviceMemory() {
		return nil
	}
	page, err := k.queryCap(prm.CapDeviceMem, prm.CapModeCurrent)
	if err != nil {
		return err
	}
	if m := prm.DeviceMemCap(page); m.Memic() {
		c.memic = memicCaps{uint64(m.MaxMemicSize()), m.MemicBARStartAddr(), int(m.MemicBARSize() / prm.PageSize), m.LogMaxMemicAddrAlignment(),
			m.MemicOperations()}
	}
	return nil
}

// readIB takes over what an InfiniBand port needs: mlx5_ib_port_link_layer and the table
// sizes of mlx5_query_hca_port. Devices that are asked by management datagrams
// (MLX5_VPORT_ACCESS_METHOD_MAD) are not modelled.
func (c *caps) readIB(g prm.HCACap) error {
	if !g.IBVirt() {
		return fmt.Errorf("an InfiniBand device without ib_virt: %w", syscall.EOPNOTSUPP)
	}
	c.ib = true
	if code := g.GIDTableSize(); code <= 4 { // mlx5_get_gid_table_len
		c.gids = 8 << code
	}
	return nil
}
