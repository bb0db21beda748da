//go:build linux

package uverbs

import (
	"fmt"
	"syscall"
)

// Quota bounds what a process has, and with Up what all processes have together. A nil one
// bounds nothing.
type Quota struct {
	Name   string // of what is counted, for messages
	Most   int
	Errno  syscall.Errno // of what is refused
	Up     *Quota
	OnFull func() // called when something is refused, may be nil

	used int
}

// Take counts n more, or none when there is no room for them.
func (q *Quota) Take(n int) error {
	for x := q; x != nil; x = x.Up {
		if n > x.Most-x.used {
			if x.OnFull != nil {
				x.OnFull()
			}
			return fmt.Errorf("%d %s, at most %d: %w", x.used, x.Name, x.Most, x.Errno)
		}
	}
	q.add(n)
	return nil
}

// Give counts n less.
func (q *Quota) Give(n int) { q.add(-n) }

func (q *Quota) add(n int) {
	for x := q; x != nil; x = x.Up {
		x.used += n
	}
}

// recount brings what is counted of the file up to date after a call: objects of the kernel model
// end with others, and with the context.
func (f *File) recount() {
	n := 0
	if f.u != nil {
		n = f.u.Objects()
	}
	f.Objects.add(n - f.counted)
	f.counted = n
}

// room is whether there is room for another object.
func (f *File) room() error {
	if err := f.Objects.Take(1); err != nil {
		return err
	}
	f.Objects.Give(1)
	return nil
}
