//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/hw/cuda"
	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.MemoryOpener = (*process)(nil)

// RegDmabufMR is ibv_reg_dmabuf_mr.
func (p *pd) RegDmabufMR(t verbs.Thread, offset, length, iova uint64, fd int, access verbs.AccessFlags) (verbs.MR, error) {
	defer enterCall(t, "ibv_reg_dmabuf_mr").leaveCall()
	m, err := C.ibv_reg_dmabuf_mr(p.p, C.uint64_t(offset), C.size_t(length), C.uint64_t(iova), C.int(fd), C.int(access))
	if m == nil {
		return nil, null("ibv_reg_dmabuf_mr", err)
	}
	return &mr{m: m}, nil
}

// udmabufFile makes DMA-BUFs of shared memory (CONFIG_UDMABUF).
const udmabufFile = "/dev/udmabuf"

// memory is memory of a kind.
type memory struct {
	p    *process
	info verbs.MemoryInfo
	gpu  *cuda.Device // nil: the host's
}

// OpenMemory initialises memory of a kind.
func (p *process) OpenMemory(t verbs.Thread, kind verbs.MemoryKind, o verbs.MemoryOptions) (verbs.Memory, error) {
	callingThread(t)
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
		if _, err := os.Stat(udmabufFile); err != nil {
			return nil, fmt.Errorf("memory as a DMA-BUF: %v (the kernel module udmabuf makes the file): %w", err, syscall.ENODEV)
		}
		m.info.Dmabuf = true
		return m, nil
	case verbs.MemoryGPU, verbs.MemoryGPUHost:
		return m, m.openGPU(o)
	}
	return nil, fmt.Errorf("memory of kind %v: %w", kind, syscall.EOPNOTSUPP)
}

// driverError is a refusal of the CUDA driver as package verbs has it.
func driverError(err error, errno syscall.Errno, text string) error {
	var e *cuda.Error
	if !errors.As(err, &e) {
		return err
	}
	return &verbs.MemoryError{Call: e.Call, Code: e.Code, Text: text, Err: errno}
}

func (m *memory) openGPU(o verbs.MemoryOptions) error {
	if err := cuda.Load(); errors.Is(err, cuda.ErrNoLibrary) {
		return fmt.Errorf("memory of a GPU: %w; without a GPU, /dev/udmabuf stands in for one: %w", err, syscall.ENODEV)
	} else if err != nil {
		return driverError(err, syscall.ENODEV, "the CUDA driver finds no GPU")
	}
	all, err := cuda.List()
	if err != nil {
		return driverError(err, syscall.ENODEV, "the CUDA driver lists no GPUs")
	}
	for _, x := range all {
		m.info.GPUs = append(m.info.GPUs, x.BusID)
	}
	if m.gpu, err = cuda.Open(o.GPU, o.BusID); err != nil {
		return driverError(err, syscall.ENODEV, fmt.Sprintf("no GPU %d %s: there are %d, at %s", o.GPU, o.BusID, len(all), strings.Join(m.info.GPUs, ", ")))
	}
	if m.gpu.Integrated != (m.info.Kind == verbs.MemoryGPUHost) {
		_ = m.gpu.Close()
		return &verbs.MemoryError{Call: "cuDeviceGetAttribute", Code: cuda.NotSupported, Err: syscall.EOPNOTSUPP,
			Text: fmt.Sprintf("%s shares the host's memory: %v; memory %v belongs to the other kind of GPU", m.gpu.Name, m.gpu.Integrated, m.info.Kind)}
	}
	const gpuPage = 64 << 10
	m.info.Name, m.info.BusID, m.info.Integrated, m.info.Dmabuf = m.gpu.Name, m.gpu.BusID, m.gpu.Integrated, m.gpu.Dmabuf && !m.gpu.Integrated
	m.info.Touchable = m.gpu.Integrated
	m.info.Page = max(m.info.Page, gpuPage)
	m.info.Driver, err = cuda.Version()
	return driverError(err, syscall.EIO, "")
}

func (m *memory) Info() verbs.MemoryInfo { return m.info }

// Close gives the GPU's context up.
func (m *memory) Close(t verbs.Thread) error {
	callingThread(t)
	if m.gpu == nil {
		return nil
	}
	return driverError(m.gpu.Close(), syscall.EIO, "")
}

