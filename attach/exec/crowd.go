//go:build linux && amd64

package exec

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// crowd tells whether threads wait for a CPU.
type crowd struct {
	fd   int // /proc/loadavg
	cpus int
	buf  [64]byte
}

func newCrowd() *crowd {
	fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return &crowd{fd: fd, cpus: runtime.NumCPU()}
}

func (c *crowd) close() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
}

// spare reports whether no more threads can run than there are CPUs: who goes on looking
// then takes no time from others.
func (c *crowd) spare() bool {
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
