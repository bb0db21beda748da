package ud

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// longerThanMTU has a WRITE of as many bytes as the MTU become a datagram on its way. The WRITE's
// header is 8 bytes longer than the datagram's, which has so many bytes more of payload.
func longerThanMTU(c *spec.C) {
	e := kit.Open(c)
	port, err := e.Ctx.QueryPort(c.T, int(e.Port))
	c.NoErr("query_port", err)
	n := port.ActiveMTU.Bytes()
	far := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	d := far.CreateQP(c, player.CreateQP, kit.Args{"type": uint64(verbs.QPTUD)})
	d.Connect(c, e.NewUD(c).Peer(), kit.DefaultFor(verbs.QPTUD), verbs.QPSRTS)
	o := kit.Default()
	o.MTU = port.ActiveMTU
	a, b := e.PairWith(c, far, o)
	mem, dst := e.Buffer(c, n, kit.AllAccess), far.Buffer(c, header+n+64, kit.AllAccess, 0)
	d.Recv(c, dst, 1)
	edits := []verbs.ByteEdit{{Offset: 0, Value: uint8(roce.UDSendOnly)}}
	for i := range 3 {
		shift := 16 - 8*i
		edits = append(edits, verbs.ByteEdit{Offset: 5 + i, Value: byte(d.QPN >> shift)})
	}
	for i := range 4 {
		edits = append(edits, verbs.ByteEdit{Offset: roce.BTHSize + i, Value: byte(uint32(kit.QKey) >> (24 - 8*i))})
	}
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchOpcode, DestQPN: b.QPN, Opcode: uint8(roce.RCWriteOnly), Count: 1, Action: verbs.WireEdit, Edits: edits})
	c.Status("write", a.PostAndPoll(c, dst.WriteTo(1, 0, mem.All())), verbs.WCSuccess) // the second time it stays one
	c.Equal("packets to the connection", kit.ClearRules(c), []int{2})
	c.Equal("datagrams received", len(far.AwaitStatuses(c, 1, kit.QuietPeriod)), 0)
	way := e.CreateAH(c, e.AHTo(far.Addr))
	c.Status("datagram as long as the MTU", e.NewUD(c).PostAndPoll(c, kit.Datagram(2, way, d.QPN, mem.All())), verbs.WCSuccess)
	c.Equal("its receive", far.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
}

// badReceiveKey sends a datagram into a receive whose local key is wrong.
func badReceiveKey(c *spec.C) {
	d := newUDPair(c)
	mem := d.Buffer(c, 256, kit.AllAccess)
	want := mem.FillRandom(c)
	to := mem.SGE(64, 128)
	to.LKey ^= 1
	d.b.RecvInto(c, 1, to)
	c.Status("send", d.a.PostAndPoll(c, d.datagram(2, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Status("receive with a wrong local key", kit.PollOne(c, d.b.RecvCQ), verbs.WCLocProtErr)
	c.Equal("state of the receiver", d.b.QueryState(c), verbs.QPSErr)
	mem.ExpectContents(c, "memory", want)
}

// sourceGone takes the address away that an address handle sends from.
func sourceGone(c *spec.C) {
	ctl := kit.TestbedAs[verbs.AddressControl](c)
	e := kit.Open(c)
	kit.AddAddress(c, ctl, kit.SpareAddress)
	to := e.LocalAddr
	e.GID = kit.AwaitGID(c, e, kit.SpareAddress)
	a, b := e.NewUD(c), e.NewUD(c)
	way := e.CreateAH(c, e.AHTo(to))
	mem := e.Buffer(c, 256, kit.AllAccess)
	b.RecvInto(c, 1, mem.SGE(0, 128))
	c.Status("datagram with the address", a.PostAndPoll(c, kit.Datagram(2, way, b.QPN(), mem.SGE(128, 8))), verbs.WCSuccess)
	kit.ExpectSuccess(c, b.RecvCQ, 1)
	kit.Must(c, "remove the address", ctl.RemoveAddress(c.T, 0, kit.SpareAddress))
	kit.AwaitNoGID(c, e, kit.SpareAddress)
	b.RecvInto(c, 3, mem.SGE(0, 128))
	c.Status("datagram without the address", a.PostAndPoll(c, kit.Datagram(4, way, b.QPN(), mem.SGE(128, 8))), verbs.WCLocQPOpErr)
	kit.ExpectNoCompletion(c, b.RecvCQ, kit.QuietPeriod)
}

// otherDestination has a datagram name another IP address as its destination.
func otherDestination(c *spec.C) {
	e := kit.Open(c)
	far := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	d := far.CreateQP(c, player.CreateQP, kit.Args{"type": uint64(verbs.QPTUD)})
	a := e.NewUD(c)
	d.Connect(c, a.Peer(), kit.DefaultFor(verbs.QPTUD), verbs.QPSRTS)
	mem, dst := e.Buffer(c, 64, kit.AllAccess), far.Buffer(c, header+64, kit.AllAccess, 0)
	d.Recv(c, dst, 1)
	way := e.CreateAH(c, e.AHTo(far.Addr))
	const atLastOfDestination = -9 // before the UDP header
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: d.QPN, Count: 1, Action: verbs.WireEdit,
		Edits: []verbs.ByteEdit{{Offset: atLastOfDestination, Value: far.GID[15] ^ 0x40}}})
	c.Status("datagram for another address", a.PostAndPoll(c, kit.Datagram(1, way, d.QPN, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("datagrams received", len(far.AwaitStatuses(c, 1, kit.QuietPeriod)), 0)
	c.Equal("packets changed", kit.ClearRules(c), []int{1})
	c.Status("datagram for this address", a.PostAndPoll(c, kit.Datagram(2, way, d.QPN, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("its receive", far.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
}
