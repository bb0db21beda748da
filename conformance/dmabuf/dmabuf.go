// Package dmabuf holds the cases of area DMABUF: regions of memory that another driver exports by a
// file descriptor, such as that of a GPU.
package dmabuf

import (
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("DMABUF-001", writeAndReadBack)
	s.Case("DMABUF-002", badDescriptor)
	s.Case("DMABUF-003", otherFile)
	s.Case("DMABUF-004", pageOffsets)
	s.Case("DMABUF-005", accessFlags)
	s.Case("DMABUF-006", beyondTheEnd)
	s.Case("DMABUF-007", closedDescriptor)
	s.Case("DMABUF-008", freedMemory)
	s.Case("DMABUF-009", noCall)
	s.Case("DMABUF-010", gpuToGPU)
	s.Case("DMABUF-011", mixedGather)
	s.Case("DMABUF-012", overlappingRegions)
	s.Case("DMABUF-013", byFDAndByAddress)
	s.Case("DMABUF-014", exportedDM)
	s.Case("DMABUF-015", noDataDirect)
	s.Case("DMABUF-016", windowOverDmabuf)
	s.Case("DMABUF-017", plainBuffer)
	s.Case("DMABUF-018", manyCycles)
	s.Case("DMABUF-019", movedMemory)
}

const page = 4096

// Messages are longer than what a library has the processor copy out of a completion, since it may
// not be able to touch exported memory.
const message = 3000

