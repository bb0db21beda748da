package sa_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/sa"
)

// host is an end node that sends datagrams and keeps what it receives.
type host struct {
	port *link.Port
	info roce.PortInfo
	guid uint64
	got  []*roce.Frame
}

func (h *host) PortInfo() roce.PortInfo     { return h.info }
func (h *host) SetPortInfo(i roce.PortInfo) { h.info = i }
func (h *host) SetPKeys([]uint16)           {}
func (h *host) Receive(f *roce.Frame)       { h.got = append(h.got, f) }
func (h *host) gid() roce.GID               { return roce.GIDFromGUID(roce.DefaultGIDPrefix, h.guid) }

// fabric is hosts at a switch with a subnet administrator.
type fabric struct {
	t     testing.TB
	e     *sim.Engine
	sm    *link.SubnetManager
	node  *sa.Node
	hosts []*host
	pool  roce.Pool
	tid   uint64
}

func newFabric(t testing.TB, hosts int) *fabric {
	p := link.Params{InfiniBand: true, Propagation: 100 * sim.Nanosecond, IB: link.IBParams{
		Speed: link.EDR, Width: 4, Delimiters: 2, VLs: 2, Credits: 512, Sweep: sim.Millisecond,
	}}
	x := &fabric{t: t, e: sim.New(sim.Options{MaxEvents: 1 << 20})}
	sw := link.NewSwitch(x.e, "switch", link.SwitchParams{Latency: 200 * sim.Nanosecond, CutThrough: true, HeaderBytes: 64, Buffer: 1 << 20})
	f := link.DefaultFabric()
	f.SMLID = f.FirstLID + uint16(hosts)
	x.sm = link.NewSubnetManager(x.e, f, p.IB.Sweep)
	own := link.NewCable(x.e, p, "sm", "switch/sm")
	x.node = sa.New(own.End(0), &p.IB, sw)
	for i := range hosts {
		c := link.NewCable(x.e, p, "host", "switch/host")
		h := &host{port: c.End(0), guid: 0x100 + uint64(i), info: roce.PortInfo{State: roce.PortInit}}
		c.End(0).Attach(h)
		sw.Plug(c.End(1))
		x.sm.Add(c.End(0), h, sw, i)
		x.node.Enter(sa.Member{Managed: h, GUID: h.guid, Description: "host", At: i})
		x.hosts = append(x.hosts, h)
	}
	sw.Plug(own.End(1))
	x.sm.Add(own.End(0), x.node, sw, hosts)
	x.sm.Sweep()
	return x
}

func (x *fabric) run() {
	x.t.Helper()
	if err := x.e.Run(sim.Never - 1); err != nil && !errors.Is(err, sim.ErrEventBudget) {
		x.t.Fatal(err)
	} else if err != nil {
		x.t.Fatal("the fabric does not come to rest")
	}
}

// request makes a request of class SubnAdm.
func (x *fabric) request(method uint8, attribute uint16, mask uint64, fill func(data []byte)) mad.MAD {
	x.tid++
	m := mad.MAD(make([]byte, mad.Size))
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(mad.ClassSubnAdm)
	m.SetClassVersion(mad.SubnAdmVersion)
	m.SetMethod(method)
	m.SetTID(x.tid)
	m.SetAttribute(attribute)
	m.SetComponents(mask)
	if fill != nil {
		fill(m.Data())
	}
	return m
}

// way is how a host's datagram goes to the administrator.
type way struct {
	dlid uint16
	qpn  uint32
	qkey uint32
	pkey uint16
	grh  bool
}

func (x *fabric) toSA() way {
	return way{dlid: uint16(len(x.hosts) + 1), qpn: roce.GSIQPN, qkey: mad.QKey, pkey: roce.DefaultPKey}
}

