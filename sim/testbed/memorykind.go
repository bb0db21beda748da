package testbed

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/gpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

var (
	_ verbs.MemoryOpener = (*process)(nil)
	_ verbs.Migrator     = (*gpuBuffer)(nil)
)

// memory is memory of one kind that a process has opened.
type memory struct {
	p    *process
	info verbs.MemoryInfo
	gpu  *gpu.GPU // nil: the host's
}

// Results of the CUDA driver, by which its calls fail.
const (
	cudaInvalidValue  = 1
	cudaOutOfMemory   = 2
	cudaNoDevice      = 100
	cudaInvalidDevice = 101
	cudaNotSupported  = 801
)

// cudaVersion is the driver's, as cuDriverGetVersion has it.
const cudaVersion = 12080

// OpenMemory initialises memory of a kind.
func (p *process) OpenMemory(t verbs.Thread, kind verbs.MemoryKind, o verbs.MemoryOptions) (verbs.Memory, error) {
	provider.Of(t).P.Sync()
	page := uint64(p.host.PageSize())
	m := &memory{p: p, info: verbs.MemoryInfo{Kind: kind, Touchable: true, Page: page, ExportPage: page}}
	switch kind {
	case verbs.MemoryHost:
		return m, nil
	case verbs.MemoryHuge:
		if m.info.Page = 2 << 20; o.PageSize != 0 {
			m.info.Page = o.PageSize
		}
		return m, nil
	case verbs.MemoryUdmabuf:
		m.info.Dmabuf = true
		return m, nil
	case verbs.MemoryGPU, verbs.MemoryGPUHost:
		return m, m.openGPU(o)
	}
	return nil, fmt.Errorf("memory of kind %v: %w", kind, syscall.EOPNOTSUPP)
}

// busID is the PCI address of a GPU of a host.
func busID(i int) string { return fmt.Sprintf("0000:%02x:00.0", 0x41+0x20*i) }

// openGPU finds the GPU, and what its memory is.
func (m *memory) openGPU(o verbs.MemoryOptions) error {
	h, g := m.p.host, &m.p.host.tb.prof.GPU
	n := h.tb.cfg.Hosts[h.index].GPUs
	for i := range n {
		m.info.GPUs = append(m.info.GPUs, busID(i))
	}
	which := o.GPU
	if o.BusID != "" {
		which = -1
		for i, id := range m.info.GPUs {
			if id == o.BusID {
				which = i
			}
		}
	}
	switch {
	case n == 0:
		return &verbs.MemoryError{Call: "cuInit", Code: cudaNoDevice, Text: h.name + " has no GPU", Err: syscall.ENODEV}
	case which < 0 || which >= n:
		return &verbs.MemoryError{Call: "cuDeviceGet", Code: cudaInvalidDevice,
			Text: fmt.Sprintf("no GPU %d %s: %s has %d, the first at %s", o.GPU, o.BusID, h.name, n, busID(0)), Err: syscall.ENODEV}
	case g.Integrated != (m.info.Kind == verbs.MemoryGPUHost):
		return &verbs.MemoryError{Call: "cuDeviceGetAttribute", Code: cudaNotSupported, Err: syscall.EOPNOTSUPP,
			Text: fmt.Sprintf("memory %v of a GPU with gpu.integrated %v of the profile: such a GPU has the other kind", m.info.Kind, g.Integrated)}
	}
	m.info.Name, m.info.BusID, m.info.Driver, m.info.Integrated = "simulated GPU", m.info.GPUs[which], cudaVersion, g.Integrated
	if g.Integrated { // its memory is the host's, which it does not export
		return nil
	}
	m.info.Touchable, m.info.Page, m.info.Dmabuf = false, g.Page, g.Dmabuf
	var err error
	m.gpu, err = h.gpu(which)
	return err
}

