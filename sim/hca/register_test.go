package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// accessReg is ACCESS_REG with a register of n bytes, which edit fills in. Its answer has the
// register, or the status.
func (h *host) accessReg(method uint16, id prm.Register, n, out int, edit func(r []byte)) ([]byte, prm.Status) {
	h.t.Helper()
	in, answer := prm.NewIn(prm.OpAccessReg, n), prm.NewOut(prm.OpAccessReg, out)
	m := prm.AccessRegIn(in)
	prm.CmdIn(in).SetOpMod(method)
	m.SetRegisterID(id)
	if edit != nil {
		edit(m.Data())
	}
	h.d.Command(in, answer)
	st := prm.CmdOut(answer).Status()
	if st != prm.StatusOK && prm.CmdOut(answer).Syndrome() == 0 {
		h.t.Errorf("register %#x: %v without a syndrome", uint32(id), st)
	}
	return prm.AccessRegOut(answer).Data(), st
}

func (h *host) readReg(id prm.Register, edit func(r []byte)) []byte {
	h.t.Helper()
	n := registers[id].size
	r, st := h.accessReg(prm.AccessRegRead, id, n, n, edit)
	if st != prm.StatusOK {
		h.t.Fatalf("register %#x: %v", uint32(id), st)
	}
	return r
}

func (h *host) writeReg(id prm.Register, want prm.Status, edit func(r []byte)) {
	h.t.Helper()
	n := registers[id].size
	if _, st := h.accessReg(prm.AccessRegWrite, id, n, n, edit); st != want {
		h.t.Errorf("register %#x: %v, want %v", uint32(id), st, want)
	}
}

func port1(r []byte) { prm.PMTUReg(r).SetLocalPort(1) }

// TestAccessReg asks for each register with lengths about its own, for other ports, with unknown
// methods, and for registers that are not there.
func TestAccessReg(t *testing.T) {
	for _, layer := range []LinkLayer{Ethernet, InfiniBand} {
		p := testParams()
		p.LinkLayers, p.LinkLayer, p.RoCEAccl = EitherLinkLayer, layer, true
		h := newHost(t, sim.New(sim.Options{}), p, 1)
		for id, reg := range registers {
			ok, n := prm.StatusOK, reg.size
			if !reg.linkLayers.Has(layer) {
				ok = prm.StatusBadParam
			}
			expect := func(what string, want prm.Status, method uint16, in, out int, port uint32) {
				t.Helper()
				if ok != prm.StatusOK && want != prm.StatusBadOp {
					want = ok
				}
				_, got := h.accessReg(method, id, in, out, func(r []byte) {
					if reg.ofPort && len(r) >= 4 {
						prm.PMTUReg(r).SetLocalPort(port)
					}
					if id == prm.RegPTYS && len(r) >= 4 {
						mask := uint32(prm.PTYSEthernet)
						if layer == InfiniBand {
							mask = prm.PTYSInfiniBand
						}
						prm.PTYSReg(r).SetProtoMask(mask)
					}
				})
				if got != want {
					t.Errorf("%v: register %#x %s: %v, want %v", layer, uint32(id), what, got, want)
				}
			}
			expect("read", ok, prm.AccessRegRead, n, n, 1)
			expect("read with room", ok, prm.AccessRegRead, n+4, n+4, 1)
			expect("short in", prm.StatusBadInpLen, prm.AccessRegRead, n-4, n, 1)
			expect("no in", prm.StatusBadInpLen, prm.AccessRegRead, 0, n, 1)
			expect("short out", prm.StatusBadOutpLen, prm.AccessRegRead, n, n-4, 1)
			expect("method", prm.StatusBadOp, 2, n, n, 1)
			if reg.ofPort {
				expect("port 0", prm.StatusBadParam, prm.AccessRegRead, n, n, 0)
				expect("port 2", prm.StatusBadParam, prm.AccessRegRead, n, n, 2)
			}
		}
		for _, id := range []prm.Register{0, 0x5001, 0x507f, 0xffff} {
			if _, st := h.accessReg(prm.AccessRegRead, id, 256, 256, port1); st != prm.StatusBadParam {
				t.Errorf("register %#x: %v", uint32(id), st)
			}
		}
	}
}

// TestRegistersBeforeInit: a driver tells its endianness before INIT_HCA, and not before
// ENABLE_HCA.
func TestRegistersBeforeInit(t *testing.T) {
	h := &host{t: t, e: sim.New(sim.Options{})}
	h.d = New(h.e, "x", nil, testParams(), Identity{})
	h.writeReg(prm.RegHostEndianness, prm.StatusBadSysState, nil)
	h.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	h.writeReg(prm.RegHostEndianness, prm.StatusOK, func(r []byte) { r[0] = prm.HostBigEndian })
	h.writeReg(prm.RegHostEndianness, prm.StatusBadParam, func(r []byte) { r[0] = 1 })
	if r := h.readReg(prm.RegHostEndianness, nil); r[0] != prm.HostBigEndian {
		t.Errorf("read back % x", r)
	}
}

