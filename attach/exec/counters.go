//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/sim/kernel"
)

// pagingCounters are the counters of on-demand paging that were files of a device's folder in infiniband_verbs in 2014 ("On Demand Paging
// update", slide 11); the model's kernel has the same counts.
var pagingCounters = map[string]bool{
	"num_page_faults": true, "num_page_fault_pages": true, "num_invalidations": true, "num_invalidation_pages": true,
	"invalidations_faults_contentions": true, "num_prefetches_handled": true,
}

// counterPeriod is how old what the files say is at most while the device has work. When it has none they are right.
const counterPeriod = time.Millisecond

// counterFiles are those of a device. Programs find links to descriptors of this process, behind each of which
// there is a memory file that nobody can change: another takes its place when the count has changed.
type counterFiles struct {
	kern  *kernel.Device
	files []counterFile
}

type counterFile struct {
	name  string
	fd    int
	shown uint64
}

// newCounterFiles makes the files of a device, which say 0.
func newCounterFiles(k *kernel.Device) (*counterFiles, error) {
	c := &counterFiles{kern: k}
	paging := k.Counters().Paging
	paging.Fields(func(name string, _ *uint64) {
		if pagingCounters[name] {
			c.files = append(c.files, counterFile{name: name, fd: -1})
		}
	})
	for i := range c.files {
		fd, err := counterMemory(0)
		if err != nil {
			c.close()
			return nil, fmt.Errorf("file of %s: %w", c.files[i].name, err)
		}
		c.files[i].fd = fd
	}
	return c, nil
}

// counterMemory is a memory file that says a number, for good.
func counterMemory(v uint64) (int, error) {
	fd, err := unix.MemfdCreate("counter", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	if _, err = unix.Pwrite(fd, append(strconv.AppendUint(nil, v, 10), '\n'), 0); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_WRITE)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// links are the names of the files and where they lead.
func (c *counterFiles) links() []tree.Link {
	var l []tree.Link
	for _, f := range c.files {
		l = append(l, tree.Link{Name: f.name, To: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.fd)})
	}
	return l
}

// show brings the files up to date. Where there is no memory for a new one the old one stays.
func (c *counterFiles) show() {
	paging, i := c.kern.Counters().Paging, 0
	paging.Fields(func(name string, v *uint64) {
		if i == len(c.files) || c.files[i].name != name {
			return
		}
		f := &c.files[i]
		i++
		if f.shown == *v {
			return
		}
		fd, err := counterMemory(*v)
		if err != nil {
			return
		}
		if unix.Dup3(fd, f.fd, unix.O_CLOEXEC) == nil {
			f.shown = *v
		}
		_ = unix.Close(fd)
	})
}

func (c *counterFiles) close() {
	for _, f := range c.files {
		if f.fd >= 0 {
			_ = unix.Close(f.fd)
		}
	}
	c.files = nil
}

// showCounters brings the files of all devices and ports up to date, when it is time for it or the device has just become idle.
func (e *engine) showCounters(idle bool) {
	if !idle && time.Since(e.countersAt) < counterPeriod {
		return
	}
	e.countersAt = time.Now()
	if idle { // the driver reads its tables some time after an event
		e.showPorts()
	}
	for _, d := range e.m.devs {
		if d.counters != nil {
			d.counters.show()
		}
	}
}
