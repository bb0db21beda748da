//go:build linux && amd64

package exec

import (
	"strings"
	"testing"
)

// TestPushOfAnInterruptedProgram: where pushes are torn, one whose rest comes late is waited for.
// Elsewhere it passes for a doorbell, and a rest that never comes ends the wait.
func TestPushOfAnInterruptedProgram(t *testing.T) {
	for _, tc := range []struct {
		torn  bool
		after int
		want  bool
	}{
		{false, 1, true},
		{false, pushSpins, true},
		{false, pushSpins + 1, false},
		{true, pushSpins + 1, true},
		{true, pushSpins + 100, true},
	} {
		looks := 0
		if got := awaitPush(tc.torn, func() bool { looks++; return looks == tc.after }); got != tc.want {
			t.Errorf("torn %v, the rest after %d looks: %v", tc.torn, tc.after, got)
		}
	}
}

// fakePage is a page of registers to which a program stores when something happens.
type fakePage struct {
	name    string
	command bool
	stored  *bool
	onLook  func()
}

func (p fakePage) byCommand() bool { return p.command }

func (p fakePage) rung() bool {
	if p.onLook != nil {
		p.onLook()
	}
	return *p.stored
}

// TestEntriesComeBeforePackets: a store to a QP of commands is taken, and carried out, before a
// store to another page that the same thread has made after it, wherever the supervisor is with its
// pass.
func TestEntriesComeBeforePackets(t *testing.T) {
	for _, late := range []bool{false, true} {
		var order []string
		entries, packets := !late, !late
		pages := []fakePage{
			{name: "packets", stored: &packets, onLook: func() {
				entries, packets = entries || !packets, true // both, in this order, after the first pass over the pages of commands
			}},
			{name: "entries", command: true, stored: &entries},
			{name: "others", stored: new(bool)},
		}
		rung := takeInOrder(pages, func(p fakePage) bool {
			was := *p.stored
			if *p.stored = false; was {
				order = append(order, p.name)
			}
			return was
		}, func() { order = append(order, "settled") })
		if got := strings.Join(order, " "); got != "entries settled packets" || !rung {
			t.Errorf("late %v: %s, %v", late, got, rung)
		}
	}
}
