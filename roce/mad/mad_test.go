package mad_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
)

// TestHeaders: the fields of the headers are where the Linux kernel's structs have them (ib_mad.h).
func TestHeaders(t *testing.T) {
	b := make([]byte, mad.Size)
	m := mad.MAD(b)
	m.SetBaseVersion(1)
	m.SetClass(3)
	m.SetClassVersion(2)
	m.SetMethod(0x12)
	m.SetStatus(0x0304)
	m.SetTID(0x1122334455667788)
	m.SetAttribute(0x35)
	m.SetModifier(0x01020304)
	h := m.RMPP()
	h.SetVersion(1)
	h.SetType(mad.RMPPData)
	h.SetFlags(mad.RMPPActive | mad.RMPPLast)
	h.SetSegment(7)
	h.SetPayload(220)
	m.SetAttributeOffset(8)
	m.SetComponents(0x1D)
	m.Data()[0] = 0xEE
	want := []byte{
		1, 3, 2, 0x12, 3, 4, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0x35, 0, 0, 1, 2, 3, 4,
		1, 1, 0xFD, 0, 0, 0, 0, 7, 0, 0, 0, 220,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1D, 0xEE,
	}
	if !bytes.Equal(b[:len(want)], want) || len(m.Data()) != mad.SADataSize {
		t.Errorf("% x", b[:len(want)])
	}
	if h.Flags() != mad.RMPPActive|mad.RMPPLast || h.Payload() != 220 || h.Window() != 220 || m.TID() != 0x1122334455667788 {
		t.Errorf("flags %x, payload %d", h.Flags(), h.Payload())
	}
}

// TestPathRecord: the fields are where path_rec_table of the Linux kernel has them
// (core/sa_query.c).
func TestPathRecord(t *testing.T) {
	b := make([]byte, mad.PathRecordSize)
	r := mad.PathRecord(b)
	r.SetDGID(roce.GID{0xD1, 15: 0xD2})
	r.SetSGID(roce.GID{0x51, 15: 0x52})
	r.SetDLID(0x0102)
	r.SetSLID(0x0304)
	r.SetFlowLabel(0xABCDE)
	r.SetTrafficClass(0x77)
	r.SetReversible(true)
	r.SetNumber(5)
	r.SetPKey(0x8001)
	r.SetSL(9)
	r.SetMTU(mad.Exactly, 5)
	r.SetRate(mad.Greater, 16)
	r.SetLifetime(mad.Largest, 18)
	want := make([]byte, mad.PathRecordSize)
	want[8], want[23], want[24], want[39] = 0xD1, 0xD2, 0x51, 0x52
	copy(want[40:], []byte{1, 2, 3, 4, 0x0A, 0xBC, 0xDE, 0, 0x77, 0x85, 0x80, 1, 0, 9, 0x85, 16, 0xD2})
	if !bytes.Equal(b, want) {
		t.Errorf("\n% x, want\n% x", b, want)
	}
	if s, v := r.MTU(); s != mad.Exactly || v != 5 || r.FlowLabel() != 0xABCDE || r.HopLimit() != 0 || !r.Reversible() || r.Number() != 5 {
		t.Errorf("read back: %v %d %x", s, v, r.FlowLabel())
	}
}

// TestMCMemberRecord: likewise mcmember_rec_table.
func TestMCMemberRecord(t *testing.T) {
	b := make([]byte, mad.MCMemberRecordSize)
	r := mad.MCMemberRecord(b)
	r.SetMGID(roce.GID{0xFF, 15: 1})
	r.SetPortGID(roce.GID{0xFE, 15: 2})
	r.SetQKey(0x0B1B)
	r.SetMLID(0xC001)
	r.SetMTU(mad.Exactly, 4)
	r.SetTrafficClass(3)
	r.SetPKey(0xFFFF)
	r.SetRate(mad.Exactly, 3)
	r.SetLifetime(mad.Less, 18)
	r.SetSL(7)
	r.SetHopLimit(64)
	r.SetFlowLabel(0x12345)
	r.SetScope(2)
	r.SetJoinState(mad.JoinSendOnlyFull)
	want := make([]byte, mad.MCMemberRecordSize)
	want[0], want[15], want[16], want[31] = 0xFF, 1, 0xFE, 2
	copy(want[32:], []byte{0, 0, 0x0B, 0x1B, 0xC0, 1, 0x84, 3, 0xFF, 0xFF, 0x83, 0x52, 0x71, 0x23, 0x45, 64, 0x28})
	if !bytes.Equal(b, want) {
		t.Errorf("\n% x, want\n% x", b, want)
	}
	if r.FlowLabel() != 0x12345 || r.SL() != 7 || r.HopLimit() != 64 || r.Scope() != 2 || r.JoinState() != 8 {
		t.Error("read back")
	}
}

