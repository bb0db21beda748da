package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

func cmdSetAddress(d *Device, in, _ []byte) prm.Status {
	m := prm.SetRoCEAddressIn(in)
	i, a := int(m.RoCEAddressIndex()), m.Addr()
	if d.ib != nil {
		return prm.StatusBadOp
	}
	if i >= len(d.gids) {
		return prm.StatusIX
	}
	if v := a.RoCEVersion(); v != prm.RoCEVersion1 && v != prm.RoCEVersion2 {
		return prm.StatusBadParam
	}
	d.gidGen++
	g := &d.gids[i]
	*g = gidEntry{v1: a.RoCEVersion() == prm.RoCEVersion1, vlanValid: a.VlanValid(), vlan: uint16(a.VlanID())}
	copy(g.raw[:], a)
	copy(g.gid[:], a.SourceL3())
	copy(g.mac[:], a.MAC())
	g.valid = g.gid != roce.GID{}
	return prm.StatusOK
}

func cmdQueryAddress(d *Device, in, out []byte) prm.Status {
	i := int(prm.QueryRoCEAddressIn(in).RoCEAddressIndex())
	if d.ib != nil {
		return prm.StatusBadOp
	}
	if i >= len(d.gids) {
		return prm.StatusIX
	}
	copy(prm.QueryRoCEAddressOut(out).Addr(), d.gids[i].raw[:])
	return prm.StatusOK
}

func cmdVportState(d *Device, in, out []byte) prm.Status {
	if prm.QueryVportStateIn(in).OtherVport() {
		return prm.StatusBadParam
	}
	o := prm.QueryVportStateOut(out)
	o.SetAdminState(uint32(d.regs.vportAdmin))
	if d.portUp() {
		o.SetState(prm.VportStateUp)
	}
	return prm.StatusOK
}

// LinkChanged is called by the wire when the cable is pulled or put back.
func (d *Device) LinkChanged(up bool) {
	was := d.portUp()
	d.port.linkDown = !up
	if d.ib != nil {
		d.ibLink(up)
		return
	}
	d.reportPort(was)
}

// portUp says whether the driver is told that the port is up. A port that it does not want carries
// RoCE all the same, as with the setting KEEP_ETH_LINK_UP of the firmware, which is on by default.
func (d *Device) portUp() bool { return !d.port.linkDown && !d.regs.adminDown }

// reportPort tells the driver that an Ethernet port, which was up or not, has changed.
func (d *Device) reportPort(was bool) {
	switch up := d.portUp(); {
	case up && !was:
		d.events.ofPort(prm.PortChangeActive)
	case was && !up:
		d.events.ofPort(prm.PortChangeDown)
	}
}

// cmdQueryVport answers with the context of an Ethernet port and, as far as there is room, with the
// list of addresses that is asked for.
func cmdQueryVport(d *Device, in, out []byte) prm.Status {
	m, o := prm.QueryNICVportContextIn(in), prm.QueryNICVportContextOut(out)
	kind := m.AllowedListType()
	switch {
	case d.ib != nil:
		return prm.StatusBadOp
	case m.OtherVport() || kind >= prm.VportListTypes:
		return prm.StatusBadParam
	}
	c, list := o.Context(), prm.VportList(d.regs.lists[kind])
	copy(c, d.vport[:])
	c.SetAllowedListType(kind)
	c.SetAllowedListSize(uint32(list.Count()))
	copy(o.List(), list)
	return prm.StatusOK
}

// Bits of MODIFY_NIC_VPORT_CONTEXT's field_select that the model follows.
const (
	vportRoCEEn    = 1 << 1
	vportList      = 1 << 2
	vportPromisc   = 1 << 4
	vportMTU       = 1 << 6
	vportPortGUID  = 1 << 8
	vportNodeGUID  = 1 << 9
	vportLBMC      = 1 << 10
	vportLBUC      = 1 << 11
	vportSupported = vportRoCEEn | vportList | vportPromisc | vportMTU | vportPortGUID | vportNodeGUID | vportLBMC | vportLBUC
)

func cmdModifyVport(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyNICVportContextIn(in)
	sel, from, to := m.FieldSelect(), m.Context(), prm.NICVportContext(d.vport[:])
	if d.ib != nil {
		return prm.StatusBadOp
	}
	if m.OtherVport() || sel&^vportSupported != 0 {
		return prm.StatusBadParam
	}
	kind, n := from.AllowedListType(), int(from.AllowedListSize())
	if sel&vportList != 0 && (kind >= prm.VportListTypes || n > 1<<logMaxVportList[kind] || n > m.List().Count()) {
		return prm.StatusBadParam
	}
	if sel&vportList != 0 {
		d.regs.lists[kind] = slices.Clone(m.List()[:8*n])
	}
	if sel&vportPromisc != 0 {
		to.SetPromiscUC(from.PromiscUC())
		to.SetPromiscMC(from.PromiscMC())
		to.SetPromiscAll(from.PromiscAll())
	}
	if sel&vportRoCEEn != 0 {
		to.SetRoCEEn(from.RoCEEn())
	}
	if sel&vportMTU != 0 {
		to.SetMTU(from.MTU())
	}
	if sel&vportPortGUID != 0 {
		to.SetPortGUID(from.PortGUID())
	}
	if sel&vportNodeGUID != 0 {
		to.SetNodeGUID(from.NodeGUID())
	}
	if sel&vportLBMC != 0 {
		to.SetDisableMCLocalLB(from.DisableMCLocalLB())
	}
	if sel&vportLBUC != 0 {
		to.SetDisableUCLocalLB(from.DisableUCLocalLB())
	}
	return prm.StatusOK
}

func cmdVportCounter(d *Device, _, out []byte) prm.Status {
	o := prm.QueryVportCounterOut(out)
	if _, ok := d.port.wire.(CountingWire); ok && d.ib != nil {
		c := d.agents.pma.Counters(1)
		o.Set(prm.VCRxIBUnicast, c.RcvPackets-c.MulticastRcv, 4*c.RcvData)
		o.Set(prm.VCTxIBUnicast, c.XmitPackets-c.MulticastXmit, 4*c.XmitData)
		return prm.StatusOK
	}
	o.Set(prm.VCRxIBUnicast, d.c.RxPackets, d.c.RxOctets)
	o.Set(prm.VCTxIBUnicast, d.c.TxPackets, d.c.TxOctets)
	if d.nic != nil {
		d.nic.report(o)
	}
	return prm.StatusOK
}

func cmdAllocQCounter(d *Device, _, out []byte) prm.Status {
	n, ok := d.qsetNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	d.qsets = put(d.qsets, n, &qset{})
	prm.AllocQCounterOut(out).SetCounterSetID(n)
	return prm.StatusOK
}

func cmdDeallocQCounter(d *Device, in, _ []byte) prm.Status {
	n := prm.DeallocQCounterIn(in).CounterSetID()
	s := d.qset(n)
	if s == nil || s.refs > 0 {
		return prm.StatusBadResState
	}
	d.qsets[n] = nil
	d.qsetNums.release(n)
	return prm.StatusOK
}

func cmdQueryQCounter(d *Device, in, out []byte) prm.Status {
	m := prm.QueryQCounterIn(in)
	s := d.qset(m.CounterSetID())
	if s == nil {
		return prm.StatusBadResState
	}
	o := prm.QueryQCounterOut(out)
	for _, n := range prm.QCounterNames {
		o.Set(n.Counter, s.c[n.Counter>>2])
	}
	if m.Clear() {
		clear(s.c[:])
	}
	return prm.StatusOK
}
