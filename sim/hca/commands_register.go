package hca

import "github.com/rdmasim/rdmasim/prm"

// register is a row of the table of ACCESS_REG. r is the register as the driver sent it, its index
// fields checked, and what read leaves there is the answer. After any status but OK nothing has
// changed.
type register struct {
	size        int
	ofPort      bool // its first word names a port
	linkLayers  LinkLayers
	read, write func(d *Device, r []byte) prm.Status
}

// registers is that table. What is not in it, the driver finds missing.
var registers = map[prm.Register]register{
	prm.RegHostEndianness: {prm.HostEndiannessSize, false, EitherLinkLayer, readEndianness, writeEndianness},
	prm.RegNodeDesc:       {prm.NodeDescSize, false, EitherLinkLayer, readNodeDesc, writeNodeDesc},
	prm.RegPMTU:           {prm.PMTURegSize, true, EitherLinkLayer, readPMTU, writePMTU},
	prm.RegPTYS:           {prm.PTYSRegSize, true, EitherLinkLayer, readPTYS, writePTYS},
	prm.RegPPCNT:          {prm.PPCNTRegSize, true, EitherLinkLayer, readPPCNT, readOnly},
	prm.RegPAOS:           {prm.PAOSRegSize, true, EthernetOnly, readPAOS, writePAOS},
	prm.RegPFCC:           {prm.PFCCRegSize, true, EthernetOnly, readPFCC, writePFCC},
	prm.RegROCEAccl:       {prm.ROCEAcclRegSize, false, EthernetOnly, readROCEAccl, writeROCEAccl},
	prm.RegPVLC:           {prm.PVLCRegSize, true, InfiniBandOnly, readPVLC, writePVLC},
}

// cmdAccessReg reads or writes a register of the port or of the device.
func cmdAccessReg(d *Device, in, out []byte) prm.Status {
	m, o := prm.AccessRegIn(in), prm.AccessRegOut(out)
	method := prm.CmdIn(in).OpMod()
	reg, ok := registers[m.RegisterID()]
	switch {
	case method != prm.AccessRegRead && method != prm.AccessRegWrite:
		return prm.StatusBadOp
	case !ok || !reg.linkLayers.Has(d.p.LinkLayer):
		return prm.StatusBadParam
	case len(m.Data()) < reg.size:
		return prm.StatusBadInpLen
	case len(o.Data()) < reg.size:
		return prm.StatusBadOutpLen
	case reg.ofPort && prm.PMTUReg(m.Data()).LocalPort() != 1: // the same place in all of them
		return prm.StatusBadParam
	}
	r := o.Data()[:reg.size]
	copy(r, m.Data())
	if method == prm.AccessRegRead {
		return reg.read(d, r)
	}
	if st := reg.write(d, r); st != prm.StatusOK {
		return st
	}
	return reg.read(d, r)
}

func readOnly(*Device, []byte) prm.Status { return prm.StatusBadParam }

func readEndianness(d *Device, r []byte) prm.Status {
	r[0] = d.regs.endianness
	return prm.StatusOK
}

func writeEndianness(d *Device, r []byte) prm.Status {
	if r[0] != prm.HostLittleEndian && r[0] != prm.HostBigEndian {
		return prm.StatusBadParam
	}
	d.regs.endianness = r[0]
	return prm.StatusOK
}

func readNodeDesc(d *Device, r []byte) prm.Status {
	copy(r, d.regs.nodeDesc[:])
	return prm.StatusOK
}

func writeNodeDesc(d *Device, r []byte) prm.Status {
	copy(d.regs.nodeDesc[:], r)
	return prm.StatusOK
}

func readPMTU(d *Device, r []byte) prm.Status {
	m := prm.PMTUReg(r)
	m.SetMaxMTU(maxEthernetMTU)
	m.SetAdminMTU(d.regs.adminMTU)
	m.SetOperMTU(d.regs.adminMTU)
	if d.ib != nil { // there they are the MTUs of InfiniBand, payload only
		m.SetMaxMTU(maxIBMTU)
		m.SetAdminMTU(uint32(d.ib.info.MTU.Bytes()))
		m.SetOperMTU(uint32(d.ib.info.MTU.Bytes()))
	}
	return prm.StatusOK
}