func writeAndReadBack(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	const n = 40_000
	x := p.Exported(c, kit.ExportedKind(c), n, kit.AllAccess)
	src, back := p.Buffer(c, n, kit.AllAccess), p.Buffer(c, n, kit.AllAccess)
	before, sent := x.FillRandom(c), src.FillRandom(c)
	c.Status("WRITE to the exported memory", p.A.PostAndPoll(c, kit.Write(1, x.Buffer, 5000, src.SGE(5000, message))), verbs.WCSuccess)
	want := slices.Concat(before[:5000], sent[5000:5000+message], before[5000+message:])
	x.ExpectContents(c, "bytes as the exporter has them", want)
	c.Status("READ of the exported memory", p.A.PostAndPoll(c, kit.Read(2, x.Buffer, 0, back.All())), verbs.WCSuccess)
	back.ExpectContents(c, "bytes as they were read", want)
	// A region of a part begins at its offset.
	part, _ := p.RegExported(c, x, 2*page, page, kit.AllAccess)
	wr := kit.Read(3, x.Buffer, 2*page, back.SGE(0, page))
	wr.RKey = part.RKey()
	c.Status("READ of a region of a part", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
	back.ExpectContents(c, "bytes of the part", want[2*page:3*page])
	wr.RemoteAddr -= 8
	c.Status("READ from before the part", p.A.PostAndPoll(c, wr), verbs.WCRemAccessErr)
}

// try registers and, if that succeeded, deregisters.
func try(c *spec.C, e *kit.Env, fd int, off, n, iova uint64, access verbs.AccessFlags) error {
	mr, err := e.PD.RegDmabufMR(c.T, off, n, iova, fd, access)
	if err == nil {
		c.NoErr("dereg_mr", mr.Dereg(c.T))
	}
	return err
}

func badDescriptor(c *spec.C) {
	e := kit.Open(c)
	x := kit.ExportOnly(c, kit.ExportedKind(c), page)
	c.Errno("the DMA-BUF itself", try(c, e, x.FD, x.Offset, page, 0, kit.AllAccess), 0)
	x.CloseFD(c)
	c.ErrnoIn("closed", try(c, e, x.FD, x.Offset, page, 0, kit.AllAccess), syscall.EBADF)
	c.ErrnoIn("-1", try(c, e, -1, x.Offset, page, 0, kit.AllAccess), syscall.EBADF)
	c.ErrnoIn("never opened", try(c, e, 1<<20, x.Offset, page, 0, kit.AllAccess), syscall.EBADF)
}

func otherFile(c *spec.C) {
	e := kit.Open(c)
	p := c.Process().(verbs.Importer)
	null, err := p.OpenNull(c.T)
	c.NoErr("open the null device", err)
	c.ErrnoIn("the null device", try(c, e, null, 0, page, 0, kit.AllAccess), syscall.EINVAL)
	own, err := p.DupCommandFD(c.T, e.Ctx)
	c.NoErr("duplicate the device's descriptor", err)
	c.ErrnoIn("the device's own file", try(c, e, own, 0, page, 0, kit.AllAccess), syscall.EINVAL)
	c.NoErr("close", p.CloseFD(c.T, null))
	c.NoErr("close", p.CloseFD(c.T, own))
}

func pageOffsets(c *spec.C) {
	e := kit.Open(c)
	x := kit.ExportOnly(c, kit.ExportedKind(c), 4*page)
	for _, r := range []struct {
		step      string
		off, iova uint64
		want      syscall.Errno
	}{
		{"both begin a page", 0, 0, 0},
		{"both 100 bytes into a page", 100, 7*page + 100, 0},
		{"in another page", page + 100, 100, 0},
		{"iova one byte further", 0, 1, syscall.EINVAL},
		{"offset one byte further", 1, 0, syscall.EINVAL},
		{"in the middle of different pages", page + 100, page + 200, syscall.EINVAL},
	} {
		c.Errno(r.step, try(c, e, x.FD, x.Offset+r.off, page, r.iova, kit.AllAccess), r.want)
	}
}

func accessFlags(c *spec.C) {
	e := kit.Open(c)
	x := kit.ExportOnly(c, kit.ExportedKind(c), page)
	reg := func(a verbs.AccessFlags) error { return try(c, e, x.FD, x.Offset, page, 0, a) }
	c.Errno("none", reg(0), 0)
	c.Errno("local write", reg(verbs.AccessLocalWrite), 0)
	c.Errno("all of memory as such", reg(kit.AllAccess), 0)
	for _, f := range []struct {
		step string
		flag verbs.AccessFlags
	}{{"window bind", verbs.AccessMWBind}, {"on demand", verbs.AccessOnDemand}, {"zero-based", verbs.AccessZeroBased}, {"huge", verbs.AccessHugetlb}} {
		c.ErrnoIn(f.step, reg(verbs.AccessLocalWrite|f.flag), syscall.EINVAL, syscall.EOPNOTSUPP)
	}
	c.ErrnoIn("remote write without local write", reg(verbs.AccessRemoteWrite), syscall.EINVAL)
}

func beyondTheEnd(c *spec.C) {
	e := kit.Open(c)
	const size = 16 * page // what exporters round sizes to
	x := kit.ExportOnly(c, kit.ExportedKind(c), size)
	for _, r := range []struct {
		step   string
		off, n uint64
		want   syscall.Errno
	}{
		{"all of it", 0, size, 0},
		{"the last byte", size - 1, 1, 0},
		{"one byte more", 0, size + 1, syscall.EINVAL},
		{"the last page and one byte", size - page, page + 1, syscall.EINVAL},
		{"behind the end", size, page, syscall.EINVAL},
		{"an end that wraps", page, ^uint64(0) - 100, syscall.EINVAL},
		{"nothing", 0, 0, syscall.EINVAL},
	} {
		c.Errno(r.step, try(c, e, x.FD, x.Offset+r.off, r.n, r.off%page, kit.AllAccess), r.want)
	}
}

func closedDescriptor(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	x := p.Exported(c, kit.ExportedKind(c), 2*page, kit.AllAccess)
	buf := p.Buffer(c, 2*page, kit.AllAccess)
	x.CloseFD(c)
	sent := buf.FillRandom(c)
	c.Status("WRITE", p.A.PostAndPoll(c, kit.Write(1, x.Buffer, 0, buf.All())), verbs.WCSuccess)
	x.ExpectContents(c, "bytes", sent)
	other := x.FillRandom(c)
	c.Status("READ", p.A.PostAndPoll(c, kit.Read(2, x.Buffer, 0, buf.All())), verbs.WCSuccess)
	buf.ExpectContents(c, "bytes read", other)
}

func freedMemory(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	const n = 16 * page
	x := p.Exported(c, kit.ExportedKind(c), n, kit.AllAccess)
	buf := p.Buffer(c, n, kit.AllAccess)
	x.CloseFD(c)
	x.Free(c)
	// What is allocated now is other memory.
	fresh := kit.ExportOnly(c, kit.ExportedKind(c), n)
	was := fresh.FillRandom(c)
	sent := buf.FillRandom(c)
	c.Status("WRITE to what was freed", p.A.PostAndPoll(c, kit.Write(1, x.Buffer, 0, buf.All())), verbs.WCSuccess)
	buf.FillByte(c, 0)
	c.Status("READ of it", p.A.PostAndPoll(c, kit.Read(2, x.Buffer, 0, buf.All())), verbs.WCSuccess)
	buf.ExpectContents(c, "bytes that the region holds", sent)
	fresh.ExpectContents(c, "bytes of what was allocated since", was)
	x.Dereg(c)
	c.Status("READ by the key that is gone", p.A.PostAndPoll(c, kit.Read(3, x.Buffer, 0, buf.SGE(0, message))), verbs.WCRemAccessErr)
}

func noCall(c *spec.C) {
	e := kit.Open(c)
	p := c.Process().(verbs.Importer)
	null, err := p.OpenNull(c.T)
	c.NoErr("open the null device", err)
	c.Errno("reg_dmabuf_mr", try(c, e, null, 0, page, 0, kit.AllAccess), syscall.EOPNOTSUPP)
	c.NoErr("close", p.CloseFD(c.T, null))
}

func overlappingRegions(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	x := kit.ExportOnly(c, kit.ExportedKind(c), 4*page)
	buf := p.Buffer(c, 4*page, kit.AllAccess)
	first, dereg := p.RegExported(c, x, 0, 3*page, kit.AllAccess)
	x.MR = first
	second, _ := p.RegExported(c, x, 2*page, 2*page, verbs.AccessLocalWrite|verbs.AccessRemoteRead)
	c.True("keys", first.RKey() != second.RKey(), "both regions have key %#x", first.RKey())
	want := x.FillRandom(c)
	request := func(wr verbs.SendWR, mr verbs.MR) verbs.WC {
		wr.RKey = mr.RKey()
		return p.A.PostAndPoll(c, wr)
	}
	copy(want[2*page:], buf.FillRandom(c)[:page])
	c.Status("WRITE by the first into both", request(kit.Write(1, x.Buffer, 2*page, buf.SGE(0, page)), first), verbs.WCSuccess)
	c.Status("READ by the second", request(kit.Read(2, x.Buffer, 2*page, buf.SGE(0, 2*page)), second), verbs.WCSuccess)
	buf.ExpectContents(c, "bytes", want[2*page:])
	dereg(c)
	c.Status("READ by the second alone", request(kit.Read(3, x.Buffer, 2*page, buf.SGE(0, page)), second), verbs.WCSuccess)
	buf.ExpectContents(c, "bytes of the overlap", want[2*page:3*page])
	c.Status("WRITE without the right", request(kit.Write(4, x.Buffer, 2*page, buf.SGE(0, page)), second), verbs.WCRemAccessErr)
	x.ExpectContents(c, "bytes in the end", want)
}

func byFDAndByAddress(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	x := p.Exported(c, verbs.MemoryUdmabuf, 4*page, kit.AllAccess)
	plain, err := p.PD.RegMR(c.T, x.Addr(0), 4*page, kit.AllAccess)
	c.NoErr("reg_mr of the same memory", err)
	c.Defer(func() { c.NoErr("dereg_mr", plain.Dereg(c.T)) })
	buf := p.Buffer(c, 4*page, kit.AllAccess)
	sent := buf.FillRandom(c)
	c.Status("WRITE by the region of the DMA-BUF", p.A.PostAndPoll(c, kit.Write(1, x.Buffer, 0, buf.All())), verbs.WCSuccess)
	buf.FillByte(c, 0)
	wr := kit.Read(2, x.Buffer, 0, buf.All())
	wr.RKey = plain.RKey()
	c.Status("READ by the region of the address", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
	buf.ExpectContents(c, "bytes", sent)
	x.ExpectContents(c, "bytes in the memory", sent)
}

func windowOverDmabuf(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	x := p.Exported(c, kit.ExportedKind(c), page, kit.AllAccess)
	w, err := p.PD.AllocMW(c.T, verbs.MWType2)
	c.NoErr("alloc_mw", err)
	c.Defer(func() { c.NoErr("dealloc_mw", w.Dealloc(c.T)) })
	bind := verbs.SendWR{ID: 1, Opcode: verbs.WRBindMW, Flags: verbs.SendSignaled, Bind: &verbs.MWBindWR{MW: w, RKey: verbs.IncRKey(w.RKey()),
		Info: verbs.MWBindInfo{MR: x.MR, Addr: x.Addr(0), Length: page, Access: verbs.AccessRemoteRead}}}
	if _, err := p.A.PostSend(c.T, []verbs.SendWR{bind}); err != nil {
		c.ErrnoIn("post of the bind", err, syscall.EINVAL, syscall.EPERM, syscall.EOPNOTSUPP)
		return
	}
	c.StatusIn("bind", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess, verbs.WCMWBindErr)
}

func manyCycles(c *spec.C) {
	e := kit.Open(c)
	o := kit.Opener(c)
	x := kit.ExportOnly(c, kit.ExportedKind(c), page)
	before, err := o.DmabufInfo(c.T, x.FD)
	c.NoErr("what the kernel says of the DMA-BUF", err)
	for range c.Scale(300, 10_000) {
		mr, err := e.PD.RegDmabufMR(c.T, x.Offset, page, 0, x.FD, kit.AllAccess)
		if err != nil {
			c.NoErr("reg_dmabuf_mr", err)
		}
		if err := mr.Dereg(c.T); err != nil {
			c.NoErr("dereg_mr", err)
		}
	}
	after, err := o.DmabufInfo(c.T, x.FD)
	c.NoErr("what the kernel says of the DMA-BUF", err)
	c.Equal("references", after.Count, before.Count)
	mr, _ := e.RegExported(c, x, 0, page, kit.AllAccess)
	held, err := o.DmabufInfo(c.T, x.FD)
	c.NoErr("what the kernel says of the DMA-BUF", err)
	c.True("a region holds it", held.Count > before.Count, "%d references with a region, %d without", held.Count, before.Count)
	_ = mr
}
