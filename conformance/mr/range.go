package mr

import (
	"bytes"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// region is a registered range with guard pages around it.
type region struct {
	mem     verbs.Buffer
	mr      verbs.MR
	at      uint64          // first byte of the range, by the process's address
	base    uint64          // the same byte as requests name it
	release func(c *spec.C) // deregisters it
	unmap   func(c *spec.C)
}

// regionAt maps length bytes from an offset into a page, with a page around, and
// registers exactly them; iova is the distance of requests' addresses from the
// process's. It is nil where the target is known to refuse such a region.
func regionAt(c *spec.C, e *kit.Env, offset, length, iova uint64, access verbs.AccessFlags) *region {
	page := uint64(c.Process().Host().PageSize())
	m, unmap := kit.MapOnce(c, int(2*page+offset+length+page))
	r := &region{mem: m, at: (m.Addr()+page)&^(page-1) + offset}
	r.base = r.at + iova
	mr, err := e.PD.RegMRIova(c.T, r.at, length, r.base, access)
	if err != nil {
		c.NoErr(fmt.Sprintf("reg_mr of %d bytes at offset %d", length, offset), err)
		unmap(c)
		return nil
	}
	r.mr = mr
	r.release, r.unmap = kit.DestroyOnce(c, "dereg_mr", mr.Dereg), unmap
	return r
}

// get reads n bytes at off, which may lie outside the range, as the process sees them.
func (r *region) get(c *spec.C, off int64, n int) []byte {
	p := make([]byte, n)
	_, err := r.mem.ReadAt(c.T, p, int64(r.at-r.mem.Addr())+off)
	kit.Must(c, "read memory", err)
	return p
}

// write is an RDMA write of an SGE to off in the range.
func (r *region) write(id uint64, off int64, sge verbs.SGE) verbs.SendWR {
	return verbs.SendWR{ID: id, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{sge},
		RemoteAddr: r.base + uint64(off), RKey: r.mr.RKey()}
}

// bounds writes the first and the last byte of regions of many shapes, and tries the
// byte before and the byte after.
func bounds(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 64, kit.AllAccess)
	page := uint64(c.Process().Host().PageSize())
	for _, length := range []uint64{1, page - 1, page, page + 1, 1 << 30} {
		for _, offset := range []uint64{0, 1, 64, page - 1} {
			step := fmt.Sprintf("%d bytes at offset %d", length, offset)
			r := regionAt(c, p.Env, offset, length, 0, kit.AllAccess)
			if r == nil {
				continue
			}
			end := int64(length)
			for _, off := range []int64{0, end - 1} {
				want := []byte{^r.get(c, off, 1)[0]}
				src.Set(c, 0, want)
				c.Status("inside "+step, p.A.PostAndPoll(c, r.write(1, off, src.SGE(0, 1))), verbs.WCSuccess)
				c.Equal("byte inside", r.get(c, off, 1), want)
			}
			for _, out := range []struct {
				off int64
				n   int
			}{{-1, 1}, {end, 1}, {end - 1, 2}} {
				before := r.get(c, out.off, out.n)
				src.Set(c, 0, []byte{^before[0], 0x5a})
				c.Status("outside "+step, p.A.PostAndPoll(c, r.write(2, out.off, src.SGE(0, out.n))), verbs.WCRemAccessErr)
				c.Equal("bytes outside", r.get(c, out.off, out.n), before)
				reconnect(c, p)
			}
			r.release(c)
			r.unmap(c) // the next is as large
		}
	}
}

func otherIova(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 256, kit.AllAccess)
	want := src.FillRandom(c)
	const distance = 0x7654_3210_0000
	r := regionAt(c, p.Env, 48, 4096, distance, kit.AllAccess)
	c.Status("write by the iova", p.A.PostAndPoll(c, r.write(1, 100, src.All())), verbs.WCSuccess)
	c.Equal("bytes", r.get(c, 100, 256), want)
	dst := p.Buffer(c, 256, kit.AllAccess)
	local := verbs.SGE{Addr: r.base + 100, Length: 256, LKey: r.mr.LKey()}
	c.Status("write from the iova", p.A.PostAndPoll(c, kit.Write(2, dst, 0, local)), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes back", want)
	byAddr := r.write(3, 0, src.All())
	byAddr.RemoteAddr = r.at
	before := r.get(c, 0, 256)
	c.Status("write by the process's address", p.A.PostAndPoll(c, byAddr), verbs.WCRemAccessErr)
	c.Equal("bytes after the refusal", r.get(c, 0, 256), before)
}

func iovaOffset(c *spec.C) {
	e := kit.Open(c)
	m := kit.Map(c, 16384)
	for _, d := range []uint64{1, 8, 64, 2048, 4095} {
		mr, err := e.PD.RegMRIova(c.T, m.Addr(), 4096, 0x10000+d, kit.AllAccess)
		if err == nil {
			kit.Must(c, "dereg_mr", mr.Dereg(c.T))
		}
		c.Errno("iova with another page offset", err, syscall.EINVAL)
	}
}