func (x *fabric) send(h *host, w way, payload []byte) {
	x.t.Helper()
	path := roce.Path{Framing: roce.InfiniBand, SLID: h.info.LID, DLID: w.dlid, PKey: w.pkey, DestQP: w.qpn, Global: w.grh, SrcGID: h.gid(), DstGID: roce.GID{1}, MigReq: true}
	t, err := roce.NewTemplate(path)
	if err != nil {
		x.t.Fatal(err)
	}
	f := t.New(&x.pool, roce.UDSendOnly, 7, len(payload), 0)
	f.DETH().SetQKey(w.qkey)
	f.DETH().SetSrcQP(roce.GSIQPN)
	copy(f.Payload(), payload)
	h.port.Send(f)
}

// answers are what a host has received since, checked as datagrams from the administrator's QP1.
func (x *fabric) answers(h *host) (all []mad.MAD) {
	x.t.Helper()
	x.run()
	for _, f := range h.got {
		f.FinishICRC()
		p, err := f.Parse()
		if err != nil || !p.ICRCOK() {
			x.t.Fatalf("a broken answer: %v", err)
		}
		if l := p.LRH(); l.SLID() != x.toSA().dlid || l.DLID() != h.info.LID || p.BTH().DestQP() != roce.GSIQPN ||
			p.DETH().SrcQP() != roce.GSIQPN || p.DETH().QKey() != mad.QKey || p.BTH().PKey()&0x7FFF != 0x7FFF {
			x.t.Fatalf("addresses of an answer: % x", f.B)
		}
		m, err := mad.Parse(p.Payload())
		if err != nil {
			x.t.Fatal(err)
		}
		all = append(all, mad.MAD(bytes.Clone(m)))
		f.Release()
	}
	h.got = nil
	return all
}

// ask sends a request and returns the answer, of which there must be one.
func (x *fabric) ask(h *host, m mad.MAD) mad.MAD {
	x.t.Helper()
	x.send(h, x.toSA(), m)
	all := x.answers(h)
	if len(all) != 1 || all[0].TID() != m.TID() || all[0].Attribute() != m.Attribute() || all[0].Method()&mad.Response == 0 {
		x.t.Fatalf("%d answers to attribute %#x", len(all), m.Attribute())
	}
	return all[0]
}

// pathOf asks for the path between two hosts.
func (x *fabric) pathOf(from, to *host, mask uint64, fill func(mad.PathRecord)) mad.MAD {
	return x.request(mad.Get, mad.AttrPathRecord, mad.PathSGID|mad.PathDGID|mad.PathPKey|mad.PathNumber|mad.PathReversible|mask, func(b []byte) {
		r := mad.PathRecord(b)
		r.SetSGID(from.gid())
		r.SetDGID(to.gid())
		r.SetPKey(roce.DefaultPKey)
		r.SetNumber(1)
		r.SetReversible(true)
		if fill != nil {
			fill(r)
		}
	})
}

