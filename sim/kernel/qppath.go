package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// optParams is ib_mask_to_mlx5_opt: the optional parameters that attributes stand for.
func optParams(mask verbs.QPAttrMask) uint32 {
	var o uint32
	for _, x := range [...]struct {
		attr verbs.QPAttrMask
		opt  uint32
	}{
		{mAccess, prm.OptParRWE | prm.OptParRRE | prm.OptParRAE},
		{mPKey, prm.OptParPKeyIndex},
		{mPort, prm.OptParPriPort},
		{mQKey, prm.OptParQKey},
		{mAV, prm.OptParPrimaryPath | prm.OptParPriPort},
		{mTimeout, prm.OptParAckTimeout},
		{mRetry, prm.OptParRetryCount},
		{mRNRRetry, prm.OptParRNRRetry},
		{mRdAtom, prm.OptParSRAMax},
		{mAlt, prm.OptParAltAddrPath},
		{mRNRTimer, prm.OptParRNRTimeout},
		{mDestRd, prm.OptParRRAMax | prm.OptParRWE | prm.OptParRRE | prm.OptParRAE},
		{mPathMig, prm.OptParPMState},
	} {
		if mask&x.attr != 0 {
			o |= x.opt
		}
	}
	return o
}

// Sets that several rows of opt_mask share.
const (
	optRights = prm.OptParRRE | prm.OptParRAE | prm.OptParRWE
	optLive   = prm.OptParAltAddrPath | optRights | prm.OptParPMState | prm.OptParRNRTimeout
	optLiveUC = prm.OptParAltAddrPath | prm.OptParRWE | prm.OptParPMState
)

// optAllowed is opt_mask of mlx5_ib: the optional parameters that a transition may
// carry; others are dropped silently.
func optAllowed(op prm.Opcode, s service) uint32 {
	var rc, uc, ud, xrc uint32
	switch op {
	case prm.OpInit2InitQP:
		rc = optRights | prm.OptParPKeyIndex | prm.OptParPriPort | prm.OptParLAGTXAff
		uc = prm.OptParRWE | prm.OptParPKeyIndex | prm.OptParPriPort | prm.OptParLAGTXAff
		ud = prm.OptParPKeyIndex | prm.OptParQKey | prm.OptParPriPort
		xrc = rc
	case prm.OpInit2RTRQP:
		rc = prm.OptParAltAddrPath | optRights | prm.OptParPKeyIndex | prm.OptParLAGTXAff
		uc = prm.OptParAltAddrPath | prm.OptParRWE | prm.OptParPKeyIndex | prm.OptParLAGTXAff
		ud = prm.OptParPKeyIndex | prm.OptParQKey
		xrc = rc
	case prm.OpRTR2RTSQP:
		rc, uc, ud, xrc = optLive, optLiveUC, prm.OptParQKey, optLive
	case prm.OpRTS2RTSQP:
		rc, uc, ud, xrc = optLive, optLiveUC, prm.OptParQKey|prm.OptParSRQN|prm.OptParCQNRcv, optLive
	case prm.OpSQErr2RTSQP:
		rc, uc, ud, xrc = prm.OptParRNRTimeout|optRights, prm.OptParRWE, prm.OptParQKey, prm.OptParRNRTimeout|optRights
	case prm.OpSQD2SQDQP: // not a row of mlx5_ib: what ib_core lets through
		const all = ^uint32(0)
		rc, uc, ud = all, all, all
	case prm.OpSQDRTSQP:
		rc, uc, ud = prm.OptParRNRTimeout|optRights, prm.OptParRWE, prm.OptParQKey
	}
	switch s {
	case svcRC:
		return rc
	case svcUC:
		return uc
	case svcUD:
		return ud
	case svcXRCSend, svcXRCRecv:
		return xrc
	}
	return 0
}

// fillRoute is the part of a path that a global route decides.
func fillRoute(p prm.ADS, g *verbs.GRH) {
	p.SetSrcAddrIndex(uint32(g.SGIDIndex))
	p.SetHopLimit(uint32(g.HopLimit))
	p.SetTClass(uint32(g.TrafficClass))
	p.SetFlowLabel(g.FlowLabel & 0xfffff)
	copy(p.RGID(), g.DGID[:])
}

