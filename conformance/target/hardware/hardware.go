// Package hardware is the machine's own RDMA devices, under libibverbs, as a target of the
// conformance suite. It does its work where it is built with the tag hw, which needs cgo
// and the headers of rdma-core; built without, it can be imported and New says what is
// missing.
//
// Cases use other processes: this program started again. So a program that uses this
// target calls Player first of all, in a test from TestMain.
package hardware

import (
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

// Config chooses the devices. GIDIndex -1 and the zero values of the others leave the
// choice to the target.
type Config struct {
	// Device as ibv_devices names it, its port and the index of the GID that connections use.
	Device   string
	Port     int
	GIDIndex int
	// Wire names the interfaces behind the two nodes ("w0,w1"), through which frames can be
	// watched and disturbed.
	Wire string
	// Peer is the address of the conform agent whose device is the second node, and
	// PeerKey the file of its key; empty: another device of this machine.
	Peer, PeerKey string
	// Simulated makes a simulated second node for the device under test, in place of Peer; nil:
	// none. With Responder it is the first node, and the device the second.
	Simulated func(Device) (Simulated, error)
	Responder bool
	// Wall is how long a case may take in real time (0: as long as its own deadline): a
	// little before, it is ended with an error that names the call in which it hangs.
	Wall time.Duration
	// Faults is what goes wrong in every case (nil: nothing).
	Faults *fault.Plan
	// Record has the frames on a simulated wire recorded during cases that do not watch it
	// themselves.
	Record bool
}

// Device is what a simulated node is told of the device under test: its address, and whether it has
// ATOMIC WRITE, which the node then has, too.
type Device struct {
	Address     netip.Addr
	AtomicWrite bool
}

// Simulated is a simulated host in real time at the other end of the device's wire.
type Simulated interface {
	// Name says what and where it is. Address is that of its device.
	Name() string
	Address() netip.Addr
	// Has reports whether it has a capability of the catalogue.
	Has(token string) bool
	// Begin starts a process that carries out the commands of package player, by whatever thread,
	// and ends when it is killed.
	Begin(env map[string]string) (verbs.Player, error)
	// FarWire and NearWire are the wire at its end, in the hands of threads of this machine and of
	// its own. Reset undoes what was changed.
	FarWire() verbs.Wire
	NearWire() verbs.Wire
	Reset()
	// Run runs body in a thread of a process of its own until it returns, or until the deadline. It
	// passes on a panic of body.
	Run(deadline time.Duration, body func(verbs.Thread)) error
	// Host is the host, PlayerOf starts a process there for the threads of Run, which ends it, and
	// Wait has one of these wait for f.
	Host() verbs.Host
	PlayerOf(t verbs.Thread, env map[string]string) (verbs.Player, error)
	Wait(t verbs.Thread, f func())
}

// PlayerArg is the argument with which this program is started again as another process
// of a case.
const PlayerArg = "player"
