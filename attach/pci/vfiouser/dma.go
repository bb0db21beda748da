//go:build linux && amd64

package vfiouser

import (
	"math"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/uapi"
)

// pageSize is that of addresses and sizes of windows.
const pageSize = 4096

// maxWindows is how many windows a client may map (max_dma_maps).
const maxWindows = 65535

// Window is memory of the guest. A part of it may be gone at any access, with a SIGBUS (package
// sharedmem): the client may shorten its file.
type Window struct {
	Address  uint64 // guest-physical
	Size     uint64
	Writable bool
	// Mem are the bytes; nil where the client gave no file, and the device cannot reach them.
	Mem []byte
}

func (w *Window) end() uint64 { return w.Address + w.Size }

// windows are those of a client, by address.
type windows struct {
	list []*Window
	// shared is set once a writable window came with a file: the guest's memory is shared with us.
	shared bool
	warned bool
	// refused is set when the machine's memory came without a file. A monitor may go on when a
	// window is refused, and its guest would wait for a device that cannot reach its memory: so
	// what else it asks is refused too.
	refused bool
}

// search is the number of windows that end at or before an address.
func (s *windows) search(address uint64) int {
	i, _ := slices.BinarySearchFunc(s.list, address, func(w *Window, a uint64) int {
		if w.end()-1 < a {
			return -1
		}
		return 1
	})
	return i
}

// clear takes all windows back.
func (s *windows) clear(d Device) {
	for len(s.list) > 0 {
		s.remove(len(s.list)-1, d)
	}
}

func (s *windows) remove(i int, d Device) {
	w := s.list[i]
	d.Unmap(w)
	if w.Mem != nil {
		_ = unix.Munmap(w.Mem)
	}
	s.list = slices.Delete(s.list, i, i+1)
}

func (x *connection) mapDMA(m *message) ([]byte, error) {
	a := uapi.VFIOUserDMAMap(m.body)
	at, n, flags := a.Address(), a.Length(), a.Flags()
	switch {
	case a.Argsz() < uapi.VFIOUserDMAMapSize, len(m.files) > 1, flags == 0, flags&^(uapi.VFIODMARead|uapi.VFIODMAWrite) != 0:
		return nil, syscall.EINVAL
	case n == 0, n > math.MaxInt, at+n-1 < at, (at|n|a.Offset())%pageSize != 0, a.Offset() > math.MaxInt64:
		return nil, syscall.EINVAL
	case len(x.dma.list) == maxWindows:
		return nil, syscall.ENOSPC
	}
	i := x.dma.search(at)
	if i < len(x.dma.list) && x.dma.list[i].Address <= at+n-1 {
		return nil, syscall.EEXIST
	}
	w := &Window{Address: at, Size: n, Writable: flags&uapi.VFIODMAWrite != 0}
	if err := x.back(w, m, a.Offset()); err != nil {
		return nil, err
	}
	x.dma.list = slices.Insert(x.dma.list, i, w)
	x.d.Map(w)
	return nil, nil
}

// back puts the file that came with a window behind it. ROM need not have one, nor other memory on
// devices of the guest; memory of the machine, which comes first, must.
func (x *connection) back(w *Window, m *message, offset uint64) error {
	if len(m.files) == 0 {
		switch {
		case w.Writable && !x.dma.shared:
			if !x.dma.refused {
				x.l.logf("the memory of the guest is not shared with this process: start QEMU with -object memory-backend-memfd,id=ram,size=...,share=on and -machine memory-backend=ram")
			}
			x.dma.refused = true
			return syscall.EINVAL
		case w.Writable && !x.dma.warned:
			x.dma.warned = true
			x.l.logf("memory of the guest at %#x, %#x bytes, is not shared with this process: the device cannot reach it", w.Address, w.Size)
		}
		return nil
	}
	fd := m.files[0]
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return syscall.EINVAL
	}
	if size := uint64(max(0, st.Size)); w.Size > size || offset > size-w.Size {
		return syscall.EINVAL
	}
	prot := unix.PROT_READ
	if w.Writable {
		prot |= unix.PROT_WRITE
	}
	b, err := unix.Mmap(fd, int64(offset), int(w.Size), prot, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	// Nothing of the guest belongs into a dump of this process.
	_ = unix.Madvise(b, unix.MADV_DONTDUMP)
	w.Mem = b
	x.dma.shared = x.dma.shared || w.Writable
	return nil
}

func (x *connection) unmapDMA(m *message) ([]byte, error) {
	a := uapi.VFIOUserDMAUnmap(m.body)
	if a.Argsz() < uapi.VFIOUserDMAUnmapSize || a.Flags()&^uapi.VFIODMAUnmapAll != 0 {
		return nil, syscall.EINVAL
	}
	if a.Flags() == uapi.VFIODMAUnmapAll {
		if a.Address() != 0 || a.Length() != 0 {
			return nil, syscall.EINVAL
		}
		x.dma.clear(x.d)
		return a[:uapi.VFIOUserDMAUnmapSize], nil
	}
	i := x.dma.search(a.Address())
	if i == len(x.dma.list) || x.dma.list[i].Address != a.Address() || x.dma.list[i].Size != a.Length() {
		return nil, syscall.ENOENT
	}
	x.dma.remove(i, x.d)
	return a[:uapi.VFIOUserDMAUnmapSize], nil
}
