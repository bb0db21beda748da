package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// FlowReq holds the arguments of CREATE_FLOW (struct ib_uverbs_flow_attr).
type FlowReq struct {
	QP       Handle
	Type     uint32 // FlowNormal, FlowAllDefault, FlowMulticastDefault
	Priority uint16
	Port     uint8
	Flags    uint32
	Specs    []FlowSpec
}

// FlowSpec is a header that a rule matches, or an action on the packet. Values and masks have the
// form of uverbs.
type FlowSpec struct {
	Type      uint32
	Val, Mask []byte
	Tag       uint32 // of FlowSpecTag
}

// Types of rules (enum ib_flow_attr_type).
const (
	FlowNormal           = 0
	FlowAllDefault       = 1
	FlowMulticastDefault = 2
)

// Types of specs (enum ib_flow_spec_type).
const (
	FlowSpecEth  = 0x20
	FlowSpecIPv4 = 0x30
	FlowSpecIPv6 = 0x31
	FlowSpecTCP  = 0x40
	FlowSpecUDP  = 0x41
	FlowSpecTag  = 0x1000
	FlowSpecDrop = 0x1001
)

// CreateFlow is CREATE_FLOW (mlx5_ib_create_flow). EPERM: without CAP_NET_RAW; EOPNOTSUPP: headers
// that the driver does not match, sniffer rules, and rules that let packets continue; EINVAL: a
// wrong port or flags, or a QP that cannot receive; ENOSPC: a priority that does not exist, or too
// many masks; EEXIST: a rule with the same value has another action.
func (u *Ucontext) CreateFlow(c Caller, r FlowReq) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		if err := u.maySteer(); err != nil {
			return err
		}
		q, err := u.receiver(r.QP)
		if err != nil {
			return err
		}
		wishes, err := u.flowWishes(&r)
		if err != nil {
			return fmt.Errorf("create flow: %w", err)
		}
		if wishes[0].drop {
			q = nil
		}
		h, _, err = u.addRule(k, q, nil, wishes...)
		return err
	})
	return h, err
}

// flowWishes is what of entries a rule needs.
func (u *Ucontext) flowWishes(r *FlowReq) ([]flowWish, error) {
	const dontTrap, egress = 1 << 1, 1 << 2
	switch {
	case r.Port == 0 || int(r.Port) > u.dev.caps.ports, r.Flags&^(dontTrap|egress) != 0:
		return nil, fmt.Errorf("port %d, flags %#x: %w", r.Port, r.Flags, syscall.EINVAL)
	case r.Flags != 0 || r.Type > FlowMulticastDefault:
		return nil, fmt.Errorf("rule of type %d, flags %#x, is not modelled: %w", r.Type, r.Flags, syscall.EOPNOTSUPP)
	}
	w := flowWish{flowActs: flowActs{tag: defaultFlowTag}}
	for _, s := range r.Specs {
		if err := w.match(s); err != nil {
			return nil, err
		}
	}
	if r.Type == FlowNormal {
		var err error
		w.prio, err = flowPriority(r.Priority, w.mask[:], w.value[:])
		return []flowWish{w}, err
	}
	// create_leftovers_rule: what no other rule takes, by the bit that tells groups from stations.
	if len(r.Specs) > 0 {
		return nil, fmt.Errorf("a default rule with %d specs: %w", len(r.Specs), syscall.EINVAL)
	}
	const group = 1 << 24
	w.prio = flowDefaults
	prm.FlowHeaders(w.mask[:]).SetDMACHigh(group)
	toGroups := w
	prm.FlowHeaders(toGroups.value[:]).SetDMACHigh(group)
	if r.Type == FlowMulticastDefault {
		return []flowWish{toGroups}, nil
	}
	return []flowWish{toGroups, w}, nil
}

// IP protocols, and the part of a VLAN tag that is its number.
const (
	protoTCP = 6
	protoUDP = 17
	vlanMask = 0xfff
)

// Lengths of specs' values, and how far those that the driver can match go.
const (
	ethSpecSize  = 16
	ipv4SpecSize = 12
	ipv4Matched  = 10
	ipv6SpecSize = 40
	portSpecSize = 4
)

