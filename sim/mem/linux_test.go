//go:build linux

package mem

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// realPages is how many pages the area has in which the kernel of this machine and a Space do the
// same.
const realPages = 24

// realRun is a random program that both run.
type realRun struct {
	*rapid.T
	s       *Space
	base    uintptr // of the area, in this process
	va      VA      // and in the Space
	paged   bool    // reclaim, which Linux does as far as it likes
	fds     [2]int
	objects [2]*Object
}

// TestAsLinux: a random program of system calls has the same errno, the same bytes and the same
// residency on the kernel of this machine as here. Memory is read and written by process_vm_readv
// and process_vm_writev, which fail where a core would be sent a signal.
func TestAsLinux(t *testing.T) {
	if os.Getpagesize() != PageSize {
		t.Skip("needs a kernel with pages of 4 KiB")
	}
	if err := probeRemote(); err != nil {
		t.Skipf("needs a machine that lets a process read its own memory by process_vm_readv: %v", err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := &realRun{T: rt, s: NewSpace(New(64 << 20))}
		r.reserve()
		defer r.close()
		ops := []func(page, n uintptr){r.mmap, r.mmap, r.mprotect, r.discard, r.munmap, r.mremap, r.truncate, r.write, r.write, r.write, r.read, r.pwrite, r.populate, r.pageOut}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			page := uintptr(rapid.IntRange(0, realPages-1).Draw(rt, "page"))
			n := uintptr(rapid.IntRange(1, min(5, realPages-int(page))).Draw(rt, "pages"))
			rapid.SampledFrom(ops).Draw(rt, "op")(page, n)
		}
		for page := uintptr(0); page < realPages && !r.paged; page++ {
			r.residency(page, 1)
		}
		for page := range uintptr(realPages) {
			r.read(page, 1)
		}
	})
}

func probeRemote() error {
	b := []byte{1}
	return remote(unix.ProcessVMReadv, uintptr(unsafe.Pointer(&b[0])), make([]byte, 1))
}

// remote moves p from or to an address of this process; EFAULT where it may not.
func remote(move func(int, []unix.Iovec, []unix.RemoteIovec, uint) (int, error), at uintptr, p []byte) error {
	local := []unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	n, err := move(os.Getpid(), local, []unix.RemoteIovec{{Base: at, Len: len(p)}}, 0)
	if err == nil && n != len(p) {
		err = fmt.Errorf("%d bytes of %d", n, len(p))
	}
	return err
}

func call(nr, a, b, c, d, e, f uintptr) (uintptr, error) {
	v, _, errno := unix.Syscall6(nr, a, b, c, d, e, f)
	if errno != 0 {
		return v, errno
	}
	return v, nil
}

