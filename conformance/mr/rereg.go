package mr

import (
	"errors"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// writeTo is a write of 8 bytes to an address by the key that a region has now.
func writeTo(src *kit.Buffer, addr uint64, mr verbs.MR) verbs.SendWR {
	return verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{src.SGE(0, 8)},
		RemoteAddr: addr, RKey: mr.RKey()}
}

// expectReregError checks that rereg_mr returns the given code and errno.
func expectReregError(c *spec.C, step string, err error, code int, want syscall.Errno) {
	var r *verbs.ReregError
	c.Errno(step, err, want)
	c.Equal(step+": result", errors.As(err, &r) && r.Code == code, true)
}

func reregTranslation(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, mem := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 4096, kit.AllAccess)
	other := kit.Map(c, 3*4096)
	want := src.FillRandom(c)[:8]
	lkey, rkey := mem.MR.LKey(), mem.MR.RKey()
	c.Errno("rereg_mr", mem.MR.Rereg(c.T, verbs.ReregTranslation, nil, other.Addr()+100, 8192, 0), 0)
	// mlx5_ib (can_use_umr_rereg_pas) keeps the keys of a region whose memory key has room for the
	// new pages: 6.12 asks how much the key was made for, 7.2 how much was registered.
	c.ObservePlatform("keys stay", lkey == mem.MR.LKey() && rkey == mem.MR.RKey())
	c.Equal("length", mem.MR.Length(), uint64(8192))
	c.Status("write to the new range", p.A.PostAndPoll(c, writeTo(src, other.Addr()+100+8184, mem.MR)), verbs.WCSuccess)
	got := make([]byte, 8)
	_, err := other.ReadAt(c.T, got, 100+8184)
	c.NoErr("read memory", err)
	c.Equal("bytes", got, want)
	own := verbs.SGE{Addr: other.Addr() + 100, Length: 8, LKey: mem.MR.LKey()}
	c.Status("local access by the key", p.A.PostAndPoll(c, kit.Write(2, src, 0, own)), verbs.WCSuccess)
	c.Status("write to the old range", p.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)), verbs.WCRemAccessErr)
	reconnect(c, p)
	wr := writeTo(src, mem.Addr(0), mem.MR)
	wr.RKey = rkey
	c.Status("write to the old range by the old key", p.A.PostAndPoll(c, wr), verbs.WCRemAccessErr)
}

func reregPD(c *spec.C) {
	e := kit.Open(c)
	pd := e.AllocPD(c)
	o := kit.Default()
	o.PD = pd
	old, fresh := e.Pair(c, kit.Default()), e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	src, far := e.Buffer(c, 64, kit.AllAccess), e.BufferOn(c, pd, 64, kit.AllAccess)
	c.Status("write through the first PD", old.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)), verbs.WCSuccess)
	key := mem.MR.RKey()
	c.Errno("rereg_mr", mem.MR.Rereg(c.T, verbs.ReregPD, pd, 0, 0, 0), 0)
	c.Observe("keys stay", mem.MR.RKey() == key)
	c.Status("write through the new PD", fresh.A.PostAndPoll(c, writeTo(far, mem.Addr(0), mem.MR)), verbs.WCSuccess)
	c.Status("write through the first PD", old.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)), verbs.WCRemAccessErr)
	c.Errno("dealloc_pd of the new PD", pd.Dealloc(c.T), syscall.EBUSY)
}

func reregAccess(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, mem := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	c.Status("write", p.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)), verbs.WCSuccess)
	key := mem.MR.RKey()
	c.Errno("rereg_mr", mem.MR.Rereg(c.T, verbs.ReregAccess, nil, 0, 0, verbs.AccessLocalWrite|verbs.AccessRemoteRead), 0)
	c.Observe("keys stay", mem.MR.RKey() == key)
	c.Status("read", p.A.PostAndPoll(c, kit.Read(1, mem, 0, src.SGE(0, 8))), verbs.WCSuccess)
	c.Status("write", p.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)), verbs.WCRemAccessErr)
	reconnect(c, p)
	c.Errno("rereg_mr to all again", mem.MR.Rereg(c.T, verbs.ReregAccess, nil, 0, 0, kit.AllAccess), 0)
	c.Status("write", p.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)), verbs.WCSuccess)
}

func reregInput(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, mem := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	for _, bit := range []uint{3, 4, 31} {
		expectReregError(c, "undefined flag", mem.MR.Rereg(c.T, 1<<bit, nil, 0, 0, 0), verbs.ReregErrInput, syscall.EINVAL)
	}
	expectReregError(c, "access bits without the flag", mem.MR.Rereg(c.T, verbs.ReregTranslation, nil, mem.Addr(0), 64, kit.AllAccess),
		verbs.ReregErrInput, syscall.EINVAL)
	c.Status("write", p.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)), verbs.WCSuccess)
}

func reregNothing(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, mem := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	expectReregError(c, "address 0", mem.MR.Rereg(c.T, verbs.ReregTranslation, nil, 0, 64, 0), verbs.ReregErrInput, syscall.EINVAL)
	expectReregError(c, "length 0", mem.MR.Rereg(c.T, verbs.ReregTranslation, nil, mem.Addr(0), 0, 0), verbs.ReregErrInput, syscall.EINVAL)
	c.Status("write", p.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)), verbs.WCSuccess)
}

func reregWriteAlone(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, mem := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	expectReregError(c, "REMOTE_WRITE", mem.MR.Rereg(c.T, verbs.ReregAccess, nil, 0, 0, verbs.AccessRemoteWrite), verbs.ReregErrCmd, syscall.EINVAL)
	c.Observe("write afterwards", p.A.PostAndPoll(c, writeTo(src, mem.Addr(0), mem.MR)).Status.String())
}