// TestRecordsOfNodes: the fields of the records of nodes and ports are where rdma-core has them
// (libibmad/fields.c, behind the 4 bytes of the record).
func TestRecordsOfNodes(t *testing.T) {
	n := mad.NodeRecord(make([]byte, mad.NodeRecordSize))
	n.SetLID(0x0102)
	n.SetVersions(1, 2)
	n.SetNodeType(mad.NodeTypeCA)
	n.SetPorts(1)
	n.SetSystemGUID(0xA)
	n.SetNodeGUID(0xB)
	n.SetPortGUID(0xC)
	n.SetPartitions(128)
	n.SetLocalPort(1)
	n.SetDescription("host mlx5_0")
	want := make([]byte, mad.NodeRecordSize)
	copy(want, []byte{1, 2, 0, 0, 1, 2, 1, 1, 15: 0xA, 23: 0xB, 31: 0xC, 33: 128, 40: 1})
	copy(want[44:], "host mlx5_0")
	if !bytes.Equal(n, want) || n.Description() != "host mlx5_0" {
		t.Errorf("\n% x, want\n% x", []byte(n), want)
	}
	p := mad.PortInfoRecord(make([]byte, mad.PortInfoRecordSize))
	p.SetLID(0x0102)
	p.SetPort(1)
	p.SetGIDPrefix(roce.DefaultGIDPrefix)
	p.SetPortLID(0x0304)
	p.SetSMLID(0x0506)
	p.SetLocalPort(1)
	p.SetState(roce.PortActive)
	p.SetPhysicalState(5)
	p.SetLMC(3)
	p.SetMTU(roce.MTU4096)
	p.SetSMSL(6)
	p.SetSubnetTimeout(18)
	want = make([]byte, mad.PortInfoRecordSize)
	copy(want, []byte{1, 2, 1, 12: 0xFE, 13: 0x80, 20: 3, 21: 4, 22: 5, 23: 6, 32: 1, 36: 4, 37: 0x50, 38: 3, 40: 0x56, 45: 5, 55: 18})
	if !bytes.Equal(p, want) {
		t.Errorf("\n% x, want\n% x", []byte(p), want)
	}
	c := mad.ClassPortInfo(make([]byte, mad.ClassPortInfoSize))
	c.SetBaseVersion(1)
	c.SetClassVersion(2)
	c.SetCapabilities2(mad.CanSendOnlyFullMember, 18)
	if !bytes.Equal(c[:8], []byte{1, 2, 0, 0, 0, 0, 0, 0x52}) || c.Capabilities2() != 2 {
		t.Errorf("% x", c[:8])
	}
}

func FuzzMAD(f *testing.F) {
	f.Add(make([]byte, mad.Size))
	f.Add(append([]byte{1, 3, 2, 1}, make([]byte, mad.Size-4)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := mad.Parse(b)
		if err != nil {
			if !errors.Is(err, mad.ErrMalformed) || m != nil {
				t.Fatalf("%v, %v", m, err)
			}
			return
		}
		was := bytes.Clone(b)
		h := m.RMPP()
		p, g := mad.PathRecord(m.Data()[:mad.PathRecordSize]), mad.MCMemberRecord(m.Data()[:mad.MCMemberRecordSize])
		s, v := p.Rate()
		p.SetRate(s, v)
		s, v = p.MTU()
		p.SetMTU(s, v)
		p.SetFlowLabel(p.FlowLabel())
		p.SetReversible(p.Reversible())
		p.SetNumber(p.Number())
		p.SetSL(p.SL())
		s, v = g.Lifetime()
		g.SetLifetime(s, v)
		g.SetSL(g.SL())
		g.SetFlowLabel(g.FlowLabel())
		g.SetScope(g.Scope())
		g.SetJoinState(g.JoinState())
		m.SetComponents(m.Components())
		m.SetAttributeOffset(m.AttributeOffset())
		h.SetSegment(h.Segment())
		h.SetWindow(h.Window())
		m.SetStatus(m.Status())
		m.SetModifier(m.Modifier())
		if !bytes.Equal(was, b) {
			t.Fatal("what was read is written elsewhere")
		}
		if n := mad.NodeRecord(m.Data()[:mad.NodeRecordSize]).Description(); len(n) > 64 {
			t.Fatalf("%d characters", len(n))
		}
	})
}
