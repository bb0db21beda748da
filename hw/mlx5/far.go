//go:build hw

package mlx5

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

// Far is a second node that is no device of libibverbs: what answers for it stands at the other end
// of the first one's wire.
type Far interface {
	// Name says what and where it is. Address is that of its device.
	Name() string
	Address() netip.Addr
	// Has reports whether it has a capability of the catalogue.
	Has(token string) bool
	// Begin starts a process that carries out the commands of package player, by whatever thread,
	// and ends when it is killed.
	Begin(env map[string]string) (verbs.Player, error)
	// FarWire is the wire at that end, in the hands of threads of this machine.
	FarWire() verbs.Wire
	// Reset undoes what was changed on the wire.
	Reset()
}

// FarOf is what a Far is told of the device under test.
type FarOf struct {
	Address netip.Addr
	// AtomicWrite: it has ATOMIC WRITE.
	AtomicWrite bool
}

// flushes are IB_DEVICE_FLUSH_GLOBAL and IB_DEVICE_FLUSH_PERSISTENT.
const flushes = 1<<38 | 1<<39

// Flushes reports whether the device has FLUSH, whatever its library can post.
func (s *Setup) Flushes() bool { return s.ops&flushes != 0 }

// farProvider is the provider of a Far, for the ledger of deviations.
const farProvider = "sim"

// meet has a Far be the second node of the first one, which was probed.
func (s *Setup) meet(open func(FarOf) (Far, error)) error {
	n := s.nodes[0]
	ip := netip.AddrFrom16(n.GID).Unmap()
	if n.link != verbs.LinkEthernet || n.GIDType != verbs.GIDTypeRoCEv2 {
		return fmt.Errorf("GID %d of %s (%v) is not of RoCE v2, which alone reaches a simulated peer: choose another with --device, --port and --gid-index", n.GIDIndex, n.Device, n.GID)
	}
	far, err := open(FarOf{ip, s.ops&verbs.DeviceAtomicWrite != 0})
	if err != nil {
		return err
	}
	a := far.Address()
	switch {
	case a == ip:
		err = fmt.Errorf("%v is the address of %s itself: give the peer another", a, n.Device)
	case a.Is4() != ip.Is4():
		err = fmt.Errorf("the peer's address %v and GID %d of %s (%v) are of two kinds: choose another GID with --gid-index, or another address", a, n.GIDIndex, n.Device, ip)
	}
	if err != nil {
		return err
	}
	s.far = far
	s.nodes = append(s.nodes, Node{Device: far.Name(), Port: 1, GID: verbs.GID(a.As16()), GIDType: verbs.GIDTypeRoCEv2, Provider: farProvider, link: n.link})
	s.describeSecond()
	return nil
}

// farCapability answers for the pair of a device and a Far: a case with these needs needs a token
// of the transport in both.
func (s *Setup) farCapability(token string, needs []string) (c verbs.Capability, decided bool) {
	switch token {
	case "tap", "inj", "inj.ip", "2p":
		return verbs.Present, true
	case unseen:
		return verbs.Present, Asserts(needs)
	case "linkctl", "hw counters":
		return verbs.Absent, true
	case "restrack": // of both ends' objects of the connection manager
		return verbs.Absent, slices.Contains(needs, "cm")
	}
	if slices.Contains(bothEnds, token) && !s.far.Has(token) {
		return verbs.Absent, true
	}
	return verbs.Unknown, false
}

// unseen is the token of rows that no card was seen to keep yet.
const unseen = "simulated"

// Asserts reports whether a case asserts such a row of what passes the wire: with a simulated peer
// it is to be seen here.
func Asserts(needs []string) bool {
	return slices.Contains(needs, unseen) && slices.ContainsFunc(needs, func(n string) bool { return n == "2p" || n == "tap" || n == "inj" })
}

// bothEnds are the capabilities of a transport that a request needs at both ends.
var bothEnds = []string{"uc", "ud", "xrc", "rc.atomic_write", "atomic", "srq", "mw.t2", "mcast", "ipv6", "odp.rc.send", "odp.rc.recv", "odp.rc.write", "odp.rc.read",
	"odp.rc.atomic", "odp.rc.srq_recv", "odp.xrc.send", "odp.xrc.write", "odp.xrc.read", "odp.xrc.atomic", "odp.xrc.srq_recv"}

// farLink is the wire of a Far in the hands of a testbed.
type farLink struct {
	verbs.Wire
	far Far
}

func (l farLink) Plan(*fault.Plan, [2]string) error { return errFarFaults }

func (l farLink) Close() error {
	l.far.Reset()
	return nil
}

// Capability answers for a token of the catalogue from what was probed of the first device,
// whatever the second node is.
func (s *Setup) Capability(token string) verbs.Capability {
	return s.own(token)
}

// StartDevice starts a process for the device under test, by a thread of another testbed.
func (tb *Testbed) StartDevice(env map[string]string) (*Device, error) {
	h, err := tb.startPlayer(0, env)
	if err != nil {
		return nil, err
	}
	return &Device{h}, nil
}

// Device is a process on the device under test, which threads of another testbed give commands.
type Device struct{ h *playerProcess }

// Do is verbs.Player's.
func (d *Device) Do(cmd verbs.PlayerCommand) (verbs.PlayerReply, error) { return d.h.do(cmd) }

// End ends it with SIGKILL.
func (d *Device) End() { d.h.end() }

// Alone is the setup without a second node, for testbeds in which the device is the second.
func (s *Setup) Alone() *Setup {
	one := *s
	one.far, one.nodes = nil, s.nodes[:1]
	return &one
}

var errFarFaults = errors.New("faults of frames and links are not for a simulated peer, whose wire is the cases': leave them out")