func TestNodeDesc(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	if r := h.readReg(prm.RegNodeDesc, nil); !bytes.HasPrefix(r, []byte("MT0 ")) {
		t.Errorf("after power-on %q", r)
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 4)
	h.writeReg(prm.RegNodeDesc, prm.StatusOK, func(r []byte) { copy(r, want) })
	if r := h.readReg(prm.RegNodeDesc, nil); !bytes.Equal(r, want) {
		t.Errorf("read back %q", r)
	}
}

func TestPMTU(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	write := func(mtu uint32, want prm.Status) {
		t.Helper()
		h.writeReg(prm.RegPMTU, want, func(r []byte) { port1(r); prm.PMTUReg(r).SetAdminMTU(mtu) })
	}
	read := func(admin uint32) {
		t.Helper()
		if m := prm.PMTUReg(h.readReg(prm.RegPMTU, port1)); m.MaxMTU() != 10000 || m.AdminMTU() != admin || m.OperMTU() != admin {
			t.Errorf("PMTU % x, want %d", []byte(m), admin)
		}
	}
	read(1522)
	write(0, prm.StatusBadParam)
	write(9999, prm.StatusOK)
	read(9999)
	write(10000, prm.StatusOK)
	write(10001, prm.StatusBadParam)
	read(10000)

	_, hb, _ := ibHosts(t)
	info := hb.d.PortInfo()
	info.MTU = roce.MTU2048
	hb.d.SetPortInfo(info)
	if m := prm.PMTUReg(hb.readReg(prm.RegPMTU, port1)); m.MaxMTU() != 4096 || m.OperMTU() != 2048 {
		t.Errorf("InfiniBand: % x", []byte(m))
	}
	hb.writeReg(prm.RegPMTU, prm.StatusBadParam, func(r []byte) { port1(r); prm.PMTUReg(r).SetAdminMTU(2048) })
}

// TestPTYSRates: the register says which link has the rate of the port, as mlx5_ib reads it.
func TestPTYSRates(t *testing.T) {
	for _, x := range []struct {
		rate uint64
		want linkProtocols
	}{
		{1e9, linkProtocols{eth: 1 << 1}}, {10e9, linkProtocols{eth: 1 << 12}}, {24e9, linkProtocols{eth: 1 << 12}}, {25e9, linkProtocols{eth: 1 << 27}},
		{40e9, linkProtocols{eth: 1 << 6}}, {50e9, linkProtocols{eth: 1 << 30}}, {56e9, linkProtocols{eth: 1 << 8}}, {100e9, linkProtocols{eth: 1 << 20}},
		{199e9, linkProtocols{eth: 1 << 20}}, {200e9, linkProtocols{ext: 1 << 12}}, {400e9, linkProtocols{ext: 1 << 15}}, {1e13, linkProtocols{ext: 1 << 15}},
	} {
		p := testParams()
		p.WireRate = x.rate
		if got := protocolsOf(&p); got != x.want {
			t.Errorf("Ethernet at %d: %+v, want %+v", x.rate, got, x.want)
		}
	}
	for _, x := range []struct {
		rate      uint64
		width, ib uint32
	}{
		{8e9, 4, 1}, {16e9, 4, 2}, {32e9, 4, 4}, {40e9, 4, 8}, {54_545_454_545, 4, 16}, {100e9, 4, 32}, {200e9, 4, 64}, {25e9, 1, 32}, {50e9, 1, 64},
		{2e9, 1, 1}, {300e9, 16, 32}, {99e9, 4, 16}, {1e6, 1, 1},
	} {
		if got := ibProtocol(x.rate); got.width != x.width || got.ib != x.ib || got.eth|got.ext != 0 {
			t.Errorf("InfiniBand at %d: %+v, want width %d speed %d", x.rate, got, x.width, x.ib)
		}
	}
}

