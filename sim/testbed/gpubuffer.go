package testbed

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/gpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// gpuBuffer is memory of a GPU. Its addresses are reserved in the process, whose processor cannot
// touch them.
type gpuBuffer struct {
	p     *process
	a     *gpu.Allocation
	room  verbs.Buffer // of addresses
	addr  uint64
	n     uint64
	freed bool
}

// allocGPU is cuMemAlloc.
func (p *process) allocGPU(t verbs.Thread, m *memory, length, align uint64) (verbs.Buffer, error) {
	provider.Of(t).P.Sync()
	a, err := m.gpu.Alloc(length)
	if err != nil {
		return nil, &verbs.MemoryError{Call: "cuMemAlloc", Code: cudaOutOfMemory, Text: err.Error(), Err: syscall.ENOMEM}
	}
	room, err := p.Map(t, a.Len()+align, verbs.MapOptions{NoAccess: true, Lazy: true})
	if err != nil {
		a.Free()
		return nil, err
	}
	b := &gpuBuffer{p: p, a: a, room: room, addr: (room.Addr() + align - 1) &^ (align - 1), n: length}
	p.gpuMem = append(p.gpuMem, b)
	if p.host.tb.prof.GPU.Peermem {
		p.lib.K.Peer = p.peer
	}
	return b, nil
}

func (b *gpuBuffer) Addr() uint64 { return b.addr }
func (b *gpuBuffer) Len() uint64  { return b.n }

// check finds whether a thread may copy n bytes at off, and lets it take the time.
func (b *gpuBuffer) check(t verbs.Thread, n int, off int64) error {
	th := provider.Of(t)
	switch {
	case t.Process() != verbs.Process(b.p):
		return fmt.Errorf("thread %q: %w: %w", t.Name(), errForeign, syscall.EFAULT)
	case b.freed:
		return fmt.Errorf("memory of a GPU that was freed: %w", syscall.EFAULT)
	case off < 0 || uint64(off) > b.n || uint64(n) > b.n-uint64(off):
		return fmt.Errorf("%d bytes at %d of a buffer of %d: %w", n, off, b.n, syscall.EFAULT)
	}
	th.P.Sync()
	b.p.copyTime(t, n)
	return nil
}

// ReadAt is cuMemcpyDtoH.
func (b *gpuBuffer) ReadAt(t verbs.Thread, p []byte, off int64) (int, error) {
	if err := b.check(t, len(p), off); err != nil {
		return 0, err
	}
	b.a.Read(uint64(off), p)
	return len(p), nil
}

// WriteAt is cuMemcpyHtoD.
func (b *gpuBuffer) WriteAt(t verbs.Thread, p []byte, off int64) (int, error) {
	if err := b.check(t, len(p), off); err != nil {
		return 0, err
	}
	b.a.Write(uint64(off), p)
	return len(p), nil
}

// Unmap is cuMemFree. Exports keep the memory.
func (b *gpuBuffer) Unmap(t verbs.Thread) error {
	provider.Of(t).P.Sync()
	if b.freed {
		return &verbs.MemoryError{Call: "cuMemFree", Code: cudaInvalidValue, Text: "it was freed before", Err: syscall.EINVAL}
	}
	b.freed = true
	b.p.gpuMem = slices.DeleteFunc(b.p.gpuMem, func(x *gpuBuffer) bool { return x == b })
	b.a.Free()
	return b.room.Unmap(t)
}

// Migrate moves the memory to another place of the GPU.
func (b *gpuBuffer) Migrate(t verbs.Thread) error {
	if b.freed {
		return fmt.Errorf("memory of a GPU that was freed: %w", syscall.EINVAL)
	}
	b.p.copyTime(t, int(b.n))
	return b.p.change(t, func(*mem.Space) error { return b.a.Move() })
}

// gpuExport is a GPU's export as the kernel takes it.
type gpuExport struct{ *gpu.Export }

// Pin keeps the memory from being moved.
func (x gpuExport) Pin() error {
	x.Export.Pin()
	return nil
}

// Map makes the memory reachable.
func (x gpuExport) Map() (kernel.Pages, error) {
	pa, err := x.Export.Map()
	return kernel.Pages{Start: pa}, err
}

// peer is nvidia-peermem: it knows the memory of GPUs by the process's addresses.
func (p *process) peer(addr, n uint64) (kernel.Exporter, uint64, bool) {
	for _, b := range p.gpuMem {
		if addr < b.addr || addr-b.addr > b.a.Len() || n > b.a.Len()-(addr-b.addr) {
			continue
		}
		x, err := b.a.Export(0, b.a.Len())
		if err != nil {
			return nil, 0, false
		}
		return gpuExport{x}, addr - b.addr, true
	}
	return nil, 0, false
}
