package dv

import (
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// registerMkey adds the cases of memory keys of direct verbs. Those of copies by the device are in
// memcpy.go.
func registerMkey(s *spec.Suite) {
	registerMemcpy(s)
	s.Case("DV-020", listedKey)
	s.Case("DV-021", interleavedKey)
	s.Case("DV-022", regionBelowGone)
}

// roomForEntries is how much inline room a queue pair asks for: entries go inline.
const roomForEntries = 12 * 16

// keyBed is a pair of queue pairs of which the first gives keys layouts.
type keyBed struct {
	*kit.Pair
	x   verbs.DirectQPEx
	ids uint64
}

func newKeyBed(c *spec.C, e *kit.Env) *keyBed {
	o := kit.Default()
	o.Cap.MaxInline = roomForEntries
	o.SendOps = verbs.QPExRDMAWrite | verbs.QPExRDMARead
	o.Direct = &verbs.DirectQPAttr{CompMask: verbs.DirectQPSendOpsFlags, SendOpsFlags: verbs.DirectQPExMRList | verbs.DirectQPExMRInterleaved}
	p := e.Pair(c, o)
	return &keyBed{Pair: p, x: directEx(c, p.A)}
}

// mkey makes a key for so many entries.
func (b *keyBed) mkey(c *spec.C, entries uint16) (verbs.Mkey, func(c *spec.C)) {
	m, err := direct(c, b.Env).CreateMkey(c.T, b.PD, verbs.MkeyIndirect, entries)
	c.NoErr("create_mkey", err)
	c.True("keys", m.LKey() == m.RKey() && m.LKey() != 0, "lkey %#x, rkey %#x", m.LKey(), m.RKey())
	return m, kit.DestroyOnce(c, "destroy_mkey", m.Destroy)
}

// try posts what build builds, with flags.
func (b *keyBed) try(c *spec.C, flags verbs.SendFlags, build func()) error {
	b.ids++
	b.x.WRStart(c.T)
	b.x.SetWR(b.ids, flags)
	build()
	return b.x.WRComplete(c.T)
}

// layOut gives a key a layout, which completes as such.
func (b *keyBed) layOut(c *spec.C, step string, build func()) {
	c.Errno(step, b.try(c, verbs.SendSignaled|verbs.SendInline, build), 0)
	wc := kit.PollOne(c, b.A.SendCQ)
	c.Status(step+": completion", wc, verbs.WCSuccess)
	c.Equal(step+": opcode", wc.Opcode, verbs.WCOpDriver1)
	c.Equal(step+": wr_id", wc.ID, b.ids)
}

func (b *keyBed) list(c *spec.C, m verbs.Mkey, access verbs.AccessFlags, sges ...verbs.SGE) func() {
	return func() { b.x.WRMRList(c.T, m, access, sges) }
}

// remote is a request of the other end for n bytes at an address of a key.
func remote(op verbs.WROpcode, m verbs.Mkey, addr uint64, sge verbs.SGE) verbs.SendWR {
	return verbs.SendWR{ID: 1, Opcode: op, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{sge}, RemoteAddr: addr, RKey: m.RKey()}
}

// refusedRemotely has the other end ask for what a key does not give. Neither queue pair is of use
// after it.
func refusedRemotely(c *spec.C, b *keyBed, step string, wr verbs.SendWR) {
	c.StatusIn(step, b.B.PostAndPoll(c, wr), verbs.WCRemAccessErr, verbs.WCRemOpErr)
}

func listedKey(c *spec.C) {
	e := kit.Open(c)
	b := newKeyBed(c, e)
	one, two, far := b.Buffer(c, 3000, kit.AllAccess), b.Buffer(c, 9001, kit.AllAccess), b.Buffer(c, 6000, kit.AllAccess)
	list := []verbs.SGE{two.SGE(5, 4097), one.SGE(0, 1), two.SGE(8000, 1001), one.SGE(100, 777)}
	const n = 4097 + 1 + 1001 + 777
	m, destroy := b.mkey(c, 5)
	c.Errno("a layout that is not inline", b.try(c, verbs.SendSignaled, b.list(c, m, kit.AllAccess, list...)), syscall.EOPNOTSUPP)
	c.Errno("more entries than the key has", b.try(c, verbs.SendSignaled|verbs.SendInline,
		b.list(c, m, kit.AllAccess, slices.Repeat(list[:1], 9)...)), syscall.ENOMEM)
	c.Errno("a right that is not memory's", b.try(c, verbs.SendSignaled|verbs.SendInline, b.list(c, m, verbs.AccessMWBind, list...)), syscall.EINVAL)
	first, second := one.FillRandom(c), two.FillRandom(c)
	whole := func() []byte { return slices.Concat(second[5:4102], first[:1], second[8000:9001], first[100:877]) }
	b.layOut(c, "list", b.list(c, m, kit.AllAccess, list...))

	c.Status("READ of all", b.B.PostAndPoll(c, remote(verbs.WRRDMARead, m, 0, far.SGE(0, n))), verbs.WCSuccess)
	c.Equal("bytes read", far.Get(c, 0, n), whole())
	c.Status("READ over the seams", b.B.PostAndPoll(c, remote(verbs.WRRDMARead, m, 4090, far.SGE(0, 1100))), verbs.WCSuccess)
	c.Equal("bytes over the seams", far.Get(c, 0, 1100), whole()[4090:5190])
	sent := far.FillRandom(c)
	c.Status("WRITE over the seams", b.B.PostAndPoll(c, remote(verbs.WRRDMAWrite, m, 4000, far.SGE(0, 1500))), verbs.WCSuccess)
	copy(second[4005:4102], sent)
	first[0] = sent[97]
	copy(second[8000:9001], sent[98:1099])
	copy(first[100:501], sent[1099:1500])
	one.ExpectContents(c, "the first region after the WRITE", first)
	two.ExpectContents(c, "the second region after the WRITE", second)
	c.Status("gather by the key", b.A.PostAndPoll(c, kit.Write(9, far, 0, verbs.SGE{Addr: 4096, Length: 900, LKey: m.LKey()})), verbs.WCSuccess)
	c.Equal("bytes gathered", far.Get(c, 0, 900), whole()[4096:4996])

	b.layOut(c, "another list", b.list(c, m, verbs.AccessRemoteRead, one.SGE(10, 50)))
	c.Status("READ of the new list", b.B.PostAndPoll(c, remote(verbs.WRRDMARead, m, 0, far.SGE(0, 50))), verbs.WCSuccess)
	c.Equal("bytes of the new list", far.Get(c, 0, 50), first[10:60])
	refusedRemotely(c, b, "READ of one byte more", remote(verbs.WRRDMARead, m, 0, far.SGE(0, 51)))

	b = newKeyBed(c, e)
	b.layOut(c, "a list for reading", b.list(c, m, verbs.AccessRemoteRead, one.SGE(0, 50)))
	refusedRemotely(c, b, "WRITE without the right", remote(verbs.WRRDMAWrite, m, 0, far.SGE(0, 8)))
	b = newKeyBed(c, e)
	b.layOut(c, "a list once more", b.list(c, m, kit.AllAccess, one.SGE(0, 50)))
	c.Status("gather of one byte more", b.A.PostAndPoll(c, kit.Write(9, far, 0, verbs.SGE{Addr: 0, Length: 51, LKey: m.LKey()})), verbs.WCLocProtErr)
	one.ExpectContents(c, "the first region in the end", first)

	readable := e.Buffer(c, 64, verbs.AccessRemoteRead)
	was := readable.FillRandom(c)
	overOthers(c, e, m, "a region that may not be written", readable.All(), far)
	other, err := e.Ctx.AllocPD(c.T)
	c.NoErr("alloc_pd", err)
	c.Defer(func() { c.NoErr("dealloc_pd", other.Dealloc(c.T)) })
	foreign := e.BufferOn(c, other, 64, kit.AllAccess)
	theirs := foreign.FillRandom(c)
	overOthers(c, e, m, "a region of another PD", foreign.All(), far)
	readable.ExpectContents(c, "the region that may not be written", was)
	foreign.ExpectContents(c, "the region of the other PD", theirs)
	destroy(c)
}

// overOthers lays a key over memory that it may not write to: the layout fails, or the WRITE does.
func overOthers(c *spec.C, e *kit.Env, m verbs.Mkey, step string, piece verbs.SGE, far *kit.Buffer) {
	b := newKeyBed(c, e)
	c.Errno("a key over "+step, b.try(c, verbs.SendSignaled|verbs.SendInline, b.list(c, m, kit.AllAccess, piece)), 0)
	wc := kit.PollOne(c, b.A.SendCQ)
	c.StatusIn("layout over "+step, wc, verbs.WCSuccess, verbs.WCMWBindErr, verbs.WCLocProtErr)
	if wc.Status == verbs.WCSuccess {
		refusedRemotely(c, b, "WRITE to "+step, remote(verbs.WRRDMAWrite, m, 0, far.SGE(0, 8)))
	}
}

func interleavedKey(c *spec.C) {
	e := kit.Open(c)
	b := newKeyBed(c, e)
	one, two, far := b.Buffer(c, 8192, kit.AllAccess), b.Buffer(c, 4096, kit.AllAccess), b.Buffer(c, 8192, kit.AllAccess)
	first, second := one.FillRandom(c), two.FillRandom(c)
	const rounds = 7
	pieces := []verbs.MRInterleaved{
		{Addr: one.Addr(3), Bytes: 1000, Skip: 24, LKey: one.MR.LKey()},
		{Addr: two.Addr(11), Bytes: 13, Skip: 0, LKey: two.MR.LKey()},
		{Addr: two.Addr(2000), Bytes: 100, Skip: 156, LKey: two.MR.LKey()},
	}
	const round = 1000 + 13 + 100
	var want []byte
	var at []*byte
	for r := range rounds {
		for _, s := range []struct {
			of     []byte
			off, n int
		}{{first, 3 + r*1024, 1000}, {second, 11 + r*13, 13}, {second, 2000 + r*256, 100}} {
			want = append(want, s.of[s.off:s.off+s.n]...)
			for i := range s.n {
				at = append(at, &s.of[s.off+i])
			}
		}
	}
	m, _ := b.mkey(c, 4)
	layout := func(pieces []verbs.MRInterleaved, count uint32) func() {
		return func() { b.x.WRMRInterleaved(c.T, m, kit.AllAccess, count, pieces) }
	}
	b.layOut(c, "interleaved layout", layout(pieces, rounds))
	c.Status("READ of all", b.B.PostAndPoll(c, remote(verbs.WRRDMARead, m, 0, far.SGE(0, rounds*round))), verbs.WCSuccess)
	c.Equal("bytes gathered", far.Get(c, 0, rounds*round), want)
	const from, n = 2*round + 990, 1500
	sent := far.FillRandom(c)
	c.Status("WRITE over several rounds", b.B.PostAndPoll(c, remote(verbs.WRRDMAWrite, m, from, far.SGE(0, n))), verbs.WCSuccess)
	for i := range n {
		*at[from+i] = sent[i]
	}
	one.ExpectContents(c, "the first region after the WRITE", first)
	two.ExpectContents(c, "the second region after the WRITE", second)
	c.Status("the last byte", b.B.PostAndPoll(c, remote(verbs.WRRDMARead, m, rounds*round-1, far.SGE(0, 1))), verbs.WCSuccess)
	c.Equal("the last byte of the last round", far.Get(c, 0, 1)[0], *at[rounds*round-1])
	refusedRemotely(c, b, "READ of one byte more", remote(verbs.WRRDMARead, m, rounds*round-1, far.SGE(0, 2)))
	b = newKeyBed(c, e)
	b.layOut(c, "two rounds", layout(pieces, 2))
	refusedRemotely(c, b, "READ of a third round", remote(verbs.WRRDMARead, m, 2*round, far.SGE(0, 1)))
	b = newKeyBed(c, e)
	c.Errno("more pieces than the key has", b.try(c, verbs.SendSignaled|verbs.SendInline, layout(slices.Repeat(pieces, 3), 2)), syscall.ENOMEM)
}

// regionBelowGone deregisters a region to which a key leads: neither the call nor the key knows of
// the other, but the key's bytes are gone.
func regionBelowGone(c *spec.C) {
	e := kit.Open(c)
	b := newKeyBed(c, e)
	stays, goes, far := b.Buffer(c, 4096, kit.AllAccess), b.Buffer(c, 4096, kit.AllAccess), b.Buffer(c, 8192, kit.AllAccess)
	want := stays.FillRandom(c)
	left := goes.FillRandom(c)
	m, destroy := b.mkey(c, 2)
	b.layOut(c, "list", b.list(c, m, kit.AllAccess, stays.All(), goes.All()))
	c.Status("READ of all", b.B.PostAndPoll(c, remote(verbs.WRRDMARead, m, 0, far.All())), verbs.WCSuccess)
	goes.Dereg(c)
	far.FillByte(c, 0)
	c.Status("READ of the region that stays", b.B.PostAndPoll(c, remote(verbs.WRRDMARead, m, 0, far.SGE(0, 4096))), verbs.WCSuccess)
	c.Equal("bytes of the region that stays", far.Get(c, 0, 4096), want)
	refusedRemotely(c, b, "WRITE to the region that is gone", remote(verbs.WRRDMAWrite, m, 4096, far.SGE(0, 64)))
	goes.ExpectContents(c, "memory of the region that is gone", left)
	destroy(c)
	b = newKeyBed(c, e)
	refusedRemotely(c, b, "READ by the key that is gone", remote(verbs.WRRDMARead, m, 0, far.SGE(0, 1)))
}