func TestPathRecord(t *testing.T) {
	x := newFabric(t, 3)
	a, b := x.hosts[0], x.hosts[2]
	m := x.ask(a, x.pathOf(a, b, 0, nil))
	r := mad.PathRecord(m.Data())
	s, mtu := r.MTU()
	_, rate := r.Rate()
	if m.Status() != 0 || m.Method() != mad.GetResp || r.SLID() != 1 || r.DLID() != 3 || r.SGID() != a.gid() || r.DGID() != b.gid() ||
		s != mad.Exactly || mtu != uint8(roce.MTU4096) || rate != 16 || r.PKey() != 0xFFFF || !r.Reversible() || r.HopLimit() != 0 {
		t.Errorf("status %#x, record % x", m.Status(), m.Data()[:mad.PathRecordSize])
	}
	nobody := &host{guid: 0x999}
	limit := func(s mad.Selector, mtu, rate uint8) func(mad.PathRecord) {
		return func(r mad.PathRecord) { r.SetMTU(s, mtu); r.SetRate(s, rate) }
	}
	const both = mad.PathMTUSelector | mad.PathMTU | mad.PathRateSelector | mad.PathRate
	for what, c := range map[string]struct {
		m      mad.MAD
		status uint16
		mtu    uint8
		rate   uint8
	}{
		"no such port":  {m: x.pathOf(a, nobody, 0, nil), status: mad.StatusNoRecords},
		"no source":     {m: x.request(mad.Get, mad.AttrPathRecord, mad.PathDGID, func(d []byte) { mad.PathRecord(d).SetDGID(b.gid()) }), status: mad.StatusTooFewComponents},
		"a P_Key":       {m: x.pathOf(a, b, 0, func(r mad.PathRecord) { r.SetPKey(0x8123) }), status: mad.StatusNoRecords},
		"a level":       {m: x.pathOf(a, b, mad.PathSL, func(r mad.PathRecord) { r.SetSL(3) }), status: mad.StatusNoRecords},
		"limits below":  {m: x.pathOf(a, b, both, limit(mad.Less, 4, 16)), mtu: 3, rate: 9},
		"limits above":  {m: x.pathOf(a, b, both, limit(mad.Greater, 3, 3)), mtu: 5, rate: 16},
		"above the end": {m: x.pathOf(a, b, both, limit(mad.Greater, 5, 3)), status: mad.StatusNoRecords},
		"exact":         {m: x.pathOf(a, b, both, limit(mad.Exactly, 4, 2)), mtu: 4, rate: 2},
		"largest":       {m: x.pathOf(a, b, both, limit(mad.Largest, 0, 0)), mtu: 5, rate: 16},
		"no such rate":  {m: x.pathOf(a, b, both, limit(mad.Exactly, 4, 63)), status: mad.StatusNoRecords},
	} {
		m := x.ask(a, c.m)
		r := mad.PathRecord(m.Data())
		_, mtu := r.MTU()
		_, rate := r.Rate()
		if m.Status() != c.status || c.status == 0 && (mtu != c.mtu || rate != c.rate) {
			t.Errorf("%s: status %#x, MTU %d, rate %d", what, m.Status(), mtu, rate)
		}
	}
	if x.node.C.Refused != 6 {
		t.Errorf("%+v", x.node.C)
	}
}

// member is a request of a host about a group.
func (x *fabric) member(method uint8, h *host, mgid roce.GID, states uint8, mask uint64, fill func(mad.MCMemberRecord)) mad.MAD {
	return x.request(method, mad.AttrMCMemberRecord, mad.MemberMGID|mad.MemberPortGID|mad.MemberJoinState|mask, func(b []byte) {
		r := mad.MCMemberRecord(b)
		r.SetMGID(mgid)
		r.SetPortGID(h.gid())
		r.SetJoinState(states)
		r.SetPKey(roce.DefaultPKey)
		r.SetQKey(0x0B1B)
		r.SetMTU(mad.Exactly, uint8(roce.MTU2048))
		r.SetRate(mad.Exactly, 3)
		if fill != nil {
			fill(r)
		}
	})
}

// made are the components with which IPoIB joins a group that may not be there yet.
const made = mad.MemberQKey | mad.MemberPKey | mad.MemberTrafficClass | mad.MemberFlowLabel | mad.MemberSL | mad.MemberHopLimit |
	mad.MemberMTUSelector | mad.MemberMTU | mad.MemberRateSelector | mad.MemberRate

var (
	broadcast = roce.GID{0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, 12: 0xFF, 13: 0xFF, 14: 0xFF, 15: 0xFF}
	other     = roce.GID{0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, 15: 9}
)

// receivers are the hosts that get a packet to a group from a host.
func (x *fabric) receivers(from *host, mlid uint16) (who []int) {
	x.send(from, way{dlid: mlid, qpn: roce.MulticastQPN, pkey: roce.DefaultPKey, grh: true}, []byte("data"))
	x.run()
	for i, h := range x.hosts {
		for _, f := range h.got {
			who = append(who, i)
			f.Release()
		}
		h.got = nil
	}
	return who
}