// Alloc maps memory of the host, or takes some of the GPU.
func (m *memory) Alloc(t verbs.Thread, length, align uint64) (verbs.Buffer, error) {
	callingThread(t)
	page := m.info.Page
	if length == 0 || length > 1<<47 || align&(align-1) != 0 {
		return nil, fmt.Errorf("allocate %d B of %v memory, aligned to %d: %w", length, m.info.Kind, align, syscall.EINVAL)
	}
	size := (length + page - 1) &^ (page - 1)
	switch {
	case m.gpu != nil:
		return m.allocGPU(t, length, size, max(align, uint64(m.p.host.PageSize())))
	case m.info.Kind == verbs.MemoryUdmabuf:
		return m.allocShared(t, length, size)
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

// shared is memory of which /dev/udmabuf makes a DMA-BUF: a mapping of a memfd that can no longer
// shrink.
type shared struct {
	verbs.Buffer
	fd int
}

func (m *memory) allocShared(t verbs.Thread, length, size uint64) (verbs.Buffer, error) {
	fd, err := unix.MemfdCreate("rdmasim-dmabuf", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, errors.Join(fmt.Errorf("ftruncate to %d bytes: %w", size, err), unix.Close(fd))
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return nil, errors.Join(fmt.Errorf("seal: %w", err), unix.Close(fd))
	}
	b, err := m.p.Map(t, length, verbs.MapOptions{Object: &memObject{fd}})
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &shared{b, fd}, nil
}

// Unmap unmaps the memory and closes its file. DMA-BUFs keep the pages.
func (b *shared) Unmap(t verbs.Thread) error { return errors.Join(b.Buffer.Unmap(t), unix.Close(b.fd)) }

// gpuBuffer is memory of a GPU.
type gpuBuffer struct {
	m       *memory
	at      uint64 // of the allocation
	addr, n uint64
}

func (m *memory) allocGPU(t verbs.Thread, length, size, align uint64) (verbs.Buffer, error) {
	at, err := m.gpu.Alloc(size + align) // addresses of small allocations begin anywhere
	if err != nil {
		return nil, driverError(err, syscall.ENOMEM, fmt.Sprintf("%d B of %s", size, m.info.Name))
	}
	b := &gpuBuffer{m: m, at: at, addr: (at + align - 1) &^ (align - 1), n: length}
	zeroes := make([]byte, min(length, 1<<20))
	for off := uint64(0); off < length; off += uint64(len(zeroes)) {
		if _, err := b.WriteAt(t, zeroes[:min(uint64(len(zeroes)), length-off)], int64(off)); err != nil {
			return nil, errors.Join(err, b.Unmap(t))
		}
	}
	return b, nil
}

func (b *gpuBuffer) Addr() uint64 { return b.addr }
func (b *gpuBuffer) Len() uint64  { return b.n }

func (b *gpuBuffer) check(t verbs.Thread, n int, off int64) error {
	callingThread(t)
	if off < 0 || uint64(off) > b.n || uint64(n) > b.n-uint64(off) {
		return fmt.Errorf("%d bytes at %d of a buffer of %d: %w", n, off, b.n, syscall.EFAULT)
	}
	return nil
}

// ReadAt copies from the GPU.
func (b *gpuBuffer) ReadAt(t verbs.Thread, p []byte, off int64) (int, error) {
	if err := b.check(t, len(p), off); err != nil {
		return 0, err
	}
	if err := b.m.gpu.CopyOut(p, b.addr+uint64(off)); err != nil {
		return 0, driverError(err, syscall.EFAULT, "")
	}
	return len(p), nil
}

// WriteAt copies to the GPU.
func (b *gpuBuffer) WriteAt(t verbs.Thread, p []byte, off int64) (int, error) {
	if err := b.check(t, len(p), off); err != nil {
		return 0, err
	}
	if err := b.m.gpu.CopyIn(b.addr+uint64(off), p); err != nil {
		return 0, driverError(err, syscall.EFAULT, "")
	}
	return len(p), nil
}

// Unmap frees the memory.
func (b *gpuBuffer) Unmap(t verbs.Thread) error {
	callingThread(t)
	return driverError(b.m.gpu.Free(b.at), syscall.EINVAL, "")
}

// Copy is cuMemcpy where a GPU's memory takes part, which tells by the addresses where each side
// lies.
func (m *memory) Copy(t verbs.Thread, dst verbs.Buffer, dstOff uint64, src verbs.Buffer, srcOff, n uint64) error {
	callingThread(t)
	if dstOff > dst.Len() || n > dst.Len()-dstOff || srcOff > src.Len() || n > src.Len()-srcOff {
		return fmt.Errorf("copy %d B from %d of a buffer of %d B to %d of one of %d B: %w", n, srcOff, src.Len(), dstOff, dst.Len(), syscall.EINVAL)
	}
	if m.gpu != nil {
		return driverError(m.gpu.Copy(dst.Addr()+dstOff, src.Addr()+srcOff, n), syscall.EFAULT, "")
	}
	b := make([]byte, n)
	if _, err := src.ReadAt(t, b, int64(srcOff)); err != nil {
		return err
	}
	_, err := dst.WriteAt(t, b, int64(dstOff))
	return err
}

// Export makes a DMA-BUF of whole pages of the host.
func (m *memory) Export(t verbs.Thread, vb verbs.Buffer, off, n uint64) (verbs.Dmabuf, error) {
	callingThread(t)
	if n == 0 || off > vb.Len() || n > vb.Len()-off {
		return verbs.Dmabuf{}, fmt.Errorf("export [%d, +%d) of a buffer of %d B: %w", off, n, vb.Len(), syscall.EINVAL)
	}
	mask := m.info.ExportPage - 1
	first := (vb.Addr() + off) &^ mask
	size := (vb.Addr()+off+n+mask)&^mask - first
	d := verbs.Dmabuf{Offset: vb.Addr() + off - first, Size: size}
	var err error
	switch b := vb.(type) {
	case *gpuBuffer:
		if d.FD, err = m.gpu.Export(first, size); err != nil {
			err = driverError(err, syscall.EOPNOTSUPP, "the GPU's driver exports memory from CUDA 11.7 on, with the open kernel modules from 515 on and parts from Turing on")
		}
	case *shared:
		d.FD, err = udmabuf(b.fd, first-b.Addr(), size)
	default:
		err = fmt.Errorf("export memory of kind %v: %w", m.info.Kind, syscall.EOPNOTSUPP)
	}
	return d, err
}

// udmabuf makes a DMA-BUF of a part of a memfd (UDMABUF_CREATE).
func udmabuf(memfd int, off, size uint64) (int, error) {
	dev, err := unix.Open(udmabufFile, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", udmabufFile, err)
	}
	defer func() { _ = unix.Close(dev) }()
	const (
		create  = 0x40187542 // _IOW('u', 0x42, struct udmabuf_create)
		cloexec = 1
	)
	arg := struct {
		memfd, flags uint32
		offset, size uint64
	}{uint32(memfd), cloexec, off, size}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(dev), create, uintptr(unsafe.Pointer(&arg)))
	if errno != 0 {
		return -1, fmt.Errorf("%s: %d B at %d of shared memory (its module has a limit, size_limit_mb): %w", udmabufFile, size, off, errno)
	}
	return int(fd), nil
}

// DmabufInfo reads /proc/self/fdinfo.
func (p *process) DmabufInfo(t verbs.Thread, fd int) (info verbs.DmabufInfo, err error) {
	callingThread(t)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
		return info, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return info, err
	}
	return parseDmabufInfo(string(text), fd)
}

// parseDmabufInfo finds what a DMA-BUF has in its fdinfo (dma_buf_show_fdinfo).
func parseDmabufInfo(text string, fd int) (info verbs.DmabufInfo, err error) {
	found := false
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "size":
			info.Size, err = strconv.ParseUint(value, 10, 64)
		case "count":
			info.Count, err = strconv.Atoi(value)
		case "exp_name":
			info.Exporter, found = value, true
		}
		if err != nil {
			return info, fmt.Errorf("fdinfo of descriptor %d: %q: %w", fd, line, err)
		}
	}
	if !found {
		return info, fmt.Errorf("descriptor %d is not a DMA-BUF: %w", fd, syscall.EINVAL)
	}
	return info, nil
}
