package mw

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

const both = verbs.AccessRemoteRead | verbs.AccessRemoteWrite

func boundRange(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType1)
	old := w.RKey()
	key := b.bind(c, w, b.bindInfo(64, 64, both))
	c.True("key", key != old && key != b.mem.MR.RKey(), "the bind gave no new key")
	want := b.src.FillRandom(c)[:64]
	b.allowed(c, "write of the whole range", b.write(key, 64, 64))
	c.Equal("bytes", b.mem.Get(c, 64, 64), want)
	b.allowed(c, "read of the last byte", b.read(key, 127, 1))
	b.refused(c, "write of the byte before", b.write(key, 63, 1))
	b.refused(c, "write over the end", b.write(key, 64, 65))
	b.refused(c, "read of the byte behind", b.read(key, 128, 1))
	b.refused(c, "write by the old key", b.write(old, 64, 1))
	next := b.bind(c, w, b.bindInfo(0, 16, both))
	b.refused(c, "write by the key before the rebind", b.write(key, 64, 1))
	b.allowed(c, "write by the key of the rebind", b.write(next, 0, 16))
}

func unbound(c *spec.C) {
	b := open(c)
	for _, typ := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		key := b.alloc(c, typ).RKey()
		b.refused(c, "write", b.write(key, 0, 8))
		b.refused(c, "read", b.read(key, 0, 8))
	}
}

func rebindToNothing(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType1)
	key := b.bind(c, w, b.bindInfo(0, 64, both))
	b.allowed(c, "write while bound", b.write(key, 0, 8))
	none := b.bind(c, w, b.bindInfo(0, 0, 0))
	b.refused(c, "write by the old key", b.write(key, 0, 8))
	b.refused(c, "write by the window's key", b.write(none, 0, 8))
	again := b.bind(c, w, b.bindInfo(0, 64, both))
	b.allowed(c, "write after another bind", b.write(again, 0, 8))
}

// expectBindRefused checks that a bind is refused by the call with an errno of the set, or fails
// with the status.
func (b *windowBed) expectBindRefused(c *spec.C, step string, err error, wc func() verbs.WC, set ...syscall.Errno) {
	if c.ErrnoIn(step, err, append(set, 0)...) == 0 {
		c.Status(step+": completion", wc(), verbs.WCMWBindErr)
	}
	b.reconnect(c)
}

func bindOutsideRegion(c *spec.C) {
	b := open(c)
	for _, i := range []verbs.MWBindInfo{b.bindInfo(-1, 8, both), b.bindInfo(size-7, 8, both), b.bindInfo(0, size+1, both), b.bindInfo(4096, 1, both)} {
		w := b.alloc(c, verbs.MWType1)
		old := w.RKey()
		err := b.B.BindMW(c.T, w.MW, verbs.MWBind{ID: 7, Flags: verbs.SendSignaled, Info: i})
		b.expectBindRefused(c, "bind_mw", err, func() verbs.WC { return kit.PollOne(c, b.B.SendCQ) }, syscall.EINVAL)
		b.refused(c, "write by the window's key", b.write(w.RKey(), 0, 1))
		b.refused(c, "write by its key before", b.write(old, 0, 1))
		w2 := b.alloc(c, verbs.MWType2)
		_, err = b.B.PostSend(c.T, []verbs.SendWR{bindWR(w2, i)})
		b.expectBindRefused(c, "posted bind", err, func() verbs.WC { return kit.PollOne(c, b.B.SendCQ) }, syscall.EINVAL)
	}
}

func otherPD(c *spec.C) {
	b := open(c)
	pd := b.AllocPD(c)
	foreign := b.BufferOn(c, pd, 64, access)
	w := b.alloc(c, verbs.MWType1)
	i := verbs.MWBindInfo{MR: foreign.MR, Addr: foreign.Addr(0), Length: 64, Access: both}
	c.Errno("region of another PD", b.B.BindMW(c.T, w.MW, verbs.MWBind{ID: 1, Info: i}), syscall.EPERM)
	o := kit.Default()
	o.PD = pd
	p := b.Env.Pair(c, o)
	c.NoErr("bind_mw on a QP of another PD", p.B.BindMW(c.T, w.MW, verbs.MWBind{ID: 7, Flags: verbs.SendSignaled, Info: b.bindInfo(0, 64, both)}))
	c.StatusIn("bind on a QP of another PD", kit.PollOne(c, p.B.SendCQ), verbs.WCMWBindErr, verbs.WCLocProtErr)
}

func otherTypes(c *spec.C) {
	e := kit.Open(c)
	for _, typ := range []verbs.MWType{0, 3, 1 << 31} {
		_, err := e.PD.AllocMW(c.T, typ)
		c.ErrnoIn("alloc_mw of no such type", err, syscall.EINVAL, syscall.EOPNOTSUPP)
	}
}

