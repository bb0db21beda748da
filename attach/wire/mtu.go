package wire

import (
	"fmt"
	"net/netip"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
)

// gsiQP is the queue pair of the connection manager.
const gsiQP = 1

// requestedMTU is the path MTU of a request for a connection; 0: the packet is none. The device of
// whoever accepts has to carry it, for which that host's connection manager does not look
// (cm_req_handler).
func requestedMTU(pk *roce.Packet) roce.MTU {
	if pk.Op != roce.UDSendOnly || pk.BTH().DestQP() != gsiQP || pk.PayloadLen() < mad.Size {
		return 0
	}
	m := mad.MAD(pk.Payload())
	if m.Class() != mad.ClassCM || m.Attribute() != mad.AttrREQ {
		return 0
	}
	return roce.MTU(mad.REQ(m.Body()).MTU())
}

// tooLarge says what to do about a request for a connection whose path MTU an end of this MTU does
// not carry; empty: it does, or the packet is none.
func tooLarge(pk *roce.Packet, at *Place, mtu int) string {
	m := requestedMTU(pk)
	if m < roce.MTU256 || m > roce.MTU4096 || m.Bytes()+Headers <= mtu {
		return ""
	}
	return fmt.Sprintf("%v asks for a connection with a path MTU of %d, and the MTU of %s is %d, with which %s: give both ends the same MTU", sourceOf(pk), m.Bytes(), at, mtu, fitting(mtu))
}

// fitting says which path MTU an interface's MTU carries.
func fitting(mtu int) string {
	for m := roce.MTU4096; m >= roce.MTU256; m-- {
		if m.Bytes()+Headers <= mtu {
			return fmt.Sprintf("a path MTU of %d fits (perftest: -m %d)", m.Bytes(), m.Bytes())
		}
	}
	return fmt.Sprintf("no path MTU fits, for the smallest needs %d", roce.MTU256.Bytes()+Headers)
}

// destinationOf is where a packet of RoCE v2 goes, sourceOf where it comes from.
func destinationOf(pk *roce.Packet) netip.Addr {
	if pk.Framing == roce.RoCEv2IPv4 {
		return netip.AddrFrom4(pk.IPv4().Dst())
	}
	return netip.AddrFrom16(pk.IPv6().Dst()).Unmap()
}

func sourceOf(pk *roce.Packet) netip.Addr {
	if pk.Framing == roce.RoCEv2IPv4 {
		return netip.AddrFrom4(pk.IPv4().Src())
	}
	return netip.AddrFrom16(pk.IPv6().Src()).Unmap()
}
