package record

import "github.com/rdmasim/rdmasim/verbs"

// ExportDmabuf passes through where the inner memory can be exported.
func (m *dm) ExportDmabuf(t verbs.Thread) (int, error) {
	return valueOn(m.DM, "dm_export_dmabuf_fd on this target", func(x verbs.DMExporter) (int, error) {
		fd, err := x.ExportDmabuf(innerThread(t))
		return fd, m.r.add(t, "dm_export_dmabuf_fd", nil, err)
	})
}

// providerBuf is a buffer of the library's; accesses to it are not calls.
type providerBuf struct {
	verbs.ProviderBuf
	c *context
}

// AllocBuf passes through where the inner PD allocates buffers.
func (p *pd) AllocBuf(t verbs.Thread, size uint64) (verbs.ProviderBuf, error) {
	return valueOn(p.PD, "alloc_buf on this target", func(x verbs.BufAllocator) (verbs.ProviderBuf, error) {
		b, err := x.AllocBuf(innerThread(t), size)
		return made(p.c.r, t, "alloc_buf", list(size), err, func() (verbs.ProviderBuf, []string) { return &providerBuf{b, p.c}, nil })
	})
}

func (b *providerBuf) ReadAt(t verbs.Thread, p []byte, off int64) (int, error) {
	return b.ProviderBuf.ReadAt(innerThread(t), p, off)
}

func (b *providerBuf) WriteAt(t verbs.Thread, p []byte, off int64) (int, error) {
	return b.ProviderBuf.WriteAt(innerThread(t), p, off)
}

func (b *providerBuf) Unmap(t verbs.Thread) error {
	return b.c.r.add(t, "free_buf", nil, b.ProviderBuf.Unmap(innerThread(t)))
}

func (b *providerBuf) RegMR(t verbs.Thread, vp verbs.PD, addr, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	m, err := b.ProviderBuf.RegMR(innerThread(t), bare(vp), addr, length, access)
	return b.c.r.mr(t, "reg_buf_mr", m, err, list(addr-b.Addr(), length, mask(access)))
}

func (b *providerBuf) ExportFD(t verbs.Thread) (int, error) {
	fd, err := b.ProviderBuf.ExportFD(innerThread(t))
	return fd, b.c.r.add(t, "export_buf_dmabuf_fd", nil, err)
}

// PID passes through where the inner process shows itself to others; 0 elsewhere.
func (p *process) PID() int {
	if x, ok := p.Process.(verbs.DescriptorTaker); ok {
		return x.PID()
	}
	return 0
}

// TakeFD passes through likewise.
func (p *process) TakeFD(t verbs.Thread, pid, fd int) (int, error) {
	return valueOn(p.Process, "pidfd_getfd on this target", func(x verbs.DescriptorTaker) (int, error) {
		got, err := x.TakeFD(innerThread(t), pid, fd)
		return got, p.r.add(t, "pidfd_getfd", nil, err)
	})
}
