package modes

import (
	"encoding/json"

	"github.com/rdmasim/rdmasim/verbs"
)

// Program is all of a run but its mode: the testbed, what goes wrong, and what each thread
// does. It is plain data: a program that once failed is kept as a file, and means the same
// when the generator has changed.
type Program struct {
	Seed     uint64    `json:"seed"` // of the testbed's draws
	Profile  string    `json:"profile"`
	Set      []string  `json:"set,omitempty"` // parameters of the profile: "hca.pus=2"
	Hosts    int       `json:"hosts"`
	Cores    int       `json:"cores"` // of each host
	Devices  int       `json:"devices,omitempty"`
	Switched bool      `json:"switched,omitempty"`
	NoTap    bool      `json:"no_tap,omitempty"`
	Faults   string    `json:"faults,omitempty"` // a file of faults
	Procs    []Process `json:"procs"`
	Conns    []Conn    `json:"conns"`
	Threads  []Thread  `json:"threads"`
	Tail     int64     `json:"tail,omitempty"` // nanoseconds from the last thread's end to the run's
}

// Process is a process; the first is the one that sets all up.
type Process struct {
	Host   int               `json:"host"`
	Env    map[string]string `json:"env,omitempty"`
	OneCQ  bool              `json:"one_cq,omitempty"` // its QPs complete to one CQ
	OneSRQ bool              `json:"one_srq,omitempty"`
}

// Conn is a pair of QPs: endpoints 2n and 2n+1 of connection n.
type Conn struct {
	Type     verbs.QPType `json:"type"`
	Procs    [2]int       `json:"procs"`
	MTU      verbs.MTU    `json:"mtu"`
	Send     uint32       `json:"send"` // requests that fit a queue
	Recv     uint32       `json:"recv"`
	CQE      int          `json:"cqe"`
	Inline   uint32       `json:"inline"`
	Posted   int          `json:"posted"` // receives at the start
	TD       bool         `json:"td,omitempty"`
	SigAll   bool         `json:"sig_all,omitempty"`
	Channel  bool         `json:"channel,omitempty"`
	Window   bool         `json:"window,omitempty"` // a memory window of type 2 at each end
	Timeout  uint8        `json:"timeout,omitempty"`
	Retry    uint8        `json:"retry,omitempty"`
	RNR      uint8        `json:"rnr,omitempty"`
	RNRTimer uint8        `json:"rnr_timer,omitempty"`
	Reads    uint8        `json:"reads,omitempty"`
}

// Thread is a thread of a process and what it does, in order.
type Thread struct {
	Proc int  `json:"proc"`
	Core int  `json:"core"` // -1: any
	Ops  []Op `json:"ops"`
}

// Op is one step of a thread. Do names it; the rest is as it needs.
type Op struct {
	Do     string          `json:"do"`
	EP     int             `json:"ep"`
	To     int             `json:"to,omitempty"` // endpoint whose memory, or to which a datagram goes
	Opcode verbs.WROpcode  `json:"opcode,omitempty"`
	Flags  verbs.SendFlags `json:"flags,omitempty"`
	N      int             `json:"n,omitempty"`
	Len    int             `json:"len,omitempty"`
	Off    int             `json:"off,omitempty"`
	Bad    string          `json:"bad,omitempty"` // what is wrong with a request
	Ns     int64           `json:"ns,omitempty"`
}

// Text is the program as a file holds it.
func (p *Program) Text() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic("modes: " + err.Error()) // plain data always marshals
	}
	return append(b, '\n')
}

// clone is a copy that shares nothing.
func (p *Program) clone() *Program {
	q := new(Program)
	if err := json.Unmarshal(p.Text(), q); err != nil {
		panic("modes: " + err.Error())
	}
	return q
}
