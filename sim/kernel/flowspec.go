package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
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
// wrong port or flags, specs that contradict each other, or a QP that cannot receive; ENOMEM: a
// priority that does not exist; ENOSPC: too many masks; EEXIST: a rule with the same value has
// another action.
func (u *Ucontext) CreateFlow(c Caller, r FlowReq) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		if err := u.maySteer(); err != nil {
			return err
		}
		if err := u.checkFlow(&r); err != nil {
			return fmt.Errorf("create flow: %w", err)
		}
		q, err := u.receiver(r.QP)
		if err != nil {
			return err
		}
		wishes, err := u.dev.flowWishes(&r)
		if err != nil {
			return fmt.Errorf("create flow: %w", err)
		}
		dest := q
		if wishes[0].drop {
			dest = nil
		}
		h, _, err = u.addRule(k, q, dest, nil, wishes...)
		return err
	})
	return h, err
}

// Flags of rules (enum ib_flow_flags).
const (
	flowDontTrap = 1 << 1
	flowEgresses = 1 << 2
	flowReserved = 1 << 3
)

// mostFlowSpecs is IB_FLOW_SPEC_SUPPORT_LAYERS.
const mostFlowSpecs = 10

// checkFlow is what ib_uverbs_ex_create_flow checks before it looks at the QP.
func (u *Ucontext) checkFlow(r *FlowReq) error {
	def := r.Type == FlowAllDefault || r.Type == FlowMulticastDefault
	switch {
	case r.Flags >= flowReserved, r.Flags&flowDontTrap != 0 && def:
		return fmt.Errorf("rule of type %d with flags %#x: %w", r.Type, r.Flags, syscall.EINVAL)
	case len(r.Specs) > mostFlowSpecs:
		return fmt.Errorf("%d specs, above %d: %w", len(r.Specs), mostFlowSpecs, syscall.EINVAL)
	case r.Port == 0 || int(r.Port) > u.dev.caps.ports:
		return fmt.Errorf("port %d: %w", r.Port, syscall.EINVAL)
	}
	return nil
}

// flowWishes is what of entries a rule needs.
func (d *Device) flowWishes(r *FlowReq) ([]flowWish, error) {
	def := r.Type == FlowAllDefault || r.Type == FlowMulticastDefault
	prio, err := flowPriority(r.Priority, multicastOnly(r.Specs) && !d.breaks(rule.MulticastFlowsComeLast))
	switch {
	case err != nil:
		return nil, err
	case r.Flags&^(flowDontTrap|flowEgresses) != 0, r.Flags&flowEgresses != 0 && def:
		return nil, fmt.Errorf("rule of type %d with flags %#x: %w", r.Type, r.Flags, syscall.EINVAL)
	case r.Flags != 0 || r.Type > FlowMulticastDefault:
		return nil, fmt.Errorf("rule of type %d, flags %#x, is not modelled: %w", r.Type, r.Flags, syscall.EOPNOTSUPP)
	}
	if d.breaks(rule.FlowPrioritiesHaveTheirOrder) && prio < flowMulticast {
		prio = flowMulticast - prio
	}
	w := flowWish{prio: prio, flowActs: flowActs{tag: defaultFlowTag}}
	if r.Type == FlowNormal {
		if err := checkEtherType(r.Specs); err != nil && !d.breaks(rule.EtherTypeFitsIP) {
			return nil, err
		}
		for _, s := range r.Specs {
			if err := w.match(s); err != nil {
				return nil, err
			}
		}
		return []flowWish{w}, nil
	}
	// create_leftovers_rule: what no other rule takes, by the bit that tells groups from stations.
	// It does not look at specs.
	w.prio = flowDefaults
	prm.FlowHeaders(w.mask[:]).SetDMACHigh(groupBit)
	toGroups := w
	prm.FlowHeaders(toGroups.value[:]).SetDMACHigh(groupBit)
	if r.Type == FlowMulticastDefault {
		return []flowWish{toGroups}, nil
	}
	return []flowWish{toGroups, w}, nil
}

