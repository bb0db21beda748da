package remotewire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// patience is how long an answer may take; a guest is emulated.
const patience = time.Minute

// Client is a verbs.Wire between devices that a server simulates.
type Client struct {
	s     io.ReadWriteCloser
	r     *bufio.Reader
	hosts []uint64 // GUIDs of the hosts' devices
	// Subnet reports whether the links have a subnet manager.
	Subnet bool
	// Bench reports whether the devices are in the hands of the tester too: their registers,
	// counters, addresses and faults.
	Bench bool
	// Has names capabilities of these devices that no query tells.
	Has []string

	mu sync.Mutex
	id uint64
}

var (
	_ verbs.Wire          = (*Client)(nil)
	_ verbs.SubnetControl = (*Client)(nil)
)

// New begins a conversation. hosts are the GUIDs of the hosts' devices, in their order; one that
// the server does not have is an error.
func New(s io.ReadWriteCloser, hosts []uint64) (*Client, error) {
	c := &Client{s: s, r: bufio.NewReaderSize(s, maxAnswer), hosts: hosts, id: rand.Uint64() >> 16 << 8}
	// What was left unfinished before ends with the line.
	if _, err := s.Write([]byte("\n")); err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	a, err := c.ask(question{Do: doHello})
	if err != nil {
		return nil, err
	}
	c.Subnet, c.Bench, c.Has = a.Subnet, a.Bench, a.Has
	for _, g := range hosts {
		if !slices.Contains(a.Ports, g) {
			return nil, fmt.Errorf("wire: no device with the GUID %#016x is at this wire: %w", g, syscall.ENODEV)
		}
	}
	return c, nil
}

// Reset undoes what this client has changed.
func (c *Client) Reset() error { return failure(c.ask(question{Do: doHello})) }

// Close ends the conversation; the next begins with Reset.
func (c *Client) Close() error { return c.s.Close() }

// ask sends a question and returns the answer to it; the frames of several answers are in one.
func (c *Client) ask(q question) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.s.(interface{ SetDeadline(time.Time) error }); ok {
		_ = d.SetDeadline(time.Now().Add(patience)) // without one the limit of the case holds
	}
	c.id++
	q.ID = c.id
	if err := writeLine(c.s, q); err != nil {
		return answer{}, fmt.Errorf("wire: %w", err)
	}
	var whole answer
	for {
		line, err := readLine(c.r)
		switch {
		case errors.Is(err, errLong):
			continue // of an earlier client's
		case err != nil:
			return answer{}, fmt.Errorf("wire: the answer to %q: %w", q.Do, err)
		}
		var a answer
		if json.Unmarshal(line, &a) != nil || a.ID != q.ID {
			continue // to an earlier client
		}
		whole.Frames = append(whole.Frames, a.Frames...)
		whole.Writes = append(whole.Writes, a.Writes...)
		if a.More {
			continue
		}
		a.Frames, a.Writes = whole.Frames, whole.Writes
		if a.Error != "" {
			return a, fmt.Errorf("wire: %s: %w", a.Error, syscall.Errno(a.Errno))
		}
		return a, nil
	}
}

// failure is the error of an answer that says no more.
func failure(_ answer, err error) error { return err }

// StartTap begins a recording.
func (c *Client) StartTap(verbs.Thread) error { return failure(c.ask(question{Do: doTap})) }

// StopTap ends it and returns its frames, with the virtual times of the simulation.
func (c *Client) StopTap(verbs.Thread) ([]verbs.WireFrame, error) {
	a, err := c.ask(question{Do: doFrames})
	return a.Frames, err
}

// Inject adds a rule for every port.
func (c *Client) Inject(_ verbs.Thread, r verbs.WireRule) error {
	return failure(c.ask(question{Do: doInject, Rule: &r}))
}

// ClearRules removes the rules of this client.
func (c *Client) ClearRules(verbs.Thread) ([]int, error) {
	a, err := c.ask(question{Do: doClear})
	return a.Matched, err
}

// SetLink takes the link of a host's only port down or up.
func (c *Client) SetLink(_ verbs.Thread, host, port int, up bool) error {
	if port != 1 {
		return fmt.Errorf("link of host %d, port %d: %w", host, port, syscall.EINVAL)
	}
	return failure(c.askOf(host, question{Do: doLink, Up: up}))
}

// askOf asks about the device of a host.
func (c *Client) askOf(host int, q question) (answer, error) {
	if host < 0 || host >= len(c.hosts) {
		return answer{}, fmt.Errorf("wire: %s of host %d: %w", q.Do, host, syscall.EINVAL)
	}
	q.Port = c.hosts[host]
	return c.ask(q)
}

// StartLog begins a log of what programs write to registers of the devices.
func (c *Client) StartLog() error { return failure(c.ask(question{Do: doLog})) }

// StopLog ends the log and returns it.
func (c *Client) StopLog() ([]verbs.MMIOWrite, error) {
	a, err := c.ask(question{Do: doLogged})
	return a.Writes, err
}

// Tear keeps the first bytes of the next n pushes (BlueFlame) to a host's device.
func (c *Client) Tear(host, n, keep int) error {
	return failure(c.askOf(host, question{Do: doTear, Count: n, Keep: keep}))
}

// FailNext makes a request of a QP of a host's device fail.
func (c *Client) FailNext(host int, qpn uint32, syndrome, vendor uint8) error {
	return failure(c.askOf(host, question{Do: doFail, QPN: qpn, Syndrome: syndrome, Vendor: vendor}))
}

// Counters are those of a host's device and its port.
func (c *Client) Counters(host int) (map[string]uint64, error) {
	a, err := c.askOf(host, question{Do: doCounters})
	return a.Counters, err
}

// Clock is how long the devices have worked, in their time.
func (c *Client) Clock() (time.Duration, error) {
	a, err := c.ask(question{Do: doClock})
	return a.Clock, err
}

// Address gives the network interface of a host's device an address, or takes it away.
func (c *Client) Address(host int, ip netip.Addr, add bool) error {
	return failure(c.askOf(host, question{Do: doAddress, IP: ip, Up: add}))
}

// ConfigureSubnet has the subnet manager give something else to the ports.
func (c *Client) ConfigureSubnet(_ verbs.Thread, s verbs.SubnetConfig) error {
	return failure(c.ask(question{Do: doSubnet, Subnet: &s}))
}
