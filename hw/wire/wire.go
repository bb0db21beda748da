// Package wire forwards frames between two network interfaces of this machine, so that a case can
// watch and disturb what two devices send: the testbed's link where the devices are Soft-RoCE on
// virtual Ethernet pairs. It acts by the same fault script as the simulator's links.
//
// The interfaces are the peers of the devices' own (w0 of the pair v0 and w0), without addresses
// and with ARP off: the frames that they receive are for the other side, and the machine must not
// answer them. While a Wire is open, nothing else may forward frames between them.
package wire

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/roce/fault/wirerule"
	"github.com/rdmasim/rdmasim/verbs"
)

// end is an interface as the wire sees it.
type end interface {
	// Name of the interface.
	Name() string
	// Receive waits for the next frame that the device sends and returns its length and
	// when it came, on the clock of time.Since(began). It returns errClosed when the end
	// was closed.
	Receive(buf []byte, began time.Time) (int, time.Duration, error)
	Send(frame []byte) error
	// Lost is how many frames the kernel had no room for since the last call.
	Lost() (int, error)
	// SetLink takes the interface, and with it the device's link, up or down.
	SetLink(up bool) error
	Close() error
}

var errClosed = errors.New("the interface was closed")

// Wire is the link between two ends; it implements verbs.Wire.
type Wire struct {
	ends    [2]end
	began   time.Time // that the times of frames count from
	restore func() error
	readers sync.WaitGroup
	delayed sync.WaitGroup // frames that a rule delays
	closing chan struct{}

	mu     sync.Mutex
	script fault.Script
	draws  *rand.Rand
	tapped bool
	frames []verbs.WireFrame
	held   [2][]byte // a frame that waits for the next of its side
	failed error     // of a reader: the capture is not whole
}

// maxFrame is more than any frame of an Ethernet with a path MTU of 4096.
const maxFrame = 1 << 14

func newWire(began time.Time, seed uint64, restore func() error, a, b end) *Wire {
	w := &Wire{ends: [2]end{a, b}, began: began, restore: restore, closing: make(chan struct{}), draws: rand.New(rand.NewPCG(seed, 1))}
	for side := range w.ends {
		w.readers.Add(1)
		go w.forward(side)
	}
	return w
}

// forward takes frames from one side to the other until that side is closed.
func (w *Wire) forward(side int) {
	defer w.readers.Done()
	buf := make([]byte, maxFrame)
	for {
		n, at, err := w.ends[side].Receive(buf, w.began)
		if errors.Is(err, errClosed) {
			return
		}
		if err != nil {
			w.fail(fmt.Errorf("%s: %w", w.ends[side].Name(), err))
			return
		}
		w.frame(side, append([]byte(nil), buf[:n]...), at)
	}
}

func (w *Wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = errors.Join(w.failed, err)
}

// frame records a frame that was received at an instant and applies the script to it.
func (w *Wire) frame(side int, data []byte, at time.Duration) {
	w.mu.Lock()
	rule := w.decide(side, data)
	action := fault.Pass
	if rule != nil {
		action = rule.Action
	}
	if w.tapped {
		if _, err := roce.Parse(data); err == nil { // address resolution and the like are not recorded
			w.frames = append(w.frames, verbs.WireFrame{At: at, Data: append([]byte(nil), data...), Acted: wirerule.Acted(action)})
		}
	}
	var behind []byte
	if action == fault.Reorder {
		w.held[side], data = data, nil
	} else {
		behind, w.held[side] = w.held[side], nil
	}
	w.mu.Unlock()
	w.applyAction(side, data, action, rule)
	if behind != nil {
		w.send(side, behind)
	}
}

func (w *Wire) decide(side int, data []byte) *fault.Rule {
	if w.script.Empty() {
		return nil
	}
	p, err := roce.Parse(data)
	if err != nil {
		return nil
	}
	return w.script.Decide(&fault.Frame{Port: w.ends[side].Name(), Opcode: uint8(p.Op), DestQP: p.BTH().DestQP(), PSN: p.BTH().PSN(),
		Response: p.Info().Kind == roce.KindResponse, First: p.Info().First}, w.draws.Uint64)
}

// applyAction sends a frame on as a rule wants it.
func (w *Wire) applyAction(side int, data []byte, action fault.Action, rule *fault.Rule) {
	switch action {
	case fault.Drop, fault.CorruptFCS, fault.Reorder:
		return
	case fault.Corrupt, fault.Edit, fault.Spoil, fault.Mark:
		applyRule(data, rule)
	case fault.Truncate:
		data = data[:min(rule.Keep, len(data))]
		if len(data) < roce.EthernetSize {
			return // no interface takes it; a cable's other end would drop it
		}
	case fault.Delay:
		w.delay(side, data, time.Duration(rule.Delay/int64(1000))*time.Nanosecond)
		return
	case fault.Duplicate:
		w.send(side, data)
	}
	w.send(side, data)
}

