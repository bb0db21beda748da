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
func simulatedPeer(place string, seed uint64) (func(device netip.Addr) (hardware.Simulated, error), error) {
	at, err := wire.ParsePlace(place)
	if err != nil {
		return nil, fmt.Errorf("--peer %s%w", simulatedScheme, err)
	}
	p, err := profile.Load(peerProfile)
	if err != nil {
		return nil, err
	}
	return func(device netip.Addr) (hardware.Simulated, error) {
		b, err := peer.OpenBench(peer.Config{Place: at, Profile: p, Seed: seed, Allow: []netip.Prefix{netip.PrefixFrom(device, device.BitLen())},
			Say: func(format string, a ...any) { fmt.Fprintf(os.Stderr, "conform: "+format+"\n", a...) }})
		if err != nil {
			return nil, fmt.Errorf("--peer %s%s: %w", simulatedScheme, place, err)
		}
		return b, nil
	}, nil
}