// TestGroups: who joins a group gets its packets, and who leaves does not.
func TestGroups(t *testing.T) {
	x := newFabric(t, 4)
	a, b, c, d := x.hosts[0], x.hosts[1], x.hosts[2], x.hosts[3]
	if who := x.receivers(a, 0xC000); len(who) != 0 {
		t.Errorf("a group without members reaches %v", who)
	}
	for i, h := range []*host{a, b, c} {
		states := []uint8{mad.JoinFull, mad.JoinFull, mad.JoinSendOnlyFull}[i]
		m := x.ask(h, x.member(mad.Set, h, broadcast, states, mad.MemberPKey, nil))
		r := mad.MCMemberRecord(m.Data())
		s, mtu := r.MTU()
		_, rate := r.Rate()
		if m.Status() != 0 || m.Method() != mad.GetResp || r.MLID() != 0xC000 || r.QKey() != 0x0B1B || s != mad.Exactly || mtu != uint8(roce.MTU2048) ||
			rate != 3 || r.PortGID() != h.gid() || r.JoinState() != states || r.Scope() != 2 {
			t.Errorf("host %d: status %#x, record % x", i, m.Status(), m.Data()[:mad.MCMemberRecordSize])
		}
	}
	if who := x.receivers(a, 0xC000); !slices.Equal(who, []int{1}) {
		t.Errorf("the broadcast group of two, and one that only sends, reaches %v", who)
	}
	if who := x.receivers(d, 0xC000); !slices.Equal(who, []int{0, 1}) {
		t.Errorf("from outside it reaches %v", who)
	}
	for what, c := range map[string]struct {
		m      mad.MAD
		status uint16
	}{
		"a group that is not there": {x.member(mad.Set, d, other, mad.JoinFull, mad.MemberPKey, nil), mad.StatusTooFewComponents},
		"it, by a guest":            {x.member(mad.Set, d, other, mad.JoinNonMember, made, nil), mad.StatusRequestInvalid},
		"no components":             {x.request(mad.Set, mad.AttrMCMemberRecord, mad.MemberMGID, nil), mad.StatusTooFewComponents},
		"no state":                  {x.member(mad.Set, d, broadcast, 0, 0, nil), mad.StatusRequestInvalid},
		"another Q_Key":             {x.member(mad.Set, d, broadcast, mad.JoinFull, made, func(r mad.MCMemberRecord) { r.SetQKey(1) }), mad.StatusRequestInvalid},
		"a larger MTU":              {x.member(mad.Set, d, broadcast, mad.JoinFull, made, func(r mad.MCMemberRecord) { r.SetMTU(mad.Exactly, 5) }), mad.StatusRequestInvalid},
		"no group's GID":            {x.member(mad.Set, d, d.gid(), mad.JoinFull, made, nil), mad.StatusRequestInvalid},
		"nobody's port":             {x.member(mad.Set, &host{guid: 1}, broadcast, mad.JoinFull, 0, nil), mad.StatusRequestInvalid},
		"leave what one is not in":  {x.member(mad.Delete, d, broadcast, mad.JoinFull, 0, nil), mad.StatusRequestInvalid},
		"leave in another way":      {x.member(mad.Delete, a, broadcast, mad.JoinNonMember, 0, nil), mad.StatusRequestInvalid},
	} {
		if m := x.ask(d, c.m); m.Status() != c.status {
			t.Errorf("%s: status %#x, want %#x", what, m.Status(), c.status)
		}
	}
	m := x.ask(d, x.member(mad.Set, d, other, mad.JoinFull, made, nil))
	if r := mad.MCMemberRecord(m.Data()); m.Status() != 0 || r.MLID() != 0xC001 {
		t.Errorf("a new group: status %#x, LID %#x", m.Status(), r.MLID())
	}
	x.ask(a, x.member(mad.Set, a, other, mad.JoinFull, made, nil))
	if who := x.receivers(b, 0xC001); !slices.Equal(who, []int{0, 3}) {
		t.Errorf("the new group reaches %v", who)
	}
	if m := x.ask(d, x.member(mad.Delete, d, other, mad.JoinFull, 0, nil)); m.Status() != 0 || m.Method() != mad.DelResp {
		t.Errorf("leaving: method %#x, status %#x", m.Method(), m.Status())
	}
	if who := x.receivers(b, 0xC001); !slices.Equal(who, []int{0}) {
		t.Errorf("after one has left it reaches %v", who)
	}
	x.node.Forget(a)
	if who := x.receivers(b, 0xC001); len(who) != 0 {
		t.Errorf("after the other's host has gone it reaches %v", who)
	}
	// Both are members of nothing any more, so the group is gone and its LID free, and the
	// broadcast group is there for good.
	m = x.ask(b, x.member(mad.Set, b, roce.GID{}, mad.JoinFull, made, nil))
	if r := mad.MCMemberRecord(m.Data()); m.Status() != 0 || r.MLID() != 0xC001 || !r.MGID().IsMulticast() || r.MGID() == other {
		t.Errorf("a group of no GID: status %#x, % x", m.Status(), m.Data()[:mad.MCMemberRecordSize])
	}
	x.node.Forget(b)
	if m := x.ask(d, x.member(mad.Set, d, broadcast, mad.JoinFull, 0, nil)); m.Status() != 0 || mad.MCMemberRecord(m.Data()).MLID() != 0xC000 {
		t.Errorf("broadcast again: status %#x", m.Status())
	}
}

