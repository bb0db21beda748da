package record

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// memory is memory of the inner process. Copies are the program's own and are not recorded.
type memory struct {
	verbs.Memory
	r *Recorder
}

// OpenMemory passes through where the inner process has memory of other kinds.
func (p *process) OpenMemory(t verbs.Thread, kind verbs.MemoryKind, o verbs.MemoryOptions) (verbs.Memory, error) {
	x, ok := p.Process.(verbs.MemoryOpener)
	if !ok {
		return nil, fmt.Errorf("memory of kind %v on this target: %w", kind, syscall.EOPNOTSUPP)
	}
	m, err := x.OpenMemory(innerThread(t), kind, o)
	p.r.add(t, "open_memory", list(kind, o.GPU), err)
	if err != nil {
		return nil, err
	}
	return &memory{m, p.r}, nil
}

// DmabufInfo passes through likewise.
func (p *process) DmabufInfo(t verbs.Thread, fd int) (verbs.DmabufInfo, error) {
	x, ok := p.Process.(verbs.MemoryOpener)
	if !ok {
		return verbs.DmabufInfo{}, fmt.Errorf("DMA-BUFs on this target: %w", syscall.EOPNOTSUPP)
	}
	return x.DmabufInfo(innerThread(t), fd)
}

func (m *memory) Alloc(t verbs.Thread, length, align uint64) (verbs.Buffer, error) {
	b, err := m.Memory.Alloc(innerThread(t), length, align)
	if err != nil {
		m.r.add(t, "alloc", list(length, align), err)
		return nil, err
	}
	m.r.mapped(b.Addr(), b.Len())
	m.r.add(t, "alloc", list(length, align), nil, m.r.addr(b.Addr()))
	return &buffer{b, m.r}, nil
}

// innerBuffer is the buffer of the inner testbed.
func innerBuffer(b verbs.Buffer) verbs.Buffer {
	if x, ok := b.(*buffer); ok {
		return x.Buffer
	}
	return b
}

func (m *memory) Copy(t verbs.Thread, dst verbs.Buffer, dstOff uint64, src verbs.Buffer, srcOff, n uint64) error {
	return m.Memory.Copy(innerThread(t), innerBuffer(dst), dstOff, innerBuffer(src), srcOff, n)
}

func (m *memory) Export(t verbs.Thread, b verbs.Buffer, off, n uint64) (verbs.Dmabuf, error) {
	d, err := m.Memory.Export(innerThread(t), innerBuffer(b), off, n)
	m.r.add(t, "export", list(m.r.addr(b.Addr()), off, n), err)
	return d, err
}

func (m *memory) Close(t verbs.Thread) error {
	return m.r.add(t, "close_memory", nil, m.Memory.Close(innerThread(t)))
}

// Migrate passes through where the inner buffer can be moved by its exporter.
func (b *buffer) Migrate(t verbs.Thread) error {
	x, ok := b.Buffer.(verbs.Migrator)
	if !ok {
		return fmt.Errorf("moving the memory of a buffer of this target: %w", syscall.EOPNOTSUPP)
	}
	err := x.Migrate(innerThread(t))
	b.r.add(t, "migrate", list(b.r.addr(b.Addr())), err)
	return err
}

// RegDmabufMR is recorded without the descriptor, whose number is the process's own affair.
func (p *pd) RegDmabufMR(t verbs.Thread, off, length, iova uint64, fd int, access verbs.AccessFlags) (verbs.MR, error) {
	m, err := p.PD.RegDmabufMR(innerThread(t), off, length, iova, fd, access)
	return p.c.r.mr(t, "reg_dmabuf_mr", m, err, list(off, length, mask(access)))
}
