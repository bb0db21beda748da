// Package exec runs unmodified RDMA programs on the simulated adapter (seam 2): the
// real libibverbs and libmlx5 of a program find our device files, their ioctls are
// answered by sim/kernel, and what they store to their register pages rings sim/hca,
// which reads and writes the memory of the program. No kernel support for RDMA, no
// card and no privilege is needed.
//
// The supervisor starts the program as a child under a seccomp filter that hands it
// the RDMA ioctl (seccomp), and shows it the files by which libraries find devices
// (tree). One thread, the engine's, owns everything simulated: it polls the register
// pages, runs the device, and carries out ioctls between events.
package exec

import (
	"errors"
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Config says what to run and on what.
type Config struct {
	Args    []string // the program and its arguments
	Profile *profile.Profile
	Devices int // mlx5_0, mlx5_1, ...: two are joined by a cable, more by a switch
	// Guests is how many functions virtual machines have on the same network, each on a socket of
	// vfio-user: Socket, or Socket.0, Socket.1 and so on.
	Guests int
	Socket string
	// Wire has for each device where its cable leads, in place of cables and switch: a UDP socket
	// on port 4791, or an Ethernet. Devices of other sessions, and other adapters, are reached by
	// their addresses. Empty: the devices are joined with each other.
	Wire []wire.Place
	// WireMTU is the MTU of Ethernets; 0: that of the interface, or 1500.
	WireMTU int
	// Allow are the networks of peers that Wire's ends take datagrams from and send to; empty: all.
	Allow []netip.Prefix
	Seed  uint64 // of the device's draws
	Pcap  string // capture of every port, pcapng in virtual time ("": none)
	// PcapLimit is after how many bytes of frames the capture ends (0: never). What was left out is
	// counted in the file, and a line on stderr tells of it.
	PcapLimit uint64
	Faults    *fault.Plan // what goes wrong on the network, with devices and with processes; nil: nothing
	Trace     string      // timeline, Trace Event JSON
	UARLog    string      // what was written to registers, a line for each post
	// Counters is the file to which, when the program has ended, the counters of the devices that
	// the model has are written, in a fixed order: each as a line with its file below /sys/class
	// and its value, or all as one JSON object if the name ends in .json ("": none).
	Counters string
	// Throttle keeps virtual time from running ahead of real time, so that bandwidth is
	// that of the profile. Without it the device is as fast as the machine can simulate.
	Throttle bool
	// PathCalls makes programs find the device files by answers to their path calls even
	// where mounts are possible.
	PathCalls bool
	// NoSubnetManager leaves the ports of InfiniBand to a subnet manager among the programs, such
	// as opensm.
	NoSubnetManager bool
	// StaticUARs gives libraries a table of static registers, as kernels before 5.8 do. Otherwise
	// they get UAR objects.
	StaticUARs bool
	// OwnNetwork gives the programs a network namespace in which each Ethernet device has an
	// interface with its address.
	OwnNetwork bool
	// CopyQueues leaves the memory of queues where libraries put it by themselves, and
	// copies work requests and completions. Otherwise the device shares that memory with
	// programs that do not choose its place themselves.
	CopyQueues bool
	// NoODP takes on-demand paging away from the devices. Programs whose memory is not watched pay
	// nothing for changes of it.
	NoODP bool
	// Grace is how long the program may take to end after SIGTERM or SIGHUP, before it is killed
	// with its children (0: 5 s).
	Grace time.Duration
	// LimitObjects is how many objects one process may have (0: 32,768); all of them may have four
	// times as many.
	LimitObjects int
	// LimitFiles is how many descriptors may be open here for one process: two for a device file,
	// one for each file of events (0: 2,048).
	LimitFiles int
	// LimitMemory is how many bytes may be registered at a time (0: the memory of this machine).
	LimitMemory uint64
	// settle does for calls what kernels before Linux 6.18 need, on any kernel.
	settle bool
	// Logf, when not nil, receives the reason for each call of a program that is refused.
	Logf func(format string, args ...any)
}

// MaxDevices is how many devices a session can have.
const MaxDevices = 16

// UsageError is a mistake in the arguments.
type UsageError struct{ Err error }

// Error returns the message.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// ErrPlatform is the error of Run on other machines.
var ErrPlatform = errors.New("exec needs Linux on x86-64")

// Loss is a plan with one rule, which loses frames at random: 1,000 in a million are 0.1 %.
func Loss(plan *fault.Plan, perMillion uint32) *fault.Plan {
	if plan == nil {
		plan = &fault.Plan{}
	}
	plan.Rules = append(plan.Rules, fault.Rule{Action: fault.Drop, Chance: perMillion})
	return plan
}
