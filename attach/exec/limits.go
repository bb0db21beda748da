//go:build linux && amd64

package exec

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Limits of what programs hold in the supervisor, so that no program takes it from the others. The
// device has its own, which are those of a card.

// Default limits. MPI with 128 processes on one machine needs about 500 objects in each.
const (
	defaultObjects = 1 << 15
	defaultFiles   = 1 << 11
	// allProcesses is how many times the objects of one process all of them may have.
	allProcesses = 4
	// defaultWaiting is how many threads of one process may wait in GET_EVENT: the kernel searches
	// all that wait for each call of any program.
	defaultWaiting = 1 << 11
)

// Descriptors of the supervisor.
const (
	filesOfContext = 2 // the device file, and the program's description of it
	filesOfProcess = 1
	filesReserved  = 256 // for itself
)

// limits are those of all programs together.
type limits struct {
	objects, files, maps *uverbs.Quota
	waiting              *uverbs.Quota
	fileBytes            *uverbs.Quota // of the memory files of queues
	ram                  *kernel.RAM
	noPaging             func() // says that the session has no on-demand paging; nil: it has
	cfg                  *Config
}

func newLimits(cfg *Config) *limits {
	l := &limits{cfg: cfg}
	mappings := maxMappings()
	together := allProcesses * min(l.ofObjects(), math.MaxInt/allProcesses)
	l.objects = &uverbs.Quota{Name: "objects of all processes", Most: together, Errno: unix.ENOMEM,
		OnFull: warning("the processes have %d objects together, the most that they may have: --limit-objects raises the limit", together)}
	l.waiting = &uverbs.Quota{Name: "threads of all processes that wait for events", Most: allProcesses * defaultWaiting, Errno: unix.ENOMEM,
		OnFull: warning("%d threads of the processes wait for events of rdma_cm, the most that may", allProcesses*defaultWaiting)}
	files := maxFiles()
	l.files = &uverbs.Quota{Name: "descriptors for all processes", Most: files, Errno: unix.ENFILE,
		OnFull: warning("%d descriptors are open for the processes, as many as this process may have: a higher limit (ulimit -n) allows more", files)}
	l.maps = &uverbs.Quota{Name: "mapped pages and queues of all processes", Most: mappings, Errno: unix.ENOMEM,
		OnFull: warning("%d pages and queues of the processes are mapped, as many as the kernel allows: a higher vm.max_map_count allows more", mappings)}
	bytes := cfg.LimitMemory
	if bytes == 0 {
		bytes = machineRAM()
	}
	l.ram = &kernel.RAM{Pages: bytes / mem.PageSize,
		OnFull: warning("the processes cannot register more than %s together: --limit-memory raises the limit", size(bytes))}
	l.ram.OnRegionsFull = warning("the regions of on-demand paging of the processes take a sixteenth of %s here, the most that they may: --limit-memory raises the limit", size(bytes))
	if cfg.NoODP {
		l.noPaging = warning("a process registers memory for on-demand paging, and the devices of this session have none: without --odp=false they have")
	}
	l.fileBytes = &uverbs.Quota{Name: "bytes in memory files", Most: int(min(bytes, math.MaxInt)), Errno: unix.ENOMEM,
		OnFull: warning("the queues of the processes cannot take more than %s of shared memory together, further ones are copied: --limit-memory raises the limit", size(bytes))}
	return l
}

func (l *limits) ofObjects() int { return orDefault(l.cfg.LimitObjects, defaultObjects) }

func orDefault(n, usual int) int {
	return cmp.Or(n, usual)
}

// size is a number of bytes for a message.
func size(bytes uint64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// of are the limits of one process.
func (l *limits) of(p *process, pid int) {
	objects, files := l.ofObjects(), orDefault(l.cfg.LimitFiles, defaultFiles)
	p.objects = &uverbs.Quota{Name: "objects", Most: objects, Errno: unix.ENOMEM, Up: l.objects,
		OnFull: warning("process %d has %d objects, the most that one may have: --limit-objects raises the limit", pid, objects)}
	p.files = &uverbs.Quota{Name: "descriptors", Most: files, Errno: unix.EMFILE, Up: l.files,
		OnFull: warning("process %d asks for more than %d descriptors, the most that one may have: --limit-files raises the limit", pid, files)}
	p.waiting = &uverbs.Quota{Name: "threads that wait for events", Most: defaultWaiting, Errno: unix.ENOMEM, Up: l.waiting,
		OnFull: warning("%d threads of process %d wait for events of rdma_cm, the most that may", defaultWaiting, pid)}
	half := l.maps.Most / 2
	p.maps = &uverbs.Quota{Name: "mapped pages and queues", Most: half, Errno: unix.ENOMEM, Up: l.maps,
		OnFull: warning("%d pages and queues of process %d are mapped, half of what the kernel allows: a higher vm.max_map_count allows more", half, pid)}
}

// warning prints a line on stderr when it is first called.
func warning(format string, args ...any) func() {
	said := false
	return func() {
		if !said {
			say(format, args...)
		}
		said = true
	}
}

// checkFileSize returns an error if files may not be as long as those that programs map (ulimit
// -f), which count although they are memory.
func checkFileSize() error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &l); err != nil || l.Cur >= deviceFileSize {
		return nil
	}
	raised := unix.Rlimit{Cur: min(l.Max, deviceFileSize), Max: l.Max}
	if raised.Cur >= deviceFileSize && unix.Setrlimit(unix.RLIMIT_FSIZE, &raised) == nil {
		return nil
	}
	return fmt.Errorf("files are limited to %d KiB, and the memory files of devices need %d: raise the limit (ulimit -f)", l.Cur>>10, deviceFileSize>>10)
}

// maxFiles is how many descriptors may be open for programs.
func maxFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	return max(int(limit.Cur)-filesReserved, filesReserved)
}

// maxMappings is how many mappings a process may have (vm.max_map_count), less those that this one
// needs for itself.
func maxMappings() int {
	const usual = 65530
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	n, bad := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || bad != nil {
		n = usual
	}
	return n - n/4
}

// machineRAM is the memory of this machine, in bytes.
func machineRAM() uint64 {
	var i unix.Sysinfo_t
	if err := unix.Sysinfo(&i); err != nil {
		return kernelMemory
	}
	return i.Totalram * uint64(i.Unit)
}
