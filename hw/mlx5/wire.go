//go:build hw

package mlx5

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/hw/wire"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

// wireNeeds are the tokens of cases for which the link between the nodes is taken over. For others
// it is left alone: frames of Soft-RoCE are forwarded by the kernel then, which is faster.
var wireNeeds = []string{"tap", "inj", "inj.ip", "linkctl", subnetNeed}

// subnetNeed is the token of a subnet manager that a tester configures.
const subnetNeed = "sm"

// link is the way between the nodes in a tester's hands.
type link interface {
	verbs.Wire
	Plan(p *fault.Plan, ports [2]string) error
	Close() error
}

// wired reports whether the link can be taken over: by the interfaces behind the nodes, or in a
// guest by a port of the simulation.
func (s *Setup) wired() bool {
	return s.far != nil || (s.link[0] != "" || s.port != "") && len(s.nodes) > 1
}

// findPort looks for a port of the simulation's wire, in a guest, and asks whether the nodes are at
// that wire.
func (s *Setup) findPort() error {
	file := wire.FindPort("/sys")
	if s.far != nil || s.link[0] != "" || file == "" || len(s.nodes) < 2 || s.nodes[1].agent != "" {
		return nil
	}
	p, err := wire.OpenPort(file, "/sys", s.devices())
	if errors.Is(err, syscall.ENODEV) {
		return nil // a wire of other devices
	}
	if err != nil {
		return err
	}
	s.port, s.subnet, s.bench, s.has = file, p.Subnet, p.Bench, p.Has
	return p.Close()
}

func (s *Setup) devices() []string {
	var names []string
	for _, n := range s.nodes {
		names = append(names, n.Device)
	}
	return names
}

// takes reports whether the link is taken over for a need: for what the wire has, and for what its
// socket gives of the devices.
func (s *Setup) takes(need string) bool {
	return slices.Contains(wireNeeds, need) || s.bench && slices.Contains(benchNeeds, need)
}

// TakeWire takes the link over for a case with such needs, or for a plan that asks for it.
func (tb *Testbed) TakeWire(needs []string, seed uint64, p *fault.Plan) error {
	tb.needs = needs
	planned, asked := p != nil && onWire(p), slices.ContainsFunc(needs, tb.setup.takes)
	records := tb.setup.record && tb.setup.port != "" && !asked && !slices.Contains(needs, speedNeed)
	if !tb.setup.wired() || !planned && !asked && !records {
		return nil
	}
	if far := tb.setup.far; far != nil {
		tb.wire = farLink{far.FarWire(), far}
		return nil
	}
	if tb.setup.port != "" {
		p, err := wire.OpenPort(tb.setup.port, "/sys", tb.setup.devices())
		if err != nil {
			return err
		}
		tb.wire, tb.records = p, records
		return nil
	}
	w, err := wire.Open(tb.setup.link[0], tb.setup.link[1], tb.began, seed)
	if err != nil {
		return err
	}
	tb.wire = w
	return nil
}

// speedNeed is the token of cases whose frames are too many to be recorded without need.
const speedNeed = "speed"

// Record has testbeds record a simulated wire during cases that do not take it over, so that the
// report of one that fails shows its frames.
func (s *Setup) Record() { s.record = true }

// StartRecording begins the recording of a testbed that records.
func (tb *Testbed) StartRecording() error {
	if !tb.records {
		return nil
	}
	return tb.wire.StartTap(nil)
}

// Recorded ends a recording and returns its frames; none: there was no recording, or it cannot be
// had.
func (tb *Testbed) Recorded() []verbs.WireFrame {
	if !tb.records {
		return nil
	}
	tb.records = false
	frames, err := tb.wire.StopTap(nil)
	if err != nil {
		return nil
	}
	return frames
}

// ConfigureSubnet has the subnet manager of a simulated wire give something else to the ports.
func (tb *Testbed) ConfigureSubnet(t verbs.Thread, c verbs.SubnetConfig) error {
	m, ok := tb.wire.(verbs.SubnetControl)
	if !ok {
		return fmt.Errorf("the subnet manager of this fabric: %w", syscall.EOPNOTSUPP)
	}
	defer enterCall(t, "configure the subnet").leaveCall()
	return m.ConfigureSubnet(t, c)
}

// Wire is the link between the nodes, where a case asked for it.
func (tb *Testbed) Wire() verbs.Wire {
	if tb.wire == nil {
		return nil
	}
	return tb.wire
}

// parseLink reads "A,B": the interfaces behind the first and the second node.
func parseLink(s string) (link [2]string, err error) {
	if s == "" {
		return link, nil
	}
	a, b, ok := strings.Cut(s, ",")
	if !ok || a == "" || b == "" {
		return link, fmt.Errorf("wire %q: give the two interfaces behind the first and the second device, such as w0,w1", s)
	}
	return [2]string{a, b}, nil
}
