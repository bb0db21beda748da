package model

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// Steering is the rules of a port that lead to queue pairs of raw packets, as mlx5_ib has them.
// Queue pairs are numbers.
type Steering struct{ rules []*SteeringRule }

// SteeringRule is a rule of a Steering.
type SteeringRule struct {
	qp    int
	parts []steeringPart
	drop  bool
	tag   uint32
}

// steeringPart is what a rule has in one place of the order of rules.
type steeringPart struct {
	place       int
	mask, value headers
}

// headers is what rules match.
type headers struct {
	dstMAC, srcMAC        [6]byte
	tagged                bool
	tci, etherType        uint16
	ip                    uint8
	srcIP, dstIP          [16]byte
	proto, tos, transport uint8 // transport: that the ports are of
	srcPort, dstPort      uint16
}

// Places of rules: those of programs by priority, then those of multicast packets, then the default
// ones.
const (
	lastPriority    = 15
	placeMulticast  = lastPriority + 1
	placeDefaults   = placeMulticast + 1
	mostFlowTag     = 1<<24 - 1
	mostSpecs       = 10
	multicastDstMAC = 1
)

var (
	ruleFlow      = Rule{"ibv_create_flow takes rules whose priority exists, whose specs do not contradict each other and whose masks the driver can match", "man:ibv_create_flow.3; k:hw/mlx5/fs.c; k:core/uverbs_cmd.c"}
	ruleFlowTwice = Rule{"a rule that matches what another one of its priority matches has the same tag, and drops if that drops", "k:drivers/net/ethernet/mellanox/mlx5/core/fs_core.c check_conflicting_ftes"}
	ruleFlowGone  = Rule{"ibv_destroy_flow destroys a rule", "man:ibv_create_flow.3"}
	ruleFlowBusy  = Rule{"a queue pair with rules is not destroyed", "k:core/verbs.c ib_destroy_qp_user"}
	ruleFlowFirst = Rule{"of the rules that match a packet those of the smallest priority decide, and no others", "man:ibv_create_flow.3"}
	ruleFlowMatch = Rule{"a packet comes to a queue pair if a rule matches: its headers equal the rule's in all bits of the mask", "man:ibv_create_flow.3"}
	ruleFlowOnce  = Rule{"a queue pair gets a packet once, with all its bytes", "man:ibv_create_flow.3; man:ibv_poll_cq.3"}
	ruleFlowTag   = Rule{"a completion has the tag of the rule", "man:ibv_create_flow.3; p:mlx5/cq.c mlx5_cq_read_flow_tag"}
	ruleChecksums = Rule{"IBV_WC_IP_CSUM_OK is of IPv4 packets whose checksums are right", "man:ibv_poll_cq.3; p:mlx5/cq.c get_csum_ok"}
)

// Create judges ibv_create_flow of a rule to a queue pair and, where it has succeeded, returns the
// rule.
func (s *Steering) Create(qp int, a *verbs.FlowAttr, err error) (*SteeringRule, error) {
	r := &SteeringRule{qp: qp}
	tagged, want := false, flowErrno(a)
	if want == 0 {
		tagged = r.fill(a)
		if s.conflicts(r, tagged) {
			return nil, errnoIn(&ruleFlowTwice, err, syscall.EEXIST)
		}
	}
	if v := errnoIn(&ruleFlow, err, want); v != nil || want != 0 {
		return nil, v
	}
	if e := s.entry(r); e != nil && !tagged {
		r.tag = e.tag // that of the entry which they share
	}
	s.rules = append(s.rules, r)
	return r, nil
}

