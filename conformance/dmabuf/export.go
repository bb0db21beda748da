package dmabuf

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// exportedDM exports a page of device memory. Another process registers it, and what is done by its
// key is seen in the memory, until that is freed.
func exportedDM(c *spec.C) {
	taker, ok := c.Process().(verbs.DescriptorTaker)
	if !ok {
		c.Errorf("the target's processes cannot take each other's descriptors")
	}
	e := kit.Open(c)
	dm, err := e.Ctx.AllocDM(c.T, verbs.DMAttr{Length: page, LogAlign: 12})
	c.NoErr("alloc_dm", err)
	free := kit.DestroyOnce(c, "free_dm", dm.Free)
	fd, err := dm.(verbs.DMExporter).ExportDmabuf(c.T)
	c.NoErr("dm_export_dmabuf_fd", err)
	closeFD := kit.DestroyOnce(c, "close the DMA-BUF", func(t verbs.Thread) error { return kit.Opener(c).CloseFD(t, fd) })
	info, err := kit.Opener(c).DmabufInfo(c.T, fd)
	c.NoErr("what the kernel says of the DMA-BUF", err)
	c.Equal("size of the DMA-BUF", info.Size, uint64(page))

	far := kit.OpenOtherProcess(c, 0, nil)
	register := func(off, n uint64) (verbs.PlayerReply, error) {
		return far.DoErr(c, player.RegDmabuf, kit.Args{"pid": uint64(taker.PID()), "fd": uint64(fd), "off": off, "len": n, "access": uint64(kit.AllAccess)}, nil)
	}
	_, err = register(0, 2*page)
	c.Errno("more than was exported", err, syscall.EINVAL)
	r, err := register(0, page)
	c.NoErr("registration in the other process", err)
	there := &kit.OtherBuffer{Process: far, ID: r.Values["buf"], RKey: uint32(r.Values["rkey"]), Len: page}

	q, _ := e.PairWith(c, far, kit.Default())
	buf := e.Buffer(c, page, kit.AllAccess)
	want, got := c.Rand().Bytes(page), make([]byte, page)
	c.NoErr("memcpy_to_dm", dm.CopyTo(c.T, 0, want))
	c.Status("READ by the other process's key", q.PostAndPoll(c, there.ReadFrom(1, 0, buf.All())), verbs.WCSuccess)
	buf.ExpectContents(c, "bytes of the device memory", want)
	copy(want[1000:], buf.FillRandom(c)[:message])
	c.Status("WRITE by it", q.PostAndPoll(c, there.WriteTo(2, 1000, buf.SGE(0, message))), verbs.WCSuccess)
	c.NoErr("memcpy_from_dm", dm.CopyFrom(c.T, got, 0))
	c.Equal("bytes in the device memory", got, want)

	free(c)
	_, err = register(0, page)
	c.Errno("registration of memory that was freed", err, syscall.ENODEV)
	buf.FillByte(c, 0)
	c.StatusIn("READ of memory that was freed", q.PostAndPoll(c, there.ReadFrom(3, 0, buf.All())), verbs.WCRemAccessErr, verbs.WCRemOpErr)
	closeFD(c)
	_, err = register(0, page)
	c.Errno("registration by a closed descriptor", err, syscall.EBADF)
}

// directRegistrar is a context by which regions with direct verbs' flags can be registered.
type directRegistrar interface {
	RegDirectDmabufMR(t verbs.Thread, pd verbs.PD, offset, length, iova uint64, fd int, access verbs.AccessFlags, flags uint32) (verbs.MR, error)
}

// noDataDirect asks for the data-direct path. A driver before Linux 6.12 does not know the
// attribute (EPROTONOSUPPORT), an older library not the call (EOPNOTSUPP, or ENOSYS).
func noDataDirect(c *spec.C) {
	e := kit.Open(c)
	d, ok := e.Ctx.(directRegistrar)
	if !ok {
		c.Errorf("this target says that it has direct verbs, and its contexts do not register DMA-BUFs by them")
	}
	x := kit.ExportOnly(c, kit.ExportedKind(c), page)
	try := func(iova uint64, flags uint32) error {
		mr, err := d.RegDirectDmabufMR(c.T, e.PD, x.Offset+iova, 8, iova, x.FD, verbs.AccessLocalWrite, flags)
		if err == nil {
			c.NoErr("dereg_mr", mr.Dereg(c.T))
		}
		return err
	}
	const none = 0 // an errno that is none
	plain := try(0, 0)
	c.ErrnoIn("without a flag", plain, none, syscall.EPROTONOSUPPORT, syscall.EOPNOTSUPP, syscall.ENOSYS)
	direct, inside, unknown := try(0, verbs.RegDmabufDataDirect), try(8, verbs.RegDmabufDataDirect), try(0, 1<<31)
	if plain != nil {
		for _, err := range []error{direct, inside, unknown} {
			c.Errno("with a flag, where there are none", err, verbs.ErrnoOf(plain))
		}
		return
	}
	c.ErrnoIn("data direct", direct, syscall.EINVAL)
	c.ErrnoIn("data direct, with an iova inside a page", inside, syscall.EOPNOTSUPP)
	c.ErrnoIn("a flag that does not exist", unknown, syscall.EINVAL)
}

// plainBuffer has the library allocate a buffer, registers it, and asks for its descriptor.
func plainBuffer(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	b, err := p.PD.(verbs.BufAllocator).AllocBuf(c.T, page)
	c.NoErr("alloc_buf", err)
	c.Defer(func() { c.NoErr("free_buf", b.Unmap(c.T)) })
	_, err = b.ExportFD(c.T)
	c.ErrnoIn("export_buf_dmabuf_fd", err, syscall.ENODATA)

	other, err := p.Ctx.AllocPD(c.T)
	c.NoErr("alloc_pd", err)
	c.Defer(func() { c.NoErr("dealloc_pd", other.Dealloc(c.T)) })
	try := func(pd verbs.PD, off, n uint64) error {
		mr, err := b.RegMR(c.T, pd, b.Addr()+off, n, kit.AllAccess)
		if err == nil {
			c.NoErr("dereg_mr", mr.Dereg(c.T))
		}
		return err
	}
	c.Errno("registration by another PD", try(other, 0, page), syscall.EINVAL)
	c.Errno("registration of one byte more", try(p.PD, 0, page+1), syscall.EINVAL)
	c.Errno("registration of the last byte and one more", try(p.PD, page-1, 2), syscall.EINVAL)
	c.Errno("registration of the byte before", try(p.PD, ^uint64(0), 1), syscall.EINVAL)
	c.Errno("registration of the last byte", try(p.PD, page-1, 1), 0)
	mr, err := b.RegMR(c.T, p.PD, b.Addr(), page, kit.AllAccess)
	c.NoErr("reg_buf_mr", err)
	c.Defer(func() { c.NoErr("dereg_mr", mr.Dereg(c.T)) })
	buf := p.Buffer(c, page, kit.AllAccess)
	sent, got := buf.FillRandom(c), make([]byte, page)
	c.Status("WRITE to the buffer", p.A.PostAndPoll(c, verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGEs: []verbs.SGE{buf.All()}, RemoteAddr: b.Addr(), RKey: mr.RKey()}), verbs.WCSuccess)
	_, err = b.ReadAt(c.T, got, 0)
	c.NoErr("read the buffer", err)
	c.Equal("bytes in the buffer", got, sent)
}
