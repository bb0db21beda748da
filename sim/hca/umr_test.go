package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// What mlx5_ib asks of a key: the mask of a registration, with the rights that this device's UMR
// changes, and of a revocation.
const (
	enableMask = prm.MKeyMaskKey | prm.MKeyMaskFree | prm.MKeyMaskLen | prm.MKeyMaskPageSize | prm.MKeyMaskStartAddr | prm.MKeyMaskPD |
		prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA | prm.MKeyMaskRelaxedOrderingWrite | prm.MKeyMaskRelaxedOrderingRead
	revokeMask = prm.MKeyMaskFree | prm.MKeyMaskPD
)

// umrBed is a host with a driver's queue for UMRs, a key for all memory, and a free key with room
// for 8 translations.
type umrBed struct {
	*host
	q       *tQP
	cq      *tCQ
	all     uint32 // lkey of physical memory
	key     uint32
	program uint32 // PD
	list    mem.PA
}

func newUMRBed(t testing.TB, budget uint64) *umrBed {
	h := newHost(t, sim.New(sim.Options{MaxEvents: budget}), testParams(), 1)
	b := &umrBed{host: h, cq: h.newCQ(7, 64), list: h.alloc(4096), program: prm.AllocPDOut(h.cmd(prm.NewIn(prm.OpAllocPD, 0))).PD()}
	b.q = h.newUMRQueue(b.cq)
	b.q.startUMR()
	b.all = b.create(func(c prm.MKC) {
		c.SetAccessMode(prm.MKeyModePA)
		c.SetLength64(true)
		c.SetLR(true)
		c.SetLW(true)
	})
	b.key = b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeMTT) })
	return b
}

func freeKey(c prm.MKC, mode uint32) {
	c.SetAccessMode(mode)
	c.SetFree(true)
	c.SetUMREn(true)
	c.SetTranslationsOctwordSize(4)
	c.SetLogPageSize(12)
}

func (b *umrBed) create(edit func(c prm.MKC)) uint32 {
	b.t.Helper()
	in := prm.NewIn(prm.OpCreateMKey, 0)
	c := prm.CreateMKeyIn(in).MKC()
	c.SetPD(b.pd)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(0x33)
	edit(c)
	return prm.MKeyOf(prm.CreateMKeyOut(b.cmd(in)).MKeyIndex(), 0x33)
}

// tUMR is a UMR work request, with its list inline or in memory.
type tUMR struct {
	key     uint32
	flags   uint8
	units   uint16
	off     uint64
	mask    uint64
	mkc     func(c prm.MKC)
	entries []byte
	lkey    uint32 // of the list in memory
	bytes   uint32 // of the data segment
}

// register is a registration of two pages from 0x10800 on.
func (b *umrBed) register(pages ...mem.PA) tUMR {
	entries := make(prm.MTT, 64)
	for i, p := range pages {
		entries.Set(i, uint64(p), 0)
	}
	return tUMR{key: b.key, flags: prm.UMRCheckFree, units: 4, mask: enableMask, entries: entries, lkey: b.all, bytes: 64, mkc: func(c prm.MKC) {
		c.SetLR(true)
		c.SetLW(true)
		c.SetRW(true)
		c.SetPD(b.program)
		c.SetQPN(prm.MKeyQPNAny)
		c.SetMKey70(0x33)
		c.SetStartAddr(0x10800)
		c.SetLen(0x1000)
		c.SetLogPageSize(12)
	}}
}

func (b *umrBed) revoke() tUMR {
	return tUMR{key: b.key, flags: prm.UMRInline, mask: revokeMask, mkc: func(c prm.MKC) { c.SetFree(true); c.SetPD(b.pd); c.SetMKey70(0x33) }}
}

