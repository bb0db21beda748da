// Package ib holds the cases of area IB: the InfiniBand link layer as programs see it,
// local and global routes, partitions, and what a subnet manager changes.
package ib

import (
	"bytes"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("IB-001", port)
	s.Case("IB-002", firstGID)
	s.Case("IB-003", firstPKey)
	s.Case("IB-004", localRoute)
	s.Case("IB-005", globalRoute)
	s.Case("IB-006", localHeaders)
	s.Case("IB-007", globalHeaders)
	s.Case("IB-008", datagram)
	s.Case("IB-009", reply)
	s.Case("IB-010", serviceLevel)
	s.Case("IB-011", otherPartition)
	s.Case("IB-012", wrongQKey)
	s.Case("IB-013", newLID)
	s.Case("IB-014", newPKeys)
	s.Case("IB-015", limitedMembers)
	s.Case("IB-016", reregister)
	s.Case("IB-017", newPrefix)
	s.Case("IB-018", untilActive)
}

// portAttr is what query_port reports.
func portAttr(c *spec.C, e *kit.Env) verbs.PortAttr {
	a, err := e.Ctx.QueryPort(c.T, int(e.Port))
	kit.Must(c, "query_port", err)
	return a
}

func port(c *spec.C) {
	e := kit.Open(c)
	a := portAttr(c, e)
	c.Equal("link_layer", a.LinkLayer, verbs.LinkInfiniBand)
	c.Equal("state", a.State, verbs.PortActive)
	c.True("LID", a.LID > 0 && a.LID < roce.FirstMulticastLID, "%#x", a.LID)
	c.True("LID of the subnet manager", a.SMLID > 0 && a.SMLID < roce.FirstMulticastLID, "%#x", a.SMLID)
	c.Equal("low bits of the LID", a.LID&(1<<a.LMC-1), uint16(0))
	c.Equal("GRH required", a.Flags&verbs.PortGRHRequired, uint8(0))
	c.True("MTU", a.ActiveMTU.Bytes() > 0 && a.ActiveMTU <= a.MaxMTU, "active %d, max %d", a.ActiveMTU, a.MaxMTU)
}

func firstGID(c *spec.C) {
	e := kit.Open(c)
	g, err := e.Ctx.QueryGIDEx(c.T, int(e.Port), 0, 0)
	c.NoErr("query_gid_ex", err)
	c.Equal("type", g.Type, verbs.GIDTypeIB)
	id := roce.GID(g.GID)
	c.True("interface", id.InterfaceID() != 0, "%v", id)
	c.True("prefix", id.SubnetPrefix() != 0 && !id.IsMulticast(), "%v", id)
	same, err := e.Ctx.QueryGID(c.T, int(e.Port), 0)
	c.NoErr("query_gid", err)
	c.Equal("the same by query_gid", same == g.GID, true)
}

func firstPKey(c *spec.C) {
	e := kit.Open(c)
	k, err := e.Ctx.QueryPKey(c.T, int(e.Port), 0)
	c.NoErr("query_pkey", err)
	c.True("base", k&0x7fff != 0, "%#x", k)
	c.Observe("P_Key", k)
	i, err := e.Ctx.PKeyIndex(c.T, int(e.Port), k)
	c.NoErr("get_pkey_index", err)
	c.Equal("index", i, 0)
	_, err = e.Ctx.QueryPKey(c.T, int(e.Port), int(portAttr(c, e).PKeyTblLen))
	c.ErrnoIn("query_pkey behind the table", err, syscall.EINVAL, syscall.ENOENT)
}

