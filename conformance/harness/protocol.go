// Package harness runs the suite for the conform command. A supervisor runs no case
// itself: it starts workers, each a process that gets a target and case IDs, runs
// them once and streams what happens. So a hang or a crash costs one case, and the
// supervisor owns deadlines, shards, signals and the record.
package harness

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/workers"
)

// Job is what a worker is asked to do. It comes as one JSON value on the worker's standard input,
// which stays open as long as the supervisor lives.
type Job struct {
	Target  string `json:"target"`
	Profile string `json:"profile,omitempty"`
	// ProfileText is the text of the file of a profile that Profile is the path of.
	ProfileText string   `json:"profile_text,omitempty"`
	Seed        uint64   `json:"seed"`
	Repeat      int      `json:"repeat,omitempty"`
	Cases       []string `json:"cases"`
	// Device, Port and GIDIndex choose the hardware; empty, 0 and -1 leave the choice to the
	// target. Wire names the interfaces behind the two nodes, where frames can be seen.
	Device   string `json:"device,omitempty"`
	Port     int    `json:"port,omitempty"`
	GIDIndex int    `json:"gid_index,omitempty"`
	Wire     string `json:"wire,omitempty"`
	// Peer is the agent of the second node, PeerKey the file of its key. A Peer that begins with
	// sim: is a simulated host; Responder says that the device under test is then the second node.
	Peer      string `json:"peer,omitempty"`
	PeerKey   string `json:"peer_key,omitempty"`
	Responder bool   `json:"responder,omitempty"`
	// Wall is how long the supervisor waits for a case in real time.
	Wall time.Duration `json:"wall,omitempty"`
	// Full runs long cases at the length that the catalogue demands.
	Full bool `json:"full,omitempty"`
	// Mutant names the rule that the simulator breaks (sim/mutant); empty: none.
	Mutant string `json:"mutant,omitempty"`
	// MaxEvents bounds the simulated events of a case; 0: the target's default.
	MaxEvents uint64 `json:"max_events,omitempty"`
	// Lockstep makes simulated programs yield at every step.
	Lockstep bool `json:"lockstep,omitempty"`
	// FaultFile and Faults are the name and the text of a file of faults, which every
	// testbed gets.
	FaultFile string `json:"fault_file,omitempty"`
	Faults    string `json:"faults,omitempty"`
	// Ledgers are added to the ledger of deviations.
	Ledgers []conformance.LedgerFile `json:"ledgers,omitempty"`
	// Dir holds the captures and timelines, one file for each case: ID.pcapng, ID.trace; with
	// Evidence also the captures of cases that failed, ID.frames.
	Dir         string `json:"dir,omitempty"`
	Pcap, Trace bool
	Evidence    bool `json:"evidence,omitempty"`
	// Catalogue says that conformance.Pack of the supervisor follows the job, which spares the
	// worker the YAML.
	Catalogue bool `json:"catalogue,omitempty"`
}

// EvidenceSuffix ends the name of the capture of a case that failed.
const EvidenceSuffix = ".frames"

// Message is one message of a worker; one of its fields is set, and First beside Again.
type Message struct {
	Hello    *Hello       `json:"hello,omitempty"`
	Started  string       `json:"started,omitempty"`
	Finished *report.Case `json:"finished,omitempty"`
	Again    bool         `json:"again,omitempty"` // the case that has started runs once more
	// First is the record of its first run, before the second: what is known of the case if that
	// one ends the worker.
	First *report.Case `json:"first,omitempty"`
	Done  bool         `json:"done,omitempty"`
}

// Hello describes the target before the first case.
type Hello struct {
	conformance.Description
	// Error says that there is no such target or testbed.
	Error string
}

// pipeFD is where a worker writes its messages.
const pipeFD = 3

// order checks that a worker sends what it was asked for: who it is, then each of its cases once.
type order struct {
	greeted bool
	left    map[string]bool // cases that it has not begun
	running string
	repeat  int          // how many times each case runs
	again   int          // how many runs of the case are left
	first   *report.Case // the record of its first run, in a later one
}

func newOrder(ids []string, repeat int) *order {
	o := &order{left: map[string]bool{}, repeat: repeat}
	for _, id := range ids {
		o.left[id] = true
	}
	return o
}

// check returns an error for a message that cannot come now.
func (o *order) check(m Message) error {
	switch {
	case m.Hello != nil:
		if o.greeted {
			return errors.New("a second description of its target")
		}
		o.greeted = true
	case !o.greeted:
		return errors.New("a message before the description of its target")
	case m.Started != "":
		if o.running != "" || !o.left[m.Started] {
			return fmt.Errorf("the start of %.*q, which it was not asked for now", workers.MaxQuoted, m.Started)
		}
		delete(o.left, m.Started)
		o.running, o.again, o.first = m.Started, o.repeat-1, nil
	case m.Finished != nil:
		if o.running == "" || m.Finished.ID != o.running {
			return fmt.Errorf("the end of %.*q, which it had not begun", workers.MaxQuoted, m.Finished.ID)
		}
		if !m.Finished.Outcome.Known() {
			return fmt.Errorf("the unknown outcome %.*q of %s", workers.MaxQuoted, m.Finished.Outcome, o.running)
		}
		o.running = ""
	case m.Again:
		if o.again--; o.running == "" || o.again < 0 {
			return fmt.Errorf("another run of %q, which it was not asked for", o.running)
		}
		if m.First != nil {
			o.first = m.First
		}
	case !m.Done:
		return errors.New("an empty message")
	}
	return nil
}

// ending is the end of a worker in the middle of what it was doing.
func (o *order) ending(reason string) ending {
	return ending{running: o.running, run: o.repeat - o.again, first: o.first, reason: reason}
}