func TestPTYS(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	proto := func(mask, eth uint32) func(r []byte) {
		return func(r []byte) {
			port1(r)
			prm.PTYSReg(r).SetProtoMask(mask)
			prm.PTYSReg(r).SetEthProtoAdmin(eth)
		}
	}
	read := func(oper uint32) {
		t.Helper()
		p := prm.PTYSReg(h.readReg(prm.RegPTYS, proto(prm.PTYSEthernet, 0)))
		if p.EthProtoCapability() != prm.PTYS100GCR4 || p.EthProtoAdmin() != prm.PTYS100GCR4 || p.EthProtoOper() != oper || p.ExtEthProtoCapability() != 0 || p.IBProtoOper() != 0 {
			t.Errorf("% x", []byte(p))
		}
	}
	read(prm.PTYS100GCR4)
	h.writeReg(prm.RegPTYS, prm.StatusOK, proto(prm.PTYSEthernet, ^uint32(0)))
	h.writeReg(prm.RegPTYS, prm.StatusBadParam, proto(prm.PTYSEthernet, prm.PTYS40GBaseCR4))
	h.writeReg(prm.RegPTYS, prm.StatusBadParam, proto(prm.PTYSInfiniBand, prm.PTYS100GCR4))
	read(prm.PTYS100GCR4)
	h.d.LinkChanged(false)
	read(0)
	for mask, want := range map[uint32]prm.Status{0: prm.StatusBadParam, 2: prm.StatusBadParam, 7: prm.StatusBadParam, prm.PTYSInfiniBand: prm.StatusOK} {
		if _, st := h.accessReg(prm.AccessRegRead, prm.RegPTYS, 64, 64, proto(mask, 0)); st != want {
			t.Errorf("protocols %d: %v, want %v", mask, st, want)
		}
	}
	_, hb, _ := ibHosts(t)
	p := prm.PTYSReg(hb.readReg(prm.RegPTYS, proto(prm.PTYSInfiniBand, 0)))
	if p.IBLinkWidthOper() != prm.PTYSWidth4X || p.IBProtoOper() != 32 || p.EthProtoOper() != 0 {
		t.Errorf("InfiniBand: % x", []byte(p))
	}
}

// TestPAOS: a driver that does not want its Ethernet port sees it down, with an event.
func TestPAOS(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	eq, eqn := h.newEQ(1, 1<<prm.EventPortChange)
	h.armEQ(eq, eqn)
	write := func(status uint32, ase bool, want prm.Status) {
		t.Helper()
		h.writeReg(prm.RegPAOS, want, func(r []byte) {
			port1(r)
			prm.PAOSReg(r).SetAdminStatus(status)
			prm.PAOSReg(r).SetASE(ase)
		})
		run(t, h.e, 5*sim.Microsecond)
	}
	state := func(what string, admin, oper uint32, event int) {
		t.Helper()
		p := prm.PAOSReg(h.readReg(prm.RegPAOS, port1))
		if p.AdminStatus() != admin || p.OperStatus() != oper {
			t.Errorf("%s: admin %d, oper %d", what, p.AdminStatus(), p.OperStatus())
		}
		up := prm.QueryVportStateOut(h.cmd(prm.NewIn(prm.OpQueryVportState, 0))).State() == prm.VportStateUp
		if up != (oper == prm.PortUp) {
			t.Errorf("%s: vport up %t", what, up)
		}
		e := h.nextEQE(eq)
		if event == 0 && e != nil || event != 0 && (e == nil || int(e.SubType()) != event) {
			t.Errorf("%s: event % x, want %d", what, []byte(e), event)
		}
	}
	state("at first", prm.PortUp, prm.PortUp, 0)
	write(prm.PortDown, false, prm.StatusOK)
	state("without ASE", prm.PortUp, prm.PortUp, 0)
	write(prm.PortDown, true, prm.StatusOK)
	state("not wanted", prm.PortDown, prm.PortDown, prm.PortChangeDown)
	write(prm.PortDown, true, prm.StatusOK)
	state("again", prm.PortDown, prm.PortDown, 0)
	h.d.LinkChanged(false)
	h.d.LinkChanged(true)
	state("cable moved", prm.PortDown, prm.PortDown, 0)
	write(3, true, prm.StatusBadParam)
	write(prm.PortUp, true, prm.StatusOK)
	state("wanted", prm.PortUp, prm.PortUp, prm.PortChangeActive)
}

func TestPVLC(t *testing.T) {
	_, h, _ := ibHosts(t)
	for lanes, want := range map[uint32]prm.Status{0: prm.StatusBadParam, 3: prm.StatusBadParam, 5: prm.StatusBadParam, 8: prm.StatusBadParam} {
		h.writeReg(prm.RegPVLC, want, func(r []byte) { port1(r); prm.PVLCReg(r).SetVLAdmin(lanes) })
	}
	h.writeReg(prm.RegPVLC, prm.StatusOK, func(r []byte) { port1(r); prm.PVLCReg(r).SetVLAdmin(2) })
	if v := prm.PVLCReg(h.readReg(prm.RegPVLC, port1)); v.VLHWCap() != 4 || v.VLAdmin() != 2 || v.VLOperational() == 0 {
		t.Errorf("% x", []byte(v))
	}
}

