// Package mw holds the cases of area MW: memory windows.
package mw

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("MW-001", boundRange)
	s.Case("MW-002", unbound)
	s.Case("MW-003", rebindToNothing)
	s.Case("MW-004", bindOutsideRegion)
	s.Case("MW-005", regionNotForWindows)
	s.Case("MW-006", otherPD)
	s.Case("MW-007", bindMWOfType2)
	s.Case("MW-008", otherTypes)
	s.Case("MW-009", zeroBased)
	s.Case("MW-010", otherRegions)
	s.Case("MW-011", givenKey)
	s.Case("MW-012", incRKey)
	s.Case("MW-013", localInvalidate)
	s.Case("MW-014", remoteInvalidate)
	s.Case("MW-015", deallocatedWindow)
	s.Case("MW-016", deregUnder)
	s.Case("MW-017", lessThanRegion)
	s.Case("MW-018", bindThenSend)
	s.Case("MW-019", datagram)
	s.Case("MW-020", failedBind)
	s.Case("MW-021", noRegion)
	s.Case("MW-022", foreignInvalidate)
	s.Case("MW-023", wrongInvalidate)
	s.Case("MW-024", boundTwice)
	s.Case("MW-025", wrongRegion)
	s.Case("MW-026", wrongLocalInvalidate)
	s.Case("MW-027", invalidatedRegion)
	s.Case("MW-028", changesByHand)
}

const (
	size   = 256
	access = kit.AllAccess | verbs.AccessMWBind
)

// windowBed is a pair in which A accesses B's memory through windows that B binds.
type windowBed struct {
	*kit.Pair
	mem *kit.Buffer // of B: what windows are bound to
	src *kit.Buffer
}

func open(c *spec.C) *windowBed {
	p := kit.NewPair(c, kit.Default())
	return &windowBed{p, p.Buffer(c, size, access), p.Buffer(c, size, kit.AllAccess)}
}

// window is a memory window.
type window struct {
	verbs.MW
	free func(c *spec.C)
}

func (b *windowBed) alloc(c *spec.C, typ verbs.MWType) *window {
	w, err := b.PD.AllocMW(c.T, typ)
	c.NoErr("alloc_mw", err)
	return &window{w, kit.DestroyOnce(c, "dealloc_mw", w.Dealloc)}
}

// bindInfo describes n bytes of the memory from off.
func (b *windowBed) bindInfo(off, n int, a verbs.AccessFlags) verbs.MWBindInfo {
	return verbs.MWBindInfo{MR: b.mem.MR, Addr: b.mem.Addr(off), Length: uint64(n), Access: a}
}

// bind binds a window of either type on B, which must succeed, and returns its key.
func (b *windowBed) bind(c *spec.C, w *window, i verbs.MWBindInfo) uint32 {
	wc := b.tryBind(c, w, i)
	c.Status("bind", wc, verbs.WCSuccess)
	c.Equal("opcode", wc.Opcode, verbs.WCOpBindMW)
	return w.RKey()
}

func (b *windowBed) tryBind(c *spec.C, w *window, i verbs.MWBindInfo) verbs.WC {
	if w.Type() == verbs.MWType1 {
		c.NoErr("bind_mw", b.B.BindMW(c.T, w.MW, verbs.MWBind{ID: 7, Flags: verbs.SendSignaled, Info: i}))
	} else {
		wr := bindWR(w, i)
		b.B.Post(c, wr)
		w.SetRKey(wr.Bind.RKey)
	}
	wc := kit.PollOne(c, b.B.SendCQ)
	c.Equal("wr_id", wc.ID, uint64(7))
	return wc
}

// bindWR is a request that binds a window of type 2 under its next key.
func bindWR(w *window, i verbs.MWBindInfo) verbs.SendWR {
	return verbs.SendWR{ID: 7, Opcode: verbs.WRBindMW, Flags: verbs.SendSignaled,
		Bind: &verbs.MWBindWR{MW: w.MW, RKey: verbs.IncRKey(w.RKey()), Info: i}}
}

func (b *windowBed) write(key uint32, off, n int) verbs.SendWR {
	wr := kit.Write(1, b.mem, off, b.src.SGE(0, n))
	wr.RKey = key
	return wr
}

func (b *windowBed) read(key uint32, off, n int) verbs.SendWR {
	wr := kit.Read(1, b.mem, off, b.src.SGE(0, n))
	wr.RKey = key
	return wr
}

// allowed makes an access that must succeed, refused one that must not; the pair is
// connected anew after it.
func (b *windowBed) allowed(c *spec.C, step string, wr verbs.SendWR) {
	c.Status(step, b.A.PostAndPoll(c, wr), verbs.WCSuccess)
}

func (b *windowBed) refused(c *spec.C, step string, wr verbs.SendWR) {
	c.Status(step, b.A.PostAndPoll(c, wr), verbs.WCRemAccessErr)
	b.reconnect(c)
}

func (b *windowBed) reconnect(c *spec.C) {
	b.A.ModifyState(c, verbs.QPSReset)
	b.B.ModifyState(c, verbs.QPSReset)
	b.Connect(c)
}