func iovaZero(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 256, kit.AllAccess)
	want := src.FillRandom(c)
	m := kit.Map(c, 8192)
	mr, err := p.PD.RegMRIova(c.T, m.Addr(), 8192, 0, kit.AllAccess)
	c.NoErr("reg_mr_iova with iova 0", err)
	c.Defer(func() { kit.Must(c, "dereg_mr", mr.Dereg(c.T)) })
	r := &region{mem: m, mr: mr, at: m.Addr(), base: 0}
	for _, off := range []int64{0, 4000, 8192 - 256} {
		c.Status("write by offset", p.A.PostAndPoll(c, r.write(1, off, src.All())), verbs.WCSuccess)
		c.Equal("bytes", r.get(c, off, 256), want)
	}
	c.Status("write beyond the end", p.A.PostAndPoll(c, r.write(2, 8192-255, src.All())), verbs.WCRemAccessErr)
}

// deregInFlight has another host write while the region is deregistered.
func deregInFlight(c *spec.C) {
	const size, writes = 1 << 20, 16
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.Default())
	r := regionAt(c, e, 0, size, 0, kit.AllAccess)
	from := b.Process.Buffer(c, size+64*writes, kit.AllAccess, 0)
	from.Set(c, 0, c.Rand().Bytes(size+64*writes))
	b.Process.Do(c, player.PostSend, kit.Args{"qp": b.ID, "opcode": uint64(verbs.WRRDMAWrite), "flags": uint64(verbs.SendSignaled),
		"buf": from.ID, "len": size, "remote": r.base, "rkey": uint64(r.mr.RKey()),
		"count": writes, "step": 64}, nil) // each with bytes of its own
	c.T.Sleep(time.Duration(50+c.Rand().Intn(200)) * time.Microsecond)
	r.release(c)
	frozen := r.get(c, 0, size)
	st := b.Process.AwaitStatuses(c, writes, kit.CompletionTimeout)
	c.True("bytes after the writer has ended", bytes.Equal(r.get(c, 0, size), frozen), "a write has landed after the region was gone")
	c.True("caught in flight", len(st) == writes && st[writes-1] != verbs.WCSuccess, "statuses of the writes: %v", st)
	bad := 0
	for bad < len(st) && st[bad] == verbs.WCSuccess {
		bad++
	}
	c.Equal("first write that failed", st[bad], verbs.WCRemAccessErr)
	c.Observe("state of the QP", a.QueryState(c).String())
}

// acrossFourGiB has requests of every kind cross an address at which 32 bits end, in packets and
// between them.
func acrossFourGiB(c *spec.C) {
	const border, n, before = 1 << 32, 3000, 1500
	p := kit.NewPair(c, kit.Default())
	page := uint64(c.Process().Host().PageSize())
	m, _ := kit.MapOnce(c, int(3*page))
	at := (m.Addr() + page - 1) &^ (page - 1)
	mr, err := p.PD.RegMRIova(c.T, at, 2*page, border-page, kit.AllAccess)
	c.NoErr("reg_mr_iova", err)
	kit.DestroyOnce(c, "dereg_mr", mr.Dereg)
	r := &region{mem: m, mr: mr, at: at, base: border - page}
	src, dst := p.Buffer(c, n, kit.AllAccess), p.Buffer(c, n, kit.AllAccess)
	off := int64(page) - before
	local := verbs.SGE{Addr: border - before, Length: n, LKey: mr.LKey()}
	want := src.FillRandom(c)
	c.Status("WRITE to it", p.A.PostAndPoll(c, r.write(1, off, src.All())), verbs.WCSuccess)
	c.Equal("bytes written", r.get(c, off, n), want)
	read := r.write(2, off, dst.All())
	read.Opcode = verbs.WRRDMARead
	c.Status("READ from it", p.A.PostAndPoll(c, read), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes read", want)
	dst.FillByte(c, 0)
	c.Status("WRITE of it", p.A.PostAndPoll(c, kit.Write(3, dst, 0, local)), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes gathered", want)
	want = src.FillRandom(c)
	c.Status("READ into it", p.A.PostAndPoll(c, kit.Read(4, src, 0, local)), verbs.WCSuccess)
	c.Equal("bytes landed", r.get(c, off, n), want)
	want = src.FillRandom(c)
	p.B.RecvInto(c, 5, local)
	c.Status("SEND into it", p.A.PostAndPoll(c, kit.Send(6, src.All())), verbs.WCSuccess)
	c.Status("its receive", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
	c.Equal("bytes scattered", r.get(c, off, n), want)
}
