package wire

import (
	"bytes"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// unsupportedOperations has a WRITE become a request that the device does not have.
func unsupportedOperations(c *spec.C) {
	e, other := open(c)
	attr, err := e.Ctx.QueryDeviceEx(c.T, 0)
	kit.Must(c, "query_device_ex", err)
	for _, x := range []struct {
		has bool // the device, whatever its library can post
		op  roce.Opcode
	}{{attr.CapFlagsEx&verbs.DeviceAtomicWrite != 0, roce.RCAtomicWrite}, {c.Has("rc.flush"), roce.RCFlush}} {
		if x.has {
			continue
		}
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		before := c.Rand().Bytes(8)
		l.far.Set(c, 0, before)
		l.mem.FillRandom(c)
		wr := l.write(1, 8)
		if x.op == roce.RCFlush { // its header is as long as that of a WRITE with immediate
			wr = l.write(1, 0)
			wr.Opcode = verbs.WRRDMAWriteImm
		}
		r := l.ruleForRequest(0, verbs.WireEdit)
		r.Edits = []verbs.ByteEdit{{Offset: atOpcode, Value: uint8(x.op)}}
		l.refused(c, r, wr, 0)
		kit.ClearRules(c)
		c.Equal("memory after "+x.op.Info().Name, l.far.Get(c, 0, 8), before)
	}
}

// atomicWriteLink is a link whose near QP posts by the extended way, ATOMIC WRITE too.
func atomicWriteLink(c *spec.C, e *kit.Env, other *kit.OtherProcess) *link {
	o := options(c)
	o.SendOps = kit.OpsRC | verbs.QPExAtomicWrite
	return join(c, e, other, o, func(*verbs.QPAttr) {})
}

// postAtomicWrite posts an ATOMIC WRITE of 8 equal bytes by a key to the beginning of the far
// buffer.
func (l *link) postAtomicWrite(c *spec.C, key uint32, v byte) {
	x := l.a.QPEx(c)
	x.WRStart(c.T)
	x.SetWR(1, verbs.SendSignaled)
	x.WRAtomicWrite(c.T, key, l.far.Addr, [8]byte(bytes.Repeat([]byte{v}, 8)))
	kit.Must(c, "wr_complete", x.WRComplete(c.T))
}

// badAtomicWrite has an ATOMIC WRITE announce more than its 8 bytes, and come by a key that
// allows no writing.
func badAtomicWrite(c *spec.C) {
	e, other := open(c)
	l := atomicWriteLink(c, e, other)
	before := c.Rand().Bytes(16)
	l.far.Set(c, 0, before)
	r := l.ruleForRequest(0, verbs.WireEdit)
	r.Edits = withLength(16)
	kit.Inject(c, r)
	l.postAtomicWrite(c, l.far.RKey, 0xee)
	c.Status("it announces 16 bytes", kit.PollOne(c, l.a.SendCQ), verbs.WCRemInvReqErr)
	c.Equal("packets edited", kit.ClearRules(c), []int{1})
	c.Equal("memory after it", l.far.Get(c, 0, 16), before)

	l = atomicWriteLink(c, e, other)
	l.far = other.Buffer(c, size, kit.AllAccess&^verbs.AccessRemoteWrite, 0)
	l.far.Set(c, 0, before)
	l.postAtomicWrite(c, l.far.RKey, 0xee)
	c.Status("by a key without remote write", kit.PollOne(c, l.a.SendCQ), verbs.WCRemAccessErr)
	c.Equal("memory after it", l.far.Get(c, 0, 16), before)
}

// badAnswer sends a request whose answer is edited: it ends in error.
func (l *link) badAnswer(c *spec.C, step string, op roce.Opcode, edit verbs.ByteEdit, post func()) {
	r := l.ruleForResponse(op, verbs.WireEdit)
	r.Edits = []verbs.ByteEdit{edit}
	kit.Inject(c, r)
	post()
	c.Status(step, kit.PollOne(c, l.a.SendCQ), verbs.WCBadRespErr)
	c.Equal("answers edited", kit.ClearRules(c), []int{1})
	c.Equal("state", l.a.QueryState(c), verbs.QPSErr)
}

// nakInAETH makes the AETH of an answer that of a NAK, opcodeOf makes the packet another.
var nakInAETH = verbs.ByteEdit{Offset: roce.BTHSize, Value: uint8(roce.NAKRemoteAccess)}

func opcodeOf(op roce.Opcode) verbs.ByteEdit {
	return verbs.ByteEdit{Offset: atOpcode, Value: uint8(op)}
}

// wrongAtomicAnswer has the answer to an atomic be that to a READ, which is as long, and the
// other way round, and come with a NAK.
func wrongAtomicAnswer(c *spec.C) {
	e, other := open(c)
	for _, tc := range []struct {
		step   string
		atomic bool
		answer roce.Opcode
		edit   verbs.ByteEdit
	}{
		{"READ data for an atomic", true, roce.RCAtomicAcknowledge, opcodeOf(roce.RCReadResponseOnly)},
		{"an atomic with a NAK", true, roce.RCAtomicAcknowledge, nakInAETH},
		{"the answer to an atomic for a READ", false, roce.RCReadResponseOnly, opcodeOf(roce.RCAtomicAcknowledge)},
	} {
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		want := l.mem.FillRandom(c)[:8]
		wr := l.read(1, 8)
		if tc.atomic {
			wr = l.far.FetchAdd(1, 0, 1, l.mem.SGE(0, 8))
		}
		l.badAnswer(c, tc.step, tc.answer, tc.edit, func() { l.a.Post(c, wr) })
		c.Equal("memory after "+tc.step, l.mem.Get(c, 0, 8), want)
	}
}

// wrongAtomicWriteAnswer has the answer to an ATOMIC WRITE be the first of several packets, come
// with a NAK, and bring the data of a READ of another connection.
func wrongAtomicWriteAnswer(c *spec.C) {
	e, other := open(c)
	for _, tc := range []struct {
		step string
		edit verbs.ByteEdit
	}{{"the first of several packets", opcodeOf(roce.RCReadResponseFirst)}, {"with a NAK", nakInAETH}} {
		l := atomicWriteLink(c, e, other)
		l.badAnswer(c, tc.step, roce.RCReadResponseOnly, tc.edit, func() { l.postAtomicWrite(c, l.far.RKey, 1) })
	}
	l, reader := atomicWriteLink(c, e, other), join(c, e, other, options(c), func(*verbs.QPAttr) {})
	kit.Inject(c, l.ruleForResponse(roce.RCReadResponseOnly, verbs.WireDrop))
	to, psn := l.a.QPN(), l.psn(0)
	r := reader.ruleForResponse(roce.RCReadResponseOnly, verbs.WireEdit)
	r.Edits = []verbs.ByteEdit{
		{Offset: atDestQP, Value: byte(to >> 16)}, {Offset: atDestQP + 1, Value: byte(to >> 8)}, {Offset: atDestQP + 2, Value: byte(to)},
		{Offset: 9, Value: byte(psn >> 16)}, {Offset: 10, Value: byte(psn >> 8)}, {Offset: 11, Value: byte(psn)},
	}
	kit.Inject(c, r)
	l.postAtomicWrite(c, l.far.RKey, 1)
	reader.postSuccessfully(c, reader.read(2, 8)) // by its timer
	c.Status("with data", kit.PollOne(c, l.a.SendCQ), verbs.WCBadRespErr)
	met := kit.ClearRules(c)
	c.True("answers lost and redirected", met[0] == 1 && met[1] >= 1, "rules met %v packets", met)
}

// aboveTwoGiB has a WRITE and a READ announce a byte more than 2 GiB.
func aboveTwoGiB(c *spec.C) {
	e, other := open(c)
	const n = 2 * mtu
	for _, read := range []bool{false, true} {
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		wr := l.write(1, n)
		if read {
			wr = l.read(1, n)
		}
		r := l.ruleForRequest(0, verbs.WireEdit)
		r.Edits = withLength(roce.MaxMessage + 1)
		l.refused(c, r, wr, 0)
		kit.ClearRules(c)
	}
}

// staleData loses the first packet of a READ's data. Those behind it have the READ asked for
// again, once, however many come: a requester with one retry does with it.
func staleData(c *spec.C) {
	const packets = 40
	o := options(c)
	o.RetryCnt = 1
	l := connect(c, o)
	want := c.Rand().Bytes(packets * mtu)
	l.far.Set(c, 0, want)
	kit.Inject(c, l.ruleForResponse(roce.RCReadResponseFirst, verbs.WireDrop))
	seen := l.tap(c, func() { l.postSuccessfully(c, l.read(1, packets*mtu)) })
	kit.ClearRules(c)
	c.Equal("PSNs of READ requests", l.psns(l.requests(seen, roce.RCReadRequest)), []int{0, 0})
	c.Equal("bytes", l.mem.Get(c, 0, packets*mtu), want)
}

// credits has a requester send more messages than there are receives. Where the responder says
// how many it has, only one more than that leaves, which asks for news.
func credits(c *spec.C) {
	const receives, sends = 3, 9
	o := options(c)
	o.MinRNRTimer = 26 // 164 ms: the watch ends before the one more is sent again
	l := connect(c, o)
	l.b.Recv(c, l.far, receives)
	var posted []verbs.SendWR
	for i := range uint64(sends) {
		posted = append(posted, kit.Send(i, l.mem.SGE(0, 8)))
	}
	packets := kit.Tap(c, func() {
		l.postSuccessfully(c, l.write(100, 8)) // its ACK announces
		l.a.Post(c, posted...)
		awaitUnanswered(c)
	})
	acks := l.responses(packets, roce.RCAcknowledge)
	c.True("acknowledgements", len(acks) > 0, "there is none")
	announces := acks[0].AETH().Syndrome().Value() != roce.CreditUnlimited
	c.Observe("the responder announces its receives", announces)
	if announces {
		c.Equal("PSNs of the messages", distinct(l.psns(l.requests(packets, roce.RCSendOnly))), countUpTo(1, receives+1))
	}
	l.b.Recv(c, l.far, sends-receives)
	kit.ExpectSuccess(c, l.a.SendCQ, sends)
	c.Equal("receives", len(l.b.Process.AwaitStatuses(c, sends, kit.CompletionTimeout)), sends)
}

// distinct are the numbers of a list in their order, each once.
func distinct(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}
