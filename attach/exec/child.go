//go:build linux && amd64

package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
)

// Hidden first arguments of the program's own binary.
const (
	childArg   = "exec-child"
	janitorArg = "exec-janitor"
)

// Descriptors of a child: its socket to the supervisor, and a file with its order.
const (
	handshakeFD = 3
	orderFD     = 4
)

// order is what the supervisor asks the child to run.
type order struct {
	Path    string // of the program
	Args    []string
	Env     []string // variables beyond those of the session
	Mount   bool     // try mounts
	ODP     bool     // hand over what changes memory
	WorkDir string
	Devices []tree.Device
	// Interfaces are made in the child's own network, if there are any.
	Interfaces []ownInterface
}

// report is what the child answers, with the listener when Err is empty.
type report struct {
	Mounted bool
	Reads   int    // the child's descriptor of tree.Mount
	Probe   uint64 // address of a word that holds probeWord
	Err     string
	Outer   bool // Err is that of seccomp.ErrOuterListener
	Kernel  bool // Err is that of seccomp.ErrNoNotification
}

// probeWord is what the supervisor must find in the child's memory.
const probeWord = 0x6d6c78355f73696d

var probe uint64 = probeWord

// Child turns this process into the program when it was started as a session's child,
// or serves as its janitor; otherwise it returns. A main that may be re-executed calls
// it first.
func Child() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case childArg:
		runtime.LockOSThread() // the filter belongs to a thread, and execve keeps that one
		child()
		os.Exit(1)
	case janitorArg:
		janitor()
		os.Exit(0)
	}
}

// child prepares this thread and becomes the program.
func child() {
	unix.CloseOnExec(handshakeFD)
	var o order
	file := os.NewFile(orderFD, "order")
	if err := json.NewDecoder(file).Decode(&o); err != nil {
		answer(report{Err: err.Error()})
		return
	}
	_ = file.Close()
	if len(o.Interfaces) > 0 {
		if err := makeOwnNetwork(o.Interfaces); err != nil {
			answer(report{Err: fmt.Sprintf("--own-network: %v", err)})
			return
		}
	}
	r := report{Probe: uint64(uintptr(unsafe.Pointer(&probe)))}
	if o.Mount {
		var err error
		r.Reads, err = tree.Mount(o.WorkDir, o.Devices)
		r.Mounted = err == nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		answer(report{Err: fmt.Sprintf("no_new_privs: %v", err)})
		return
	}
	if err := seccomp.Hand(seccomp.Compile(rules(!r.Mounted, o.ODP)), handshakeFD, r.encode()); err != nil {
		answer(report{Err: err.Error(), Outer: errors.Is(err, seccomp.ErrOuterListener), Kernel: errors.Is(err, seccomp.ErrNoNotification)})
		return
	}
	var b [1]byte
	if n, err := unix.Read(handshakeFD, b[:]); err != nil || n != 1 {
		return // the supervisor is gone or has refused
	}
	err := syscall.Exec(o.Path, o.Args, os.Environ())
	answer(report{Err: fmt.Sprintf("%s: %v", o.Path, err)})
}

// encode is the report as the supervisor reads it.
func (r report) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // plain fields
	}
	return b
}

// answer sends a report without a listener.
func answer(r report) { _ = unix.Sendmsg(handshakeFD, r.encode(), nil, nil, 0) }
