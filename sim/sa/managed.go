package sa

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// plainPort is a port with the least that an agent of subnet management says.
type plainPort struct{ link.Managed }

func (plainPort) PKeyTable() []uint16               { return []uint16{roce.DefaultPKey} }
func (plainPort) CapMasks() (mask, mask2 uint32)    { return 0, 0 }
func (plainPort) Violations() (pkeys, qkeys uint16) { return 0, 0 }
func (plainPort) Retrain(bool)                      {}

// newSMA makes the agent of an end node with one port.
func (n *Node) newSMA(guid uint64, text string, p mgmt.Port) *mgmt.SMA {
	return &mgmt.SMA{
		Node: mgmt.Node{
			Type: mgmt.CA, Ports: 1, GUID: guid, Description: text, PKeys: 1, Speed: n.ib.SpeedCode(), Width: n.ib.WidthCode(),
			VLCap: mgmt.VLCode(uint8(n.ib.VLs)),
		},
		Port: func(number int) mgmt.Port {
			if number != 1 {
				return nil
			}
			return p
		},
	}
}

// ownPort is the port of the node's own host.
type ownPort struct {
	*Node
	at int
}

// capSM is the bit of CapabilityMask for a host with a subnet manager (IB_PORT_SM).
const capSM = 1 << 1

func (p *ownPort) PKeyTable() []uint16             { return p.pkeys }
func (*ownPort) CapMasks() (mask, mask2 uint32)    { return capSM, 0 }
func (*ownPort) Violations() (pkeys, qkeys uint16) { return 0, 0 }
func (p *ownPort) Retrain(up bool)                 { p.wire.Retrain(up) }

// Manage gives the node what it says of the subnet manager, and the host of its own an identity:
// its wire is at a port of the switch.
func (n *Node) Manage(m *link.SubnetManager, guid uint64, text string, at int) {
	n.manager, n.guid = m, guid
	if n.host == nil {
		n.sma = n.newSMA(guid, text, &ownPort{n, at})
		n.pma = &mgmt.PMA{First: 1, Last: 1, Read: func(int) mgmt.Counters { return n.wire.PerformanceCounters() }}
	}
}

// manages answers a datagram to an agent of the node's own port. It reports false for others.
func (n *Node) manages(p *roce.Packet) bool {
	if n.sma == nil || p.Framing != roce.InfiniBand || p.Op != roce.UDSendOnly {
		return false
	}
	m, err := mad.Parse(p.Payload())
	if err != nil {
		return false
	}
	m = append(mad.MAD(nil), m...)
	h := p.LRH()
	to := sender(p)
	switch dlid := h.DLID(); {
	case h.VL() != roce.ManagementVL:
		if m.Class() != mad.ClassPerf || !n.accepts(p) || !n.pma.Answer(m) {
			return false
		}
		n.frame(&to, m)
		return true
	case !m.Subnet() || dlid != n.info.LID && dlid != roce.PermissiveLID:
		return true
	}
	const port = 1
	if m.Directed() {
		if hop, _ := m.Arrive(port, false, 0); hop != mad.Here {
			return true
		}
	}
	if !n.sma.Answer(m, port) && (n.manager == nil || !n.manager.AnswerSMInfo(m, n.guid)) {
		return true
	}
	if m.Directed() {
		m.Begin()
	}
	n.smp(&to, m)
	return true
}

// smp puts an answer to an SMP on the node's own wire.
func (n *Node) smp(to *Peer, m mad.MAD) {
	path := roce.Path{Framing: roce.InfiniBand, SLID: n.info.LID, DLID: to.LID, VL: roce.ManagementVL, MigReq: true, PKey: roce.DefaultPKey}
	if m.Directed() || path.SLID == 0 {
		path.SLID = roce.PermissiveLID
	}
	if m.Directed() {
		path.DLID = roce.PermissiveLID
	}
	t, err := roce.NewTemplate(path)
	if err != nil {
		n.C.Dropped++
		return
	}
	f := t.New(&n.frames, roce.UDSendOnly, n.psn, mad.Size, 0)
	n.psn = (n.psn + 1) & roce.PSNMask
	copy(f.Payload(), m)
	n.wire.Send(f)
}

// smInfo is the record of the subnet manager: there is one.
func (n *Node) smInfo() [][]byte {
	const head = 4
	q := query(mad.AttrSMInfo, 0)
	if n.manager == nil || !n.manager.AnswerSMInfo(q, n.guid) {
		return nil
	}
	rec := make([]byte, mad.SMInfoRecordSize)
	copy(rec[head:], q.SMPData())
	recordLID.Set(rec, uint64(n.manager.Fabric().SMLID))
	return [][]byte{rec}
}