// flowErrno is the answer to a rule by itself.
func flowErrno(a *verbs.FlowAttr) syscall.Errno {
	if len(a.Specs) > mostSpecs {
		return syscall.EINVAL
	}
	if a.Priority > lastPriority {
		return syscall.ENOMEM
	}
	if a.Type != verbs.FlowNormal {
		return 0
	}
	var etherType, etherMask uint16
	ip, proto := uint16(0), -1
	for i := range a.Specs {
		x := &a.Specs[i]
		switch x.Type {
		case verbs.FlowSpecEth:
			if x.Mask.EtherType != 0 {
				etherType, etherMask = x.Val.EtherType, x.Mask.EtherType
			}
		case verbs.FlowSpecIPv4, verbs.FlowSpecIPv4Ext:
			ip = roce.EtherTypeIPv4
		case verbs.FlowSpecIPv6:
			ip = roce.EtherTypeIPv6
		}
	}
	if ip != 0 && etherMask != 0 && (etherMask != 0xffff || etherType != ip) {
		return syscall.EINVAL
	}
	for i := range a.Specs {
		x := &a.Specs[i]
		next := -1
		switch x.Type {
		case verbs.FlowSpecIPv4Ext, verbs.FlowSpecIPv6:
			if x.Mask.TTL != 0 || x.Type == verbs.FlowSpecIPv4Ext && x.Mask.IPFlags != 0 {
				return syscall.EOPNOTSUPP
			}
			if x.Mask.Proto != 0 {
				next = int(x.Mask.Proto)<<8 | int(x.Val.Proto)
			}
		case verbs.FlowSpecTCP:
			next = 0xff<<8 | ether.ProtoTCP
		case verbs.FlowSpecUDP:
			next = 0xff<<8 | roce.ProtoUDP
		case verbs.FlowSpecTag:
			if x.Tag > mostFlowTag {
				return syscall.EINVAL
			}
		}
		if next >= 0 && proto >= 0 && next != proto {
			return syscall.EINVAL
		}
		proto = max(proto, next)
	}
	return 0
}

// fill takes the parts of a rule from its attributes, and reports whether it asks for a tag.
func (r *SteeringRule) fill(a *verbs.FlowAttr) (tagged bool) {
	if a.Type != verbs.FlowNormal { // specs do not count
		group := steeringPart{place: placeDefaults}
		group.mask.dstMAC[0] = multicastDstMAC
		others := group
		group.value.dstMAC[0] = multicastDstMAC
		if r.parts = append(r.parts, group); a.Type == verbs.FlowAllDefault {
			r.parts = append(r.parts, others)
		}
		return false
	}
	p := steeringPart{place: int(a.Priority)}
	if multicastOnly(a.Specs) {
		p.place = placeMulticast
	}
	for i := range a.Specs {
		x := &a.Specs[i]
		switch x.Type {
		case verbs.FlowSpecTag:
			r.tag, tagged = x.Tag, true
		case verbs.FlowSpecDrop:
			r.drop = true
		default:
			val := x.Val
			val.Proto &= x.Mask.Proto // the protocol may be that of another spec
			p.mask.set(x.Type, &x.Mask, true)
			p.value.set(x.Type, &val, false)
		}
	}
	p.value = p.value.and(&p.mask)
	r.parts = []steeringPart{p}
	return tagged
}

// multicastOnly says whether a rule is of multicast packets alone, by its first spec. The mask of
// an IPv4 address does not count (k:hw/mlx5/fs.c flow_is_multicast_only).
func multicastOnly(specs []verbs.FlowSpec) bool {
	if len(specs) == 0 {
		return false
	}
	switch s := &specs[0]; s.Type {
	case verbs.FlowSpecEth:
		return s.Mask.DstMAC[0]&s.Val.DstMAC[0]&multicastDstMAC != 0
	case verbs.FlowSpecIPv4, verbs.FlowSpecIPv4Ext:
		return s.Val.DstIP[0]>>4 == 0xe
	}
	return false
}