func (r *realRun) reserve() {
	// Far from where the kernel and the Go runtime put mappings: what is unmapped must stay free.
	at, err := call(unix.SYS_MMAP, 0x0b0b_0000_0000, realPages*PageSize, 0, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if err != nil {
		r.Fatal(err)
	}
	r.base = at
	va, err := r.s.MapWith(realPages*PageSize, MapOptions{Lazy: true})
	if err != nil {
		r.Fatal(err)
	}
	r.va = va
	for i := range r.fds {
		if r.fds[i], err = unix.MemfdCreate("test", unix.MFD_CLOEXEC); err != nil {
			r.Fatal(err)
		}
		if err := unix.Ftruncate(r.fds[i], 3*PageSize); err != nil {
			r.Fatal(err)
		}
		r.objects[i], _ = r.s.m.NewShared(3 * PageSize)
	}
}

func (r *realRun) close() {
	if _, err := call(unix.SYS_MUNMAP, r.base, realPages*PageSize, 0, 0, 0, 0); err != nil {
		r.Error(err)
	}
	for _, fd := range r.fds {
		_ = unix.Close(fd)
	}
}

// agree compares what both said.
func (r *realRun) agree(what string, real, ours error) bool {
	var a, b syscall.Errno
	if real != nil && !errors.As(real, &a) || ours != nil && !errors.As(ours, &b) || a != b {
		r.Fatalf("%s: Linux says %v, and here it is %v", what, real, ours)
	}
	return real == nil
}

func (r *realRun) at(page uintptr) (uintptr, VA) {
	return r.base + page*PageSize, r.va + VA(page*PageSize)
}

func (r *realRun) mmap(page, n uintptr) {
	at, va := r.at(page)
	prot := rapid.SampledFrom([]Prot{0, Read, Read | Write, Read | Write}).Draw(r.T, "prot")
	o := MapOptions{Lazy: true, Prot: prot, At: va, NoReplace: rapid.Bool().Draw(r.T, "no replace")}
	flags, fd := uintptr(unix.MAP_PRIVATE|unix.MAP_ANONYMOUS), ^uintptr(0)
	if k := rapid.IntRange(0, 3).Draw(r.T, "object"); k < 2 {
		o.Object, fd, flags = r.objects[k], uintptr(r.fds[k]), unix.MAP_SHARED
		o.Offset = uint64(rapid.IntRange(0, 4).Draw(r.T, "offset")) * PageSize
		if o.Private = rapid.Bool().Draw(r.T, "private"); o.Private {
			flags = unix.MAP_PRIVATE
		}
	}
	if flags |= unix.MAP_FIXED; o.NoReplace {
		flags = flags&^unix.MAP_FIXED | unix.MAP_FIXED_NOREPLACE
	}
	_, real := call(unix.SYS_MMAP, at, n*PageSize, uintptr(prot), flags, fd, uintptr(o.Offset))
	_, ours := r.s.MapWith(uint64(n*PageSize), o)
	r.agree("mmap", real, ours)
}

func (r *realRun) mprotect(page, n uintptr) {
	at, va := r.at(page)
	prot := rapid.SampledFrom([]Prot{0, Read, Read | Write}).Draw(r.T, "prot")
	_, real := call(unix.SYS_MPROTECT, at, n*PageSize, uintptr(prot), 0, 0, 0)
	r.agree("mprotect", real, r.s.Protect(va, uint64(n*PageSize), prot))
}

func (r *realRun) discard(page, n uintptr) {
	at, va := r.at(page)
	_, real := call(unix.SYS_MADVISE, at, n*PageSize, unix.MADV_DONTNEED, 0, 0, 0)
	r.agree("madvise", real, r.s.Discard(va, uint64(n*PageSize)))
}

func (r *realRun) pageOut(page, n uintptr) {
	if rapid.IntRange(0, 9).Draw(r.T, "once in a while") > 0 {
		return
	}
	at, va := r.at(page)
	_, real := call(unix.SYS_MADVISE, at, n*PageSize, unix.MADV_PAGEOUT, 0, 0, 0)
	r.agree("page out", real, r.s.PageOut(va, uint64(n*PageSize)))
	r.paged = true
}

func (r *realRun) populate(page, n uintptr) {
	at, va := r.at(page)
	advice := uintptr(rapid.SampledFrom([]int{unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE}).Draw(r.T, "advice"))
	_, real := call(unix.SYS_MADVISE, at, n*PageSize, advice, 0, 0, 0)
	r.agree("populate", real, r.s.Populate(va, uint64(n*PageSize), advice == unix.MADV_POPULATE_WRITE))
}

func (r *realRun) munmap(page, n uintptr) {
	at, va := r.at(page)
	_, real := call(unix.SYS_MUNMAP, at, n*PageSize, 0, 0, 0, 0)
	r.agree("munmap", real, r.s.Unmap(va, uint64(n*PageSize)))
}

// mremap moves one page: what several mappings say depends on the kernel.
func (r *realRun) mremap(page, _ uintptr) {
	at, va := r.at(page)
	to, vto := r.at(uintptr(rapid.IntRange(0, realPages-1).Draw(r.T, "to")))
	_, real := call(unix.SYS_MREMAP, at, PageSize, PageSize, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, to, 0)
	_, ours := r.s.Move(va, PageSize, vto)
	r.agree("mremap", real, ours)
}

func (r *realRun) truncate(_, _ uintptr) {
	k, size := rapid.IntRange(0, 1).Draw(r.T, "object"), rapid.IntRange(0, 5*PageSize).Draw(r.T, "size")
	r.agree("ftruncate", unix.Ftruncate(r.fds[k], int64(size)), r.objects[k].Truncate(uint64(size)))
}

func (r *realRun) pwrite(_, _ uintptr) {
	k, off, b := rapid.IntRange(0, 1).Draw(r.T, "object"), int64(rapid.IntRange(0, 5*PageSize).Draw(r.T, "offset")), []byte{rapid.Byte().Draw(r.T, "byte")}
	_, real := unix.Pwrite(r.fds[k], b, off)
	_, ours := r.objects[k].WriteAt(b, off)
	r.agree("pwrite", real, ours)
}

func (r *realRun) write(page, _ uintptr) {
	at, va := r.at(page)
	off, b := uintptr(rapid.SampledFrom([]int{0, 100, PageSize - 1}).Draw(r.T, "offset")), []byte{rapid.Byte().Draw(r.T, "byte")}
	r.agree("write", remote(unix.ProcessVMWritev, at+off, b), r.s.WriteAt(b, va+VA(off)))
}

func (r *realRun) read(page, _ uintptr) {
	at, va := r.at(page)
	a, b := make([]byte, PageSize), make([]byte, PageSize)
	if r.agree("read", remote(unix.ProcessVMReadv, at, a), r.s.ReadAt(b, va)) && string(a) != string(b) {
		r.Fatalf("page %d has other bytes than on Linux", page)
	}
}

// hugeObjects reports whether this kernel gives a page of a memory file pages beside it, too: a
// policy of the machine.
var hugeObjects = sync.OnceValue(func() bool {
	policy, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
	return err == nil && !regexp.MustCompile(`\[(never|advise|deny)\]`).Match(policy)
})

func (r *realRun) residency(page, n uintptr) {
	at, va := r.at(page)
	vec := make([]byte, realPages)
	_, real := call(unix.SYS_MINCORE, at, n*PageSize, uintptr(unsafe.Pointer(&vec[0])), 0, 0, 0)
	got, ours := r.s.Resident(va, uint64(n*PageSize))
	if !r.agree("mincore", real, ours) {
		return
	}
	for i, in := range got {
		if real := vec[i]&1 != 0; in != real && (in || !hugeObjects()) {
			r.Fatalf("page %d is resident: %v, and on Linux %v", page+uintptr(i), in, !in)
		}
	}
}