// wqe lays a request out.
func (u *tUMR) wqe(b *umrBed, q *tQP) []byte {
	w := make([]byte, prm.CtrlSegmentSize+prm.UMRCtrlSegmentSize+prm.MKCSize, 1024)
	umr := prm.UMRCtrlSegment(w[prm.CtrlSegmentSize:])
	umr.SetFlags(u.flags)
	umr.SetXLTOctowords(u.units)
	umr.SetXLTOffset(u.off)
	umr.SetMKeyMask(u.mask)
	if u.mkc != nil {
		u.mkc(prm.MKC(w[prm.CtrlSegmentSize+prm.UMRCtrlSegmentSize:]))
	}
	if u.flags&prm.UMRInline != 0 {
		w = append(w, u.entries...)
	} else if u.bytes > 0 {
		b.m.Write(b.list, u.entries)
		w = w[:len(w)+prm.DataSegmentSize]
		prm.DataSegment(w[len(w)-prm.DataSegmentSize:]).Set(u.bytes, u.lkey, uint64(b.list))
	}
	prm.CtrlSegment(w).Set(prm.WQEOpUMR, 0, q.pi, q.n, len(w)/16, prm.CtrlCQUpdate|prm.CtrlSmallFence, u.key)
	return w
}

// post posts a request and rings.
func (b *umrBed) post(q *tQP, u tUMR) {
	w := u.wqe(b, q)
	for i := 0; i < len(w); i += 16 {
		b.m.Write(q.sq+mem.PA((int(q.pi)*64+i)%(tBlocks*64)), w[i:min(i+16, len(w))])
	}
	q.pi += uint16((len(w) + 63) / 64)
	q.record()
	b.d.MMIOWrite(q.reg(), w[:8])
}

// do posts a request on the driver's queue and expects its completion.
func (b *umrBed) do(u tUMR) {
	b.t.Helper()
	b.post(b.q, u)
	run(b.t, b.e, 20*sim.Microsecond)
	b.cq.expect(prm.CQEReq)
}

// refused expects an error, after which it brings the queue back as mlx5_ib does.
func (b *umrBed) refused(what string, u tUMR, want prm.Syndrome) {
	b.t.Helper()
	before := b.context(u.key)
	b.post(b.q, u)
	run(b.t, b.e, 20*sim.Microsecond)
	e := b.cq.poll()
	if e == nil || e.Opcode() != prm.CQEReqErr || e.Syndrome() != want {
		b.t.Errorf("%s: CQE % x, want syndrome %v", what, []byte(e), want)
	}
	if !bytes.Equal(before, b.context(u.key)) {
		b.t.Errorf("%s: the key has changed", what)
	}
	b.cmd(number(prm.Op2RstQP, b.q.n))
	b.q.pi = 0
	b.q.record()
	b.q.startUMR()
}

func (b *umrBed) context(key uint32) []byte {
	in := prm.NewIn(prm.OpQueryMKey, 0)
	prm.QueryMKeyIn(in).SetMKeyIndex(key >> 8)
	out, st := b.try(in)
	if st != prm.StatusOK {
		return nil
	}
	return out[0x10:]
}

// writes has a QP of the program's PD write to va by the key, and reports how that ends.
func (b *umrBed) writes(va uint64, n int) (*tQP, prm.Syndrome) {
	b.t.Helper()
	x, y := b.newQPOn(b.newCQ(7, 64), b.newCQ(7, 64), b.uar, nil), b.newQPOn(b.newCQ(7, 64), b.newCQ(7, 64), b.uar, func(c prm.QPC) { c.SetPD(b.program) })
	x.connect(y, defaults())
	y.connect(x, defaults())
	x.post(wr{op: prm.WQEOpRDMAWrite, raddr: va, rkey: b.key, inline: bytes.Repeat([]byte{0xee}, n)})
	run(b.t, b.e, 50*sim.Microsecond)
	e := x.scq.poll()
	if e == nil {
		b.t.Fatal("no completion")
	}
	if e.Opcode() == prm.CQEReqErr {
		return y, e.Syndrome()
	}
	return y, 0
}

