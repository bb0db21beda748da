//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
)

// pagingCounters are the counters of on-demand paging that were files of a device's folder in
// infiniband_verbs in 2014 ("On Demand Paging update", slide 11); the model's kernel has the same
// counts.
var pagingCounters = map[string]bool{
	"num_page_faults": true, "num_page_fault_pages": true, "num_invalidations": true, "num_invalidation_pages": true,
	"invalidations_faults_contentions": true, "num_prefetches_handled": true,
}

// counterPeriod is how old what the files say is at most while the device has work. When it has
// none they are right.
const counterPeriod = time.Millisecond

// counterFiles are those of a device. Programs find links to descriptors of this process, behind
// each of which there is a memory file that nobody can change: another takes its place when the
// count has changed.
type counterFiles struct {
	kern   *kernel.Device
	hca    *hca.Device
	paging []counterFile // of its folder in infiniband_verbs
	port   []counterFile // of hw_counters of its port
	// traffic are those of the folder counters of its port, in the order of trafficCounters.
	traffic []counterFile
	link    func() *link.Counters
}

type counterFile struct {
	name    string
	fd      int
	shown   uint64       // by the file
	now     uint64       // what it is to say, which it does not where there was no memory for it
	counter prm.QCounter // of port
}

// newCounterFiles makes the files of a device, which say 0: those of its port, and of a device that
// pages on demand those of paging.
func newCounterFiles(k *kernel.Device, h *hca.Device, port func() *link.Counters, pages bool) (*counterFiles, error) {
	c := &counterFiles{kern: k, hca: h, link: port}
	paging := k.Counters().Paging
	paging.Fields(func(name string, _ *uint64) {
		if pages && pagingCounters[name] {
			c.paging = append(c.paging, counterFile{name: name, fd: -1})
		}
	})
	for _, q := range k.PortCounters() {
		c.port = append(c.port, counterFile{name: kernel.PortCounterName(q), fd: -1, counter: q})
	}
	for _, t := range trafficCounters {
		c.traffic = append(c.traffic, counterFile{name: t.name, fd: -1})
	}
	for _, files := range c.all() {
		for i := range files {
			fd, err := counterMemory(0)
			if err != nil {
				c.close()
				return nil, fmt.Errorf("file of %s: %w", files[i].name, err)
			}
			files[i].fd = fd
		}
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

// links are the names of files and where they lead.
func links(files []counterFile) []tree.Link {
	var l []tree.Link
	for _, f := range files {
		l = append(l, tree.Link{Name: f.name, To: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.fd)})
	}
	return l
}

// show brings the files up to date.
func (c *counterFiles) show() {
	paging, i := c.kern.Counters().Paging, 0
	paging.Fields(func(name string, v *uint64) {
		if i < len(c.paging) && c.paging[i].name == name {
			c.paging[i].say(*v)
			i++
		}
	})
	for i := range c.port {
		c.port[i].say(c.hca.QCounter(c.port[i].counter))
	}
}

// say has the file say a number. Where there is no memory for a new file the old one stays.
func (f *counterFile) say(v uint64) {
	f.now = v
	if f.shown == v {
		return
	}
	fd, err := counterMemory(v)
	if err != nil {
		return
	}
	if unix.Dup3(fd, f.fd, unix.O_CLOEXEC) == nil {
		f.shown = v
	}
	_ = unix.Close(fd)
}

// all are the files by folder.
func (c *counterFiles) all() [][]counterFile { return [][]counterFile{c.paging, c.port, c.traffic} }

func (c *counterFiles) close() {
	for _, files := range c.all() {
		for _, f := range files {
			if f.fd >= 0 {
				_ = unix.Close(f.fd)
			}
		}
	}
	c.paging, c.port, c.traffic = nil, nil, nil
}

// showCounters brings the files of all devices and ports up to date, when it is time for it or the
// device has just become idle.
func (e *engine) showCounters(idle bool) {
	e.trafficOld = true
	if !idle && time.Since(e.countersAt) < counterPeriod {
		return
	}
	e.countersAt = time.Now()
	e.showTraffic(false)
	if idle { // the driver reads its tables some time after an event
		e.showPorts()
	}
	for _, d := range e.m.devs {
		if d.counters != nil {
			d.counters.show()
		}
	}
}
