//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
)

// With Config.Wire each device has a UDP socket in place of a cable to the next one, or an Ethernet
// (package wire). The address of the socket is the device's, and an Ethernet address is made of it,
// as of the address of each peer, so that nobody has to be asked for one; on an Ethernet neighbours
// are.

// checkWire checks what does not go together with a wire.
func (cfg *Config) checkWire() error {
	bad := func(format string, a ...any) error { return &UsageError{fmt.Errorf(format, a...)} }
	switch {
	case len(cfg.Wire) == 0 && len(cfg.Allow) > 0:
		return bad("--allow names peers of --wire, which is missing")
	case len(cfg.Wire) == 0:
		return nil
	case len(cfg.Wire) != cfg.Devices:
		return bad("--wire has %d addresses and --devices is %d: each device needs an address of its own", len(cfg.Wire), cfg.Devices)
	case cfg.Profile.Resolved().Link.InfiniBand:
		return bad("--wire carries RoCE v2: choose a profile without -ib")
	case cfg.Guests > 0:
		return bad("--wire and --guests: a guest's addresses are its own choice, and a UDP socket has one; leave one of them out")
	case cfg.OwnNetwork:
		return bad("--wire and --own-network: in a network of their own programs reach no peer by IP; leave one of them out")
	}
	for i, a := range cfg.Wire {
		if slices.ContainsFunc(cfg.Wire[:i], func(b wire.Place) bool { return b.Address == a.Address }) {
			return bad("--wire: %v is given twice", a.Address)
		}
	}
	return nil
}

// openWires binds the sockets and Ethernets.
func (m *machine) openWires(cfg *Config) (err error) {
	for _, a := range cfg.Wire {
		p, err := wire.Open(wire.Config{Place: a, MTU: cfg.WireMTU, Allow: cfg.Allow, Say: say})
		if err != nil {
			return &UsageError{fmt.Errorf("--wire: %w", err)}
		}
		if cfg.Pcap != "" {
			p.Alone() // with the identification that is in the capture
		}
		m.wires = append(m.wires, p)
	}
	return nil
}

// leastMTU is the MTU that all interfaces with sockets have.
func (m *machine) leastMTU() int {
	return slices.MinFunc(m.wires, func(a, b wire.End) int { return a.MTU() - b.MTU() }).MTU()
}

// joinWires puts the devices on cables to the sockets.
func (m *machine) joinWires(hcas []*hca.Device) *network.Network {
	return network.NewOutside(m.eng, m.prof, hcas, func(k int, end *link.Port) {
		end.Attach(m.wires[k])
		m.wires[k].Attach(end, hcas[k].Frames())
	})
}

// wireAddress gives a device its address alone, and a neighbour for each address that its socket
// reaches. There is no link-local address: no socket has it.
func (m *machine) wireAddress(d *device, w wire.End) error {
	own := linkLocalOf(d.hca.Identity().MAC)
	d.kern.SetNeighbours(func(_ uint16, ip netip.Addr) (kernel.MAC, bool) {
		mac, ok := w.Neighbour(ip)
		return kernel.MAC(mac), ok
	})
	return errors.Join(d.kern.RemoveIP(own), d.kern.AddIP(w.Address()))
}

// linkLocalOf is the address that a port has of its Ethernet address.
func linkLocalOf(mac roce.MAC) netip.Addr { return netip.AddrFrom16(roce.GIDFromMAC(mac)) }

// reachesByWire says whether packets get to an address by any socket.
func (m *machine) reachesByWire(ip netip.Addr) bool {
	return slices.ContainsFunc(m.wires, func(w wire.End) bool { return w.Allows(ip) })
}

// takeWires gives devices what peers have sent.
func (e *engine) takeWires() (worked bool) {
	for _, w := range e.m.wires {
		if !w.Fetch() {
			continue
		}
		if w.Deliver() {
			e.streams.DropReadAhead()
		}
		worked = true
	}
	return worked
}

// passTime lets virtual time go on beside real time, up to what is due next.
func (e *engine) passTime() {
	if e.deviceIdle {
		e.pace.PassIdle()
	} else {
		e.pace.Keep()
	}
}

// A busy device's frames wait for others, so that one call of the kernel takes many: for as many
// frames, or rounds of work.
const (
	enoughFrames = 48
	enoughRounds = 6
)

// flushWires sends what devices have sent, when nothing is left to do or it is much. A peer may
// tell a program of it, which then finds the bytes in its memory.
func (e *engine) flushWires(idle bool) {
	for _, w := range e.m.wires {
		n := w.Queued()
		if n == 0 {
			continue
		}
		if e.unsent++; idle || n >= enoughFrames || e.unsent >= enoughRounds {
			e.unsent = 0
			e.streams.Flush()
			w.Flush()
		}
	}
}

// pollWires adds the sockets to what a sleeping engine waits for.
func (e *engine) pollWires() {
	e.pfds = e.pfds[:1]
	for _, w := range e.m.wires {
		e.pfds = append(e.pfds, unix.PollFd{Fd: int32(w.FD()), Events: unix.POLLIN})
	}
}

// sayWires says what was dropped, and to whom asked for more what there was.
func (s *session) sayWires() {
	for _, w := range s.m.wires {
		c, unit := w.Counts(), w.Unit()
		if dropped := c.Dropped(); dropped != "" {
			say("%s dropped %ss: %s", w.Name(), unit, dropped)
		}
		s.logf("%s sent %d %ss in %d calls and received %d in %d, %d of them with an identification that Linux does not give sockets",
			w.Name(), c.Sent, unit, c.SendCalls, c.Received, c.ReceiveCalls, c.Counted)
	}
}

// closeWires closes the sockets.
func (m *machine) closeWires() {
	for _, w := range m.wires {
		_ = w.Close()
	}
	m.wires = nil
}