// TestUMRLifeOfAKey: registered, used, revoked, registered for another range, updated in place.
func TestUMRLifeOfAKey(t *testing.T) {
	b := newUMRBed(t, 1<<22)
	pages := []mem.PA{b.alloc(4096), b.alloc(4096), b.alloc(4096)}
	at := func(pa mem.PA) byte {
		var v [1]byte
		b.m.Read(pa, v[:])
		return v[0]
	}
	if _, s := b.writes(0x10800, 8); s != prm.SyndromeRemoteAccess {
		t.Errorf("free key: %v", s)
	}
	b.do(b.register(pages[0], pages[1]))
	if _, s := b.writes(0x10ffc, 8); s != 0 || at(pages[0]+0xfff) != 0xee || at(pages[1]) != 0xee || at(pages[1]+4) != 0 {
		t.Errorf("registered: %v", s)
	}
	b.do(tUMR{key: b.key, flags: prm.UMRCheckNotFree | prm.UMRTranslationOffset, units: 4, entries: b.register(pages[2], pages[1]).entries, lkey: b.all, bytes: 64})
	if _, s := b.writes(0x10800, 4); s != 0 || at(pages[2]+0x800) != 0xee || at(pages[0]+0x800) != 0 {
		t.Errorf("other pages: %v", s)
	}
	b.do(tUMR{key: b.key, flags: prm.UMRCheckNotFree | prm.UMRInline, mask: prm.MKeyMaskRW | prm.MKeyMaskPD, mkc: func(c prm.MKC) { c.SetPD(b.program) }})
	if _, s := b.writes(0x10800, 4); s != prm.SyndromeRemoteAccess {
		t.Errorf("without the right: %v", s)
	}
	b.status(number(prm.OpDeallocPD, b.program), prm.StatusBadResState)
	b.do(b.revoke())
	if _, s := b.writes(0x10800, 4); s != prm.SyndromeRemoteAccess {
		t.Errorf("revoked: %v", s)
	}
	again := b.register(pages[0])
	mkc := again.mkc
	again.mkc = func(c prm.MKC) { mkc(c); c.SetStartAddr(0); c.SetLen(0); c.SetLength64(true); c.SetLogPageSize(13) }
	b.do(again)
	if _, s := b.writes(0x10, 4); s != 0 || at(pages[0]+0x10) != 0xee {
		t.Errorf("pages of 8 KiB: %v", s)
	}
	if c := prm.MKC(b.context(b.key)); c.LogPageSize() != 13 || !c.Length64() || c.Free() || c.PD() != b.program {
		t.Errorf("context % x", []byte(c[:64]))
	}
	b.cmd(number(prm.OpDestroyMKey, b.key>>8))
}

// TestUMRInChunks: a list that comes in several requests enables the key with the last.
func TestUMRInChunks(t *testing.T) {
	b := newUMRBed(t, 1<<22)
	b.key = b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeMTT); c.SetTranslationsOctwordSize(7) }) // room for 8 units
	var pages []mem.PA
	for range 14 {
		pages = append(pages, b.alloc(4096))
	}
	first := b.register(pages[:8]...)
	first.mask = 0
	b.do(first)
	if _, s := b.writes(0x10800, 4); s != prm.SyndromeRemoteAccess {
		t.Errorf("enabled too early: %v", s)
	}
	last := b.register(pages[8:]...)
	last.flags |= prm.UMRTranslationOffset
	last.off = 4
	mkc := last.mkc
	last.mkc = func(c prm.MKC) { mkc(c); c.SetLen(14 * 4096) }
	b.do(last)
	if _, s := b.writes(0x10000+9*4096, 4); s != 0 {
		t.Errorf("page 9: %v", s)
	}
	var v [1]byte
	if b.m.Read(pages[9], v[:]); v[0] != 0xee {
		t.Error("written elsewhere")
	}
}

