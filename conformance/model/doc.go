// Package model is an executable specification of verbs: small state machines of queue pairs,
// completion queues, shared receive queues, memory and events, written from the sources that the
// catalogue names and without any simulator. A caller tells the model each call that a program
// makes, with its result, and each completion and event that it takes. The model says at once when
// a result is not one of those that the specification leaves open, and otherwise goes on from the
// result that was seen.
//
// The model covers programs in which one request executes at a time: the caller waits between its
// calls until the queues are quiet. Requests of one list execute in order. A rule that has several
// legal results gives a set; where the result decides what comes next (a success or a failure, a
// state that a device may or may not enter), the model waits until the completion or the state has
// been observed (QP.Uncertain).
package model

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// Rule is a rule of the specification: what it demands and where it stands. Sources are spelled as
// in the catalogue.
type Rule struct{ Text, Source string }

// Violation is a result that the rule does not allow.
type Violation struct {
	Rule      *Rule
	Want, Got string
}

// Error returns the text form.
func (v *Violation) Error() string {
	return fmt.Sprintf("want %s, got %s (%s; %s)", v.Want, v.Got, v.Rule.Text, v.Rule.Source)
}

// World holds all objects of a program.
type World struct {
	Cover Coverage
	// Vague: a choice was made that no call shows. Nothing that follows may be judged.
	Vague bool
	// Lossy: packets are lost, delayed and doubled on the wire, or dropped for absent pages, within
	// what the retries of the queue pairs make good.
	Lossy  bool
	events []*Event
	qps    []*QP
}

// Event is an asynchronous event that may or must come.
type Event struct {
	Type       verbs.EventType
	Object     any // *QP, *CQ or *SRQ
	Must, Most int // how often it has to come, and may come
	rule       *Rule
}

// unanswered are the statuses of a request whose refusal was lost: its responder is in ERR, and
// answers no more.
func (w *World) unanswered(f *faults) Statuses {
	if w.Lossy && f.remote != 0 {
		return set(verbs.WCRetryExcErr)
	}
	return 0
}

// allow adds an event that may come, or with must has to.
func (w *World) allow(t verbs.EventType, object any, must int, r *Rule) {
	for _, e := range w.events {
		if e.Type == t && e.Object == object {
			e.Must, e.Most = e.Must+must, e.Most+1
			return
		}
	}
	w.events = append(w.events, &Event{t, object, must, 1, r})
}

// forget drops the events of an object that was destroyed (k:core/uverbs_main.c
// ib_uverbs_release_uevent).
func (w *World) forget(object any) {
	w.events = slices.DeleteFunc(w.events, func(e *Event) bool { return e.Object == object })
}

// AsyncEvent judges an asynchronous event.
func (w *World) AsyncEvent(t verbs.EventType, object any) error {
	for _, e := range w.events {
		if e.Type == t && e.Object == object && e.Most > 0 {
			e.Must, e.Most = max(0, e.Must-1), e.Most-1
			return nil
		}
	}
	return &Violation{&ruleNoEvent, "no such event of " + name(object), t.String()}
}

// NoAsyncEvent judges a wait for an asynchronous event in which none came.
func (w *World) NoAsyncEvent() error {
	for _, e := range w.events {
		if e.Must > 0 {
			return &Violation{e.rule, fmt.Sprintf("%s of %s", e.Type, name(e.Object)), "no event"}
		}
	}
	return nil
}

// Awaits reports whether an event has to come.
func (w *World) Awaits() bool {
	for _, e := range w.events {
		if e.Must > 0 {
			return true
		}
	}
	return false
}

func name(object any) string {
	switch o := object.(type) {
	case *QP:
		return "queue pair " + o.Name
	case *CQ:
		return "CQ " + o.Name
	case *SRQ:
		return "the SRQ"
	}
	return "an unknown object"
}

// errnoIn judges the result of a call; 0 is success.
func errnoIn(r *Rule, err error, want ...syscall.Errno) error {
	got, text := verbs.ErrnoOf(err), ""
	for i, e := range want {
		if got == e {
			return nil
		}
		if i > 0 {
			text += " or "
		}
		text += verbs.ErrnoName(e)
	}
	return &Violation{r, text, verbs.ErrnoName(got)}
}

// Statuses is a set of completion statuses.
type Statuses uint32

func set(l ...verbs.WCStatus) (s Statuses) {
	for _, x := range l {
		s |= 1 << x
	}
	return s
}

func (s Statuses) has(x verbs.WCStatus) bool { return s>>x&1 != 0 }

// String returns the names of the statuses in the set.
func (s Statuses) String() string {
	text := ""
	for x := verbs.WCSuccess; x <= verbs.WCTMRndvIncomplete; x++ {
		if s.has(x) {
			if text != "" {
				text += " or "
			}
			text += x.String()
		}
	}
	return text
}
