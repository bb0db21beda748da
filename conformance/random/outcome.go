package random

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/verbs"
)

// Outcome is what a program has shown on one target.
type Outcome struct {
	// Streams are what happened, each in order: the calls, and the completions of each queue. There
	// is no order among streams. Nil: not kept.
	Streams map[string][]string `json:",omitempty"`
	// Violation is where the model does not allow what the program saw, and the program ended
	// there.
	Violation *Violation `json:",omitempty"`
	// Vague: the program ended early, because the device made a choice that no call shows.
	Vague bool `json:",omitempty"`
	// Wire is a hash of the frames that were sent, without their times; empty: no tap.
	Wire string `json:",omitempty"`
	// Cover is which operations met which states of the model.
	Cover *model.Coverage `json:",omitempty"`
}

// Hash returns a hash of the streams.
func (o *Outcome) Hash() string {
	h := sha256.New()
	for _, name := range streams {
		fmt.Fprintf(h, "%s\n%q\n", name, o.Streams[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// Violation is a result that the model does not allow.
type Violation struct {
	Step         int // from 1; one behind the last is the end of the program
	What         string
	Want, Got    string
	Rule, Source string
}

// String describes the violation in words.
func (v *Violation) String() string {
	return fmt.Sprintf("step %d, %s: want %s, got %s\n  rule: %s (%s)", v.Step, v.What, v.Want, v.Got, v.Rule, v.Source)
}

// Names of the streams.
var streams = []string{"calls", "send queue of A", "send queue of B", "receive queue of A", "receive queue of B", "memory"}

func errnoName(err error) string {
	if err == nil {
		return "0"
	}
	return verbs.ErrnoName(verbs.ErrnoOf(err))
}

func (r *run) say(stream, format string, a ...any) {
	if r.out.Streams != nil {
		r.out.Streams[stream] = append(r.out.Streams[stream], fmt.Sprintf(format, a...))
	}
}

func (r *run) call(format string, a ...any) { r.say("calls", format, a...) }

// describe is what the contract fixes of a completion.
func describe(w *verbs.WC, recv bool) string {
	id := fmt.Sprintf("step %d, request %d", w.ID>>8+1, w.ID&0xff+1)
	switch {
	case recv:
		id = fmt.Sprintf("step %d", w.ID&^received>>8+1)
	case w.ID&0xff == marker:
		id = fmt.Sprintf("step %d, the empty write", w.ID>>8+1)
	}
	if w.Status != verbs.WCSuccess {
		return id + ": " + w.Status.String()
	}
	if !recv {
		return fmt.Sprintf("%s: SUCCESS, opcode %d", id, w.Opcode)
	}
	text := fmt.Sprintf("%s: SUCCESS, opcode %d, %d bytes", id, w.Opcode, w.ByteLen)
	if w.Flags&verbs.WCWithImm != 0 {
		text += fmt.Sprintf(", immediate %#x", w.Imm)
	}
	return text
}

// sayMemory says which bytes of a region are not as at first. Those that the contract does not fix
// are left out.
func (r *run) sayMemory(n int, got []byte) {
	first := patterns[n][:]
	b := append([]byte(nil), got...)
	r.mm[n].Settled(b, first)
	for at := 0; at < len(b); at += row {
		if end := min(at+row, len(b)); string(b[at:end]) != string(first[at:end]) {
			r.say("memory", "m%d at %d: %s", n, at, hex.EncodeToString(b[at:end]))
		}
	}
}
