package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Opener returns the case's process as one that can open other kinds of memory.
func Opener(c *spec.C) verbs.MemoryOpener {
	o, ok := c.Process().(verbs.MemoryOpener)
	if !ok {
		c.Errorf("the target's processes have no memory but the host's")
	}
	return o
}

// Exported is a buffer in memory that its driver exports, and the DMA-BUF of all of it.
type Exported struct {
	*Buffer
	Memory verbs.Memory
	verbs.Dmabuf
	// CloseFD closes the descriptor, once.
	CloseFD func(c *spec.C)
	// Free gives the buffer's memory back, once.
	Free func(c *spec.C)
}

// ExportedKind returns the kind of memory for cases that need any exporter: a GPU's if there is
// one, else udmabuf.
func ExportedKind(c *spec.C) verbs.MemoryKind {
	if c.Has("gpu") {
		return verbs.MemoryGPU
	}
	return verbs.MemoryUdmabuf
}

// ExportOnly allocates n bytes of a kind and exports them, without a region on them.
func ExportOnly(c *spec.C, kind verbs.MemoryKind, n int) *Exported {
	o := Opener(c)
	m, err := o.OpenMemory(c.T, kind, verbs.MemoryOptions{})
	ok(c, "open memory of kind "+kind.String(), err)
	b, err := m.Alloc(c.T, uint64(n), 0)
	ok(c, "allocate memory of kind "+kind.String(), err)
	x := &Exported{Buffer: &Buffer{Mem: b, Len: n, bare: true}, Memory: m, Free: DestroyOnce(c, "free memory", b.Unmap)}
	x.Dmabuf, err = m.Export(c.T, b, 0, uint64(n))
	ok(c, "export memory", err)
	x.CloseFD = DestroyOnce(c, "close the DMA-BUF", func(t verbs.Thread) error { return o.CloseFD(t, x.FD) })
	return x
}

// Exported allocates n bytes of a kind, exports them and registers all of them at their own
// addresses.
func (e *Env) Exported(c *spec.C, kind verbs.MemoryKind, n int, access verbs.AccessFlags) *Exported {
	x := ExportOnly(c, kind, n)
	x.MR, x.Dereg = e.RegExported(c, x, 0, n, access)
	return x
}

// RegExported registers n bytes of exported memory from byte off on, at their own addresses. It
// returns the region and a function that deregisters it early.
func (e *Env) RegExported(c *spec.C, x *Exported, off, n int, access verbs.AccessFlags) (verbs.MR, func(c *spec.C)) {
	mr, err := e.PD.RegDmabufMR(c.T, x.Offset+uint64(off), uint64(n), x.Addr(off), x.FD, access)
	ok(c, "reg_dmabuf_mr", err)
	return mr, DestroyOnce(c, "dereg_mr", mr.Dereg)
}

// ExportedBuffer allocates n bytes of a kind in the other process, exports them and registers the
// DMA-BUF.
func (o *OtherProcess) ExportedBuffer(c *spec.C, kind verbs.MemoryKind, n int, access verbs.AccessFlags) *OtherBuffer {
	return o.buffer(c, n, Args{"len": uint64(n), "access": uint64(access), "memory": uint64(kind)})
}
