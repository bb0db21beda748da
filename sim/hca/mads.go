package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
)

// answersMAD has the port's agents answer a packet to QP0 or QP1. It reports false for what the
// driver gets. That the device answers by itself is inferred: the answer that mlx5_ib makes of a
// request for counters has no header (process_pma_cmd), and so can only be for the files of sysfs.
func (d *Device) answersMAD(p *roce.Packet) bool {
	if p.Op != roce.UDSendOnly {
		return false
	}
	m, err := mad.Parse(p.Payload())
	if err != nil {
		return false
	}
	m = append(mad.MAD(nil), m...)
	const port = 1
	permissive := false
	switch qp0 := p.BTH().DestQP() == 0; {
	case qp0 != m.Subnet():
		return false
	case !qp0:
		if m.Class() != mad.ClassPerf || p.DETH().QKey() != mad.QKey || d.pkeyIndexOf(p.BTH().PKey()) < 0 || !d.agents.pma.Answer(m) {
			return false
		}
	case m.Directed():
		if to, _ := m.Arrive(port, false, 0); to != mad.Here || !d.SMA().Answer(m, port) {
			return false
		}
		to, _ := m.Begin()
		permissive = to == mad.Onward
	default:
		if !d.SMA().Answer(m, port) {
			return false
		}
	}
	d.reply(p, m, permissive)
	return true
}

// reply sends an answer to where a packet came from, or to the next node of a directed route.
func (d *Device) reply(p *roce.Packet, m mad.MAD, permissive bool) {
	h := p.LRH()
	path := d.managementPath(h.SLID())
	if permissive {
		path = d.managementPath(roce.PermissiveLID)
	}
	path.VL, path.SL = h.VL(), h.SL()
	path.PKey, path.DestQP = p.BTH().PKey(), p.DETH().SrcQP()
	if path.Global = p.HasGRH(); path.Global {
		path.SrcGID, path.DstGID = p.DstGID(), p.SrcGID()
	}
	t, err := roce.NewTemplate(path)
	if err != nil {
		return
	}
	f := t.New(&d.frames, roce.UDSendOnly, d.agents.psn, mad.Size, 0)
	d.agents.psn = (d.agents.psn + 1) & roce.PSNMask
	f.DETH().SetQKey(p.DETH().QKey())
	f.DETH().SetSrcQP(p.BTH().DestQP())
	copy(f.Payload(), m)
	d.port.occupy(f)
	d.port.see(f)
	switch {
	case !permissive && d.isOwnLID(path.DLID):
		if d.port.looper != nil {
			d.port.looper.Loopback(f, d.p.LoopbackLatency)
			return
		}
		d.receive(f, -1, d.p.LoopbackLatency)
	case d.port.wire == nil:
		f.Release()
	default:
		d.port.wire.Send(f)
	}
}
