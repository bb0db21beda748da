package mw

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func bindMWOfType2(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType2)
	c.Errno("bind_mw", b.B.BindMW(c.T, w.MW, verbs.MWBind{Info: b.bindInfo(0, 64, both)}), syscall.EINVAL)
}

// incRKey looks at the rule, and then goes once round with the keys of a window, where
// there are windows, else with those of a region.
func incRKey(c *spec.C) {
	b := open(c)
	for _, x := range []uint32{0, 0x12345678, 0xffffff00, 0xfffffffe, 0x000000ff, 0x123456ff, 0xffffffff, b.mem.MR.RKey()} {
		got := verbs.IncRKey(x)
		c.Equal("upper 24 bits stay", got>>8 == x>>8, true)
		c.Equal("low byte counts up", got&0xff == (x&0xff+1)%256, true)
	}
	if !c.Has("mw.t2") {
		return
	}
	w := b.alloc(c, verbs.MWType2)
	first := w.RKey()
	for range 256 {
		key := b.bind(c, w, b.bindInfo(0, 64, both))
		b.allowed(c, "write", b.write(key, 0, 8))
		c.Status("local invalidate", b.invalidate(c, key), verbs.WCSuccess)
	}
	c.Equal("the key after 256 binds is the first", w.RKey() == first, true)
}

func givenKey(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType2)
	old := w.RKey()
	key := b.bind(c, w, b.bindInfo(0, 64, both))
	c.Equal("key", key == verbs.IncRKey(old), true)
	b.allowed(c, "write by the key that was given", b.write(key, 0, 64))
	b.refused(c, "write by the key before", b.write(old, 0, 1))
	b.refused(c, "write over the end", b.write(key, 0, 65))
	// Another QP of the PD: a window of type 2 is the QP's that bound it.
	p := b.Env.Pair(c, kit.Default())
	c.Status("write through another QP", p.A.PostAndPoll(c, b.write(key, 0, 8)), verbs.WCRemAccessErr)
}

// invalidate ends a window of type 2 on B.
func (b *windowBed) invalidate(c *spec.C, key uint32) verbs.WC {
	return b.B.PostAndPoll(c, verbs.SendWR{ID: 9, Opcode: verbs.WRLocalInv, Flags: verbs.SendSignaled, Imm: key})
}

func localInvalidate(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType2)
	for range 3 {
		key := b.bind(c, w, b.bindInfo(0, 64, both))
		b.allowed(c, "write while bound", b.write(key, 0, 64))
		wc := b.invalidate(c, key)
		c.Status("local invalidate", wc, verbs.WCSuccess)
		c.Equal("opcode", wc.Opcode, verbs.WCOpLocalInv)
		c.Equal("wr_id", wc.ID, uint64(9))
		b.refused(c, "write after it", b.write(key, 0, 1))
	}
}

func remoteInvalidate(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType2)
	for i := range uint64(3) {
		key := b.bind(c, w, b.bindInfo(0, 64, both))
		b.allowed(c, "write while bound", b.write(key, 0, 64))
		b.B.RecvInto(c, i, b.mem.SGE(128, 8))
		wr := kit.Send(1, b.src.SGE(0, 8))
		wr.Opcode, wr.Imm = verbs.WRSendInv, key
		b.allowed(c, "send with invalidate", wr)
		wc := kit.ExpectSuccess(c, b.B.RecvCQ, 1)[0]
		c.True("invalidated key", wc.Imm == key && wc.Flags&verbs.WCWithInv != 0, "want key %#x and WITH_INV, got %#x and %s", key, wc.Imm, spec.Words(wc.Flags))
		b.refused(c, "write after it", b.write(key, 0, 1))
	}
}

func deallocatedWindow(c *spec.C) {
	b := open(c)
	for _, typ := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		w := b.alloc(c, typ)
		key := b.bind(c, w, b.bindInfo(0, 64, both))
		b.allowed(c, "write while bound", b.write(key, 0, 64))
		w.free(c)
		b.refused(c, "write after the window is freed", b.write(key, 0, 1))
	}
}

func deregUnder(c *spec.C) {
	b := open(c)
	for _, typ := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		w := b.alloc(c, typ)
		key := b.bind(c, w, b.bindInfo(0, 64, both))
		c.ErrnoIn("dereg_mr", b.mem.MR.Dereg(c.T), syscall.EBUSY, syscall.EINVAL)
		b.allowed(c, "write after it", b.write(key, 0, 64))
		w.free(c)
	}
	b.mem.Dereg(c)
}

func lessThanRegion(c *spec.C) {
	b := open(c)
	for _, typ := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		w := b.alloc(c, typ)
		key := b.bind(c, w, b.bindInfo(0, 64, verbs.AccessRemoteWrite))
		b.allowed(c, "write", b.write(key, 0, 8))
		b.refused(c, "read", b.read(key, 0, 8))
		w = b.alloc(c, typ)
		key = b.bind(c, w, b.bindInfo(0, 64, verbs.AccessRemoteRead))
		b.allowed(c, "read", b.read(key, 0, 8))
		b.refused(c, "write", b.write(key, 0, 8))
		b.allowed(c, "read by the region's own key", b.read(b.mem.MR.RKey(), 0, 8))
	}
}

func bindThenSend(c *spec.C) {
	b := open(c)
	for i, typ := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		w := b.alloc(c, typ)
		b.A.RecvInto(c, uint64(i), b.src.SGE(128, 8))
		part := b.bindInfo(0, 64, both)
		if typ == verbs.MWType1 {
			c.NoErr("bind_mw", b.B.BindMW(c.T, w.MW, verbs.MWBind{ID: 7, Flags: verbs.SendSignaled, Info: part}))
			b.mem.SetWord(c, 128, uint64(w.RKey()))
			b.B.Post(c, kit.Send(8, b.mem.SGE(128, 8)))
		} else {
			wr := bindWR(w, part)
			b.mem.SetWord(c, 128, uint64(wr.Bind.RKey))
			b.B.Post(c, wr, kit.Send(8, b.mem.SGE(128, 8)))
		}
		kit.ExpectSuccess(c, b.A.RecvCQ, 1)
		key := uint32(b.src.Word(c, 128))
		b.allowed(c, "write by the key that came", b.write(key, 0, 64))
		wc := kit.ExpectSuccess(c, b.B.SendCQ, 2)
		c.Equal("order of completions", []uint64{wc[0].ID, wc[1].ID}, []uint64{7, 8})
	}
}

func datagram(c *spec.C) {
	b := open(c)
	o := kit.Default()
	o.Type = verbs.QPTUD
	q := b.CreateQP(c, o)
	q.BringUp(c, kit.Peer{}, verbs.QPSRTS)
	w := b.alloc(c, verbs.MWType1)
	c.ErrnoIn("bind_mw on UD", q.BindMW(c.T, w.MW, verbs.MWBind{Info: b.bindInfo(0, 64, both)}), syscall.EINVAL, syscall.EOPNOTSUPP)
	w2 := b.alloc(c, verbs.MWType2)
	bad, err := q.PostSend(c.T, []verbs.SendWR{bindWR(w2, b.bindInfo(0, 64, both))})
	c.ErrnoIn("posted bind on UD", err, syscall.EINVAL, syscall.EOPNOTSUPP)
	c.Equal("bad_wr", bad, 0)
}