// fillPath is mlx5_set_path, and the path fields that other attributes own.
func (m *modify) fillPath(p prm.ADS, d *Device) error {
	a := &m.a
	p.SetPKeyIndex(whenSet(m, mPKey, uint32(a.PKeyIndex)))
	p.SetVHCAPortNum(whenSet(m, mPort, uint32(a.Port)))
	if m.has(mAV) {
		port := m.q.port
		if m.has(mPort) {
			port = a.Port
		}
		p.SetVHCAPortNum(uint32(port))
		if d.caps.ib {
			m.fillIBPath(p)
		} else {
			m.fillRoCEPath(p)
		}
		rate, err := d.statRate(a.AH.StaticRate)
		if err != nil {
			return err
		}
		p.SetStatRate(rate)
	}
	p.SetAckTimeout(whenSet(m, mTimeout, uint32(a.Timeout)))
	return nil
}

// fillRoCEPath is mlx5_set_path of a RoCE port.
func (m *modify) fillRoCEPath(p prm.ADS) {
	a := &m.a
	copy(p.RMAC(), m.dmac[:])
	g := &a.AH.GRH
	if m.sgid.typ == verbs.GIDTypeRoCEv2 {
		if m.q.svc != svcUD && m.has(mDestQPN) {
			p.SetUDPSport(uint32(udpSport(g.FlowLabel, m.q.qpn, a.DestQPN)))
		}
		p.SetDSCP(uint32(g.TrafficClass >> 2))
	}
	p.SetEthPrio(uint32(a.AH.SL & 7))
	fillRoute(p, g)
}

// udpSport is the source port of a connection (rdma_get_udp_sport): from the flow label,
// or else from both QP numbers, so that both sides choose the same.
func udpSport(label, lqpn, rqpn uint32) uint16 {
	fl := label & 0xfffff
	if fl == 0 {
		v := uint64(lqpn) * uint64(rqpn)
		v ^= v >> 20
		v ^= v >> 40
		fl = uint32(v & 0xfffff)
	}
	low, high := fl&0x3fff, fl&0xfc000
	return uint16(low^high>>14) | 0xc000
}

// Static rates (enum ib_rate) with codes of their own; others are ib_rate + 5.
const (
	ratePort, rate2500M, rate800G = 0, 2, 23
	statRateOffset                = 5
)

var rateCodes = [...]uint8{ratePort, 12, 15, 16, 17, 20, 21} // by code: port, 56, 25, 100, 200, 50, 400 Gb/s

func rateToCode(rate uint8) uint32 {
	for code, r := range rateCodes {
		if r == rate {
			return uint32(code)
		}
	}
	return uint32(rate) + statRateOffset
}

func codeToRate(code uint32) uint8 {
	if int(code) < len(rateCodes) {
		return rateCodes[code]
	}
	return uint8(code - statRateOffset)
}

// statRate is mlx5r_ib_rate: a rate that the device does not have steps down to one
// that it has.
func (d *Device) statRate(rate uint8) (uint32, error) {
	if rate == ratePort || rate == rate800G {
		return 0, nil
	}
	if rate < rate2500M || rate > rate800G {
		return 0, fmt.Errorf("static rate %d: %w", rate, syscall.EINVAL)
	}
	for rate != ratePort && d.caps.statRates>>rateToCode(rate)&1 == 0 {
		rate--
	}
	return rateToCode(rate), nil
}

// fillIBPath is mlx5_set_path of an InfiniBand port.
func (m *modify) fillIBPath(p prm.ADS) {
	ah := &m.a.AH
	p.SetRLID(uint32(ah.DLID))
	p.SetMLID(uint32(ah.SrcPathBits & 0x7f))
	p.SetGRH(ah.IsGlobal)
	p.SetSL(uint32(ah.SL & 15))
	if ah.IsGlobal {
		fillRoute(p, &ah.GRH)
	}
}