func TestPPCNT(t *testing.T) {
	h, a, b := pair(t, defaults())
	r := h.newMR(4096, rightsAll)
	b.recv(r.sge(0, 64))
	a.post(wr{op: prm.WQEOpSend, sges: []sge{r.sge(64, 64)}})
	run(t, h.e, ms)
	a.scq.expect(prm.CQEReq)
	c := h.d.Counters()
	group := func(grp, prio uint32) prm.PPCNTReg {
		return h.readReg(prm.RegPPCNT, func(r []byte) { port1(r); prm.PPCNTReg(r).SetGrp(grp); prm.PPCNTReg(r).SetPrioTC(prio) })
	}
	if g := group(prm.PPCNT8023, 0); c.TxPackets == 0 || g.Counter(prm.PC8023TxFrames) != c.TxPackets || g.Counter(prm.PC8023RxOctets) != c.RxOctets {
		t.Errorf("802.3: % x", []byte(g))
	}
	if g := group(prm.PPCNTRFC2863, 0); g.Counter(prm.PC2863TxOctets) != c.TxOctets || g.Counter(prm.PC2863RxUnicast) != c.RxPackets {
		t.Errorf("RFC 2863: % x", []byte(g))
	}
	if g := group(prm.PPCNTRFC2819, 0); g.Counter(prm.PC2819Packets) != c.RxPackets {
		t.Errorf("RFC 2819: % x", []byte(g))
	}
	if g := group(prm.PPCNTPriority, 0); g.Counter(prm.PCPriorityTxFrm) != c.TxPackets || g.PrioTC() != 0 {
		t.Errorf("priority 0: % x", []byte(g))
	}
	if g := group(prm.PPCNTPriority, 7); !bytes.Equal(g[8:], make([]byte, len(g)-8)) || g.PrioTC() != 7 || g.Grp() != prm.PPCNTPriority {
		t.Errorf("priority 7: % x", []byte(g))
	}
	for _, x := range []struct {
		grp, prio uint32
		clr       bool
		want      prm.Status
	}{
		{prm.PPCNTPriority, 8, false, prm.StatusBadParam}, {prm.PPCNTTC, 8, false, prm.StatusBadParam}, {prm.PPCNTTC, 7, false, prm.StatusOK},
		{prm.PPCNTInfiniBand, 0, false, prm.StatusOK}, {4, 0, false, prm.StatusBadParam}, {0x3f, 0, false, prm.StatusBadParam}, {0, 0, true, prm.StatusBadParam},
	} {
		_, st := h.accessReg(prm.AccessRegRead, prm.RegPPCNT, prm.PPCNTRegSize, prm.PPCNTRegSize, func(r []byte) {
			port1(r)
			p := prm.PPCNTReg(r)
			p.SetGrp(x.grp)
			p.SetPrioTC(x.prio)
			p.SetClr(x.clr)
		})
		if st != x.want {
			t.Errorf("group %#x, priority %d: %v, want %v", x.grp, x.prio, st, x.want)
		}
	}
	h.writeReg(prm.RegPPCNT, prm.StatusBadParam, port1)
}

// TestPFCC: the classes are those of the wire, and what would change them is refused, as is what
// pauses the port as a whole.
func TestPFCC(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	read := func() [2]uint32 {
		t.Helper()
		p := prm.PFCCReg(h.readReg(prm.RegPFCC, port1))
		if p.PPTx() || p.PPRx() {
			t.Errorf("the whole port pauses: % x", []byte(p))
		}
		return [2]uint32{p.PFCTx(), p.PFCRx()}
	}
	write := func(want prm.Status, set func(p prm.PFCCReg)) {
		t.Helper()
		h.writeReg(prm.RegPFCC, want, func(r []byte) { port1(r); set(prm.PFCCReg(r)) })
	}
	if got := read(); got != [2]uint32{} {
		t.Errorf("no flow control: %v", got)
	}
	h.d.SetWire(&ward{})
	if got := read(); got != [2]uint32{8, 8} {
		t.Errorf("class 3: %v", got)
	}
	write(prm.StatusOK, func(prm.PFCCReg) {})
	write(prm.StatusOK, func(p prm.PFCCReg) { p.SetPrioMaskTx(0xff); p.SetPFCTx(8); p.SetPFCRx(1) })
	write(prm.StatusBadParam, func(p prm.PFCCReg) { p.SetPrioMaskTx(0xff); p.SetPFCTx(9) })
	write(prm.StatusBadParam, func(p prm.PFCCReg) { p.SetPrioMaskRx(0xff) })
	write(prm.StatusBadParam, func(p prm.PFCCReg) { p.SetPPTx(true) })
	write(prm.StatusOK, func(p prm.PFCCReg) { p.SetPPTx(true); p.SetPPTxMaskN(true) })
	write(prm.StatusBadParam, func(p prm.PFCCReg) { p.SetPPRx(true) })
	write(prm.StatusOK, func(p prm.PFCCReg) { p.SetPPRx(true); p.SetPPRxMaskN(true) })
}