// set takes over the fields of a spec, as masks or values.
func (h *headers) set(t verbs.FlowSpecType, f *verbs.FlowFilter, mask bool) {
	fixed := func(v uint8) uint8 {
		if mask {
			return 0xff
		}
		return v
	}
	switch t {
	case verbs.FlowSpecEth:
		h.dstMAC, h.srcMAC, h.etherType, h.tci = f.DstMAC, f.SrcMAC, f.EtherType, f.VLANTag
		h.tagged = !mask || f.VLANTag != 0
	case verbs.FlowSpecIPv4, verbs.FlowSpecIPv4Ext:
		h.ip = fixed(4)
		copy(h.srcIP[:4], f.SrcIP[:4])
		copy(h.dstIP[:4], f.DstIP[:4])
		if t == verbs.FlowSpecIPv4Ext {
			h.tos, h.proto = f.TOS, h.proto|f.Proto
		}
	case verbs.FlowSpecIPv6:
		h.ip = fixed(6)
		h.srcIP, h.dstIP, h.tos, h.proto = f.SrcIP, f.DstIP, f.TOS, h.proto|f.Proto
	case verbs.FlowSpecTCP, verbs.FlowSpecUDP:
		proto := uint8(ether.ProtoTCP)
		if t == verbs.FlowSpecUDP {
			proto = roce.ProtoUDP
		}
		h.proto, h.transport, h.srcPort, h.dstPort = fixed(proto), proto, f.SrcPort, f.DstPort
	}
}

// and is what of the headers a mask leaves.
func (h headers) and(m *headers) headers {
	for i := range h.dstMAC {
		h.dstMAC[i] &= m.dstMAC[i]
		h.srcMAC[i] &= m.srcMAC[i]
	}
	for i := range h.srcIP {
		h.srcIP[i] &= m.srcIP[i]
		h.dstIP[i] &= m.dstIP[i]
	}
	h.tagged = h.tagged && m.tagged
	h.tci, h.etherType, h.ip, h.proto, h.tos = h.tci&m.tci, h.etherType&m.etherType, h.ip&m.ip, h.proto&m.proto, h.tos&m.tos
	if h.transport != m.transport {
		h.srcPort, h.dstPort = 0, 0
	}
	h.transport, h.srcPort, h.dstPort = m.transport, h.srcPort&m.srcPort, h.dstPort&m.dstPort
	return h
}

// headers is what rules see of a packet.
func headersOf(p *ether.Packet) headers {
	h := headers{dstMAC: p.DstMAC, srcMAC: p.SrcMAC, tagged: p.Tagged, etherType: p.EtherType, ip: p.IP()}
	if p.Tagged {
		h.tci = p.TCI
	}
	if h.ip == 0 {
		return h
	}
	h.srcIP, h.dstIP, h.proto, h.tos = p.SrcIP, p.DstIP, p.Proto, p.TOS
	if p.Ports() {
		h.transport, h.srcPort, h.dstPort = p.Proto, p.SrcPort, p.DstPort
	}
	return h
}

// entry is a rule that matches what r matches, in the same place, or nil.
func (s *Steering) entry(r *SteeringRule) *SteeringRule {
	for _, x := range s.rules {
		for _, p := range x.parts {
			if slices.Contains(r.parts, p) {
				return x
			}
		}
	}
	return nil
}

func (s *Steering) conflicts(r *SteeringRule, tagged bool) bool {
	e := s.entry(r)
	return e != nil && (e.drop != r.drop || tagged && e.tag != r.tag)
}

// Destroy judges ibv_destroy_flow of a rule.
func (s *Steering) Destroy(r *SteeringRule, err error) error {
	s.rules = slices.DeleteFunc(s.rules, func(x *SteeringRule) bool { return x == r })
	return errnoIn(&ruleFlowGone, err, 0)
}

// DestroyQP judges ibv_destroy_qp of a queue pair, and reports whether it is gone.
func (s *Steering) DestroyQP(qp int, err error) (gone bool, _ error) {
	if slices.ContainsFunc(s.rules, func(r *SteeringRule) bool { return r.qp == qp }) {
		return false, errnoIn(&ruleFlowBusy, err, syscall.EBUSY)
	}
	return err == nil, errnoIn(&ruleFlowBusy, err, 0)
}

// Arrival is a packet at a queue pair.
type Arrival struct {
	QP, Times int
	Whole     bool // its bytes are those that were sent
	Tag       uint32
	Flags     verbs.WCFlags
}

