package mw

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// invalidating is a SEND that invalidates a key at the other end.
func (b *windowBed) invalidating(key uint32) verbs.SendWR {
	wr := kit.Send(1, b.src.SGE(0, 8))
	wr.Opcode, wr.Imm = verbs.WRSendInv, key
	return wr
}

// failed says that a request did not succeed; how it fails is for others to say.
func failed(c *spec.C, step string, wc verbs.WC) {
	c.True(step, wc.Status != verbs.WCSuccess, "it succeeds")
}

// foreignInvalidate tries to end a window of type 2 through another QP of the PD, from either
// end: the window is the QP's that bound it.
func foreignInvalidate(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType2)
	key := b.bind(c, w, b.bindInfo(0, 64, both))

	p := b.Env.Pair(c, kit.Default())
	p.B.RecvInto(c, 1, b.mem.SGE(128, 8))
	failed(c, "send through another QP that invalidates the window", p.A.PostAndPoll(c, b.invalidating(key)))
	b.allowed(c, "write after it", b.write(key, 0, 64))

	p = b.Env.Pair(c, kit.Default())
	failed(c, "local invalidate on another QP", p.B.PostAndPoll(c, verbs.SendWR{ID: 9, Opcode: verbs.WRLocalInv, Flags: verbs.SendSignaled, Imm: key}))
	b.allowed(c, "write after it", b.write(key, 0, 64))
}

// wrongInvalidate has SENDs invalidate what they may not: a window that is not bound any
// more, and a region.
func wrongInvalidate(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType2)
	key := b.bind(c, w, b.bindInfo(0, 64, both))
	c.Status("local invalidate", b.invalidate(c, key), verbs.WCSuccess)
	b.B.RecvInto(c, 1, b.mem.SGE(128, 8))
	failed(c, "send that invalidates it again", b.A.PostAndPoll(c, b.invalidating(key)))
	b.reconnect(c)

	b.B.RecvInto(c, 1, b.mem.SGE(128, 8))
	failed(c, "send that invalidates a region", b.A.PostAndPoll(c, b.invalidating(b.mem.MR.RKey())))
	b.reconnect(c)
	b.allowed(c, "write by the region's key", b.write(b.mem.MR.RKey(), 0, 8))
}

// boundTwice binds a window of type 2 that is bound.
func boundTwice(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType2)
	key := b.bind(c, w, b.bindInfo(0, 64, both))
	failed(c, "bind of a bound window", b.tryBind(c, w, b.bindInfo(64, 64, both)))
	b.reconnect(c)
	b.refused(c, "write by the key of the second bind", b.write(verbs.IncRKey(key), 64, 8))
}

// wrongRegion binds windows of type 2 to regions that they may not cover: of another PD, and
// one that the device may not write.
func wrongRegion(c *spec.C) {
	b := open(c)
	pd, err := b.Ctx.AllocPD(c.T)
	kit.Must(c, "alloc_pd", err)
	c.Defer(func() { kit.Must(c, "dealloc_pd", pd.Dealloc(c.T)) })
	for _, tc := range []struct {
		step   string
		pd     verbs.PD
		access verbs.AccessFlags
		ask    verbs.AccessFlags
	}{
		{"a region of another PD", pd, access, verbs.AccessRemoteRead},
		{"remote write over a region without local write", b.PD, verbs.AccessRemoteRead | verbs.AccessMWBind, verbs.AccessRemoteWrite},
	} {
		mr, err := tc.pd.RegMR(c.T, b.mem.Addr(0), size, tc.access)
		kit.Must(c, "reg_mr", err)
		w := b.alloc(c, verbs.MWType2)
		wr := bindWR(w, verbs.MWBindInfo{MR: mr, Addr: b.mem.Addr(0), Length: 64, Access: tc.ask})
		if _, err := b.B.PostSend(c.T, []verbs.SendWR{wr}); err == nil {
			failed(c, tc.step, kit.PollOne(c, b.B.SendCQ))
		}
		b.reconnect(c)
		w.free(c)
		kit.Must(c, "dereg_mr", mr.Dereg(c.T))
	}
}

// wrongLocalInvalidate posts local invalidations of keys that they may not change: one that names
// nothing, and that of memory on the device.
func wrongLocalInvalidate(c *spec.C) {
	b := open(c)
	c.Status("local invalidate of a key of nothing", b.invalidate(c, 0x00caf501), verbs.WCMWBindErr)
	if !c.Has("dm") {
		return
	}
	b.reconnect(c)
	dm, err := b.Ctx.AllocDM(c.T, verbs.DMAttr{Length: 64})
	kit.Must(c, "alloc_dm", err)
	kit.DestroyOnce(c, "free_dm", dm.Free)
	mr, err := b.PD.RegDMMR(c.T, dm, 0, 64, kit.AllAccess|verbs.AccessZeroBased)
	kit.Must(c, "reg_dm_mr", err)
	kit.DestroyOnce(c, "dereg_mr", mr.Dereg)
	c.Status("local invalidate of device memory", b.invalidate(c, mr.RKey()), verbs.WCMWBindErr)
	b.reconnect(c)
	wr := b.write(mr.RKey(), 0, 8)
	wr.RemoteAddr = 0
	b.allowed(c, "write to it", wr)
}

// invalidatedRegion posts a local invalidation of the key of a region with a window on it. A device
// may refuse that, or carry it out: then neither leads to the memory any more.
func invalidatedRegion(c *spec.C) {
	b := open(c)
	w := b.alloc(c, verbs.MWType2)
	key := b.bind(c, w, b.bindInfo(0, 64, both))
	gone := c.StatusIn("local invalidate of a region", b.invalidate(c, b.mem.MR.RKey()), verbs.WCSuccess, verbs.WCMWBindErr, verbs.WCLocQPOpErr) == verbs.WCSuccess
	if !gone {
		b.reconnect(c)
		b.allowed(c, "write by the window", b.write(key, 0, 8))
		return
	}
	for _, old := range []uint32{b.mem.MR.RKey(), b.mem.MR.RKey() &^ 0xff} { // libmlx5 has the variant byte become 0
		b.refused(c, "write by the region's key", b.write(old, 0, 8))
	}
	b.refused(c, "write by the window", b.write(key, 0, 8))
	failed(c, "bind to the region", b.tryBind(c, b.alloc(c, verbs.MWType2), b.bindInfo(0, 64, both)))
}
