package record

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// absent is the answer where the inner object has no such call.
func absent(call string) error {
	return fmt.Errorf("%s on this target: %w", call, syscall.EOPNOTSUPP)
}

// ExportDmabuf passes through where the inner memory can be exported.
func (m *dm) ExportDmabuf(t verbs.Thread) (int, error) {
	x, ok := m.DM.(verbs.DMExporter)
	if !ok {
		return -1, absent("dm_export_dmabuf_fd")
	}
	fd, err := x.ExportDmabuf(innerThread(t))
	m.r.add(t, "dm_export_dmabuf_fd", nil, err)
	return fd, err
}

// providerBuf is a buffer of the library's; accesses to it are not calls.
type providerBuf struct {
	verbs.ProviderBuf
	c *context
}

// AllocBuf passes through where the inner PD allocates buffers.
func (p *pd) AllocBuf(t verbs.Thread, size uint64) (verbs.ProviderBuf, error) {
	x, ok := p.PD.(verbs.BufAllocator)
	if !ok {
		return nil, absent("alloc_buf")
	}
	b, err := x.AllocBuf(innerThread(t), size)
	p.c.r.add(t, "alloc_buf", list(size), err)
	if err != nil {
		return nil, err
	}
	return &providerBuf{b, p.c}, nil
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
	if w, ok := vp.(*pd); ok {
		vp = w.PD
	}
	m, err := b.ProviderBuf.RegMR(innerThread(t), vp, addr, length, access)
	return b.c.r.mr(t, "reg_buf_mr", m, err, list(addr-b.Addr(), length, mask(access)))
}

func (b *providerBuf) ExportFD(t verbs.Thread) (int, error) {
	fd, err := b.ProviderBuf.ExportFD(innerThread(t))
	b.c.r.add(t, "export_buf_dmabuf_fd", nil, err)
	return fd, err
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
	x, ok := p.Process.(verbs.DescriptorTaker)
	if !ok {
		return -1, absent("pidfd_getfd")
	}
	got, err := x.TakeFD(innerThread(t), pid, fd)
	p.r.add(t, "pidfd_getfd", nil, err)
	return got, err
}
