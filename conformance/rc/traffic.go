package rc

import (
	"bytes"
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

const (
	lotSize     = 16       // messages that are posted at once
	slotSize    = 8 << 10  // the longest message
	targetSize  = 32 << 10 // memory of the peer that is written and read
	lossPercent = 1
)

// traffic is one end of a connection, and what the other end's memory has to be.
type traffic struct {
	qp     *kit.QP
	peer   *kit.OtherQP
	near   *kit.Buffer      // a slot for each message of a lot: what it sends, or where what it fetches lands
	target *kit.OtherBuffer // as model says
	inbox  *kit.OtherBuffer // a slot for each receive of a lot
	model  []byte
}

// lot is what was posted at once and is not checked yet.
type lot struct {
	wrs      []verbs.SendWR
	fetched  map[int][]byte // by slot: what READs and atomics bring
	receives []receive
	reads    [][2]int // ranges of the target that a READ of the lot may still read, again if a response is lost
}

// receive is what a receive of the peer must report, and the bytes in its slot.
type receive struct {
	opcode verbs.WCOpcode
	length int
	imm    uint32
	data   []byte
}

// randomMessages sends messages of every kind and of random lengths and places while packets are
// lost in both directions: each completes once and in order, and no byte differs from what the
// messages do one after the other.
func randomMessages(c *spec.C) {
	e := kit.Open(c)
	x := &traffic{}
	x.qp, x.peer = e.RemotePair(c, kit.WithLongTimeout(c, kit.Default()))
	x.near = e.Buffer(c, lotSize*slotSize, kit.AllAccess)
	x.target = x.peer.Process.Buffer(c, targetSize, kit.AllAccess, 0)
	x.inbox = x.peer.Process.Buffer(c, lotSize*slotSize, kit.AllAccess, 0)
	x.model = c.Rand().Bytes(targetSize)
	x.target.Set(c, 0, x.model)
	for _, response := range []bool{false, true} {
		kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDirection, Response: response, PerMillion: lossPercent * 10_000, Action: verbs.WireDrop})
	}
	n := c.Scale(480, 100_000)
	for i := 0; i < n; i += lotSize {
		if !x.exchange(c, min(lotSize, n-i)) {
			return
		}
		if i/lotSize%8 == 7 {
			x.compare(c)
		}
	}
	x.compare(c)
	met := kit.ClearRules(c)
	c.True("both rules have met packets", met[0] > n && met[1] > 0, "%d requests and %d responses", met[0], met[1])
	c.Observe("messages", n)
}

// exchange sends n messages and checks what they did. It returns false if the target is known to
// withhold completions, and did.
func (x *traffic) exchange(c *spec.C, n int) bool {
	x.near.FillRandom(c)
	l := &lot{fetched: map[int][]byte{}}
	for slot := range n {
		x.add(c, l, slot)
	}
	x.qp.Post(c, l.wrs...)
	wcs, all := kit.AwaitCompletions(c, "completions of a lot", x.qp.SendCQ, n)
	for i, wc := range wcs {
		if wc.ID != uint64(i) || wc.Status != verbs.WCSuccess {
			c.Failf("completion %d of a lot: want wr_id %d, SUCCESS, got wr_id %d, %v (vendor error %#x)", i+1, i, wc.ID, wc.Status, wc.VendorErr)
		}
	}
	if !all {
		return false
	}
	for slot, want := range l.fetched {
		same(c, fmt.Sprintf("what message %d of the lot fetched", slot), x.near.Get(c, slot*slotSize, len(want)), want)
	}
	x.expectReceives(c, l.receives)
	return true
}