// applyRule changes a frame as its rule says.
func applyRule(data []byte, rule *fault.Rule) {
	p, err := roce.Parse(data)
	if err != nil {
		return
	}
	switch rule.Action {
	case fault.Corrupt:
		p.Corrupt()
	case fault.Mark:
		p.MarkCongestion()
	case fault.Edit, fault.Spoil:
		for _, e := range rule.Edits {
			p.SetByte(e.Offset, e.Value)
		}
		p.FixChecksum()
		if rule.Action == fault.Edit {
			p.FixICRC()
		}
	}
}

func (w *Wire) delay(side int, data []byte, d time.Duration) {
	w.delayed.Add(1)
	go func() {
		defer w.delayed.Done()
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			w.send(side, data)
		case <-w.closing:
		}
	}()
}

// send hands a frame to the other side. A device whose link is down loses it, as on a
// cable.
func (w *Wire) send(side int, data []byte) {
	if err := w.ends[1-side].Send(data); err != nil && !errors.Is(err, syscall.ENETDOWN) && !errors.Is(err, errClosed) {
		w.fail(fmt.Errorf("%s: %w", w.ends[1-side].Name(), err))
	}
}

// Close stops forwarding frames and gives the interfaces back.
func (w *Wire) Close() error {
	close(w.closing)
	err := errors.Join(w.ends[0].Close(), w.ends[1].Close())
	w.readers.Wait()
	w.delayed.Wait()
	if w.restore != nil {
		err = errors.Join(err, w.restore())
	}
	return err
}

// StartTap begins a recording of both directions.
func (w *Wire) StartTap(verbs.Thread) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.ends {
		if _, err := e.Lost(); err != nil {
			return err
		}
	}
	w.tapped, w.frames, w.failed = true, nil, nil
	return nil
}

// StopTap ends the recording. What devices have sent is waited for: a frame may still be in
// the kernel when the completion that it caused is there.
func (w *Wire) StopTap(verbs.Thread) ([]verbs.WireFrame, error) {
	w.waitQuiet()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.tapped {
		return nil, fmt.Errorf("no recording is under way: %w", syscall.EINVAL)
	}
	frames := w.frames
	// The sides are read by turns, which need not be the order in which frames came.
	slices.SortStableFunc(frames, func(a, b verbs.WireFrame) int { return cmp.Compare(a.At, b.At) })
	w.tapped, w.frames = false, nil
	err := w.failed
	for _, e := range w.ends {
		lost, lostErr := e.Lost()
		err = errors.Join(err, lostErr)
		if lost > 0 {
			err = errors.Join(err, fmt.Errorf("%s: the kernel dropped %d frames before the tap", e.Name(), lost))
		}
	}
	return frames, err
}

// quiet is how long no frame comes before a recording is taken for whole.
const quiet = 20 * time.Millisecond

func (w *Wire) waitQuiet() {
	last := -1
	for {
		w.mu.Lock()
		n := len(w.frames)
		w.mu.Unlock()
		if n == last {
			return
		}
		last = n
		time.Sleep(quiet)
	}
}

// Inject adds a rule for both directions.
func (w *Wire) Inject(_ verbs.Thread, r verbs.WireRule) error {
	rule, err := wirerule.Of(r)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.script.Add(rule); err != nil {
		return fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	return nil
}

// ClearRules removes all rules.
func (w *Wire) ClearRules(verbs.Thread) ([]int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.script.Clear(), nil
}

// SetLink takes the link of the first or second host's only port down or up.
func (w *Wire) SetLink(_ verbs.Thread, host, port int, up bool) error {
	if host < 0 || host > 1 || port != 1 {
		return fmt.Errorf("link of host %d, port %d: %w", host, port, syscall.EINVAL)
	}
	return w.ends[host].SetLink(up)
}

// Plan carries out what a file says of frames and links: its rules now, its links at their
// times from now. ports are the names of the devices' ports there.
func (w *Wire) Plan(p *fault.Plan, ports [2]string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range p.Rules {
		if i := slices.Index(ports[:], r.Port); i >= 0 {
			r.Port = w.ends[i].Name()
		}
		if err := w.script.Add(r); err != nil {
			return err
		}
	}
	for _, l := range p.Links {
		side := max(0, slices.Index(ports[:], l.Port))
		w.delayed.Add(1)
		go func() {
			defer w.delayed.Done()
			timer := time.NewTimer(time.Duration(l.At / 1000))
			defer timer.Stop()
			select {
			case <-timer.C:
				if err := w.ends[side].SetLink(l.Up); err != nil {
					w.fail(err)
				}
			case <-w.closing:
			}
		}()
	}
	return nil
}
