package kernel

import (
	"fmt"
	"math"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// QueryDevice is QUERY_DEVICE (mlx5_ib_query_device): formulas over the device's caps.
func (u *Ucontext) QueryDevice(c Caller) (a verbs.DeviceAttrEx, err error) {
	u.dev.enter(c, false)
	if err := u.usable(); err != nil {
		return a, err
	}
	d := u.dev
	k := &d.caps
	a.DeviceAttr = verbs.DeviceAttr{
		FWVer:    fmt.Sprintf("%d.%d.%04d", k.fwMajor, k.fwMinor, k.fwSub),
		NodeGUID: k.nodeGUID, SysImageGUID: k.sysImageGUID,
		MaxMRSize: math.MaxUint64, PageSizeCap: ^uint64(0) << k.logPGSz,
		VendorID: k.vendorID, VendorPartID: uint32(d.p.PCIDevice), HWVer: uint32(d.p.PCIRevision),
		MaxQP: 1 << k.logMaxQP, MaxQPWR: k.maxQPWR(&d.p),
		DeviceCapFlags: k.flags(),
		MaxSGE:         min(k.maxSendSGE(), k.maxWQERQ/16), MaxSGERd: maxSGERd,
		MaxCQ: 1 << k.logMaxCQ, MaxCQE: 1<<k.logCQSz - 1,
		MaxMR: 1 << k.logMaxMKey, MaxPD: 1 << k.logMaxPD,
		MaxQPRdAtom: 1 << k.logRAReq, MaxQPInitRdAtom: 1 << k.logRARes,
		MaxResRdAtom: 1 << k.logRAReq << k.logMaxQP,
		MaxAH:        math.MaxInt32,
		MaxSRQ:       1 << k.logMaxSRQ, MaxSRQWR: 1<<k.logSRQSz - 1, MaxSRQSGE: k.maxWQERQ/16 - 1,
		MaxMcastGrp: 1 << k.logMaxMCG, MaxMcastQPAttach: k.maxQPMCG, MaxTotalMcastQPAttach: k.maxQPMCG << k.logMaxMCG, MaxPKeys: uint16(k.pkeys),
		LocalCAAckDelay: k.ackDelay, PhysPortCnt: uint8(k.ports),
	}
	if k.hostAtomics {
		a.Atomic = verbs.AtomicHCA
	}
	if d.p.AtomicWrite {
		a.CapFlagsEx |= verbs.DeviceAtomicWrite
	}
	if k.memoryWindows {
		a.MaxMW = 1 << k.logMaxMKey
	}
	a.CompletionTimestampMask = math.MaxInt64
	a.HCACoreClockKHz = k.clockKHz
	if k.cqModeration {
		a.MaxCQCount, a.MaxCQPeriod = math.MaxUint16, maxCQPeriod
	}
	a.MaxDMSize = k.memic.max
	a.PhysPortCntEx = uint32(k.ports)
	a.CQEComp = k.compression()
	if k.odp.support && u.proc.Space.HasPageTables() {
		a.ODPGeneralCaps, a.ODPRC, a.ODPUD, a.ODPXRC = k.odp.general(), k.odp.rc, k.odp.ud, k.odp.xrc
	}
	if u.bfregs != nil {
		a.MaxDynBFRegs = u.bfregs.Dyn
	}
	return a, nil
}

// Bits and codes of ibv_port_attr.
const (
	portCMSup          = 1 << 16 // port_cap_flags: communication management
	portIPBasedGIDs    = 1 << 26
	physDisabled       = 3
	physLinkUp         = 5
	roceHeadersAndMore = 96 // GRH 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28, ICRC 4
)

// QueryPort is QUERY_PORT (mlx5_query_port_roce). EINVAL for a port that does not exist.
func (u *Ucontext) QueryPort(c Caller, port int) (a verbs.PortAttr, err error) {
	err = u.do(c, func(k *call) error {
		if (port < 1 || port > k.d.caps.ports) && !k.d.breaks(rule.PortsAreChecked) {
			return fmt.Errorf("query port %d: %w", port, syscall.EINVAL)
		}
		if k.d.caps.ib {
			a, err = k.queryIBPort()
		} else {
			a, err = k.queryPort()
		}
		return err
	})
	return a, err
}

func (k *call) queryPort() (verbs.PortAttr, error) {
	d := k.d
	out, err := k.simple(prm.OpQueryVportState, 0)
	if err != nil {
		return verbs.PortAttr{}, err
	}
	ctx, err := k.simple(prm.OpQueryNICVportContext, 0)
	if err != nil {
		return verbs.PortAttr{}, err
	}
	a := verbs.PortAttr{
		State: verbs.PortDown, PhysState: physDisabled,
		MaxMTU: verbs.MTU4096, ActiveMTU: activeMTU(d.p.NetMTU),
		GIDTblLen: len(d.gids), PKeyTblLen: 1, MaxMsgSize: 1 << d.caps.logMaxMsg,
		PortCapFlags: portCMSup | portIPBasedGIDs,
		QKeyViolCntr: prm.QueryNICVportContextOut(ctx).Context().QKeyViolationCounter(),
		ActiveWidth:  d.p.LinkWidth, ActiveSpeed: d.p.LinkSpeed,
		LinkLayer: verbs.LinkEthernet, Flags: verbs.PortGRHRequired,
	}
	if prm.QueryVportStateOut(out).State() == prm.VportStateUp {
		a.State, a.PhysState = verbs.PortActive, physLinkUp
	}
	return a, nil
}

// activeMTU is iboe_get_mtu; 0 when not even the smallest MTU fits.
func activeMTU(net int) verbs.MTU {
	m := verbs.MTU4096
	for m > 0 && m.Bytes() > net-roceHeadersAndMore {
		m--
	}
	return m
}

// QueryGIDEntry returns one entry of the GID table. EINVAL: a port or an index that does not exist;
// ENODATA: an empty slot.
func (u *Ucontext) QueryGIDEntry(c Caller, port, index int) (verbs.GIDEntry, error) {
	d := u.dev
	d.enter(c, false)
	if u.removed {
		return verbs.GIDEntry{}, errRemoved
	}
	if port < 1 || port > d.caps.ports {
		return verbs.GIDEntry{}, fmt.Errorf("GID of port %d: %w", port, syscall.EINVAL)
	}
	e, err := d.gidAt(index)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	g := verbs.GIDEntry{GID: e.gid, Index: uint32(index), Port: uint32(port), Type: e.typ}
	if !d.caps.ib {
		g.NetDevice = d.ifindex(e.vlan)
	}
	return g, nil
}

// defaultPKey is the one entry of a RoCE port's P_Key table: full member.
const defaultPKey = 0xffff

// QueryPKey reads the P_Key table. EINVAL outside it, and when the device was removed.
func (u *Ucontext) QueryPKey(c Caller, port, index int) (uint16, error) {
	d := u.dev
	n := 1
	if d.caps.ib {
		n = d.caps.pkeys
	}
	if u.removed || port < 1 || port > d.caps.ports || index < 0 || index >= n {
		d.enter(c, false)
		return 0, fmt.Errorf("P_Key %d of port %d: %w", index, port, syscall.EINVAL)
	}
	if !d.caps.ib {
		d.enter(c, false)
		return defaultPKey, nil
	}
	key := uint16(0)
	err := u.do(c, func(k *call) (err error) {
		key, err = k.queryIBPKey(index)
		return err
	})
	return key, err
}
