package mad_test

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
)

// directed is a request along a path of ports.
func directed(path ...byte) mad.MAD {
	m := make(mad.MAD, mad.Size)
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(mad.ClassSubnDirected)
	m.SetClassVersion(mad.SubnVersion)
	m.SetMethod(mad.Get)
	m[7] = byte(len(path))
	m[32], m[33], m[34], m[35] = 0xff, 0xff, 0xff, 0xff
	copy(m[129:], path)
	return m
}

// TestDirectedRoute goes along the figures of IBTA Vol. 1, 14.2.2: from an end node by two switches
// to another one, and back.
func TestDirectedRoute(t *testing.T) {
	m := directed(1, 3, 5)
	steps := []struct {
		do   func() (mad.Hop, uint8)
		hop  mad.Hop
		out  uint8
		seen uint8 // the hop pointer then
	}{
		{m.Begin, mad.Onward, 1, 1},
		{func() (mad.Hop, uint8) { return m.Arrive(7, true, 8) }, mad.Onward, 3, 2},
		{func() (mad.Hop, uint8) { return m.Arrive(2, true, 8) }, mad.Onward, 5, 3},
		{func() (mad.Hop, uint8) { return m.Arrive(1, false, 0) }, mad.Here, 0, 4},
		{func() (mad.Hop, uint8) { m.Answer(mad.StatusOK); return m.Begin() }, mad.Onward, 1, 3},
		{func() (mad.Hop, uint8) { return m.Arrive(5, true, 8) }, mad.Onward, 2, 2},
		{func() (mad.Hop, uint8) { return m.Arrive(3, true, 8) }, mad.Onward, 7, 1},
		{func() (mad.Hop, uint8) { return m.Arrive(1, false, 0) }, mad.Home, 0, 0},
	}
	for i, s := range steps {
		if hop, out := s.do(); hop != s.hop || out != s.out || m.HopPointer() != s.seen {
			t.Fatalf("step %d: hop %d by port %d, pointer %d", i, hop, out, m.HopPointer())
		}
	}
	if m.Status() != 0x8000 || m.Method() != mad.GetResp {
		t.Errorf("status %#x, method %#x", m.Status(), m.Method())
	}
	// To the node itself, and what is no route.
	if m = directed(); true {
		if hop, _ := m.Begin(); hop != mad.Here {
			t.Errorf("no hop: %d", hop)
		}
	}
	m = directed(1, 9)
	m.Begin()
	if hop, _ := m.Arrive(1, true, 8); hop != mad.Discard {
		t.Errorf("a port that is not there: %d", hop)
	}
	m = directed(1, 2)
	m.Begin()
	if hop, _ := m.Arrive(1, false, 0); hop != mad.Discard {
		t.Errorf("through an end node: %d", hop)
	}
}

// TestRouteThatBeginsWithLID: the first part goes by LID to a switch, and the answer back to the
// LID that it came from.
func TestRouteThatBeginsWithLID(t *testing.T) {
	m := directed(4)
	m[32], m[33] = 0, 9
	hops := []mad.Hop{}
	add := func(h mad.Hop, _ uint8) { hops = append(hops, h) }
	add(m.Begin())
	add(m.Arrive(2, true, 8))
	add(m.Arrive(1, false, 0))
	m.Answer(mad.StatusOK)
	add(m.Begin())
	add(m.Arrive(4, true, 8))
	add(m.Arrive(1, false, 0))
	want := []mad.Hop{mad.ByLID, mad.Onward, mad.Here, mad.Onward, mad.ByLID, mad.Home}
	for i := range want {
		if hops[i] != want[i] {
			t.Fatalf("hops %v, want %v", hops, want)
		}
	}
}

// FuzzDirected: whatever a datagram says, a node passes it on by a port that it has, or not at all,
// and the pointer stays inside the path.
func FuzzDirected(f *testing.F) {
	f.Add([]byte(directed(1, 2, 3)), uint8(1), true, uint8(8))
	f.Add([]byte(directed(255)), uint8(0), false, uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, in uint8, sw bool, ports uint8) {
		if len(b) != mad.Size {
			return
		}
		m := mad.MAD(bytes.Clone(b))
		if hop, out := m.Arrive(in, sw, int(ports)); hop == mad.Onward && (out == 0 || out > ports || !sw) {
			t.Errorf("onward by port %d of %d", out, ports)
		} else if hop == mad.Here {
			m.Answer(mad.StatusOK)
			m.Begin()
		}
		m = bytes.Clone(b)
		if hop, _ := m.Begin(); hop != mad.Discard && m.HopPointer() > m.HopCount()+1 {
			t.Errorf("pointer %d of %d", m.HopPointer(), m.HopCount())
		}
	})
}

// TestFields: a field is where the standard has it, and writes no other bit.
func TestFields(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, mad.SMPDataSize)
	attr.PortLID.Set(b, 0x1234)
	attr.PortState.Set(b, uint64(roce.PortActive))
	attr.PortSubnetTimeout.Set(b, 18)
	if b[16] != 0x12 || b[17] != 0x34 || b[32] != 0xf4 || b[51] != 0xf2 {
		t.Errorf("% x", b)
	}
	if attr.PortLID.Get(b) != 0x1234 || attr.PortState.Get(b) != 4 || attr.PortSubnetTimeout.Get(b) != 18 || attr.PortMKey.Get(b) != 1<<64-1 {
		t.Errorf("% x", b)
	}
}

// FuzzField: what is written is read again, and nothing else changes.
func FuzzField(f *testing.F) {
	f.Add(uint16(3), uint16(7), uint64(99), []byte{1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, offset, width uint16, v uint64, b []byte) {
		x := attr.Field{Offset: offset % 512, Width: width%64 + 1}
		was := bytes.Clone(b)
		x.Set(b, v)
		if int(x.Offset+x.Width) <= 8*len(b) && x.Get(b) != v&(1<<x.Width-1) {
			t.Errorf("%+v: %#x is read as %#x", x, v, x.Get(b))
		}
		for i := range 8 * len(b) {
			bit := func(b []byte) byte { return b[i/8] >> (7 - i%8) & 1 }
			if (i < int(x.Offset) || i >= int(x.Offset+x.Width)) && bit(b) != bit(was) {
				t.Fatalf("%+v changes bit %d", x, i)
			}
		}
	})
}
