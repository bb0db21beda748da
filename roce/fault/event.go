package fault

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// EventKind is a kind of failure apart from frames and links.
type EventKind uint8

// Kinds of events.
const (
	// Remove takes a device away under its users, as a hot unplug does.
	Remove EventKind = iota
	// Kill ends a process by SIGKILL.
	Kill
	// Unmap is munmap of pages of a process's memory under a registered region.
	Unmap
	// Remap is Unmap of what is mapped of the pages, and mmap of fresh memory at their
	// addresses.
	Remap

	eventKinds
)

var eventNames = [eventKinds]string{"remove", "kill", "unmap", "remap"}

// String returns the text form.
func (k EventKind) String() string {
	if k < eventKinds {
		return eventNames[k]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Event is a failure at a time of the run.
type Event struct {
	At      int64 // picoseconds
	Kind    EventKind
	Device  string // of Remove: host0/mlx5_0
	Process string // of the others: host1/p2
	// Region numbers the memory regions that the process registers, from 1, including those that it
	// has deregistered. The event affects the pages that contain the Length bytes (0: all to
	// the end) from byte Offset of the region.
	Region         int
	Offset, Length uint64
}

// String returns the event without its time, such as "unmap region 2 of host1/p2".
func (e *Event) String() string {
	switch e.Kind {
	case Remove:
		return "remove " + e.Device
	case Kill:
		return "kill " + e.Process
	}
	return fmt.Sprintf("%v region %d of %s", e.Kind, e.Region, e.Process)
}

// Pages returns the part of a region of n bytes at addr that an Unmap or Remap affects, as whole
// pages of the given size. ok is false if the region ends before it.
func (e *Event) Pages(addr, n, page uint64) (start, length uint64, ok bool) {
	if e.Offset >= n || e.Length > n-e.Offset {
		return 0, 0, false
	}
	size := cmp.Or(e.Length, n-e.Offset)
	start = (addr + e.Offset) &^ (page - 1)
	return start, (addr+e.Offset+size+page-1)&^(page-1) - start, true
}

// fileEvent is an event as a file writes it.
type fileEvent struct {
	At      int64   `yaml:"at" required:"true" unit:"time"`
	Do      string  `yaml:"do" required:"true" oneof:"remove,kill,unmap,remap"`
	Device  *string `yaml:"device" help:"with do: remove, the device, such as host0/mlx5_0"`
	Process *string `yaml:"process" help:"with kill, unmap and remap: the process, such as host1/p2; processes count from 1 in the order in which the run starts them"`
	Region  *int    `yaml:"region" min:"1" help:"with unmap and remap: number of the process's memory region, in the order of registration"`
	Offset  *uint64 `yaml:"offset" unit:"size" help:"with unmap and remap: offset in the region of the first byte (default 0)"`
	Length  *uint64 `yaml:"length" unit:"size" min:"1B" help:"with unmap and remap: number of bytes whose pages change (default: to the end)"`
}

var processName = regexp.MustCompile(`^[^/]+/p[1-9][0-9]*$`)

// addEvents takes the events of a file over.
func (p *Plan) addEvents(events []fileEvent) error {
	var errs []error
	for i, f := range events {
		path := "events." + strconv.Itoa(i)
		errs = append(errs, f.check(p.doc, path))
		e := Event{At: f.At}
		for k, name := range eventNames {
			if name == f.Do {
				e.Kind = EventKind(k)
			}
		}
		take(&e.Device, f.Device)
		take(&e.Process, f.Process)
		take(&e.Region, f.Region)
		take(&e.Offset, f.Offset)
		take(&e.Length, f.Length)
		p.Events = append(p.Events, e)
	}
	return errors.Join(errs...)
}

func take[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// check reports keys that the event needs and lacks, and keys that it does not use.
func (f *fileEvent) check(doc *input.Doc, path string) error {
	memory := f.Do == "unmap" || f.Do == "remap"
	var errs []error
	for _, k := range []struct {
		name               string
		given, needed, may bool
	}{
		{"device", f.Device != nil, f.Do == "remove", f.Do == "remove"},
		{"process", f.Process != nil, f.Do != "remove", f.Do != "remove"},
		{"region", f.Region != nil, memory, memory},
		{"offset", f.Offset != nil, false, memory},
		{"length", f.Length != nil, false, memory},
	} {
		switch {
		case k.given && !k.may:
			errs = append(errs, doc.Errorf(path+"."+k.name, "%s is given, and %s does not use it", k.name, f.Do))
		case k.needed && !k.given:
			errs = append(errs, doc.Errorf(path, "%s needs a %s", f.Do, k.name))
		}
	}
	if f.Process != nil && !processName.MatchString(*f.Process) {
		errs = append(errs, doc.Errorf(path+".process", "%q is not a process: write a host and a number, such as host1/p2", *f.Process))
	}
	if f.At < 0 {
		errs = append(errs, doc.Errorf(path+".at", "a time must not be negative"))
	}
	return errors.Join(errs...)
}
