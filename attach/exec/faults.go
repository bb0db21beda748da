//go:build linux && amd64

package exec

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
)

// hostName is the host of a session's processes in a file of faults: host0/p2 is the second process
// that has made an RDMA call.
const hostName = "host0"

// planFaults checks the plan of faults, and has its rules, links and events happen.
func (s *session) planFaults() error {
	p := s.cfg.Faults
	if p == nil {
		return nil
	}
	t := fault.Target{Hosts: []string{hostName}, Cannot: func(k fault.EventKind) string {
		if k == fault.Unmap || k == fault.Remap {
			return "the memory of programs is their own"
		}
		return ""
	}}
	for _, d := range s.m.devs {
		t.Devices = append(t.Devices, d.name)
	}
	if err := s.m.net.PlanFor(p, t); err != nil {
		return &UsageError{err}
	}
	s.watchPorts = len(p.Links)+len(p.Events) > 0
	for i := range p.Events {
		s.m.eng.At(max(sim.Time(p.Events[i].At), s.m.eng.Now()), s.faultEvent, uint64(i))
	}
	return nil
}

// faultEvent is an event of the plan.
func (s *session) faultEvent(i uint64) {
	e := &s.cfg.Faults.Events[i]
	if e.Kind == fault.Remove {
		for _, d := range s.m.devs {
			if d.name == e.Device {
				s.m.net.Unplug(d.hca)
				s.m.cm.RemoveDevice(d.kern)
				s.m.net.Forget(d.hca)
				d.kern.Remove()
				s.ports.stale = true
			}
		}
		s.faultsDone = append(s.faultsDone, "removed "+e.Device)
		return
	}
	_, number, _ := strings.Cut(e.Process, "/p")
	n, _ := strconv.Atoi(number)
	for pid, p := range s.procs.byID {
		if p.number == n && p.mem.Alive() && unix.Kill(pid, unix.SIGKILL) == nil {
			s.faultsDone = append(s.faultsDone, fmt.Sprintf("killed %s, pid %d", e.Process, pid))
			return
		}
	}
	if n > s.procs.made {
		s.procs.doomed = append(s.procs.doomed, n)
		s.faultsDone = append(s.faultsDone, fmt.Sprintf("%s was to be killed with its first RDMA call", e.Process))
		return
	}
	s.faultsDone = append(s.faultsDone, fmt.Sprintf("killed no %s: it had ended", e.Process))
}

// sayFaults says what the faults did, and what the devices did about it.
func (s *session) sayFaults() {
	p := s.cfg.Faults
	if p == nil {
		return
	}
	for i, c := range s.m.net.Rules() {
		say("fault %d (%v) has acted upon %d of %s that it matches", i+1, p.Rules[i].Action, c.Acted, plain.Count(c.Matched, "frame"))
	}
	for _, l := range p.Links {
		state, was := "down", "was taken"
		if l.Up {
			state = "up"
		}
		if sim.Time(l.At) > s.m.eng.Now() {
			was = "was not yet to be taken"
		}
		say("the link of %s %s %s at %v", l.Port, was, state, sim.Time(l.At))
	}
	for _, done := range s.faultsDone {
		say("%s", done)
	}
	if n := len(p.Events) - len(s.faultsDone); n > 0 {
		say("%s came after the end", plain.Count(n, "event"))
	}
	for _, d := range s.m.devs {
		of := func(all ...prm.QCounter) (n int) {
			for _, c := range all {
				n += int(d.hca.QCounter(c))
			}
			return n
		}
		adaptive := of(prm.QCRoCEADPRetrans)
		say("%s: requests sent again after %s (%d adaptive), %s and %s; %s lost", d.name,
			plain.Count(of(prm.QCLocalAckTimeoutErr)+adaptive, "timeout"), adaptive, plain.Count(of(prm.QCPacketSeqErr), "NAK"),
			plain.Count(of(prm.QCImpliedNAKSeqErr), "missing response"), plain.Count(of(prm.QCReqTransportRetriesExceeded, prm.QCReqRNRRetriesExceeded), "connection"))
	}
}
