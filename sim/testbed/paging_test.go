package testbed

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// paged maps memory lazily.
func (x *rig) paged(n uint64, o verbs.MapOptions) verbs.PagedBuffer {
	x.Helper()
	o.Lazy = true
	b, err := x.t.Process().Map(x.t, n, o)
	x.ok("map", err)
	return b.(verbs.PagedBuffer)
}

func (x *rig) holds(b verbs.Buffer, off int, want byte) {
	x.Helper()
	if got := x.read(x.t, b, off, 1)[0]; got != want {
		x.Errorf("byte %d is %d, want %d", off, got, want)
	}
}

// A program changes its pages as system calls do, with their errno.
func TestPagedMemory(t *testing.T) {
	const page = 4096
	run(t, config(t), func(x *rig) {
		b := x.paged(4*page, verbs.MapOptions{})
		x.write(x.t, b, []byte{1}, page)
		res, err := b.Resident(x.t, 0, 4*page)
		if x.ok("resident", err); len(res) != 4 || res[0] || !res[1] || res[2] {
			x.Errorf("resident: %v", res)
		}
		x.ok("page out", b.Advise(x.t, 0, 4*page, verbs.AdvicePageOut))
		if res, err = b.Resident(x.t, page, 1); err != nil || res[0] {
			x.Errorf("a page that was paged out is resident: %v", err)
		}
		x.holds(b, page, 1)
		x.ok("discard", b.Advise(x.t, page, page, verbs.AdviceDontNeed))
		x.holds(b, page, 0)
		x.ok("populate", b.Advise(x.t, 0, 4*page, verbs.AdvicePopulateWrite))
		x.errno("an unknown advice", b.Advise(x.t, 0, page, 999), syscall.EINVAL)
		x.ok("protect", b.Protect(x.t, page, page, verbs.ProtRead))
		_, err = b.WriteAt(x.t, []byte{1}, page)
		x.errno("a write to what is read-only", err, syscall.EFAULT)
		x.errno("unknown rights", b.Protect(x.t, 0, page, 1<<7), syscall.EINVAL)
		x.errno("from inside a page", b.Protect(x.t, 1, page, verbs.ProtRead), syscall.EINVAL)
		x.errno("a range that wraps", b.Protect(x.t, 1, ^uint64(0), verbs.ProtRead), syscall.EINVAL)
		x.errno("move two mappings", b.Move(x.t, 0), syscall.EFAULT)
		x.ok("protect", b.Protect(x.t, page, page, verbs.ProtRead|verbs.ProtWrite))
		x.write(x.t, b, []byte{5}, 2*page)
		was := b.Addr()
		x.ok("move", b.Move(x.t, 0))
		if b.Addr() == was {
			x.Error("memory that was moved has its address")
		}
		x.holds(b, 2*page, 5)
		x.ok("unmap a part", b.UnmapPart(x.t, page, page))
		x.errno("discard beside a hole", b.Advise(x.t, 0, 4*page, verbs.AdviceDontNeed), syscall.ENOMEM)
		x.holds(b, 2*page, 0)
		x.ok("unmap", b.Unmap(x.t))
		x.ok("unmap again", b.Unmap(x.t))
	})
}

// Mappings of one object show the same bytes; a private one keeps its own.
func TestMemObjects(t *testing.T) {
	const page = 4096
	run(t, config(t), func(x *rig) {
		p := x.t.Process().(verbs.MemObjects)
		shared, err := p.NewShared(x.t, 3*page)
		x.ok("shared memory", err)
		file, err := p.NewFile(x.t, page)
		x.ok("file", err)
		_, err = p.NewFile(x.t, 1<<60)
		x.errno("a file that is too large", err, syscall.EFBIG)
		for _, o := range []verbs.MemObject{shared, file} {
			_, err := o.WriteAt(x.t, []byte{3}, 0)
			x.ok("write", err)
			a := x.paged(page, verbs.MapOptions{Object: o})
			b := x.paged(page, verbs.MapOptions{Object: o, Private: true})
			x.write(x.t, b, []byte{4}, 0)
			x.holds(a, 0, 3)
			x.holds(b, 0, 4)
			x.write(x.t, a, []byte{5}, 0)
			got := make([]byte, 1)
			if _, err := o.ReadAt(x.t, got, 0); err != nil || got[0] != 5 {
				x.Errorf("the object has %d, %v", got[0], err)
			}
			x.ok("truncate", o.Truncate(x.t, 0))
			_, err = a.ReadAt(x.t, got, 0)
			x.errno("a page behind the end", err, syscall.EFAULT)
			x.ok("close", o.Close(x.t))
		}
		_, err = x.t.Process().Map(x.t, page, verbs.MapOptions{Object: shared})
		x.errno("a closed object", err, syscall.EBADF)
		keep := x.paged(16*page, verbs.MapOptions{NoAccess: true})
		at := keep.Addr() + 4*page
		_, err = x.t.Process().Map(x.t, page, verbs.MapOptions{At: at, NoReplace: true})
		x.errno("where something is", err, syscall.EEXIST)
		b := x.paged(page, verbs.MapOptions{At: at})
		if b.Addr() != at {
			x.Errorf("mapped at %#x, not %#x", b.Addr(), at)
		}
		x.write(x.t, b, []byte{1}, 0)
		_, err = keep.ReadAt(x.t, make([]byte, 1), 0)
		x.errno("a read without rights", err, syscall.EFAULT)
	})
}

// Page faults take the time of the thread: those of memory less than those of swap. Memory that was
// mapped at once has none.
func TestPageFaultsTakeTime(t *testing.T) {
	const pages, page = 64, 4096
	c := config(t, func(c *Config) { c.Hosts[0].Resident, c.Hosts[0].Swap = 32*page, 1<<20 })
	run(t, c, func(x *rig) {
		k := &x.bed.prof.Kernel
		data := bytes.Repeat([]byte{1}, pages*page)
		took := func(f func()) time.Duration {
			start := x.t.Now()
			f()
			return x.t.Now() - start
		}
		eager, err := x.t.Process().Map(x.t, pages*page, verbs.MapOptions{})
		x.ok("map", err)
		if d := took(func() { x.write(x.t, eager, data, 0) }); d != 0 {
			x.Errorf("writes to memory that is there take %v", d)
		}
		lazy := x.paged(pages*page, verbs.MapOptions{})
		first := took(func() { x.write(x.t, lazy, data, 0) })
		if want := time.Duration(pages*k.MinorFault) / 1000; first != want {
			x.Errorf("%d first touches take %v, want %v", pages, first, want)
		}
		again := took(func() { x.read(x.t, lazy, 0, pages*page) })
		if want := time.Duration(pages*k.MajorFault) / 1000; again != want {
			x.Errorf("%d pages from swap take %v, want %v", pages, again, want)
		}
		n, err := x.t.Process().(verbs.PageFaultCounter).PageFaults(x.t)
		if x.ok("page faults", err); n != (verbs.PageFaults{Minor: pages, Major: pages}) {
			x.Errorf("%+v", n)
		}
	})
}
