//go:build linux

package wire

import (
	"time"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// What a queue pair sends before it waits for an answer, in packets, and how often it asks for one. A peer's socket is taken to have the
// room of our own: 64 packets of a path MTU of 4096, with what the kernel needs beside them, are half of it where net.core.rmem_max is as
// Linux has it. Soft-RoCE waits behind 128 (RXE_MAX_UNACKED_PSNS of rxe_param.h), too.
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

// Identity returns the identity of device k of at most most, with the address of the socket. A
// later run at this address gives its queue pairs other numbers, so that packets for queue pairs of
// an earlier run do not reach them.
func (p *Port) Identity(k, most int) hca.Identity {
	id := network.Identity(k)
	a := p.Address()
	id.MAC = MACOf(a)
	id.GUID = roce.MAC(id.MAC).EUI64()
	id.IPv4 = [4]byte{}
	if a.Is4() {
		id.IPv4 = a.As4()
	}
	const numbers = 1 << 10
	id.Number = k + most*int(time.Now().UnixNano()/int64(time.Microsecond)%numbers)
	id.RoCEv2, id.SourcePort, id.Window = true, roce.UDPPort, p.window()
	return id
}