// add makes a random message that uses a slot.
func (x *traffic) add(c *spec.C, l *lot, slot int) {
	r := c.Rand()
	length, kind := r.Intn(300), r.Intn(6)
	if r.Intn(4) == 0 {
		length = r.Intn(slotSize + 1)
	}
	if kind == 4 { // a READ of nothing that is lost is what WIRE-062 is about
		length = max(1, length)
	}
	off, imm := r.Intn(targetSize-length+1), r.Uint32()
	local := x.near.SGE(slot*slotSize, length)
	data := x.near.Get(c, slot*slotSize, length)
	var wr verbs.SendWR
	switch id := uint64(slot); kind {
	case 0:
		wr = kit.Send(id, local)
		x.expect(c, l, receive{verbs.WCOpRecv, length, 0, data})
	case 1:
		wr = kit.Send(id, local)
		wr.Opcode, wr.Imm = verbs.WRSendImm, imm
		x.expect(c, l, receive{verbs.WCOpRecv, length, imm, data})
	case 2:
		wr = x.target.WriteTo(id, off, local)
		l.change(x, &wr, off, data)
	case 3:
		wr = x.target.WriteTo(id, off, local)
		wr.Opcode, wr.Imm = verbs.WRRDMAWriteImm, imm
		l.change(x, &wr, off, data)
		x.expect(c, l, receive{verbs.WCOpRecvRDMAImm, length, imm, nil})
	case 4:
		wr = x.target.ReadFrom(id, off, local)
		l.fetched[slot] = bytes.Clone(x.model[off : off+length])
		l.reads = append(l.reads, [2]int{off, off + length})
	case 5:
		at := r.Intn(targetSize/8) * 8
		word, add := x.model[at:at+8], r.Uint64()
		wr = x.target.FetchAdd(id, at, add, x.near.SGE(slot*slotSize, 8))
		l.fetched[slot] = bytes.Clone(word)
		l.change(x, &wr, at, kit.HostWordBytes(kit.HostWord(word)+add))
	}
	l.wrs = append(l.wrs, wr)
}

// change has a request change the target. A READ before it whose response is lost reads once more,
// so that one of the same bytes must be over first.
func (l *lot) change(x *traffic, wr *verbs.SendWR, off int, data []byte) {
	for _, r := range l.reads {
		if off < r[1] && r[0] < off+len(data) {
			wr.Flags |= verbs.SendFence
		}
	}
	copy(x.model[off:], data)
}

// expect posts a receive for a message of the lot.
func (x *traffic) expect(c *spec.C, l *lot, r receive) {
	slot := len(l.receives)
	x.peer.Process.Do(c, player.PostRecv, kit.Args{"qp": x.peer.ID, "id": uint64(slot), "buf": x.inbox.ID, "off": uint64(slot * slotSize), "len": slotSize}, nil)
	l.receives = append(l.receives, r)
}

func (x *traffic) expectReceives(c *spec.C, want []receive) {
	if len(want) == 0 {
		return
	}
	v := x.peer.Process.Do(c, player.Wait, kit.Args{"n": uint64(len(want)), "timeout": uint64(kit.CompletionTimeout)}, nil).Values
	for i, r := range want {
		of := func(name string) uint64 { return v[fmt.Sprint(name, i)] }
		if int(v["n"]) <= i || of("id") != uint64(i) || of("status") != uint64(verbs.WCSuccess) || of("opcode") != uint64(r.opcode) ||
			of("len") != uint64(r.length) || of("imm") != uint64(r.imm) {
			c.Failf("receive %d of %d: want wr_id %d, %v, byte_len %d, immediate %#x; got %d of them, wr_id %d, status %v, %v, byte_len %d, immediate %#x", i+1,
				len(want), i, spec.Words(r.opcode), r.length, r.imm, v["n"], of("id"), verbs.WCStatus(of("status")), spec.Words(verbs.WCOpcode(of("opcode"))), of("len"), of("imm"))
		}
		if r.data != nil {
			same(c, fmt.Sprintf("what receive %d of the lot has", i+1), x.inbox.Get(c, i*slotSize, r.length), r.data)
		}
	}
}

func (x *traffic) compare(c *spec.C) {
	same(c, "the peer's memory", x.target.Get(c, 0, targetSize), x.model)
}

// same fails the case at the first byte that differs. Equal bytes are not recorded: there are too
// many.
func same(c *spec.C, what string, got, want []byte) {
	for i := range want {
		if got[i] != want[i] {
			c.Failf("%s: byte %d of %d is %#02x, want %#02x", what, i, len(want), got[i], want[i])
		}
	}
}
