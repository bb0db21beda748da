package ether

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
)

// tunnelled are the headers of a VXLAN tunnel over IPv4 or IPv6, with lengths and checksums of
// nothing.
func tunnelled(v6 bool) []byte {
	net, typ := roce.IPv4Size, uint16(roce.EtherTypeIPv4)
	if v6 {
		net, typ = roce.IPv6Size, roce.EtherTypeIPv6
	}
	b := make([]byte, roce.EthernetSize+net+roce.UDPSize+VXLANSize)
	roce.Ethernet(b).SetType(typ)
	if v6 {
		b[14], b[20], b[21] = 0x60, roce.ProtoUDP, 64
	} else {
		b[14] = 0x45
		ip := roce.IPv4(b[14:])
		ip.SetTTL(64)
		ip.SetProtocol(roce.ProtoUDP)
	}
	u := b[roce.EthernetSize+net:]
	roce.UDP(u).SetDstPort(VXLANPort)
	u[8], u[14] = 0x08, 7
	return b
}

func TestTunnels(t *testing.T) {
	inner := append(make([]byte, 14), "payload of the inner frame"...)
	for _, v6 := range []bool{false, true} {
		headers := tunnelled(v6)
		b := make([]byte, len(headers)+len(inner))
		Encapsulate(b, headers, inner)
		h := Parse(b)
		at, vni, ok := h.Tunnel(b)
		if !ok || at != len(headers) || vni != 7 || !bytes.Equal(b[at:], inner) {
			t.Errorf("v6 %v: at %d, network %d, %v: % x", v6, at, vni, ok, b)
		}
		if h.End != len(b) || h.Short || !h.NetworkOK(b) || int(roce.UDP(b[h.Transport:]).Len()) != len(b)-h.Transport {
			t.Errorf("v6 %v: %+v: % x", v6, h, b)
		}
		for _, wrong := range []func(b []byte){
			func(b []byte) { roce.UDP(b[h.Transport:]).SetDstPort(4788) },
			func(b []byte) { b[h.Payload] = 0 },
		} {
			c := bytes.Clone(b)
			wrong(c)
			h := Parse(c)
			if _, _, ok := h.Tunnel(c); ok {
				t.Errorf("% x is a tunnel", c)
			}
		}
		for n := range b[:len(headers)+roce.EthernetSize] {
			h := Parse(b[:n])
			if _, _, ok := h.Tunnel(b[:n]); ok {
				t.Errorf("%d bytes are a tunnel", n)
			}
		}
	}
}

func TestTags(t *testing.T) {
	b := append(make([]byte, 12), 0x08, 0, 1, 2, 3)
	tagged := make([]byte, len(b)+roce.VLANSize)
	PutTag(tagged, b, 0x8100_6123)
	h := Parse(tagged)
	if !h.Tagged || h.TCI != 0x6123 || h.Type != 0x800 {
		t.Errorf("%+v: % x", h, tagged)
	}
	back := make([]byte, len(b))
	if TakeTag(back, tagged); !bytes.Equal(back, b) {
		t.Errorf("% x", back)
	}
}
