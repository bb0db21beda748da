package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// managedPort is the port as its agent of subnet management sees it.
type managedPort Device

func (p *managedPort) PortInfo() roce.PortInfo           { return p.ib.info }
func (p *managedPort) SetPortInfo(v roce.PortInfo)       { (*Device)(p).SetPortInfo(v) }
func (p *managedPort) PKeyTable() []uint16               { return p.ib.pkeys[:] }
func (p *managedPort) SetPKeys(k []uint16)               { (*Device)(p).SetPKeys(k) }
func (p *managedPort) CapMasks() (mask, mask2 uint32)    { return p.ib.capMask, p.ib.capMask2 }
func (p *managedPort) Violations() (pkeys, qkeys uint16) { return p.ib.badPKeys, p.ib.badQKeys }

func (p *managedPort) Retrain(up bool) {
	if w, ok := p.port.wire.(RetrainingWire); ok {
		w.Retrain(up)
	}
}

// SMA is the port's agent of subnet management; nil on Ethernet.
func (d *Device) SMA() *mgmt.SMA {
	if d.agents == nil {
		return nil
	}
	d.agents.describe(d.regs.nodeDesc[:])
	d.agents.sma.Port = func(n int) mgmt.Port {
		if n != 1 {
			return nil
		}
		return (*managedPort)(d)
	}
	return &d.agents.sma
}

// SetSubnetManager says in the capability mask of an InfiniBand port that its host runs a subnet
// manager.
func (d *Device) SetSubnetManager() { d.ib.capMask |= ibCapSM }

// cmdMADIFC answers a datagram by the port's agents. One of a class that no agent has is answered
// with the status that says so.
func cmdMADIFC(d *Device, in, out []byte) prm.Status {
	i, o := prm.MADIFCIn(in), prm.MADIFCOut(out)
	switch {
	case d.ib == nil:
		return prm.StatusBadOp
	case i.Port() > 1:
		return prm.StatusBadParam
	}
	m := mad.MAD(i.MAD())
	if _, err := mad.Parse(m); err != nil || m.Method()&mad.Response != 0 {
		return prm.StatusBadPkt
	}
	a := mad.MAD(o.MAD())
	copy(a, m)
	if !d.SMA().Answer(a, 1) && !d.agents.pma.Answer(a) && m.Method() != mad.TrapRepress {
		a.Answer(mad.StatusBadVersion)
	}
	return prm.StatusOK
}