// writePMTU sets what the port shall carry. On InfiniBand that is for the subnet manager.
func writePMTU(d *Device, r []byte) prm.Status {
	mtu := prm.PMTUReg(r).AdminMTU()
	if d.ib != nil || mtu == 0 || mtu > maxEthernetMTU {
		return prm.StatusBadParam
	}
	d.regs.adminMTU = mtu
	return prm.StatusOK
}

// maxIBMTU is the largest MTU of InfiniBand in bytes.
const maxIBMTU = 4096

func readPTYS(d *Device, r []byte) prm.Status {
	t := prm.PTYSReg(r)
	can, admin := protocolsOf(&d.p), d.regs.protocols
	mask := t.ProtoMask()
	clear(r[4:])
	t.SetConnectorType(prm.PTYSDirectAttach)
	switch {
	case mask == prm.PTYSEthernet && d.ib == nil:
		t.SetExtEthProtoCapability(can.ext)
		t.SetEthProtoCapability(can.eth)
		t.SetExtEthProtoAdmin(admin.ext)
		t.SetEthProtoAdmin(admin.eth)
		if !d.port.linkDown {
			t.SetExtEthProtoOper(can.ext)
			t.SetEthProtoOper(can.eth)
		}
	case mask == prm.PTYSInfiniBand && d.ib != nil:
		t.SetIBLinkWidthCapability(can.width)
		t.SetIBProtoCapability(can.ib)
		t.SetIBLinkWidthAdmin(admin.width)
		t.SetIBProtoAdmin(admin.ib)
		// Inferred: without a link the width is still one that drivers know.
		t.SetIBLinkWidthOper(can.width)
		t.SetIBProtoOper(can.ib)
	case mask == 0 || mask&^(prm.PTYSEthernet|prm.PTYSInfiniBand) != 0:
		return prm.StatusBadParam
	}
	return prm.StatusOK // of another link layer the port has nothing
}

// writePTYS takes what the link may be: the one kind that it can be, or all of them.
func writePTYS(d *Device, r []byte) prm.Status {
	t, can := prm.PTYSReg(r), protocolsOf(&d.p)
	want := linkProtocols{t.ExtEthProtoAdmin(), t.EthProtoAdmin(), t.IBLinkWidthAdmin(), t.IBProtoAdmin()}
	switch mask := t.ProtoMask(); {
	case mask == prm.PTYSEthernet && d.ib == nil:
		want.width, want.ib = 0, 0
	case mask == prm.PTYSInfiniBand && d.ib != nil:
		want.ext, want.eth = 0, 0
	default:
		return prm.StatusBadParam
	}
	if want.ext&can.ext != can.ext || want.eth&can.eth != can.eth || want.width&can.width != can.width || want.ib&can.ib != can.ib {
		return prm.StatusBadParam // the link would stay down
	}
	d.regs.protocols = can
	return prm.StatusOK
}

func readPAOS(d *Device, r []byte) prm.Status {
	p := prm.PAOSReg(r)
	p.SetAdminStatus(prm.PortUp)
	p.SetOperStatus(prm.PortDown)
	if d.regs.adminDown {
		p.SetAdminStatus(prm.PortDown)
	}
	if d.portUp() {
		p.SetOperStatus(prm.PortUp)
	}
	p.SetE(d.regs.events)
	return prm.StatusOK
}

func writePAOS(d *Device, r []byte) prm.Status {
	p := prm.PAOSReg(r)
	admin := p.AdminStatus()
	if p.ASE() && admin != prm.PortUp && admin != prm.PortDown {
		return prm.StatusBadParam
	}
	if p.EE() {
		d.regs.events = p.E()
	}
	if p.ASE() {
		was := d.portUp()
		d.regs.adminDown = admin == prm.PortDown
		d.reportPort(was)
	}
	return prm.StatusOK
}