// TestOtherRequests: what is not known is refused, and what is no request is dropped.
func TestOtherRequests(t *testing.T) {
	x := newFabric(t, 2)
	a := x.hosts[0]
	version := x.request(mad.Get, mad.AttrPathRecord, 0, nil)
	version.SetClassVersion(1)
	for what, c := range map[string]struct {
		m      mad.MAD
		method uint8
		status uint16
	}{
		"another version":    {version, mad.GetResp, mad.StatusBadVersion},
		"an attribute":       {x.request(mad.Get, 0x31, 0, nil), mad.GetResp, mad.StatusNoAttribute},
		"one to set":         {x.request(mad.Set, 0x31, 0, nil), mad.GetResp, mad.StatusNoAttribute},
		"one to delete":      {x.request(mad.Delete, 0x31, 0, nil), mad.DelResp, mad.StatusNoAttribute},
		"a table of them":    {x.request(mad.GetTable, 0x31, 0, nil), mad.TableResp, mad.StatusNoAttribute},
		"a method":           {x.request(0x14, mad.AttrPathRecord, 0, nil), 0x94, mad.StatusNoMethod},
		"class port info":    {x.request(mad.Get, mad.AttrClassPortInfo, 0, nil), mad.GetResp, mad.StatusOK},
		"a subscription":     {x.request(mad.Set, mad.AttrInformInfo, 0, nil), mad.GetResp, mad.StatusOK},
		"a node of this LID": {x.request(mad.Get, mad.AttrNodeRecord, mad.RecordLID, func(b []byte) { mad.NodeRecord(b).SetLID(2) }), mad.GetResp, mad.StatusOK},
		"a port of this LID": {x.request(mad.Get, mad.AttrPortInfoRecord, mad.RecordLID, func(b []byte) { mad.PortInfoRecord(b).SetLID(2) }), mad.GetResp, mad.StatusOK},
		"a node of no LID":   {x.request(mad.Get, mad.AttrNodeRecord, mad.RecordLID, nil), mad.GetResp, mad.StatusNoRecords},
	} {
		m := x.ask(a, c.m)
		if m.Method() != c.method || m.Status() != c.status {
			t.Errorf("%s: method %#x, status %#x", what, m.Method(), m.Status())
		}
		switch {
		case what == "a node of this LID" && (mad.NodeRecord(m.Data()).PortGUID() != x.hosts[1].guid || mad.NodeRecord(m.Data()).Description() != "host"):
			t.Errorf("%s: % x", what, m.Data())
		case what == "a port of this LID" && (mad.PortInfoRecord(m.Data()).PortLID() != 2 || mad.PortInfoRecord(m.Data()).SMLID() != 3 || mad.PortInfoRecord(m.Data()).State() != roce.PortActive):
			t.Errorf("%s: % x", what, m.Data())
		}
	}
	before := x.node.C
	good := x.pathOf(a, x.hosts[1], 0, nil)
	response := x.request(mad.GetResp, mad.AttrPathRecord, 0, nil)
	class := x.request(mad.Get, 1, 0, nil)
	class.SetClass(0x04)
	ack := x.request(mad.GetTable, mad.AttrNodeRecord, 0, nil)
	ack.RMPP().SetFlags(mad.RMPPActive)
	ack.RMPP().SetType(mad.RMPPAck)
	sent := []struct {
		w func(*way)
		b []byte
	}{
		{func(w *way) { w.qkey = 1 }, good},
		{func(w *way) { w.qpn = 0 }, good},
		{func(w *way) { w.qpn = 7 }, good},
		{func(w *way) { w.pkey = 0x8001 }, good},
		{func(*way) {}, good[:200]},
		{func(*way) {}, response},
		{func(*way) {}, class},
		{func(*way) {}, ack}, // of no table
	}
	for i, c := range sent {
		w := x.toSA()
		c.w(&w)
		x.send(a, w, c.b)
		if all := x.answers(a); len(all) != 0 {
			t.Errorf("%d is answered: % x", i, []byte(all[0]))
		}
	}
	if got := x.node.C.Dropped - before.Dropped; got != uint64(len(sent))-1 || x.node.C.Requests != before.Requests {
		t.Errorf("%d dropped of %d", got, len(sent)-1)
	}
	w := x.toSA()
	w.grh = true
	x.send(a, w, good)
	if all := x.answers(a); len(all) != 1 || all[0].Status() != 0 {
		t.Errorf("by a GRH there are %d answers", len(all))
	}
}

