package network

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/roce/fault/wirerule"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/verbs"
)

// What a tester may leave in the memory of a session, and the longest that he may delay a frame.
const (
	maxRules    = 1024
	maxRecorded = 1 << 28 // bytes of frames
	maxDelay    = time.Hour
)

// errUnfinished: a recording is longer than there is room for.
var errUnfinished = errors.New("the recording has no room for more frames")

// Tester is the network in the hands of somebody who watches and disturbs it, beside a plan of
// faults, whose rules come first and stay.
type Tester struct {
	// Outside has frames that come from outside be in his hands too, beside those of devices.
	Outside bool

	n       *Network
	planned int // rules of the plan
	tapped  bool
	order   *link.Ordered // nil: no recording is under way
	frames  []verbs.WireFrame
	bytes   int
	down    map[*link.Port]bool
	fabric  link.Fabric // before it was changed
	changed bool
}

// NewTester takes the network in hand, which may be done once, after Plan.
func (n *Network) NewTester() *Tester {
	return &Tester{n: n, planned: n.faults.script.Len(), down: map[*link.Port]bool{}}
}

// Reset undoes what was changed, and returns the GUIDs of the devices, those of software on their
// network interfaces too.
func (t *Tester) Reset() (ports []uint64, subnet bool) {
	t.order, t.frames, t.bytes = nil, nil, 0
	t.ClearRules()
	for _, p := range t.n.ports {
		if p.guid != 0 {
			ports = append(ports, p.guid)
		}
		if p.soft != 0 {
			ports = append(ports, p.soft)
		}
		if t.down[p.link] {
			p.link.SetLink(true)
		}
	}
	clear(t.down)
	if t.changed {
		t.changed = false
		t.n.manager.Configure(t.fabric, false)
	}
	return ports, t.n.manager != nil
}

// inHand are the ports whose frames a tester has in hand: those of devices. What the subnet manager
// sends is not his.
func (t *Tester) inHand() []port {
	return slices.DeleteFunc(slices.Clone(t.n.ports), func(p port) bool { return p.guid == 0 && !(t.Outside && p.outside) })
}

// Port is the port of the device with a GUID; ENODEV: there is none.
func (t *Tester) Port(guid uint64) (*link.Port, error) {
	for _, p := range t.n.ports {
		if p.is(guid) {
			return p.link, nil
		}
	}
	return nil, fmt.Errorf("no device with the GUID %#016x is at this wire: %w", guid, syscall.ENODEV)
}

// StartTap begins a recording of every port; one that is under way is dropped.
func (t *Tester) StartTap() {
	if !t.tapped {
		t.tapped = true
		for _, p := range t.inHand() {
			p.link.Tap(func(s link.Sent) {
				if t.order != nil {
					t.order.Tap(s)
				}
			})
		}
	}
	t.frames, t.bytes = nil, 0
	t.order = link.NewOrdered(t.n.eng, t.record)
}

func (t *Tester) record(s link.Sent) {
	if t.bytes > maxRecorded {
		return
	}
	data := s.Frame.AppendWhole(nil)
	if t.bytes += len(data); t.bytes > maxRecorded {
		return
	}
	t.frames = append(t.frames, verbs.WireFrame{At: time.Duration(s.At / sim.Nanosecond), Data: data,
		InfiniBand: s.Frame.LRH, Acted: wirerule.Acted(s.Acted)})
}

// Recorded is how many frames the recording has so far.
func (t *Tester) Recorded() int { return len(t.frames) }

// StopTap ends the recording and returns its frames; with an error it is not whole.
func (t *Tester) StopTap() ([]verbs.WireFrame, error) {
	if t.order == nil {
		return nil, fmt.Errorf("no recording is under way: %w", syscall.EINVAL)
	}
	t.order.Close()
	frames, err := t.frames, error(nil)
	if t.bytes > maxRecorded {
		err = fmt.Errorf("%w after %d bytes: %w", errUnfinished, maxRecorded, syscall.ENOSPC)
	}
	t.order, t.frames, t.bytes = nil, nil, 0
	return frames, err
}

// Inject adds a rule for every port.
func (t *Tester) Inject(r verbs.WireRule) error {
	switch {
	case t.n.faults.script.Len()-t.planned >= maxRules:
		return fmt.Errorf("there are already %d rules: %w", maxRules, syscall.ENOSPC)
	case r.Delay > maxDelay:
		return fmt.Errorf("a delay of %v, and %v is the longest: %w", r.Delay, maxDelay, syscall.EINVAL)
	}
	rule, err := wirerule.Of(r)
	if err != nil {
		return err
	}
	if err := t.n.faults.script.Add(rule); err != nil {
		return fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	for _, p := range t.inHand() {
		p.link.SetScript(&t.n.faults.script)
	}
	return nil
}

// ClearRules removes the rules that were injected and returns how many frames each has matched.
func (t *Tester) ClearRules() []int { return t.n.faults.script.ClearAfter(t.planned) }

// SetLink takes the link of a device down or up.
func (t *Tester) SetLink(guid uint64, up bool) error {
	p, err := t.Port(guid)
	if err != nil {
		return err
	}
	p.SetLink(up)
	t.down[p] = !up
	return nil
}

// ConfigureSubnet has the subnet manager give something else to the ports.
func (t *Tester) ConfigureSubnet(c verbs.SubnetConfig) error {
	m := t.n.manager
	if m != nil && m.Retired() {
		return fmt.Errorf("the subnet has a manager of its own: %w", syscall.EOPNOTSUPP)
	}
	if m == nil {
		return fmt.Errorf("a subnet manager on Ethernet: %w", syscall.EOPNOTSUPP)
	}
	f := m.Fabric()
	if !t.changed {
		t.changed, t.fabric = true, f
	}
	if c.FirstLID != 0 {
		f.FirstLID, f.SMLID = c.FirstLID, f.SMLID-f.FirstLID+c.FirstLID
	}
	if c.GIDPrefix != 0 {
		f.GIDPrefix = c.GIDPrefix
	}
	if c.PKeys != nil {
		f.PKeys = c.PKeys
	}
	m.Configure(f, c.Reregister)
	return nil
}
