package mr

import (
	"bytes"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// allocNull allocates a null region.
func allocNull(c *spec.C, e *kit.Env) verbs.MR {
	m, err := e.PD.AllocNullMR(c.T)
	c.NoErr("alloc_null_mr", err)
	kit.DestroyOnce(c, "dereg_mr of a null region", m.Dereg)
	return m
}

func nullRegion(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	null := allocNull(c, p.Env)
	mem := p.Buffer(c, 4096, kit.AllAccess)
	hole := func(n int) verbs.SGE { return verbs.SGE{Addr: 0x1234567, Length: uint32(n), LKey: null.LKey()} }
	want := mem.FillRandom(c)

	c.Status("READ to nowhere", p.A.PostAndPoll(c, kit.Read(1, mem, 0, hole(4096))), verbs.WCSuccess)
	mem.ExpectContents(c, "memory after the READ", want)
	c.Status("READ of 300 bytes, the middle 100 to nowhere",
		p.A.PostAndPoll(c, kit.Read(2, mem, 0, mem.SGE(1000, 100), hole(100), mem.SGE(1100, 100))), verbs.WCSuccess)
	copy(want[1000:], want[:100])
	copy(want[1100:], want[200:300])
	mem.ExpectContents(c, "memory after the READ in parts", want)

	c.Status("WRITE of zeros", p.A.PostAndPoll(c, kit.Write(3, mem, 2000, hole(1500))), verbs.WCSuccess)
	copy(want[2000:3500], bytes.Repeat([]byte{0}, 1500))
	mem.ExpectContents(c, "memory after the WRITE", want)
	c.Status("WRITE of bytes, zeros, bytes", p.A.PostAndPoll(c, kit.Write(4, mem, 0, mem.SGE(100, 10), hole(20), mem.SGE(110, 10))), verbs.WCSuccess)
	copy(want, append(append(bytes.Clone(want[100:110]), make([]byte, 20)...), want[110:120]...))
	mem.ExpectContents(c, "memory after the WRITE in parts", want)

	p.B.RecvInto(c, 5, hole(64), mem.SGE(3600, 64))
	p.A.Post(c, kit.Send(6, mem.SGE(0, 128)))
	c.Status("SEND", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
	wc := kit.PollOne(c, p.B.RecvCQ)
	c.Status("receive, the first half to nowhere", wc, verbs.WCSuccess)
	c.Equal("length", wc.ByteLen, uint32(128))
	copy(want[3600:], want[64:128])
	mem.ExpectContents(c, "memory after the receive", want)

	wr := kit.Write(7, mem, 0, mem.SGE(0, 8))
	wr.RKey = null.RKey()
	c.Status("WRITE by its remote key", p.A.PostAndPoll(c, wr), verbs.WCRemAccessErr)
	p = p.Env.Pair(c, kit.Default())
	wr.RKey = null.LKey()
	c.Status("WRITE with its local key as the remote one", p.A.PostAndPoll(c, wr), verbs.WCRemAccessErr)
}

func noNullRegion(c *spec.C) {
	_, err := kit.Open(c).PD.AllocNullMR(c.T)
	c.ErrnoIn("alloc_null_mr", err, syscall.EOPNOTSUPP) // ENOTSUP is the same number
}

// reregOther: a null region is refused by the library, a region of device memory by kernels
// below libraries that do not know it from another.
func reregOther(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	null, mem := allocNull(c, p.Env), p.Buffer(c, 64, kit.AllAccess)
	pd := p.AllocPD(c)
	for _, r := range []struct {
		what   string
		flags  verbs.ReregFlags
		access verbs.AccessFlags
	}{{"access", verbs.ReregAccess, kit.AllAccess}, {"PD", verbs.ReregPD, 0}, {"translation", verbs.ReregTranslation, 0}} {
		expectReregError(c, "null region: "+r.what, null.Rereg(c.T, r.flags, pd, mem.Addr(0), 64, r.access), verbs.ReregErrInput, syscall.EINVAL)
	}
	if c.Has("dm") {
		m := allocDM(c, p.Env, 64)
		mr, _ := m.register(c, p.Env, 0, 64)
		err := mr.Rereg(c.T, verbs.ReregAccess, nil, 0, 0, zeroBased)
		c.Errno("device memory: access", err, syscall.EINVAL)
	}
	want := mem.FillRandom(c)
	c.Status("READ to nowhere", p.A.PostAndPoll(c, kit.Read(1, mem, 0, verbs.SGE{Length: 64, LKey: null.LKey()})), verbs.WCSuccess)
	mem.ExpectContents(c, "memory", want)
}