// gpu is the i-th GPU, with which the host's devices learn the way there. What has no GPU's memory
// open pays nothing for it.
func (h *host) gpu(i int) (*gpu.GPU, error) {
	g := &h.tb.prof.GPU
	for len(h.gpus) <= i {
		x, err := gpu.New(h.mem, g)
		if err != nil {
			return nil, err
		}
		if len(h.gpus) == 0 {
			w := g.Way()
			for _, d := range h.devices {
				if err := d.link.AddPeer(x.Start(), pcie.Peer{WriteRate: w.Write, ReadRate: w.Read, Latency: w.Latency, Buffer: int(g.WriteBuffer), Stall: d.hca.Stall}); err != nil {
					return nil, err
				}
			}
		}
		h.gpus = append(h.gpus, x)
	}
	return h.gpus[i], nil
}

func (m *memory) Info() verbs.MemoryInfo { return m.info }

// Close gives nothing back: what was allocated lives on.
func (m *memory) Close(t verbs.Thread) error {
	provider.Of(t)
	return nil
}

// Alloc maps memory of the host, or takes some of the GPU.
func (m *memory) Alloc(t verbs.Thread, length, align uint64) (verbs.Buffer, error) {
	page := m.info.Page
	if length == 0 || length > 1<<47 || align&(align-1) != 0 {
		return nil, fmt.Errorf("allocate %d B of %v memory, aligned to %d: %w", length, m.info.Kind, align, syscall.EINVAL)
	}
	size := (length + page - 1) &^ (page - 1)
	switch {
	case m.gpu != nil:
		return m.p.allocGPU(t, m, length, max(align, page))
	case m.info.Kind == verbs.MemoryUdmabuf:
		o, err := m.p.NewShared(t, size)
		if err != nil {
			return nil, err
		}
		b, err := m.p.Map(t, length, verbs.MapOptions{Object: o})
		if err != nil {
			return nil, err
		}
		return b, o.Close(t) // the mapping keeps it
	}
	o := verbs.MapOptions{}
	if m.info.Kind == verbs.MemoryHuge {
		o.PageSize = page
	}
	if align <= page {
		return m.p.Map(t, length, o)
	}
	room, err := m.p.Map(t, length+align, verbs.MapOptions{NoAccess: true, Lazy: true})
	if err != nil {
		return nil, err
	}
	o.At = (room.Addr() + align - 1) &^ (align - 1)
	return m.p.Map(t, length, o)
}

// Copy goes through the program: what it takes is that of each side.
func (m *memory) Copy(t verbs.Thread, dst verbs.Buffer, dstOff uint64, src verbs.Buffer, srcOff, n uint64) error {
	if dstOff > dst.Len() || n > dst.Len()-dstOff || srcOff > src.Len() || n > src.Len()-srcOff {
		return fmt.Errorf("copy %d B from %d of a buffer of %d B to %d of one of %d B: %w", n, srcOff, src.Len(), dstOff, dst.Len(), syscall.EINVAL)
	}
	b := make([]byte, n)
	if _, err := src.ReadAt(t, b, int64(srcOff)); err != nil {
		return err
	}
	_, err := dst.WriteAt(t, b, int64(dstOff))
	return err
}

// Export makes a DMA-BUF of memory of a GPU or, by /dev/udmabuf, of shared memory of the host.
func (m *memory) Export(t verbs.Thread, vb verbs.Buffer, off, n uint64) (verbs.Dmabuf, error) {
	provider.Of(t).P.Sync()
	switch b := vb.(type) {
	case *gpuBuffer:
		return m.exportGPU(b, off, n)
	case *buffer:
		if m.info.Kind == verbs.MemoryUdmabuf {
			return m.p.exportHost(t, b, off, n)
		}
	}
	return verbs.Dmabuf{}, fmt.Errorf("export memory of kind %v: %w", m.info.Kind, syscall.EOPNOTSUPP)
}