func zeroBased(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType1)
	c.Errno("zero-based window", b.B.BindMW(c.T, w.MW, verbs.MWBind{Info: b.bindInfo(0, 64, both|verbs.AccessZeroBased)}), syscall.EINVAL)
	// Regions of zero-based addresses are an option of devices.
	mem := kit.Map(c, 64)
	zero, err := b.PD.RegMR(c.T, mem.Addr(), 64, access|verbs.AccessZeroBased)
	if c.ErrnoIn("reg_mr of a zero-based region", err, 0, syscall.EOPNOTSUPP, syscall.EINVAL) != 0 {
		return
	}
	kit.DestroyOnce(c, "dereg_mr", zero.Dereg)
	i := verbs.MWBindInfo{MR: zero, Length: 64, Access: both}
	err = b.B.BindMW(c.T, w.MW, verbs.MWBind{ID: 7, Flags: verbs.SendSignaled, Info: i})
	b.expectBindRefused(c, "zero-based region", err, func() verbs.WC { return kit.PollOne(c, b.B.SendCQ) }, syscall.EINVAL)
}

// otherRegions: null regions know no windows.
func otherRegions(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType1)
	null, err := b.PD.AllocNullMR(c.T)
	c.NoErr("alloc_null_mr", err)
	kit.DestroyOnce(c, "dereg_mr of a null region", null.Dereg)
	i := verbs.MWBindInfo{MR: null, Addr: b.mem.Addr(0), Length: 64, Access: both}
	c.Errno("null region", b.B.BindMW(c.T, w.MW, verbs.MWBind{Info: i}), syscall.ENOTSUP)
	if c.Has("dm") {
		m, err := b.Ctx.AllocDM(c.T, verbs.DMAttr{Length: 64})
		c.NoErr("alloc_dm", err)
		kit.DestroyOnce(c, "free_dm", m.Free)
		mr, err := b.PD.RegDMMR(c.T, m, 0, 64, kit.AllAccess|verbs.AccessZeroBased)
		c.NoErr("reg_dm_mr", err)
		kit.DestroyOnce(c, "dereg_mr of device memory", mr.Dereg)
		err = b.B.BindMW(c.T, w.MW, verbs.MWBind{Info: verbs.MWBindInfo{MR: mr, Length: 64, Access: both}})
		c.ErrnoIn("device memory, which is zero-based", err, syscall.ENOTSUP, syscall.EINVAL)
	}
	b.allowed(c, "write by a window on memory", b.write(b.bind(c, w, b.bindInfo(0, 64, both)), 0, 8))
}

func noRegion(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType1)
	c.Errno("an address", b.B.BindMW(c.T, w.MW, verbs.MWBind{Info: verbs.MWBindInfo{Addr: b.mem.Addr(0)}}), syscall.EINVAL)
	c.Errno("a length", b.B.BindMW(c.T, w.MW, verbs.MWBind{Info: verbs.MWBindInfo{Length: 64}}), syscall.EINVAL)
	err := b.B.BindMW(c.T, w.MW, verbs.MWBind{ID: 7, Flags: verbs.SendSignaled})
	if c.Errno("neither", err, 0); err == nil {
		c.Status("unbind", kit.PollOne(c, b.B.SendCQ), verbs.WCSuccess)
	}
}

func regionNotForWindows(c *spec.C) {
	b := open(c)
	plain := b.Buffer(c, 64, kit.AllAccess)
	i := verbs.MWBindInfo{MR: plain.MR, Addr: plain.Addr(0), Length: 64, Access: both}
	poll := func() verbs.WC { return kit.PollOne(c, b.B.SendCQ) }
	if c.Has("mw.t1") {
		err := b.B.BindMW(c.T, b.alloc(c, verbs.MWType1).MW, verbs.MWBind{ID: 7, Flags: verbs.SendSignaled, Info: i})
		b.expectBindRefused(c, "bind_mw", err, poll, syscall.EINVAL, syscall.EPERM)
	}
	if c.Has("mw.t2") {
		_, err := b.B.PostSend(c.T, []verbs.SendWR{bindWR(b.alloc(c, verbs.MWType2), i)})
		b.expectBindRefused(c, "posted bind", err, poll, syscall.EINVAL, syscall.EPERM)
	}
}

// failedBind binds a window that is bound already to memory outside of its region, on a QP
// that nothing else uses.
func failedBind(c *spec.C) {
	b := open(c)
	for _, typ := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		if typ == verbs.MWType1 && !c.Has("mw.t1") || typ == verbs.MWType2 && !c.Has("mw.t2") {
			continue
		}
		step := fmt.Sprintf("type %d: ", typ)
		w := b.alloc(c, typ)
		key := b.bind(c, w, b.bindInfo(0, 64, both))
		q := b.Env.Pair(c, kit.Default()).B
		beyond := b.bindInfo(size-7, 8, both)
		var err error
		if typ == verbs.MWType1 {
			err = q.BindMW(c.T, w.MW, verbs.MWBind{ID: 7, Flags: verbs.SendSignaled, Info: beyond})
		} else {
			_, err = q.PostSend(c.T, []verbs.SendWR{bindWR(w, beyond)})
		}
		if kit.RecordErrno(c, step+"bind", err) == 0 {
			kit.RecordCompletions(c, step+"bind: completion", q.SendCQ, 1)
		}
		c.Observe(step+"state of the QP", q.QueryState(c).String())
		c.Completion(step+"write by the key of the bind before", b.A.PostAndPoll(c, b.write(key, 0, 8)))
		b.reconnect(c)
		w.free(c)
	}
}
