//go:build linux && amd64

package exec

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// cpuLoad estimates from the number of runnable threads whether any of them waits for a CPU.
type cpuLoad struct {
	fd   int // /proc/loadavg
	cpus int
	buf  [64]byte
}

func newCPULoad() *cpuLoad {
	fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return &cpuLoad{fd: fd, cpus: runtime.NumCPU()}
}

func (c *cpuLoad) close() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
}

// hasIdleCPU reports whether no more threads are runnable than there are CPUs: a thread that
// goes on polling then takes no time from the others.
func (c *cpuLoad) hasIdleCPU() bool {
	if c.fd < 0 {
		return false
	}
	n, err := unix.Pread(c.fd, c.buf[:], 0)
	return err == nil && runnable(c.buf[:max(n, 0)]) <= c.cpus
}

// runnable is the number before the slash in "0.20 0.18 0.12 1/80 11206".
func runnable(b []byte) int {
	n, digits := 0, false
	for _, x := range b {
		switch {
		case x >= '0' && x <= '9':
			n, digits = 10*n+int(x-'0'), true
		case x == '/' && digits:
			return n
		default:
			n, digits = 0, false
		}
	}
	return int(^uint(0) >> 1)
}