// whole is the range of whole pages around [off, off+n) of a buffer. EINVAL: there is nothing, or
// more than the buffer has.
func (p *process) whole(b verbs.Buffer, off, n uint64) (start, end uint64, err error) {
	if n == 0 || off > b.Len() || n > b.Len()-off {
		return 0, 0, fmt.Errorf("export [%d, +%d) of a buffer of %d B: %w", off, n, b.Len(), syscall.EINVAL)
	}
	mask := uint64(p.host.PageSize()) - 1
	return off &^ mask, (off + n + mask) &^ mask, nil
}

func (m *memory) exportGPU(b *gpuBuffer, off, n uint64) (verbs.Dmabuf, error) {
	if !m.info.Dmabuf {
		return verbs.Dmabuf{}, &verbs.MemoryError{Call: "cuMemGetHandleForAddressRange", Code: cudaNotSupported, Err: syscall.EOPNOTSUPP,
			Text: "the GPU's driver exports no memory (gpu.dmabuf of the profile): take the open kernel modules, or nvidia-peermem and ibv_reg_mr"}
	}
	start, end, err := m.p.whole(b, off, n)
	if err != nil {
		return verbs.Dmabuf{}, &verbs.MemoryError{Call: "cuMemGetHandleForAddressRange", Code: cudaInvalidValue, Text: err.Error(), Err: syscall.EINVAL}
	}
	x, err := b.a.Export(start, end-start)
	if err != nil {
		return verbs.Dmabuf{}, err
	}
	buf := kernel.NewDMABuf(gpuExport{x})
	x.Notify = buf.MoveNotify
	return verbs.Dmabuf{FD: m.p.lib.OpenDMABuf(buf), Offset: off - start, Size: end - start}, nil
}

// exportHost is udmabuf: the pages of the file behind the memory are pinned for as long as the
// DMA-BUF lives.
func (p *process) exportHost(t verbs.Thread, b *buffer, off, n uint64) (verbs.Dmabuf, error) {
	start, end, err := p.whole(b, off, n)
	if err != nil {
		return verbs.Dmabuf{}, err
	}
	x := &udmabuf{space: p.lib.K.Space, n: end - start}
	err = b.change(t, func(s *mem.Space) error {
		x.pages, err = s.Pin(b.va+mem.VA(start), end-start, mem.Read|mem.Write)
		return err
	})
	if err != nil {
		return verbs.Dmabuf{}, fmt.Errorf("udmabuf: %w", err)
	}
	return verbs.Dmabuf{FD: p.lib.OpenDMABuf(kernel.NewDMABuf(x)), Offset: off - start, Size: end - start}, nil
}

// DmabufInfo reads what the kernel says of a DMA-BUF.
func (p *process) DmabufInfo(t verbs.Thread, fd int) (verbs.DmabufInfo, error) {
	provider.Of(t).P.Sync()
	b, err := p.lib.DMABuf(fd)
	if err != nil {
		return verbs.DmabufInfo{}, err
	}
	size, refs, name := b.Info()
	return verbs.DmabufInfo{Size: size, Count: refs, Exporter: name}, nil
}

// udmabuf is shared memory of the host as a DMA-BUF.
type udmabuf struct {
	space *mem.Space
	n     uint64
	pages []mem.PA
}

func (x *udmabuf) Name() string { return "udmabuf" }
func (x *udmabuf) Size() uint64 { return x.n }
func (x *udmabuf) Unmap()       {}
func (x *udmabuf) Pin() error   { return nil }
func (x *udmabuf) Unpin()       {}
func (x *udmabuf) Release()     { x.space.Unpin(x.pages) }

// Map gives the pages, which lie anywhere.
func (x *udmabuf) Map() (kernel.Pages, error) {
	return kernel.Pages{List: x.pages}, nil
}

// copyTime is what a copy of n bytes between the processor and a GPU takes, in the thread's time.
func (p *process) copyTime(t verbs.Thread, n int) {
	if d := p.host.tb.prof.GPU.CopyTime(uint64(n)); d > 0 {
		provider.Of(t).P.Sleep(max(d, sim.Picosecond))
	}
}
