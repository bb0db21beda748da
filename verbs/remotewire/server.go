package remotewire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Wire is what a server has: the links of the devices, in the hands of the simulation.
type Wire interface {
	// Reset undoes what clients have changed, and names the devices by their GUIDs. subnet reports
	// whether there is a subnet manager.
	Reset() (ports []uint64, subnet bool)
	// StartTap, StopTap, Inject, ClearRules, SetLink and ConfigureSubnet are those of verbs.Wire
	// and verbs.SubnetControl; guid names a device.
	StartTap() error
	StopTap() ([]verbs.WireFrame, error)
	Inject(verbs.WireRule) error
	ClearRules() []int
	SetLink(guid uint64, up bool) error
	ConfigureSubnet(verbs.SubnetConfig) error
}

// Bench is what a server has whose devices are in the hands of a tester too, not only their links.
// Devices are named by their GUIDs. Reset of the Wire ends the log, the faults that did not happen
// yet, and addresses that were added.
type Bench interface {
	// Has names capabilities that the devices have and that no query of theirs tells, as the
	// catalogue of cases does.
	Has() []string
	// StartLog begins a log of register writes.
	StartLog() error
	// StopLog ends the log of register writes. The page of a write is that of its address in the
	// process that made it, as verbs.BFReg has it where the library does not tell the hardware's.
	StopLog() ([]verbs.MMIOWrite, error)
	// Tear keeps the first bytes of the next pushes, as verbs.Faults has it.
	Tear(guid uint64, n, keep int) error
	// FailNext is that of verbs.Faults.
	FailNext(guid uint64, qpn uint32, syndrome, vendor uint8) error
	// Counters is HardwareCounters of verbs.CounterReader.
	Counters(guid uint64) (map[string]uint64, error)
	// Clock is how long the devices have worked, in their time.
	Clock() (time.Duration, error)
	// Address gives the network interface of a device an address, or takes it away.
	Address(guid uint64, ip netip.Addr, add bool) error
}

// Serve answers a client until the stream ends, and then undoes what it has changed.
func Serve(s io.ReadWriter, w Wire) error {
	defer w.Reset()
	r := bufio.NewReaderSize(s, maxQuestion)
	for {
		line, err := readLine(r)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, errLong):
			return err
		case err == nil && len(line) == 0: // ends what an earlier client had begun to say
			continue
		}
		var q question
		if err == nil {
			err = q.parse(line)
		}
		if err != nil {
			err = writeLine(s, failed(q.ID, fmt.Errorf("not a question of this version: %w: %w", err, syscall.EPROTO)))
		} else {
			err = q.answer(s, w)
		}
		if err != nil {
			return err
		}
	}
}

// failed is the answer to a question that led to an error.
func failed(id uint64, err error) answer {
	a := answer{ID: id, Error: err.Error(), Errno: int(syscall.EIO)}
	var no syscall.Errno
	if errors.As(err, &no) && no != 0 {
		a.Errno = int(no)
	}
	return a
}

// answer carries out the question. Its error is that of the stream.
func (q *question) answer(s io.Writer, w Wire) error {
	a := answer{ID: q.ID}
	var err error
	switch q.Do {
	case doHello:
		a.Ports, a.Subnet = w.Reset()
		if b, ok := w.(Bench); ok {
			a.Bench, a.Has = true, b.Has()
		}
	case doTap:
		err = w.StartTap()
	case doFrames:
		frames, err := w.StopTap()
		return writeFrames(s, q.ID, frames, err)
	case doInject:
		err = w.Inject(*q.Rule)
	case doClear:
		a.Matched = w.ClearRules()
	case doLink:
		err = w.SetLink(q.Port, q.Up)
	case doSubnet:
		err = w.ConfigureSubnet(*q.Subnet)
	case doLogged:
		var writes []verbs.MMIOWrite
		if b, ok := w.(Bench); ok {
			writes, err = b.StopLog()
		} else {
			err = errNoBench
		}
		return writeWrites(s, q.ID, writes, err)
	default:
		err = q.onBench(w, &a)
	}
	if err != nil {
		a = failed(q.ID, err)
	}
	return writeLine(s, a)
}

var errNoBench = fmt.Errorf("no process drives the devices of this wire: %w", syscall.EOPNOTSUPP)

// onBench carries out a question about a device.
func (q *question) onBench(w Wire, a *answer) (err error) {
	do := map[string]func(Bench) error{
		doLog:  func(b Bench) error { return b.StartLog() },
		doTear: func(b Bench) error { return b.Tear(q.Port, q.Count, q.Keep) },
		doFail: func(b Bench) error { return b.FailNext(q.Port, q.QPN, q.Syndrome, q.Vendor) },
		doCounters: func(b Bench) error {
			a.Counters, err = b.Counters(q.Port)
			return err
		},
		doClock: func(b Bench) error {
			a.Clock, err = b.Clock()
			return err
		},
		doAddress: func(b Bench) error { return b.Address(q.Port, q.IP, q.Up) },
	}[q.Do]
	if do == nil {
		return fmt.Errorf("%q: %w", q.Do, syscall.EPROTO)
	}
	b, ok := w.(Bench)
	if !ok {
		return errNoBench
	}
	return do(b)
}

// writeWrites sends a log, which may be too much for a line.
func writeWrites(s io.Writer, id uint64, writes []verbs.MMIOWrite, err error) error {
	for {
		n := min(len(writes), writesEach)
		a := answer{ID: id}
		if n == len(writes) && err != nil {
			a = failed(id, err)
		}
		a.Writes, a.More = writes[:n], n < len(writes)
		writes = writes[n:]
		if err := writeLine(s, a); err != nil || !a.More {
			return err
		}
	}
}

// writeFrames sends a recording, which may be too much for a line. The error of the recording comes
// with its last.
func writeFrames(s io.Writer, id uint64, frames []verbs.WireFrame, err error) error {
	for {
		n, size := 0, 0
		for n < len(frames) && (n == 0 || size+len(frames[n].Data) <= frameBytes) {
			size += len(frames[n].Data)
			n++
		}
		a := answer{ID: id}
		if n == len(frames) && err != nil {
			a = failed(id, err)
		}
		a.Frames, a.More = frames[:n], n < len(frames)
		frames = frames[n:]
		if err := writeLine(s, a); err != nil || !a.More {
			return err
		}
	}
}
