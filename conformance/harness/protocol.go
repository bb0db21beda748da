// Package harness runs the suite for the conform command. A supervisor runs no case
// itself: it starts workers, each a process that gets a target and case IDs, runs
// them once and streams what happens. So a hang or a crash costs one case, and the
// supervisor owns deadlines, shards, signals and the record.
package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/report"
)

// Job is what a worker is asked to do. It comes as one JSON value on the worker's standard input,
// which stays open as long as the supervisor lives.
type Job struct {
	Target  string   `json:"target"`
	Profile string   `json:"profile,omitempty"`
	Seed    uint64   `json:"seed"`
	Repeat  int      `json:"repeat,omitempty"`
	Cases   []string `json:"cases"`
	// Device, Port and GIDIndex choose the hardware; empty, 0 and -1 leave the choice to the target.
	// Wire names the interfaces behind the two nodes, where frames can be seen.
	Device   string `json:"device,omitempty"`
	Port     int    `json:"port,omitempty"`
	GIDIndex int    `json:"gid_index,omitempty"`
	Wire     string `json:"wire,omitempty"`
	// Peer is the agent of the second node, PeerKey the file of its key.
	Peer    string `json:"peer,omitempty"`
	PeerKey string `json:"peer_key,omitempty"`
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
	// Dir holds the captures and timelines, one file for each case: ID.pcapng, ID.trace.
	Dir         string `json:"dir,omitempty"`
	Pcap, Trace bool
}

// Message is one message of a worker; one of its fields is set.
type Message struct {
	Hello    *Hello       `json:"hello,omitempty"`
	Started  string       `json:"started,omitempty"`
	Finished *report.Case `json:"finished,omitempty"`
	Done     bool         `json:"done,omitempty"`
}

// Hello describes the target before the first case.
type Hello struct {
	conformance.Description
	// Error says that there is no such target or testbed.
	Error string
}

// pipeFD is where a worker writes its messages.
const pipeFD = 3

// reader decodes messages.
type reader struct{ dec *json.Decoder }

func newReader(r io.Reader) *reader {
	dec := json.NewDecoder(r)
	dec.UseNumber() // 64-bit values of observations stay exact
	return &reader{dec}
}

// next is the next message; io.EOF when the worker has closed its end.
func (r *reader) next() (Message, error) {
	var m Message
	err := r.dec.Decode(&m)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("message of the worker: %w", err)
	}
	return m, err
}
