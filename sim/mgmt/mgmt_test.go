package mgmt_test

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// port is a port that keeps what it is given.
type port struct {
	info      roce.PortInfo
	pkeys     []uint16
	retrained []bool
}

func (p *port) PortInfo() roce.PortInfo     { return p.info }
func (p *port) SetPortInfo(v roce.PortInfo) { p.info = v }
func (p *port) PKeyTable() []uint16         { return p.pkeys }
func (p *port) SetPKeys(k []uint16)         { p.pkeys = k }
func (p *port) CapMasks() (m, m2 uint32)    { return 0, 0 }
func (p *port) Violations() (pk, qk uint16) { return 0, 0 }
func (p *port) Retrain(up bool)             { p.retrained = append(p.retrained, up) }

func agent(typ uint8, ports int) (*mgmt.SMA, []*port) {
	all := make([]*port, ports+1)
	for i := range all {
		all[i] = &port{info: roce.PortInfo{State: roce.PortInit, MTU: roce.MTU4096, VLs: 4}}
	}
	first := 0
	if typ == mgmt.CA {
		first = 1
	}
	return &mgmt.SMA{Node: mgmt.Node{Type: typ, Ports: ports, GUID: 7, PKeys: 40, Speed: 32, Width: 2, VLCap: 3}, Port: func(n int) mgmt.Port {
		if n < first || n > ports {
			return nil
		}
		return all[n]
	}}, all
}

func request(method uint8, attribute uint16, modifier uint32) mad.MAD {
	m := make(mad.MAD, mad.Size)
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(mad.ClassSubnLID)
	m.SetClassVersion(mad.SubnVersion)
	m.SetMethod(method)
	m.SetAttribute(attribute)
	m.SetModifier(modifier)
	return m
}

// TestSetKeepsWhatItWasGiven: what a subnet manager has set, with its M_Key, it reads again.
func TestSetKeepsWhatItWasGiven(t *testing.T) {
	a, ports := agent(mgmt.CA, 1)
	m := request(mad.Set, mad.AttrPortInfo, 1)
	b := m.SMPData()
	attr.PortMKey.Set(b, 99)
	attr.PortLID.Set(b, 4)
	attr.PortSMLID.Set(b, 2)
	attr.PortState.Set(b, uint64(roce.PortArmed))
	if !a.Answer(m, 1) || m.Status() != mad.StatusOK || ports[1].info.LID != 4 || ports[1].info.State != roce.PortArmed {
		t.Fatalf("status %#x, %+v", m.Status(), ports[1].info)
	}
	m = request(mad.Get, mad.AttrPortInfo, 0) // the port that asks
	if a.Answer(m, 1); attr.PortMKey.Get(m.SMPData()) != 99 || attr.PortLID.Get(m.SMPData()) != 4 || attr.PortExtSpeedActive.Get(m.SMPData()) != 2 || attr.PortSpeedSupported.Get(m.SMPData()) != 7 {
		t.Errorf("% x", m.SMPData())
	}
	m = request(mad.Set, mad.AttrPortInfo, 1)
	attr.PortLID.Set(m.SMPData(), 4)
	attr.PortSMLID.Set(m.SMPData(), 2)
	attr.PortState.Set(m.SMPData(), uint64(roce.PortDown))
	if a.Answer(m, 1); len(ports[1].retrained) != 1 || !ports[1].retrained[0] {
		t.Errorf("to DOWN: %v", ports[1].retrained)
	}
}

// FuzzSMA: an agent answers any bytes, or leaves them as they are, and its port keeps values that
// can be.
func FuzzSMA(f *testing.F) {
	for _, at := range []uint16{mad.AttrNodeInfo, mad.AttrPortInfo, mad.AttrPKeyTable, mad.AttrGUIDInfo, mad.AttrSLtoVL, mad.AttrVendorPort} {
		f.Add([]byte(request(mad.Set, at, 1)), uint8(1), true)
		f.Add([]byte(request(mad.Get, at, 0)), uint8(2), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, in uint8, ca bool) {
		if len(b) != mad.Size {
			return
		}
		a, ports := agent(mgmt.Switch, 3)
		if ca {
			a, ports = agent(mgmt.CA, 1)
		}
		m := mad.MAD(bytes.Clone(b))
		if !a.Answer(m, in) {
			if !bytes.Equal(m, b) {
				t.Fatal("what is not for the agent was changed")
			}
			return
		}
		if m.Method() != mad.GetResp || m.TID() != mad.MAD(b).TID() || m.Attribute() != mad.MAD(b).Attribute() {
			t.Errorf("method %#x", m.Method())
		}
		for _, p := range ports {
			if i := p.info; i.LID >= roce.FirstMulticastLID || i.MTU < roce.MTU256 || i.MTU > roce.MTU4096 || i.VLs < 1 || i.VLs > 15 || i.State > roce.PortActive {
				t.Errorf("port %+v", i)
			}
		}
	})
}

// FuzzPMA: any bytes, as FuzzSMA.
func FuzzPMA(f *testing.F) {
	f.Add([]byte(request(mad.Set, mad.AttrPortCounters, 0)), uint64(1<<40))
	f.Fuzz(func(t *testing.T, b []byte, n uint64) {
		if len(b) != mad.Size {
			return
		}
		a := mgmt.PMA{First: 1, Last: 3, Read: func(int) mgmt.Counters { return mgmt.Counters{XmitData: n, Downed: n} }}
		m := mad.MAD(bytes.Clone(b))
		m.SetClass(mad.ClassPerf)
		was := bytes.Clone(m)
		if !a.Answer(m) && !bytes.Equal(m, was) {
			t.Fatal("what is not for the agent was changed")
		}
	})
}
