package main

import (
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// simulatedScheme begins a --peer that is a simulated host.
const simulatedScheme = "sim:"

// Values of --role.
const (
	roleRequester = string(conformance.Requester)
	roleResponder = string(conformance.Responder)
)

func (o *runOptions) simulatedPeer() bool { return strings.HasPrefix(o.peer, simulatedScheme) }

// checkPeer refuses flags that do not go with a simulated peer, or go only with one. What is known
// of the lab's devices is not of it.
func (o *runOptions) checkPeer() error {
	if roles := []string{roleRequester, roleResponder}; !slices.Contains(roles, o.role) {
		return usagef("unknown role %q%s; roles are requester and responder", o.role, input.Suggest(o.role, roles))
	}
	switch {
	case o.role != roleRequester && !o.simulatedPeer():
		return usagef("--role %s is of a device whose peer is simulated: give --peer sim:ADDRESS", o.role)
	case !o.simulatedPeer():
		return nil
	case o.target != "hw":
		return usagef("--peer %s: a simulated peer is for one device: use --target=hw alone", o.peer)
	case o.peerKey != "":
		return usagef("--peer-key %s is for an agent, and %s is a simulated peer in this process", o.peerKey, o.peer)
	case o.wire != labWire():
		return usagef("--wire %s is the link between two devices; the cases watch and disturb the frames of a simulated peer at its end", o.wire)
	}
	o.wire = ""
	return nil
}

// concerns reports whether a case says something of the device under test where its peer is
// simulated. One without a second node says nothing of a device that is this node.
func (o *runOptions) concerns(e *conformance.Entry) bool {
	if !o.simulatedPeer() {
		return true
	}
	return (e.Judges == "" || string(e.Judges) == o.role) && (o.role == roleRequester || e.TwoNodes())
}
