// Package pci gives virtual machines the simulated adapter as a PCI device (seam 3): an unmodified
// kernel's mlx5_core and mlx5_ib drive it. A virtual machine monitor that speaks vfio-user, such as
// QEMU, connects to a socket of each function (package vfiouser) and passes on what its guest reads
// and writes of the function's registers, the guest's memory and the vectors of its interrupts.
//
// The package holds what lies between the protocol and sim/hca: the configuration space, the
// initialisation segment with the command queue, and the memory of the guest as memory behind a
// pcie.Link. The device sees the same as in any other run. The guest runs in real time, so that a
// run is not repeatable: determinism ends at this seam.
//
// One lock guards all that is simulated. The goroutine of a connection holds it while it carries
// out a request; the pacer's goroutine takes it when the device has something to do by itself.
package pci

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Config says what to offer, and where.
type Config struct {
	// Socket is the path of the socket; with several functions each has its own, Socket.0, Socket.1
	// and so on.
	Socket    string
	Functions int // joined by a switch, two on Ethernet by a cable
	// Wire is the Ethernet that the functions are on too; nil: they are alone.
	Wire *wire.Place
	// Tester is the path of a socket through which a guest may watch and disturb the wire ("":
	// none). QEMU connects a port of virtio-serial to it, and package remotewire is what is spoken
	// there.
	Tester  string
	Profile *profile.Profile
	Seed    uint64 // of the device's draws
	// BlueFlame, if not 0, offers the guest BlueFlame: the stores to a register are held for so
	// long, in wall time from the last one, until they are a whole push. Doorbells are so much
	// later.
	BlueFlame time.Duration
	Pcap      string // capture of every port, pcapng in virtual time ("": none)
	// PcapLimit is after how many bytes of frames the capture ends (0: never).
	PcapLimit uint64
	Faults    *fault.Plan // nil: none
	// Logf receives a line for what a user wants to know.
	Logf func(format string, args ...any)
	// Verbose has a line for each command of the driver too.
	Verbose bool
}

// Sockets are the absolute paths of the sockets, by function.
func (cfg *Config) Sockets() ([]string, error) {
	if err := outfile.CheckFolder(); err != nil && !filepath.IsAbs(cfg.Socket) {
		return nil, &UsageError{fmt.Errorf("socket %s: %w", cfg.Socket, err)}
	}
	path, err := filepath.Abs(cfg.Socket)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", cfg.Socket, err)
	}
	if cfg.Functions == 1 {
		return []string{path}, nil
	}
	var all []string
	for k := range cfg.Functions {
		all = append(all, fmt.Sprintf("%s.%d", path, k))
	}
	return all, nil
}

// MaxFunctions is how many functions a session can have.
const MaxFunctions = 16

// UsageError is a mistake in the arguments.
type UsageError struct{ Err error }

// Error returns the message.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// ErrPlatform is the error of Run on other machines.
var ErrPlatform = errors.New("pci needs Linux on x86-64")