// TestTableComesInSegments: a table of several segments comes as far as the receiver lets it.
func TestTableComesInSegments(t *testing.T) {
	x := newFabric(t, 7)
	a := x.hosts[0]
	req := x.request(mad.GetTable, mad.AttrNodeRecord, 0, nil)
	x.send(a, x.toSA(), req)
	var table []byte
	const size, segments = 112, 4 // 7 records in segments of 200 bytes
	take := func(want int) {
		t.Helper()
		all := x.answers(a)
		if len(all) != want {
			t.Fatalf("%d segments, want %d", len(all), want)
		}
		for _, m := range all {
			h, n := m.RMPP(), len(table)/mad.SADataSize+1
			flags, payload := uint8(mad.RMPPActive), uint32(0)
			data := mad.SADataSize
			if n == 1 {
				flags |= mad.RMPPFirst
				payload = 7*size + segments*mad.SAHeaderSize
			}
			if n == segments {
				flags |= mad.RMPPLast
				data = 7*size - 3*mad.SADataSize
				payload = uint32(data) + mad.SAHeaderSize
			}
			if m.Method() != mad.TableResp || m.TID() != req.TID() || m.AttributeOffset() != size/8 || h.Version() != 1 || h.Type() != mad.RMPPData ||
				h.Flags() != flags || h.Segment() != uint32(n) || h.Payload() != payload {
				t.Errorf("segment %d: % x", n, m[:56])
			}
			table = append(table, m.Data()[:data]...)
		}
	}
	ack := func(segment, window uint32) {
		m := mad.MAD(bytes.Clone(req))
		m.SetMethod(mad.GetTable)
		m.RMPP().SetVersion(1)
		m.RMPP().SetType(mad.RMPPAck)
		m.RMPP().SetFlags(mad.RMPPActive)
		m.RMPP().SetSegment(segment)
		m.RMPP().SetWindow(window)
		x.send(a, x.toSA(), m)
	}
	take(1)
	ack(1, 3)
	take(2)
	ack(3, 64)
	take(1)
	ack(4, 64)
	take(0)
	ack(1, 64) // the table is gone
	take(0)
	for i := range 7 {
		if r := mad.NodeRecord(table[i*size:]); r.LID() != uint16(i+1) || r.PortGUID() != x.hosts[i].guid {
			t.Errorf("record %d: % x", i, table[i*size:][:mad.NodeRecordSize])
		}
	}
	m := x.ask(a, x.request(mad.GetTable, mad.AttrNodeRecord, mad.NodeGUID, nil))
	if h := m.RMPP(); h.Flags() != mad.RMPPActive|mad.RMPPFirst|mad.RMPPLast || h.Payload() != mad.SAHeaderSize {
		t.Errorf("an empty table: % x", m[:56])
	}
	m = x.ask(a, x.request(mad.GetTable, mad.AttrMCMemberRecord, 0, nil))
	if r := mad.MCMemberRecord(m.Data()); r.MGID() != broadcast || m.AttributeOffset() != 7 {
		t.Errorf("the groups: % x", m.Data())
	}
	ack(9, 1) // of what was not sent
	take(0)
}

