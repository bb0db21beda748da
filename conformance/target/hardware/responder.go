//go:build hw

package hardware

import (
	"errors"
	"maps"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/hw/mlx5"
	"github.com/rdmasim/rdmasim/verbs"
)

// responder is the target whose cases run on a simulated host: the device under test is the second
// node, where another process carries out commands.
type responder struct {
	*target
	far Simulated
}

func newResponder(t *target, far Simulated) (spec.Target, error) {
	switch {
	case far == nil:
		return nil, errors.New("a device that answers needs a simulated peer that asks")
	case t.faults != nil:
		return nil, errors.New("faults are not for cases that run on a simulated peer: leave them out")
	}
	return &responder{t, far}, nil
}

// Chosen names both.
func (r *responder) Chosen() string {
	return r.setup.Alone().Chosen() + ", which answers to the first node, " + r.far.Name()
}

// NewTestbed makes a testbed of the peer and the device.
func (r *responder) NewTestbed(_ uint64, o spec.BedOptions) (spec.Bed, error) {
	r.last = mlx5.New(r.setup.Alone())
	return &responderBed{r: r, device: r.last, needs: o.Needs}, nil
}

// responderBed is a testbed of the peer, on which the case runs, and the device.
type responderBed struct {
	verbs.UnimplementedTestbed
	r      *responder
	device *mlx5.Testbed
	needs  []string
}

// Hosts are the peer and the machine of the device.
func (b *responderBed) Hosts() []verbs.Host {
	return append([]verbs.Host{b.r.far.Host()}, b.device.Hosts()...)
}

// Target is the device, as one that answers.
func (b *responderBed) Target() verbs.Target {
	t := verbs.Target{Kind: "hw", Profile: b.r.setup.Profile + conformance.ResponderSuffix, Device: b.device.Target().Device, Details: maps.Clone(b.r.setup.Details)}
	t.Details["first node"], t.Details["second node"] = t.Details["second node"], t.Details["device"]
	t.Details["peer"] = t.Details["provider"] // as report.Platform names them
	return t
}

// testers are the capabilities of a testbed or a machine, not of a device, that this one has. It
// has none of the others.
var testers = map[string]bool{"2p": true, "tap": true, "inj": true, "4k page": true, "64k page": true, "bigmem": true, "non-root": true,
	"roce": true, "roce v2": true, "ib": false, "exact time": false, "card faults": false, "schedule": false, "locks": false,
	"speed": false, "linkctl": false, "addr": false, "vlan": false, "ecn": false, "pfc": false, "sm": false, "mmio log": false, "mmio exact": false,
	"fault": false, "in flight": false, "counters": false, "hw counters": false, "restrack": false, "hotunplug": false, "root": false,
	"device time": false, "other net": false, "gpu": false, "udmabuf": false, "exporter": false}

// Capability answers for both ends: what a case needs of a device, the peer and the device have.
func (b *responderBed) Capability(token string) verbs.Capability {
	has, known := testers[token]
	switch {
	case token == "simulated":
		has = mlx5.Asserts(b.needs)
	case token == "rc.flush":
		has = b.r.setup.Flushes()
	case token == "inj.ip":
		has = b.r.far.Has(token)
	case !known:
		has = b.r.far.Has(token) && b.r.setup.Capability(token) == verbs.Present
	}
	if has {
		return verbs.Present
	}
	return verbs.Absent
}

// Wire is the wire at the peer's end.
func (b *responderBed) Wire() verbs.Wire { return b.r.far.NearWire() }

// Player starts another process of the peer, or one on the device.
func (b *responderBed) Player(t verbs.Thread, host int, env map[string]string) (verbs.Player, error) {
	if host == 0 {
		return b.r.far.PlayerOf(t, env)
	}
	d := &devicePlayer{far: b.r.far}
	var err error
	b.r.far.Wait(t, func() { d.d, err = b.device.StartDevice(env) })
	return d, err
}

// devicePlayer is a process on the device, in the hands of threads of the peer.
type devicePlayer struct {
	far Simulated
	d   *mlx5.Device
}

func (p *devicePlayer) Do(t verbs.Thread, cmd verbs.PlayerCommand) (r verbs.PlayerReply, err error) {
	p.far.Wait(t, func() { r, err = p.d.Do(cmd) })
	return r, err
}

func (p *devicePlayer) Kill(t verbs.Thread) { p.far.Wait(t, p.d.End) }

// Run runs body on the peer.
func (b *responderBed) Run(deadline time.Duration, body func(verbs.Thread)) error {
	const margin = 10
	if most := b.r.wall - b.r.wall/margin; b.r.wall > 0 && (b.r.setup.Emulated() || deadline > most) {
		deadline = most
	}
	return b.r.far.Run(deadline, body)
}

// Close ends the processes on the device.
func (b *responderBed) Close() error {
	b.r.far.Reset()
	return b.device.Close()
}
