package random

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// FlowProgram is a list of rules and packets: rules lead to raw packet queue pairs of one context,
// and another context sends the packets to the port.
type FlowProgram struct{ Steps []FlowStep }

// FlowStep creates a rule, destroys one, or sends a packet.
type FlowStep struct {
	Kind   string         // FlowCreate, FlowDestroy or FlowSend
	QP     int            // that a new rule leads to
	Rule   verbs.FlowAttr // the new rule
	N      int            // the rule that goes, among those that are there
	Packet ether.Packet
	Length int // of the packet's payload
}

// Kinds of steps.
const (
	FlowCreate  = "create"
	FlowDestroy = "destroy"
	FlowSend    = "send"
)

// Bounds of a program. A Steered has rules of priority 0 of its own.
const (
	flowQPs      = 3
	maxFlowSteps = 24
	firstFlow    = 1 // priority
	lastFlow     = 16
	maxFlowBytes = 1400
)

// portMAC stands for the port's address in a program: addresses of single stations are as far from
// the port's as they are from it.
var portMAC = [6]byte{2, 0, 0, 0, 0, 0xfe}

// placed is an address of a program at a port.
func placed(a, port [6]byte) [6]byte {
	if a[0]&1 == 0 {
		for i := range a {
			a[i] ^= portMAC[i] ^ port[i]
		}
	}
	return a
}

// at is the rule with the addresses of a port.
func (s *FlowStep) at(port [6]byte) verbs.FlowAttr {
	a := s.Rule
	a.Specs = slices.Clone(a.Specs)
	for i := range a.Specs {
		if x := &a.Specs[i]; x.Type == verbs.FlowSpecEth {
			x.Val.DstMAC = placed(x.Val.DstMAC, port)
		}
	}
	return a
}

// Valid returns an error if the program is not one that can be drawn: if it asks for what
// specifications leave open.
func (p *FlowProgram) Valid() error {
	if len(p.Steps) == 0 || len(p.Steps) > maxFlowSteps {
		return fmt.Errorf("%d steps, at most %d", len(p.Steps), maxFlowSteps)
	}
	for i := range p.Steps {
		if err := p.Steps[i].valid(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *FlowStep) valid() error {
	switch s.Kind {
	case FlowCreate:
		return s.validRule()
	case FlowDestroy:
		if s.N < 0 {
			return fmt.Errorf("rule %d", s.N)
		}
		return nil
	case FlowSend:
		return s.validPacket()
	}
	return fmt.Errorf("kind %q", s.Kind)
}

func (s *FlowStep) validRule() error {
	a := &s.Rule
	if s.QP < 0 || s.QP >= flowQPs || a.Priority < firstFlow || a.Priority > lastFlow || a.Type > verbs.FlowMulticastDefault || a.Flags != 0 || a.Port != 0 {
		return fmt.Errorf("queue pair %d, priority %d, type %d", s.QP, a.Priority, a.Type)
	}
	var seen []int
	for i := range a.Specs {
		x := &a.Specs[i]
		layer := slices.IndexFunc(flowLayers, func(l []verbs.FlowSpecType) bool { return slices.Contains(l, x.Type) })
		if layer < 0 || slices.Contains(seen, layer) {
			return fmt.Errorf("spec of type %#x", uint32(x.Type))
		}
		seen = append(seen, layer)
		// Whether a packet without ports has ports of 0 is open.
		if v, m := &x.Val, &x.Mask; layer == layerPorts && (m.SrcPort != 0 && v.SrcPort&m.SrcPort == 0 || m.DstPort != 0 && v.DstPort&m.DstPort == 0) {
			return fmt.Errorf("ports %v of mask %v", *v, *m)
		}
	}
	return nil
}

// flowLayers are the types of specs, of which a rule has one of each kind.
var flowLayers = [][]verbs.FlowSpecType{
	{verbs.FlowSpecEth}, {verbs.FlowSpecIPv4, verbs.FlowSpecIPv4Ext, verbs.FlowSpecIPv6}, {verbs.FlowSpecTCP, verbs.FlowSpecUDP}, {verbs.FlowSpecTag}, {verbs.FlowSpecDrop},
}

const layerPorts = 2

func (s *FlowStep) validPacket() error {
	const portRoCE, typeRoCE, leastType, vlanMask = 4791, 0x8915, 0x0600, 0xfff
	p := &s.Packet
	switch {
	case s.Length < kit.LeastPacket || s.Length > maxFlowBytes:
		return fmt.Errorf("payload of %d bytes", s.Length)
	case p.DstMAC != portMAC && p.DstMAC[0]&1 == 0, p.SrcMAC[0]&1 != 0, p.SrcMAC == [6]byte{}:
		return fmt.Errorf("a packet from % x to % x", p.SrcMAC, p.DstMAC)
	case p.EtherType < leastType, p.EtherType == typeRoCE, p.EtherType == kit.TypeExperimental, !p.Tagged && p.TCI != 0, p.EtherType == 0x8100 || p.EtherType == 0x88a8:
		return fmt.Errorf("EtherType %#x", p.EtherType)
	case p.IP() != 4 && (p.Options != 0 || p.Offset != 0 || p.More || p.BadHeader), p.IP() == 0 && (p.Proto != 0 || p.TOS != 0 || p.TTL != 0):
		return fmt.Errorf("fields of IP in a packet of EtherType %#x", p.EtherType)
	case p.Options > 10, p.Offset > 1<<13-200, p.Ports() && p.Proto == roce.ProtoUDP && p.DstPort == portRoCE, p.BadPayload && !p.Ports():
		return fmt.Errorf("packet %+v", *p)
	case p.IP() == 6 && slices.Contains(extensions, p.Proto), p.IP() != 0 && !p.Ports() && (p.SrcPort != 0 || p.DstPort != 0):
		return fmt.Errorf("protocol %d", p.Proto)
	}
	return nil
}

// extensions are the numbers of headers that stand before others in IPv6.
var extensions = []uint8{0, 43, 44, 50, 51, 60, 135}

// String describes the program, one step a line.
func (p *FlowProgram) String() string {
	var l []string
	for i := range p.Steps {
		l = append(l, fmt.Sprintf("%d. %s", i+1, p.Steps[i].String()))
	}
	return strings.Join(l, "\n")
}

// String describes a step in words.
func (s *FlowStep) String() string {
	switch s.Kind {
	case FlowDestroy:
		return fmt.Sprintf("destroy rule %d of those there are", s.N)
	case FlowSend:
		return fmt.Sprintf("send%s with %d bytes", nonZero(s.Packet), s.Length)
	}
	text := fmt.Sprintf("create a rule to QP %d: type %d, priority %d", s.QP, s.Rule.Type, s.Rule.Priority)
	for _, x := range s.Rule.Specs {
		text += fmt.Sprintf("\n   spec %#x", uint32(x.Type))
		switch x.Type {
		case verbs.FlowSpecTag:
			text += fmt.Sprintf(" %#x", x.Tag)
		case verbs.FlowSpecDrop:
		default:
			text += fmt.Sprintf("%s\n     mask%s", nonZero(x.Val), nonZero(x.Mask))
		}
	}
	return text
}

// nonZero is the fields of a struct that are not zero, in words.
func nonZero(v any) (text string) {
	x := reflect.ValueOf(v)
	for i := range x.NumField() {
		switch f, name := x.Field(i), x.Type().Field(i).Name; {
		case f.IsZero():
		case f.Kind() == reflect.Bool:
			text += " " + name
		default:
			text += fmt.Sprintf(" %s %#x", name, f.Interface())
		}
	}
	return text
}