// multicastOnly is flow_is_multicast_only, which looks at the first spec, and of IPv4 not at the
// mask.
func multicastOnly(specs []FlowSpec) bool {
	if len(specs) == 0 {
		return false
	}
	const dstIP, class, classD = 4, 0xf0, 0xe0
	s := specs[0]
	switch v := s.Val; s.Type {
	case FlowSpecIPv4:
		return len(v) > dstIP && v[dstIP]&class == classD
	case FlowSpecEth:
		return len(v) > 0 && v[0]&1 != 0 && len(s.Mask) > 0 && s.Mask[0]&1 != 0
	}
	return false
}

// checkEtherType is is_valid_ethertype: an EtherType beside a spec of IP is that of IP, with a mask
// of all bits.
func checkEtherType(specs []FlowSpec) error {
	var ip, want, value, mask uint16
	for _, s := range specs {
		switch {
		case s.Type == FlowSpecEth && len(s.Val) >= ethSpecSize && len(s.Mask) >= ethSpecSize && prm.NetWord(s.Mask[12:]) != 0:
			value, mask = prm.NetWord(s.Val[12:]), prm.NetWord(s.Mask[12:])
		case s.Type == FlowSpecIPv4:
			ip, want = 4, 0x0800
		case s.Type == FlowSpecIPv6:
			ip, want = 6, 0x86dd
		}
	}
	const mpls, mplsMulticast = 0x8847, 0x8848
	if ip == 0 || mask == 0 || mask == 0xffff && (value == want || value == mpls || value == mplsMulticast) {
		return nil
	}
	return fmt.Errorf("EtherType %#x with mask %#x for IPv%d: %w", value, mask, ip, syscall.EINVAL)
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

// fit is a spec of n bytes, as spec_filter_size takes it: a shorter one has zeros behind it, and a
// longer one must have them in its mask.
func (s FlowSpec) fit(n int) (FlowSpec, bool) {
	const unit = 4
	if len(s.Val) == 0 || len(s.Val)%unit != 0 || len(s.Mask) != len(s.Val) {
		return s, false
	}
	if len(s.Mask) > n && slices.ContainsFunc(s.Mask[n:], func(b byte) bool { return b != 0 }) {
		return s, false
	}
	fitted := func(b []byte) []byte { return append(make([]byte, 0, n), append(b, make([]byte, n)...)[:n]...) }
	s.Val, s.Mask = fitted(slices.Clip(s.Val)), fitted(slices.Clip(s.Mask))
	return s, true
}

// match is parse_flow_attr.
func (w *flowWish) match(s FlowSpec) error {
	need := map[uint32]int{FlowSpecEth: ethSpecSize, FlowSpecIPv4: ipv4SpecSize, FlowSpecIPv6: ipv6SpecSize, FlowSpecTCP: portSpecSize, FlowSpecUDP: portSpecSize,
		FlowSpecTag: 4, FlowSpecDrop: 0}
	n, known := need[s.Type]
	switch {
	case !known:
		return fmt.Errorf("spec of type %#x: %w", s.Type, syscall.EOPNOTSUPP)
	case s.Type < FlowSpecTag:
		if s, known = s.fit(n); !known {
			return fmt.Errorf("spec of type %#x with %d bytes: %w", s.Type, len(s.Val), syscall.EINVAL)
		}
	case len(s.Val) < n:
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
		const label, next, traffic, hops, labels = 32, 36, 37, 38, 0xf
		if s.Val[label]|s.Mask[label] != 0 || (s.Val[label+1]|s.Mask[label+1])&^labels != 0 {
			return fmt.Errorf("flow label above 20 bits: %w", syscall.EINVAL)
		}
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
		w.tag, w.tagged = s.Tag, true
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