// exchangeWithRemote sends, writes and reads between a QP and one of the far host.
func exchangeWithRemote(c *spec.C, e *kit.Env, a *kit.QP, b *kit.OtherQP) {
	near, far := e.Buffer(c, 8192, kit.AllAccess), b.Process.Buffer(c, 8192, kit.AllAccess, 0)
	all := near.FillRandom(c)
	b.Recv(c, far, 1)
	a.Post(c, far.WriteTo(1, 4096, near.SGE(0, 3000)), kit.Send(2, near.SGE(0, 100)), far.ReadFrom(3, 4096, near.SGE(4096, 3000)))
	kit.ExpectSuccess(c, a.SendCQ, 3)
	c.Equal("what came back", bytes.Equal(near.Get(c, 4096, 3000), all[:3000]), true)
	c.Equal("completions there", len(b.Process.AwaitStatuses(c, 1, kit.CompletionTimeout)), 1)
}

// globalRouteTo gives a QP's path a global route to the same port.
func globalRouteTo(e *kit.Env, to kit.Addr) func(a *verbs.QPAttr) {
	return func(a *verbs.QPAttr) {
		a.AH = e.AHTo(to)
		a.AH.GRH.FlowLabel, a.AH.GRH.TrafficClass, a.AH.GRH.HopLimit = 0x1234, 0x20, 9
	}
}

func localRoute(c *spec.C) {
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.Default())
	exchangeWithRemote(c, e, a, b)
	got, _, err := a.Query(c.T, verbs.QPMaskAV)
	c.NoErr("query_qp", err)
	c.Equal("DLID as set", got.AH.DLID == b.Process.LID, true)
	c.Equal("global", got.AH.IsGlobal, false)
}

// bringUpWith takes a QP to RTS with attributes that change may alter before each step.
func bringUpWith(c *spec.C, q *kit.QP, p kit.Peer, change func(a *verbs.QPAttr)) {
	for to := verbs.QPSInit; to <= verbs.QPSRTS; to++ {
		a := q.AttrFor(p)
		a.State = to
		change(&a)
		kit.Must(c, "modify_qp to "+to.String(), q.Modify(c.T, &a, kit.MaskFor(q.Opt.Type, to)))
	}
}

// connectedPair connects two QPs of one device. Both ends get what change says: a packet with a
// global route is not of a path without one, nor of another partition.
func connectedPair(c *spec.C, e *kit.Env, change func(a *verbs.QPAttr)) *kit.Pair {
	p := e.UnconnectedPair(c, kit.Default())
	bringUpWith(c, p.B, p.A.Peer(), change)
	bringUpWith(c, p.A, p.B.Peer(), change)
	return p
}

// exchange writes, sends and reads between the two.
func exchange(c *spec.C, p *kit.Pair) {
	mem := p.Buffer(c, 16384, kit.AllAccess)
	all := mem.FillRandom(c)
	p.B.RecvInto(c, 1, mem.SGE(12288, 100))
	p.A.Post(c, kit.Write(1, mem, 4096, mem.SGE(0, 3000)), kit.Send(2, mem.SGE(0, 100)), kit.Read(3, mem, 0, mem.SGE(8192, 3000)))
	kit.ExpectSuccess(c, p.A.SendCQ, 3)
	kit.ExpectSuccess(c, p.B.RecvCQ, 1)
	for _, at := range []int{4096, 8192} {
		c.Equal("3000 bytes", bytes.Equal(mem.Get(c, at, 3000), all[:3000]), true)
	}
}

func globalRoute(c *spec.C) {
	e := kit.Open(c)
	p := connectedPair(c, e, globalRouteTo(e, e.LocalAddr))
	exchange(c, p)
	got, _, err := p.A.Query(c.T, verbs.QPMaskAV)
	c.NoErr("query_qp", err)
	c.Equal("DLID as set", got.AH.DLID == e.LocalAddr.LID, true)
	c.Equal("global", got.AH.IsGlobal, true)
	c.Equal("destination as set", got.AH.GRH.DGID == e.LocalAddr.GID, true)
	c.Equal("hop limit, class, label", []uint32{uint32(got.AH.GRH.HopLimit), uint32(got.AH.GRH.TrafficClass), got.AH.GRH.FlowLabel}, []uint32{9, 0x20, 0x1234})
}
