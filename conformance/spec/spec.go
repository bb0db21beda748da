// Package spec is what a conformance case is written against: a case has an ID of the catalogue and
// a body, and the body gets a C, which holds a thread, a testbed and the checks. It knows nothing
// of what runs below: a case asks for a capability, never for a backend. Package conformance runs
// cases on a Target, and its catalogue has the source of each case's rule.
//
// A check records what was seen as an observation and, when it does not hold, ends
// the case. Reports compare observations, so their steps are named alike on every
// run and hold no address, key or queue number.
package spec

import (
	"fmt"
	"runtime"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Target makes the testbeds that cases run on.
type Target interface {
	// NewTestbed makes a fresh testbed for one case. Everything random in it is
	// drawn from seed.
	NewTestbed(seed uint64, o BedOptions) (Bed, error)
}

// BedOptions are what a case asks of its testbed.
type BedOptions struct {
	// MaxEvents bounds a simulated run; 0: the target's default.
	MaxEvents uint64
	// Needs are the capabilities that the case needs: a target that can make testbeds of several
	// kinds makes one that has them.
	Needs []string
	// Full runs long cases at the length that the catalogue demands.
	Full bool
	// Lockstep lets simulated programs yield at every step, which is slower and gives the same
	// bytes.
	Lockstep bool
	// Pcap and Trace are files to write the frames and the timeline to; empty: none.
	Pcap, Trace string
	// PcapKeep bounds the bytes of the frames in Pcap: only the last are kept; 0: all are.
	PcapKeep int
	// ID of the case; a capture of many cases names its interfaces by it.
	ID string
}

// Bed is a testbed that can run the body of a case.
type Bed interface {
	verbs.Testbed
	// Run runs body in a thread of a process of the first host until it returns.
	// It returns an error when body has not returned after deadline (of the
	// testbed's own clock), or can no longer return. It passes on a panic of body.
	Run(deadline time.Duration, body func(verbs.Thread)) error
	// Close frees the testbed. The error says which of its files could not be written.
	Close() error
}

// ExactTime is the capability of a testbed whose clock is virtual. The clock stands still while
// nothing happens, so a case takes the same time in every run, and that time is part of its record.
const ExactTime = "exact time"

// Recorder is implemented by testbeds that record the link during a case that does not tap it.
// Recorded returns the frames after Run has returned, or nil if nothing was recorded.
type Recorder interface{ Recorded() []verbs.WireFrame }

// Restarter is implemented by targets that a case can leave unusable until the process ends: if
// NeedsRestart returns true after a case, a new process runs the rest.
type Restarter interface{ NeedsRestart() bool }

// Chooser is implemented by targets that choose a device; Chosen says which.
type Chooser interface{ Chosen() string }

// Variant is implemented by testbeds that can be changed to meet the needs of a case; Changed names
// the parameters that were changed.
type Variant interface{ Changed() []string }

// Suite is a list of cases in the order of registration.
type Suite struct {
	cases []Case
	index map[string]int
	errs  []error
}

// Case is a registered case.
type Case struct {
	ID       string
	Body     func(*C)
	Where    string // file:line of the registration, without the directory of the module
	File     string // the same place, as the compiler names it
	Line     int
	Deadline time.Duration // on the testbed's clock; 0: DefaultDeadline
}

// DefaultDeadline is the deadline of a case that sets no other, on the testbed's clock.
const DefaultDeadline = 60 * time.Second

// Option changes how a case runs.
type Option func(*Case)

// Deadline sets how long the case may take on the testbed's clock.
func Deadline(d time.Duration) Option { return func(c *Case) { c.Deadline = d } }

// Case registers the code of a catalogue entry. If the ID is registered already, Errs reports it.
func (s *Suite) Case(id string, body func(c *C), opts ...Option) {
	_, file, line, _ := runtime.Caller(1)
	c := Case{ID: id, Body: body, Where: place(file, line), File: file, Line: line, Deadline: DefaultDeadline}
	for _, o := range opts {
		o(&c)
	}
	if s.index == nil {
		s.index = map[string]int{}
	}
	if i, dup := s.index[id]; dup {
		s.errs = append(s.errs, fmt.Errorf("%s: case %s is already registered at %s", c.Where, id, s.cases[i].Where))
		return
	}
	s.index[id] = len(s.cases)
	s.cases = append(s.cases, c)
}

// Cases returns the registered cases in the order of registration.
func (s *Suite) Cases() []Case { return s.cases }

// Find returns the case with an ID, and whether there is one.
func (s *Suite) Find(id string) (Case, bool) {
	i, ok := s.index[id]
	if !ok {
		return Case{}, false
	}
	return s.cases[i], true
}

// Errs returns the mistakes made in registering: IDs that were registered twice.
func (s *Suite) Errs() []error { return s.errs }
