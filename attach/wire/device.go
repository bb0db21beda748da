//go:build linux

package wire

import (
	"hash/fnv"
	"net"
	"time"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// What a queue pair sends before it waits for an answer, in packets, and how often it asks for one.
// A peer's socket is taken to have the room of our own: 64 packets of a path MTU of 4096, with what
// the kernel needs beside them, are half of it where net.core.rmem_max is as Linux has it.
// Soft-RoCE waits behind 128 (RXE_MAX_UNACKED_PSNS of rxe_param.h), too.
const (
	leastWindow = 64
	mostWindow  = 256
	packetRoom  = 6656
	ackFreq     = 16
)

// Lead is how far virtual time may run ahead of real time. Work that the devices do without a pause
// takes as long as the simulator needs for it; their timers, which peers must beat, run in real
// time.
const Lead = 50 * sim.Microsecond

func (p *Port) window() int { return min(max(p.Room()/packetRoom, leastWindow), mostWindow) }

// Profile returns p changed for devices whose sockets are on interfaces of the given MTU.
func Profile(p *profile.Profile, mtu int) *profile.Profile {
	c := p.Clone()
	c.Kernel.NetMTU = min(c.Kernel.NetMTU, mtu)
	c.HCA.AckReqPackets = min(c.HCA.AckReqPackets, ackFreq)
	return c
}

// Identity implements End. A later run at this address gives its queue pairs other numbers, so that
// packets for queue pairs of an earlier run do not reach them.
func (p *Port) Identity(k, most int) hca.Identity {
	id := identity(p, k, most)
	id.SourcePort, id.Window = roce.UDPPort, p.window()
	return id
}

// lanWindow is how many packets a queue pair sends over an Ethernet: the socket of a QEMU has the
// room that Linux gives without being asked (net.core.rmem_default), of which a frame of 4 KiB
// takes two pages and what the kernel needs beside them.
const lanWindow = 24

// Identity implements End.
func (l *LAN) Identity(k, most int) hca.Identity {
	id := identity(l, k, most)
	id.Window = lanWindow
	return id
}

func identity(e End, k, most int) hca.Identity {
	id := network.Identity(k)
	a := e.Address()
	id.MAC = MACOf(a)
	id.GUID = roce.MAC(id.MAC).EUI64()
	id.IPv4 = [4]byte{}
	if a.Is4() {
		id.IPv4 = a.As4()
	}
	const numbers = 1 << 10
	id.Number = k + most*int(time.Now().UnixNano()/int64(time.Microsecond)%numbers)
	id.RoCEv2 = true
	return id
}

// GuestIdentity is that of function k of a guest on this Ethernet, whose addresses differ from
// those of guests elsewhere: they are made of the place, and of the Ethernet address of a TAP
// interface, which each machine draws for itself.
func (l *LAN) GuestIdentity(k int) hca.Identity {
	id := network.Identity(k)
	h := fnv.New32a()
	_, _ = h.Write([]byte(l.cfg.Local.String() + l.cfg.Name))
	if i, err := net.InterfaceByName(l.cfg.Name); err == nil {
		_, _ = h.Write(i.HardwareAddr)
	}
	const hosts = 200 // so that the last byte is one that an IPv4 address can end with
	sum := h.Sum32()
	id.MAC[3], id.MAC[4], id.MAC[5] = byte(sum>>24), byte(sum>>16), byte(sum%hosts)+byte(k)+1
	id.GUID = id.GUID&^0xffffff | uint64(id.MAC[3])<<16 | uint64(id.MAC[4])<<8 | uint64(id.MAC[5])
	return id
}
