package record

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// memory is memory of the inner process. Copies are the program's own and are not recorded.
type memory struct {
	verbs.Memory
	r *Recorder
}

// OpenMemory passes through where the inner process has memory of other kinds.
func (p *process) OpenMemory(t verbs.Thread, kind verbs.MemoryKind, o verbs.MemoryOptions) (verbs.Memory, error) {
	return valueOn(p.Process, fmt.Sprintf("memory of kind %v on this target", kind), func(x verbs.MemoryOpener) (verbs.Memory, error) {
		m, err := x.OpenMemory(innerThread(t), kind, o)
		return made(p.r, t, "open_memory", list(kind, o.GPU), err, func() (verbs.Memory, []string) { return &memory{m, p.r}, nil })
	})
}

// DmabufInfo passes through likewise.
func (p *process) DmabufInfo(t verbs.Thread, fd int) (verbs.DmabufInfo, error) {
	return valueOn(p.Process, "DMA-BUFs on this target", func(x verbs.MemoryOpener) (verbs.DmabufInfo, error) { return x.DmabufInfo(innerThread(t), fd) })
}

func (m *memory) Alloc(t verbs.Thread, length, align uint64) (verbs.Buffer, error) {
	b, err := m.Memory.Alloc(innerThread(t), length, align)
	return m.r.buffer(t, "alloc", list(length, align), b, err)
}

func (m *memory) Copy(t verbs.Thread, dst verbs.Buffer, dstOff uint64, src verbs.Buffer, srcOff, n uint64) error {
	return m.Memory.Copy(innerThread(t), bare(dst), dstOff, bare(src), srcOff, n)
}

func (m *memory) Export(t verbs.Thread, b verbs.Buffer, off, n uint64) (verbs.Dmabuf, error) {
	d, err := m.Memory.Export(innerThread(t), bare(b), off, n)
	return d, m.r.add(t, "export", list(m.r.addr(b.Addr()), off, n), err)
}

func (m *memory) Close(t verbs.Thread) error {
	return m.r.add(t, "close_memory", nil, m.Memory.Close(innerThread(t)))
}

// Migrate passes through where the inner buffer can be moved by its exporter.
func (b *buffer) Migrate(t verbs.Thread) error {
	return on(b.Buffer, "moving the memory of a buffer of this target", func(x verbs.Migrator) error {
		err := x.Migrate(innerThread(t))
		return b.r.add(t, "migrate", list(b.r.addr(b.Addr())), err)
	})
}

// RegDmabufMR is recorded without the descriptor, whose number is the process's own affair.
func (p *pd) RegDmabufMR(t verbs.Thread, off, length, iova uint64, fd int, access verbs.AccessFlags) (verbs.MR, error) {
	m, err := p.PD.RegDmabufMR(innerThread(t), off, length, iova, fd, access)
	return p.c.r.mr(t, "reg_dmabuf_mr", m, err, list(off, length, mask(access)))
}
