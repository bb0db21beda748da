//go:build hw

package main

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/rdmasim/rdmasim/attach/peer"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/conformance/target/hardware"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// peerProfile is of a device by the specification, so that a deviation is the other end's.
const peerProfile = "generic-roce"

// simulatedPeer opens the host of --peer sim:PLACE, which talks to the device alone.
func simulatedPeer(place string, seed uint64) (func(d hardware.Device) (hardware.Simulated, error), error) {
	at, err := wire.ParsePlace(place)
	if err != nil {
		return nil, fmt.Errorf("--peer %s%w", simulatedScheme, err)
	}
	p, err := profile.Load(peerProfile)
	if err != nil {
		return nil, err
	}
	return func(d hardware.Device) (hardware.Simulated, error) {
		p := p.Clone()
		p.HCA.AtomicWrite, p.Kernel.AtomicWrite, p.Provider.AtomicWrite = d.AtomicWrite, d.AtomicWrite, d.AtomicWrite
		b, err := peer.OpenBench(peer.Config{Place: at, Profile: p, Seed: seed, Allow: []netip.Prefix{netip.PrefixFrom(d.Address, d.Address.BitLen())},
			Say: func(format string, a ...any) { fmt.Fprintf(os.Stderr, "conform: "+format+"\n", a...) }})
		if err != nil {
			return nil, fmt.Errorf("--peer %s%s: %w", simulatedScheme, place, err)
		}
		return b, nil
	}, nil
}