func TestUMRRefused(t *testing.T) {
	b := newUMRBed(t, 1<<24)
	page := b.alloc(4096)
	bad := func(edit func(u *tUMR)) tUMR {
		u := b.register(page)
		edit(&u)
		return u
	}
	b.refused("no such key", bad(func(u *tUMR) { u.key = 0xfff00 }), prm.SyndromeMWBind)
	b.refused("the key is free", bad(func(u *tUMR) { u.flags = prm.UMRCheckNotFree }), prm.SyndromeMWBind)
	b.refused("another variant", bad(func(u *tUMR) { u.key ^= 1; u.mask &^= prm.MKeyMaskKey }), prm.SyndromeMWBind)
	b.refused("not to be changed", bad(func(u *tUMR) { u.key = b.all }), prm.SyndromeMWBind)
	b.refused("signatures", bad(func(u *tUMR) { u.mask |= prm.MKeyMaskBSFEn }), prm.SyndromeMWBind)
	b.refused("beyond the room", bad(func(u *tUMR) { u.flags |= prm.UMRTranslationOffset; u.off = 1 }), prm.SyndromeMWBind)
	b.refused("far beyond it", bad(func(u *tUMR) { u.flags |= prm.UMRTranslationOffset; u.off = 1<<48 - 1 }), prm.SyndromeMWBind)
	b.refused("too many", bad(func(u *tUMR) { u.units = 8; u.bytes = 128 }), prm.SyndromeMWBind)
	b.refused("not aligned", bad(func(u *tUMR) { u.units = 3; u.bytes = 48 }), prm.SyndromeMWBind)
	b.refused("page too small", bad(func(u *tUMR) { m := u.mkc; u.mkc = func(c prm.MKC) { m(c); c.SetLogPageSize(11) } }), prm.SyndromeMWBind)
	b.refused("shorter than its list", bad(func(u *tUMR) { u.bytes = 63 }), prm.SyndromeLocalLength)
	b.refused("no data segment", bad(func(u *tUMR) { u.bytes = 0 }), prm.SyndromeLocalLength)
	b.refused("the list's key", bad(func(u *tUMR) { u.lkey = b.all ^ 1 }), prm.SyndromeLocalProt)
	b.refused("inline, too short", bad(func(u *tUMR) { u.flags |= prm.UMRInline; u.units = 8 }), prm.SyndromeLocalQPOp)
	b.do(b.register(page))
	b.refused("the key is in use", b.register(page), prm.SyndromeMWBind)
	b.do(b.revoke())
	b.do(b.revoke()) // once more is nothing new
}

// TestUMROrder: a request that fails ends what was posted behind it, and nothing of that takes
// effect.
func TestUMROrder(t *testing.T) {
	b := newUMRBed(t, 1<<22)
	page := b.alloc(4096)
	b.post(b.q, b.register(page))
	b.post(b.q, b.register(page)) // not free any more
	b.post(b.q, b.revoke())
	run(t, b.e, 50*sim.Microsecond)
	b.cq.expect(prm.CQEReq)
	b.cq.expectError(prm.CQEReqErr, prm.SyndromeMWBind)
	b.cq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	if _, s := b.writes(0x10800, 4); s != 0 {
		t.Errorf("the key was revoked by a request that was flushed: %v", s)
	}
}