// Delivered judges where a packet that was sent has arrived. tags says whether completions have
// tags.
func (s *Steering) Delivered(p *ether.Packet, got []Arrival, tags bool) error {
	ways, tag := s.ways(p)
	var at []int
	for _, a := range got {
		if a.Times != 1 || !a.Whole {
			return &Violation{&ruleFlowOnce, "the packet once and whole", fmt.Sprintf("%d times, whole: %v, at queue pair %d", a.Times, a.Whole, a.QP)}
		}
		at = append(at, a.QP)
	}
	slices.Sort(at)
	var legal []uint32 // tags of the ways that it may have gone
	for i, w := range ways {
		if slices.Equal(w, at) {
			legal = append(legal, tag[i])
		}
	}
	if legal == nil {
		r := &ruleFlowMatch
		if len(ways[0]) > 0 && s.matchesAll(p, at) {
			r = &ruleFlowFirst
		}
		return &Violation{r, wayText(ways), queueText(at)}
	}
	for _, a := range got {
		if tags && (!slices.Contains(legal, a.Tag) || a.Tag != got[0].Tag) {
			return &Violation{&ruleFlowTag, fmt.Sprintf("tag %#x", legal), fmt.Sprintf("%#x at queue pair %d", a.Tag, a.QP)}
		}
		if ok := a.Flags&verbs.WCIPCsumOK != 0; ok != (p.IP() == 4 && !p.BadHeader && !p.BadPayload) && !checksumsOpen(p) {
			return &Violation{&ruleChecksums, fmt.Sprintf("IP_CSUM_OK: %v", !ok), fmt.Sprintf("%v at queue pair %d", ok, a.QP)}
		}
	}
	return nil
}

// checksumsOpen says whether it is open what a device says of the packet's checksums: whether it
// looks into fragments, and what it says of an IPv4 packet that has no checksum behind its header,
// is not written.
func checksumsOpen(p *ether.Packet) bool {
	return p.IP() == 4 && !p.BadHeader && (p.Fragment() || !p.Ports())
}

// matchesAll says whether each of the queue pairs has a rule that matches the packet.
func (s *Steering) matchesAll(p *ether.Packet, qps []int) bool {
	h := headersOf(p)
	for _, q := range qps {
		if !slices.ContainsFunc(s.rules, func(r *SteeringRule) bool { return r.qp == q && r.match(&h, -1) >= 0 }) {
			return false
		}
	}
	return true
}

// match is the place of the part that matches, in the given place or in any (-1); -1: none does.
func (r *SteeringRule) match(h *headers, place int) int {
	for _, p := range r.parts {
		if (place < 0 || p.place == place) && h.and(&p.mask) == p.value {
			return p.place
		}
	}
	return -1
}

// ways are the sets of queue pairs at which a packet may arrive, each with its tag. Where rules of
// one place match different headers and all match the packet, it is open which of them decides.
func (s *Steering) ways(p *ether.Packet) (ways [][]int, tags []uint32) {
	h := headersOf(p)
	for place := range placeDefaults + 1 {
		var entries []steeringPart
		for _, r := range s.rules {
			if r.match(&h, place) < 0 {
				continue
			}
			part := r.parts[slices.IndexFunc(r.parts, func(x steeringPart) bool { return x.place == place && h.and(&x.mask) == x.value })]
			i := slices.Index(entries, part)
			if i < 0 {
				i = len(entries)
				entries, ways, tags = append(entries, part), append(ways, nil), append(tags, r.tag)
			}
			if !r.drop && !slices.Contains(ways[i], r.qp) {
				ways[i] = append(ways[i], r.qp)
			}
		}
		if len(ways) > 0 {
			for i := range ways {
				slices.Sort(ways[i])
			}
			return ways, tags
		}
	}
	return [][]int{nil}, []uint32{0}
}

func wayText(ways [][]int) string {
	var l []string
	for _, w := range ways {
		if t := queueText(w); !slices.Contains(l, t) {
			l = append(l, t)
		}
	}
	return strings.Join(l, " or ")
}

func queueText(l []int) string {
	if len(l) == 0 {
		return "at no queue pair"
	}
	return fmt.Sprintf("at queue pairs %v", l)
}