// readPFCC: the classes of the wire's flow control are the profile's, in both directions.
func readPFCC(d *Device, r []byte) prm.Status {
	p := prm.PFCCReg(r)
	clear(r[4:])
	p.SetPFCTx(uint32(d.lossless()))
	p.SetPFCRx(uint32(d.lossless()))
	return prm.StatusOK
}

// writePFCC refuses what would change anything: what pauses a port as a whole is not modelled, and
// its classes are the wire's.
func writePFCC(d *Device, r []byte) prm.Status {
	p, have := prm.PFCCReg(r), uint32(d.lossless())
	whole := p.PPTx() && !p.PPTxMaskN() || p.PPRx() && !p.PPRxMaskN()
	if whole || (p.PFCTx()^have)&p.PrioMaskTx() != 0 || (p.PFCRx()^have)&p.PrioMaskRx() != 0 {
		return prm.StatusBadParam
	}
	return prm.StatusOK
}

func readPVLC(d *Device, r []byte) prm.Status {
	v := prm.PVLCReg(r)
	v.SetVLHWCap(vlHWCap)
	v.SetVLAdmin(d.regs.lanes)
	v.SetVLOperational(uint32(d.ib.info.VLs))
	return prm.StatusOK
}

func writePVLC(d *Device, r []byte) prm.Status {
	switch n := prm.PVLCReg(r).VLAdmin(); n {
	case 1, 2, 4:
		d.regs.lanes = n
		return prm.StatusOK
	}
	return prm.StatusBadParam
}

// ppcntPortCounters is the length of PortCounters in bytes.
const ppcntPortCounters = 44

// readPPCNT gives the counters of the port that the model has; the others of a group are 0.
func readPPCNT(d *Device, r []byte) prm.Status {
	p, c := prm.PPCNTReg(r), &d.c
	if p.Clr() {
		return prm.StatusBadParam // not modelled, and drivers do not ask for it
	}
	grp, tc := p.Grp(), p.PrioTC()
	clear(r[8:])
	switch grp {
	case prm.PPCNT8023:
		p.SetCounter(prm.PC8023TxFrames, c.TxPackets)
		p.SetCounter(prm.PC8023RxFrames, c.RxPackets)
		p.SetCounter(prm.PC8023TxOctets, c.TxOctets)
		p.SetCounter(prm.PC8023RxOctets, c.RxOctets)
	case prm.PPCNTRFC2863:
		p.SetCounter(prm.PC2863RxOctets, c.RxOctets)
		p.SetCounter(prm.PC2863RxUnicast, c.RxPackets)
		p.SetCounter(prm.PC2863TxOctets, c.TxOctets)
		p.SetCounter(prm.PC2863TxUnicast, c.TxPackets)
	case prm.PPCNTRFC2819:
		p.SetCounter(prm.PC2819Octets, c.RxOctets)
		p.SetCounter(prm.PC2819Packets, c.RxPackets)
	case prm.PPCNTPriority:
		if tc > 7 {
			return prm.StatusBadParam
		}
		if tc == 0 {
			p.SetCounter(prm.PCPriorityRxOct, c.RxOctets)
			p.SetCounter(prm.PCPriorityRxFrm, c.RxPackets)
			p.SetCounter(prm.PCPriorityTxOct, c.TxOctets)
			p.SetCounter(prm.PCPriorityTxFrm, c.TxPackets)
		}
	case prm.PPCNTTC:
		if tc > 7 {
			return prm.StatusBadParam
		}
	case prm.PPCNTInfiniBand:
		if d.ib != nil {
			// The structure is PortCounters (ib_port_cntrs_grp_data_layout), without its first
			// word.
			var b [ppcntPortCounters]byte
			d.agents.pma.Counters(1).Put(b[:], false)
			copy(r[8:], b[4:])
		}
	case prm.PPCNTRFC3635, prm.PPCNTExtended, prm.PPCNTPhysical:
	default:
		return prm.StatusBadParam
	}
	return prm.StatusOK
}