// TestUMRWaitsForItsList: the completion comes after the read of a long list, that of an inline one
// earlier; the ring wraps on the way.
func TestUMRWaitsForItsList(t *testing.T) {
	b := newUMRBed(t, 1<<22)
	long := uint32(64 << 10)
	b.list = b.alloc(uint64(long))
	big := b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeMTT); c.SetTranslationsOctwordSize(long / 16) })
	took := func(u tUMR) sim.Time {
		start := b.e.Now()
		b.post(b.q, u)
		for b.cq.poll() == nil {
			run(t, b.e, 10*sim.Nanosecond)
			if b.e.Now()-start > sim.Millisecond {
				t.Fatal("no completion")
			}
		}
		return b.e.Now() - start
	}
	for range 30 {
		short := took(b.revoke())
		listed := took(tUMR{key: big, units: uint16(long / 16), entries: make([]byte, long), lkey: b.all, bytes: long})
		if least := sim.Time(long) * 8 * sim.Second / 113_700_000_000; listed < short+least {
			t.Fatalf("%v with a list of %d bytes, %v without", listed, long, short)
		}
	}
	// A reset while a list is read.
	b.post(b.q, tUMR{key: big, units: uint16(long / 16), entries: make([]byte, long), lkey: b.all, bytes: long})
	run(t, b.e, 2*sim.Microsecond)
	b.cmd(number(prm.Op2RstQP, b.q.n))
	b.q.pi = 0
	b.q.record()
	b.q.startUMR()
	if again := took(tUMR{key: big, units: uint16(long / 16), entries: make([]byte, long), lkey: b.all, bytes: long}); again < sim.Time(long)*8*sim.Second/113_700_000_000 {
		t.Errorf("%v after a reset", again)
	}
	run(t, b.e, 50*sim.Microsecond)
	b.cq.expectNone()
}

// TestUMRKSM: a key of mode KSM leads to other keys, which are checked again.
func TestUMRKSM(t *testing.T) {
	b := newUMRBed(t, 1<<22)
	page := b.alloc(4096)
	b.do(b.register(page, page))
	child := b.key
	b.key = b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeKSM) })
	parent := b.register()
	mkc := parent.mkc
	parent.mkc = func(c prm.MKC) { mkc(c); c.SetStartAddr(0); c.SetLen(4 * 4096) }
	e := prm.KLM(parent.entries[16:])
	e.SetMKey(child)
	e.SetVA(0x10800)
	b.do(parent)
	if _, s := b.writes(4096+0x10, 4); s != 0 {
		t.Errorf("entry 1: %v", s)
	}
	var v [1]byte
	if b.m.Read(page+0x810, v[:]); v[0] != 0xee {
		t.Error("written elsewhere")
	}
	for what, va := range map[string]uint64{"an absent entry": 0x10, "beyond the entries": 4 * 4096, "across": 2*4096 - 2} {
		if _, s := b.writes(va, 4); s != prm.SyndromeRemoteAccess {
			t.Errorf("%s: %v", what, s)
		}
	}
	b.key, child = child, b.key
	b.do(b.revoke())
	b.key = child
	if _, s := b.writes(4096+0x10, 4); s != prm.SyndromeRemoteAccess {
		t.Errorf("the child is free: %v", s)
	}
	// A key that leads to itself.
	loop := b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeKSM) })
	parent.key = loop
	e.SetMKey(loop)
	e.SetVA(4096)
	b.do(parent)
	b.key = loop
	if _, s := b.writes(4096, 4); s != prm.SyndromeRemoteAccess {
		t.Errorf("a key under itself: %v", s)
	}
}

// TestFastRegister: a queue of the host's kernel registers memory, a program's does not, and
// neither changes the PD.
func TestFastRegister(t *testing.T) {
	for _, x := range []struct {
		fre  bool
		mask uint64
		want prm.Syndrome
	}{{true, 0, 0}, {false, 0, prm.SyndromeMWBind}, {true, prm.MKeyMaskPD, prm.SyndromeMWBind}} {
		b := newUMRBed(t, 1<<22)
		cq := b.newCQ(7, 64)
		q := b.newQPOn(cq, cq, b.uar, func(c prm.QPC) { c.SetFRE(x.fre) })
		q.connect(b.newQP(b.newCQ(7, 64), b.newCQ(7, 64)), defaults())
		u := b.register(b.alloc(4096))
		u.mask = u.mask&^prm.MKeyMaskPD | x.mask
		b.post(q, u)
		run(t, b.e, 20*sim.Microsecond)
		if x.want == 0 {
			cq.expect(prm.CQEReq)
		} else {
			cq.expectError(prm.CQEReqErr, x.want)
		}
	}
}

