//go:build hw

package mlx5

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/hw/wire"
	"github.com/rdmasim/rdmasim/roce/fault"
)

// FaultTarget is what a file of faults can name here.
func (s *Setup) FaultTarget() fault.Target {
	t := fault.Target{Ports: []string{}, Cannot: func(k fault.EventKind) string {
		if k == fault.Remove {
			return cannotRemove
		}
		return ""
	}}
	for i, n := range s.nodes {
		host := hostName(i)
		t.Hosts, t.Devices = append(t.Hosts, host), append(t.Devices, host+"/"+n.Device)
	}
	if s.wired() && s.port == "" && s.far == nil {
		t.Ports = t.Devices
	}
	return t
}

// CheckFaults is an error when this target cannot carry out a part of the plan, with its place in
// the file.
func (s *Setup) CheckFaults(p *fault.Plan) error {
	if onWire(p) && s.port != "" {
		return wire.ErrPlan
	}
	if onWire(p) && s.far != nil {
		return errFarFaults
	}
	if onWire(p) && !s.wired() {
		return errors.New("faults of frames and links need access to the link between two devices: give --wire")
	}
	return p.Check(s.FaultTarget())
}

func onWire(p *fault.Plan) bool { return len(p.Rules)+len(p.Links) > 0 }

func hostName(i int) string { return fmt.Sprintf("host%d", i) }

// ApplyFaults carries out a plan that passed CheckFaults, in the testbed's time. The wire
// was taken over before.
func (tb *Testbed) ApplyFaults(p *fault.Plan) error {
	if onWire(p) {
		t := tb.setup.FaultTarget()
		if err := tb.wire.Plan(p, [2]string(t.Ports)); err != nil {
			return err
		}
	}
	tb.events = p.Events
	for i, e := range p.Events {
		switch {
		case e.Process == processName(0, 1):
			tb.own(e)
		case e.Kind == fault.Kill:
			tb.after(e.At, func() { tb.kill(&p.Events[i]) })
		}
	}
	return nil
}

// processName is the name of process k of those of a testbed, from 1; it is on a host.
func processName(host, k int) string { return fmt.Sprintf("%s/p%d", hostName(host), k) }

// own carries out an event about this process.
func (tb *Testbed) own(e fault.Event) {
	if e.Kind == fault.Kill {
		tb.after(e.At, func() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL) })
		return
	}
	tb.regions.wanted = true
	tb.after(e.At, func() { tb.regions.applyMemoryFault(&e) })
}

// kill ends the player that an event names, if there is one by now.
func (tb *Testbed) kill(e *fault.Event) {
	tb.mu.Lock()
	players := slices.Clone(tb.players)
	tb.mu.Unlock()
	for _, h := range players {
		if h.name == e.Process {
			h.end()
		}
	}
}

// after calls f at a time of the testbed, in picoseconds, unless that is closed before.
func (tb *Testbed) after(at int64, f func()) {
	tb.timers = append(tb.timers, time.AfterFunc(time.Duration(at/1000)-time.Since(tb.began), f))
}

// memoryOf is the events about the memory of a process of the given name, which carries them
// out itself: times count from now.
func (tb *Testbed) memoryOf(name string) []fault.Event {
	var out []fault.Event
	for _, e := range tb.events {
		if e.Process == name && e.Kind != fault.Kill {
			e.At = max(0, e.At-int64(time.Since(tb.began))*1000)
			out = append(out, e)
		}
	}
	return out
}

// regions are the memory regions that this process has registered, in order, where an event
// names one.
type regions struct {
	wanted bool
	mu     sync.Mutex
	all    [][2]uint64 // address and length
}

func (r *regions) registered(addr, length uint64) {
	if !r.wanted {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, [2]uint64{addr, length})
}

// applyMemoryFault unmaps the pages of a region, or maps others there. Nothing happens for a region
// that does not exist yet.
func (r *regions) applyMemoryFault(e *fault.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Region > len(r.all) {
		return
	}
	start, n, ok := e.Pages(r.all[e.Region-1][0], r.all[e.Region-1][1], uint64(os.Getpagesize()))
	if !ok {
		return
	}
	if e.Kind == fault.Unmap {
		_, _, _ = unix.Syscall(unix.SYS_MUNMAP, uintptr(start), uintptr(n), 0)
		return
	}
	_, _, _ = unix.Syscall6(unix.SYS_MMAP, uintptr(start), uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED, ^uintptr(0), 0)
}