// TestDownPorts: a port that is down is in no record of a path, and joins nothing.
func TestDownPorts(t *testing.T) {
	x := newFabric(t, 2)
	a, b := x.hosts[0], x.hosts[1]
	b.info.State = roce.PortDown
	if m := x.ask(a, x.pathOf(a, b, 0, nil)); m.Status() != mad.StatusNoRecords {
		t.Errorf("status %#x", m.Status())
	}
	if m := x.ask(a, x.member(mad.Set, b, broadcast, mad.JoinFull, 0, nil)); m.Status() != mad.StatusRequestInvalid {
		t.Errorf("status %#x", m.Status())
	}
	b.info.State = roce.PortInit
	x.sm.Sweep()
	if m := x.ask(a, x.pathOf(a, b, 0, nil)); m.Status() != 0 {
		t.Errorf("status %#x after a sweep", m.Status())
	}
}

// TestGroupsRunOut: there is an end of groups, and the host hears of it.
func TestGroupsRunOut(t *testing.T) {
	x := newFabric(t, 1)
	a := x.hosts[0]
	n := 0
	for ; n < 1<<14; n++ {
		m := x.ask(a, x.member(mad.Set, a, roce.GID{0xFF, 0x12, 14: byte(n >> 8), 15: byte(n)}, mad.JoinFull, made, nil))
		if m.Status() == mad.StatusNoResources {
			break
		}
		if m.Status() != 0 {
			t.Fatalf("group %d: status %#x", n, m.Status())
		}
	}
	if n != 4095 {
		t.Errorf("%d groups", n)
	}
}

// FuzzRequests sends arbitrary requests: each is answered at most by its tables' segments, and by
// whole datagrams.
func FuzzRequests(f *testing.F) {
	f.Add([]byte{mad.Get, 0, 0x35, 0, 0, 0, 0x0C}, []byte{0xFE, 0x80})
	f.Add([]byte{mad.Set, 0, 0x38, 0, 1, 0xB9, 0xC7, mad.Delete, 0, 0x38, 0, 1, 0, 3}, bytes.Repeat([]byte{0xFF, 0x12, 0x11}, 40))
	f.Add([]byte{mad.GetTable, 0, 0x11, 0, 0, 0, 0, mad.GetTable, 0x80, 0x11, 0, 0, 0, 0}, []byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, ops, body []byte) {
		x := newFabric(t, 3)
		for i := 0; len(ops) >= 7 && i < 64; ops, i = ops[7:], i+1 {
			h := x.hosts[int(ops[3])%3]
			mask := uint64(ops[4])<<16 | uint64(ops[5])<<8 | uint64(ops[6])
			m := x.request(ops[0], uint16(ops[1]&0x7F)<<8|uint16(ops[2]), mask, func(b []byte) {
				for k := range b {
					if len(body) > 0 {
						b[k] = body[(k+i)%len(body)]
					}
				}
				switch ops[3] >> 4 & 3 {
				case 1: // a request that names ports
					mad.PathRecord(b).SetSGID(h.gid())
					mad.PathRecord(b).SetDGID(x.hosts[0].gid())
				case 2:
					mad.MCMemberRecord(b).SetPortGID(h.gid())
				}
			})
			if ops[1]&0x80 != 0 {
				m.SetTID(uint64(i))
				m.RMPP().SetFlags(mad.RMPPActive)
				m.RMPP().SetType(ops[3] & 7)
				m.RMPP().SetSegment(uint32(ops[4] & 7))
				m.RMPP().SetWindow(uint32(ops[5]))
			}
			x.send(h, x.toSA(), m)
			if n := len(x.answers(h)); n > 16 {
				t.Fatalf("%d answers", n)
			}
		}
		if x.pool.Live != 0 {
			t.Fatalf("%d frames leaked", x.pool.Live)
		}
	})
}