// match is parse_flow_attr.
func (w *flowWish) match(s FlowSpec) error {
	need := map[uint32]int{FlowSpecEth: ethSpecSize, FlowSpecIPv4: ipv4SpecSize, FlowSpecIPv6: ipv6SpecSize, FlowSpecTCP: portSpecSize, FlowSpecUDP: portSpecSize,
		FlowSpecTag: 4, FlowSpecDrop: 0}
	n, known := need[s.Type]
	switch {
	case !known:
		return fmt.Errorf("spec of type %#x: %w", s.Type, syscall.EOPNOTSUPP)
	case len(s.Val) < n || s.Type < FlowSpecTag && len(s.Mask) < n:
		return fmt.Errorf("spec of type %#x with %d bytes: %w", s.Type, len(s.Val), syscall.EINVAL)
	}
	m, v := prm.FlowHeaders(w.mask[:]), prm.FlowHeaders(w.value[:])
	both := func(f func(h prm.FlowHeaders, b []byte)) {
		f(m, s.Mask)
		f(v, s.Val)
	}
	version := func(n uint32) {
		m.SetIPVersion(0xf)
		v.SetIPVersion(n)
	}
	class := func(h prm.FlowHeaders, tos byte) {
		h.SetIPECN(uint32(tos & 3))
		h.SetIPDSCP(uint32(tos >> 2))
	}
	switch s.Type {
	case FlowSpecEth:
		const etherType, vlan = 12, 14
		both(func(h prm.FlowHeaders, b []byte) {
			h.SetMACs(b[:etherType])
			h.SetEtherType(uint32(prm.NetWord(b[etherType:])))
			tag := prm.NetWord(b[vlan:])
			h.SetFirstVID(uint32(tag & vlanMask))
			h.SetFirstCFI(tag&0x1000 != 0)
			h.SetFirstPrio(uint32(tag >> 13))
		})
		if prm.NetWord(s.Mask[vlan:]) != 0 {
			m.SetCVLANTag(true)
			v.SetCVLANTag(true)
		}
	case FlowSpecIPv4:
		if slices.ContainsFunc(s.Mask[ipv4Matched:], func(b byte) bool { return b != 0 }) {
			return fmt.Errorf("time to live or flags of IPv4: %w", syscall.EOPNOTSUPP)
		}
		version(4)
		both(func(h prm.FlowHeaders, b []byte) {
			copy(h.SrcIP()[12:], b[:4])
			copy(h.DstIP()[12:], b[4:8])
			class(h, b[9])
		})
		return w.protocol(uint32(s.Mask[8]), uint32(s.Val[8]))
	case FlowSpecIPv6:
		const label, next, traffic, hops = 32, 36, 37, 38
		if prm.NetWord(s.Mask[label:])|prm.NetWord(s.Mask[label+2:]) != 0 || s.Mask[hops] != 0 {
			return fmt.Errorf("flow label or hop limit of IPv6: %w", syscall.EOPNOTSUPP)
		}
		version(6)
		both(func(h prm.FlowHeaders, b []byte) {
			copy(h.SrcIP(), b[:16])
			copy(h.DstIP(), b[16:32])
			class(h, b[traffic])
		})
		return w.protocol(uint32(s.Mask[next]), uint32(s.Val[next]))
	case FlowSpecTCP:
		both(func(h prm.FlowHeaders, b []byte) {
			h.SetTCPDport(uint32(prm.NetWord(b)))
			h.SetTCPSport(uint32(prm.NetWord(b[2:])))
		})
		return w.protocol(0xff, protoTCP)
	case FlowSpecUDP:
		both(func(h prm.FlowHeaders, b []byte) {
			h.SetUDPDport(uint32(prm.NetWord(b)))
			h.SetUDPSport(uint32(prm.NetWord(b[2:])))
		})
		return w.protocol(0xff, protoUDP)
	case FlowSpecTag:
		w.tag = s.Tag
		if w.tag >= 1<<24 {
			return fmt.Errorf("flow tag %#x: %w", w.tag, syscall.EINVAL)
		}
	case FlowSpecDrop:
		w.drop = true
	}
	return nil
}

// protocol is set_proto: specs may not contradict each other.
func (w *flowWish) protocol(mask, value uint32) error {
	m, v := prm.FlowHeaders(w.mask[:]), prm.FlowHeaders(w.value[:])
	if mask == 0 {
		return nil
	}
	if m.IPProtocol() != 0 && (m.IPProtocol() != mask || v.IPProtocol() != value&mask) {
		return fmt.Errorf("IP protocol %d and %d: %w", v.IPProtocol(), value, syscall.EINVAL)
	}
	m.SetIPProtocol(mask)
	v.SetIPProtocol(value & mask)
	return nil
}
