package sa

import "github.com/rdmasim/rdmasim/roce/mad"

// request answers a datagram of class SubnAdm.
func (n *Node) request(to *Peer, m mad.MAD) {
	switch {
	case m.RMPP().Flags()&mad.RMPPActive != 0 && m.RMPP().Type() != mad.RMPPData:
		n.control(to, m)
	case m.Method()&mad.Response != 0:
		n.C.Dropped++ // it answers nothing that was asked here
	case m.ClassVersion() != mad.SubnAdmVersion:
		n.refuse(to, m, m.Method()|mad.Response, mad.StatusBadVersion)
	default:
		n.dispatch(to, m)
	}
}

// dispatch answers by method and attribute, with what OpenSM says of those that it does not know.
func (n *Node) dispatch(to *Peer, m mad.MAD) {
	switch m.Method() {
	case mad.Get:
		n.get(to, m)
	case mad.GetTable:
		n.getTable(to, m)
	case mad.Set:
		n.set(to, m)
	case mad.Delete:
		if m.Attribute() == mad.AttrMCMemberRecord {
			rec, status := n.mcast.leave(m.Components(), m.Data()[:mad.MCMemberRecordSize])
			n.answer(to, m, mad.DelResp, rec, status)
			return
		}
		n.refuse(to, m, mad.DelResp, mad.StatusNoAttribute)
	default:
		n.refuse(to, m, m.Method()|mad.Response, mad.StatusNoMethod)
	}
}

// get answers with the one record that a request asks for, or the first.
func (n *Node) get(to *Peer, m mad.MAD) {
	if m.Attribute() == mad.AttrClassPortInfo {
		n.answer(to, m, mad.GetResp, classPortInfo(), mad.StatusOK)
		return
	}
	all, _, status := n.records(m)
	if status == mad.StatusOK && len(all) == 0 {
		status = mad.StatusNoRecords
	}
	if status != mad.StatusOK {
		n.refuse(to, m, mad.GetResp, status)
		return
	}
	n.answer(to, m, mad.GetResp, all[0], status)
}

// getTable answers with all records that suit a request.
func (n *Node) getTable(to *Peer, m mad.MAD) {
	all, size, status := n.records(m)
	if status != mad.StatusOK {
		n.refuse(to, m, mad.TableResp, status)
		return
	}
	n.C.Requests++
	n.sendTable(to, m, all, size)
}

// records are those that a request asks for, and the size of one.
func (n *Node) records(m mad.MAD) (all [][]byte, size int, status uint16) {
	mask, data := m.Components(), m.Data()
	switch m.Attribute() {
	case mad.AttrPathRecord:
		all, status = n.paths(mask, data[:mad.PathRecordSize], m.Method() == mad.GetTable)
		return all, mad.PathRecordSize, status
	case mad.AttrMCMemberRecord:
		return n.mcast.records(mask, data[:mad.MCMemberRecordSize]), mad.MCMemberRecordSize, mad.StatusOK
	case mad.AttrLinkRecord:
		return n.linkRecords(m), mad.LinkRecordSize, mad.StatusOK
	case mad.AttrSMInfoRecord:
		return n.smInfo(), mad.SMInfoRecordSize, mad.StatusOK
	}
	if k := kinds[m.Attribute()]; k != nil {
		return n.table(k, m), k.size, mad.StatusOK
	}
	return nil, 0, mad.StatusNoAttribute
}

func (n *Node) set(to *Peer, m mad.MAD) {
	switch m.Attribute() {
	case mad.AttrMCMemberRecord:
		rec, status := n.mcast.join(m.Components(), m.Data()[:mad.MCMemberRecordSize])
		n.answer(to, m, mad.GetResp, rec, status)
	case mad.AttrInformInfo:
		// The subscription is acknowledged. There are no events to report: ports neither come nor
		// go here without their hosts.
		n.answer(to, m, mad.GetResp, m.Data()[:mad.InformInfoSize], mad.StatusOK)
	default:
		n.refuse(to, m, mad.GetResp, mad.StatusNoAttribute)
	}
}

func classPortInfo() []byte {
	const responseTime = 18 // 4.096 us << 18 is a second: what OpenSM says
	b := make([]byte, mad.ClassPortInfoSize)
	c := mad.ClassPortInfo(b)
	c.SetBaseVersion(mad.BaseVersion)
	c.SetClassVersion(mad.SubnAdmVersion)
	c.SetCapabilities2(mad.CanSendOnlyFullMember, responseTime)
	return b
}

// answer sends a record, or a status without one.
func (n *Node) answer(to *Peer, m mad.MAD, method uint8, rec []byte, status uint16) {
	if status != mad.StatusOK {
		n.refuse(to, m, method, status)
		return
	}
	n.C.Requests++
	n.send(to, func(a mad.MAD) {
		head(a, m, method, mad.StatusOK)
		copy(a.Data(), rec)
	})
}

// refuse answers with a status, and the request's own attribute.
func (n *Node) refuse(to *Peer, m mad.MAD, method uint8, status uint16) {
	n.C.Requests++
	n.C.Refused++
	n.send(to, func(a mad.MAD) {
		head(a, m, method, status)
		copy(a.Data(), m.Data())
	})
}

// head fills in the headers of an answer.
func head(a, m mad.MAD, method uint8, status uint16) {
	a.SetBaseVersion(mad.BaseVersion)
	a.SetClass(mad.ClassSubnAdm)
	a.SetClassVersion(mad.SubnAdmVersion)
	a.SetMethod(method)
	a.SetStatus(status)
	a.SetTID(m.TID())
	a.SetAttribute(m.Attribute())
	a.SetModifier(m.Modifier())
	a.SetComponents(m.Components())
}