// TestFastRegisterGaps: a queue of the host's kernel registers pieces of memory of any lengths, by
// a key whose entries (mode KLM) have lengths of their own; what is behind the entries that the
// range needs is left of requests before.
func TestFastRegisterGaps(t *testing.T) {
	b := newUMRBed(t, 1<<22)
	b.key = b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeKLM) })
	cq, peers := b.newCQ(7, 64), b.newCQ(7, 64)
	q := b.newQPOn(cq, cq, b.uar, func(c prm.QPC) { c.SetFRE(true) })
	peer := b.newQP(peers, peers)
	q.connect(peer, defaults())
	peer.connect(q, defaults())
	one, two := b.alloc(4096), b.alloc(4096)
	register := func() tUMR {
		entries := bytes.Repeat([]byte{0xA5}, 64)
		for i, p := range []struct {
			at mem.PA
			n  uint32
		}{{one + 100, 30}, {two + 7, 5}, {one + 3000, 65}} {
			e := prm.KLM(entries[16*i:])
			e.SetByteCount(p.n)
			e.SetMKey(b.all)
			e.SetVA(uint64(p.at))
		}
		return tUMR{
			key: b.key, flags: prm.UMRCheckFree | prm.UMRInline, units: 4, entries: entries,
			mask: prm.MKeyMaskKey | prm.MKeyMaskFree | prm.MKeyMaskLen | prm.MKeyMaskPageSize | prm.MKeyMaskStartAddr | prm.MKeyMaskEnRInval |
				prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskSmallFence,
			mkc: func(c prm.MKC) {
				c.SetLR(true)
				c.SetLW(true)
				c.SetRW(true)
				c.SetRR(true)
				c.SetEnRInval(true)
				c.SetQPN(prm.MKeyQPNAny)
				c.SetMKey70(0x33)
				c.SetStartAddr(0x10064)
				c.SetLen(100)
			},
		}
	}
	post := func(u tUMR, want prm.Syndrome) {
		t.Helper()
		b.post(q, u)
		run(t, b.e, 20*sim.Microsecond)
		if want == 0 {
			cq.expect(prm.CQEReq)
			return
		}
		cq.expectError(prm.CQEReqErr, want)
	}
	post(register(), 0)
	text := []byte("0123456789abcdefghijklmnopqrstABCDEqrstuvwxyzQRSTUVWXYZ")
	peer.post(wr{op: prm.WQEOpRDMAWrite, raddr: 0x10064 + 2, rkey: b.key, inline: text})
	run(t, b.e, 50*sim.Microsecond)
	peers.expect(prm.CQEReq)
	for _, x := range []struct {
		at   mem.PA
		want string
	}{{one + 102, string(text[:28])}, {two + 7, string(text[28:33])}, {one + 3000, string(text[33:])}} {
		got := make([]byte, len(x.want))
		if b.m.Read(x.at, got); string(got) != x.want {
			t.Errorf("at %#x there is %q, want %q", x.at, got, x.want)
		}
	}
	// The range ends before the entries do.
	peer.post(wr{op: prm.WQEOpRDMAWrite, raddr: 0x10064 + 99, rkey: b.key, inline: []byte("xy")})
	run(t, b.e, 50*sim.Microsecond)
	peers.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)

	// Invalidated, it is of no use; registered again, with a range beyond its entries, up to their
	// end.
	b = newUMRBed(t, 1<<22)
	b.key = b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeKLM) })
	cq, peers = b.newCQ(7, 64), b.newCQ(7, 64)
	q = b.newQPOn(cq, cq, b.uar, func(c prm.QPC) { c.SetFRE(true) })
	one, two = b.alloc(4096), b.alloc(4096)
	q.connect(b.newQP(peers, peers), defaults())
	post(register(), 0)
	post(tUMR{key: b.key, flags: prm.UMRInline, mask: prm.MKeyMaskFree, mkc: func(c prm.MKC) { c.SetFree(true) }}, 0)
	long := register()
	mkc := long.mkc
	long.mkc = func(c prm.MKC) { mkc(c); c.SetLen(1 << 20) }
	prm.KLM(long.entries[48:]).SetByteCount(16)
	post(long, 0)
	k := b.d.keys
	u := mkey.User{PD: b.pd, QPN: q.n}
	if _, r := k.Translate(u, b.key, 0x10064, 100, mkey.RemoteWrite, nil); r != mkey.OK {
		t.Errorf("up to the third entry: %v", r)
	}
	if _, r := k.Translate(u, b.key, 0x10064, 101, mkey.RemoteWrite, nil); r != mkey.NoKey {
		t.Errorf("the fourth entry names no key: %v", r)
	}
	if _, r := k.Translate(u, b.key, 0x10064+116, 1, mkey.RemoteWrite, nil); r != mkey.Absent {
		t.Errorf("behind the entries: %v", r)
	}
	// More than there is room for.
	more := register()
	more.flags, more.units, more.entries = prm.UMRInline, 8, make([]byte, 128)
	post(more, prm.SyndromeMWBind)
}

