// Package remotewire lets a program watch and disturb the wire of simulated devices that another
// process simulates: a client that is a verbs.Wire, and the server beside the simulation. The two
// talk over any stream of bytes: between a guest and its host that is a port of virtio-serial, and
// between a program below rdmasim exec and its supervisor a socket.
//
// A message is a line of JSON. The client asks, and the server answers each question in order,
// frames in several lines. What an earlier client that was killed has left in the stream is
// skipped, by the number of the question.
package remotewire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// PortName is what the port of virtio-serial is called in a guest.
const PortName = "rdmasim.wire"

// SocketEnv is the variable that names the socket of the wire to programs below rdmasim exec.
const SocketEnv = "RDMASIM_WIRE"

// Longest lines. An answer has at least one frame, whatever its size.
const (
	maxQuestion = 1 << 16
	maxAnswer   = 1 << 20
	frameBytes  = 1 << 16 // of the frames of an answer, after which the next begins
	writesEach  = 1 << 10 // register writes of an answer
)

// Verbs of a question.
const (
	doHello  = "hello"  // begin: what an earlier client has changed is undone
	doTap    = "tap"    // begin a recording
	doFrames = "frames" // end the recording, and send it
	doInject = "inject"
	doClear  = "clear"
	doLink   = "link"
	doSubnet = "subnet"

	// These are about the devices, where the server has a Bench.
	doLog      = "log"    // begin a log of register writes
	doLogged   = "logged" // end it, and send it
	doTear     = "tear"
	doFail     = "fail"
	doCounters = "counters"
	doAddress  = "address" // Up: it comes; otherwise it goes
	doClock    = "clock"
)

// question is what a client wants.
type question struct {
	ID     uint64              `json:"id"`
	Do     string              `json:"do"`
	Rule   *verbs.WireRule     `json:"rule,omitempty"`
	Port   uint64              `json:"port,omitempty"` // GUID of the device
	Up     bool                `json:"up,omitempty"`
	Subnet *verbs.SubnetConfig `json:"subnet,omitempty"`

	Count    int        `json:"count,omitempty"` // pushes to tear
	Keep     int        `json:"keep,omitempty"`  // bytes of each that arrive
	QPN      uint32     `json:"qpn,omitempty"`
	Syndrome uint8      `json:"syndrome,omitempty"`
	Vendor   uint8      `json:"vendor,omitempty"`
	IP       netip.Addr `json:"ip,omitzero"`
}

// answer is what the server says to it.
type answer struct {
	ID      uint64            `json:"id"`
	Errno   int               `json:"errno,omitempty"`
	Error   string            `json:"error,omitempty"`
	Ports   []uint64          `json:"ports,omitempty"`
	Subnet  bool              `json:"subnet,omitempty"` // there is a subnet manager
	Matched []int             `json:"matched,omitempty"`
	Frames  []verbs.WireFrame `json:"frames,omitempty"`
	More    bool              `json:"more,omitempty"` // of the frames or writes, in another answer

	Bench    bool              `json:"bench,omitempty"` // the devices are in the hands of a tester too
	Has      []string          `json:"has,omitempty"`   // of what no query tells
	Writes   []verbs.MMIOWrite `json:"writes,omitempty"`
	Counters map[string]uint64 `json:"counters,omitempty"`
	Clock    time.Duration     `json:"clock,omitempty"`
}

var errLong = errors.New("a line is too long")

// readLine is the next line, without its end; it is valid until the next call. One that is longer
// than the reader's size is passed over, and is errLong.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	long := false
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = r.ReadSlice('\n')
	}
	switch {
	case err != nil:
		return nil, err
	case long:
		return nil, errLong
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}

func writeLine(w io.Writer, message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// parse reads a question; anything that it does not know is an error.
func (q *question) parse(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is more after the message")
	}
	switch {
	case q.Do == doInject && q.Rule == nil, q.Do == doSubnet && q.Subnet == nil:
		return fmt.Errorf("%q without what it is about", q.Do)
	}
	return nil
}