// FuzzUMR posts requests with arbitrary segments and lists on a driver's queue and on a program's.
func FuzzUMR(f *testing.F) {
	f.Add([]byte{0x20, 0, 0, 4}, []byte{0x40}, uint64(enableMask), uint64(0), uint32(64), true)
	f.Add([]byte{0x90, 0, 0, 4}, []byte{0}, uint64(revokeMask), uint64(3), uint32(0), false)
	f.Fuzz(func(t *testing.T, ctrl, mkc []byte, mask, off uint64, n uint32, driver bool) {
		b := newUMRBed(t, fuzzEvents)
		q := b.q
		if !driver {
			q = b.newQP(b.cq, b.cq)
			q.connect(b.newQP(b.newCQ(7, 64), b.newCQ(7, 64)), defaults())
		}
		u := b.register(b.alloc(4096))
		u.mask, u.off, u.bytes = mask, off, n
		if len(ctrl) >= 4 {
			u.flags, u.units = ctrl[0], uint16(ctrl[2])<<8|uint16(ctrl[3])
		}
		for _, key := range []uint32{b.key, b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeKSM) }), b.create(func(c prm.MKC) { freeKey(c, prm.MKeyModeKLM) }), b.all, b.key} {
			u.key = key
			u.mkc = func(c prm.MKC) { copy(c, mkc) }
			b.post(q, u)
		}
		settle(t, b.e)
		b.writes(off, 4)
		settle(t, b.e)
	})
}

// TestDoorbellsWithoutBlueFlame: the registers of a device without BlueFlame are where its
// capabilities say. mlx5_ib rings the queue for UMRs at the third (fp_bfreg).
func TestDoorbellsWithoutBlueFlame(t *testing.T) {
	for _, size := range []int{0, 128, 256, 512} {
		p := testParams()
		p.BFRegSize = size
		h := newHost(t, sim.New(sim.Options{}), p, 1)
		in := prm.NewIn(prm.OpQueryHCACap, 0)
		prm.CmdIn(in).SetOpMod(prm.CapGeneral<<1 | prm.CapModeCurrent)
		c := prm.HCACap(prm.QueryHCACapOut(h.cmd(in)).Capability())
		if c.BF() != (size > 0) {
			t.Errorf("registers of %d bytes: BlueFlame %t", size, c.BF())
		}
		cq := h.newCQ(7, 64)
		q := h.newUMRQueue(cq)
		q.startUMR()
		for reg := range uint64(prm.BFRegsPerUAR) {
			b := q.put(wr{op: prm.WQEOpNOP})
			h.d.MMIOWrite(uint64(q.uar)*prm.UARPageSize+prm.UARBFOffset+reg<<c.LogBFRegSize(), b[:prm.DoorbellSize])
			run(t, h.e, 20*sim.Microsecond)
			cq.expect(prm.CQEReq)
		}
	}
}
