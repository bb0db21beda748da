//go:build hw

package mlx5

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// What programs do to their memory, on the kernel of this machine: as the simulator has it.
func TestPagedMemory(t *testing.T) {
	run(t, func(vt verbs.Thread) {
		p := vt.Process()
		page := uint64(p.Host().PageSize())
		expect := func(what string, err error, want syscall.Errno) {
			t.Helper()
			if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		holds := func(b verbs.Buffer, off uint64, want byte) {
			t.Helper()
			var got [1]byte
			if _, err := b.ReadAt(vt, got[:], int64(off)); err != nil || got[0] != want {
				t.Errorf("byte %d is %d, %v; want %d", off, got[0], err, want)
			}
		}
		write := func(b verbs.Buffer, off uint64, v byte) error {
			_, err := b.WriteAt(vt, []byte{v}, int64(off))
			return err
		}
		lazy := func(n uint64, o verbs.MapOptions) verbs.PagedBuffer {
			t.Helper()
			o.Lazy = true
			b, err := p.Map(vt, n, o)
			if err != nil {
				t.Fatal(err)
			}
			return b.(verbs.PagedBuffer)
		}
		if b := lazy(512<<30, verbs.MapOptions{}); write(b, 1<<38, 1) != nil || b.Unmap(vt) != nil {
			t.Error("512 GiB of which one page is touched")
		}
		b := lazy(4*page, verbs.MapOptions{})
		expect("write", write(b, page, 1), 0)
		res, err := b.Resident(vt, 0, 4*page)
		expect("resident", err, 0)
		if len(res) != 4 || res[0] || !res[1] || res[2] {
			t.Errorf("resident: %v", res)
		}
		expect("page out", b.Advise(vt, 0, 4*page, verbs.AdvicePageOut), 0)
		holds(b, page, 1)
		expect("discard", b.Advise(vt, page, page, verbs.AdviceDontNeed), 0)
		holds(b, page, 0)
		expect("an unknown advice", b.Advise(vt, 0, page, 999), syscall.EINVAL)
		expect("protect", b.Protect(vt, page, page, verbs.ProtRead), 0)
		expect("a write to what is read-only", write(b, page, 1), syscall.EFAULT)
		expect("unknown rights", b.Protect(vt, 0, page, 1<<7), syscall.EINVAL)
		expect("from inside a page", b.Protect(vt, 1, page, verbs.ProtRead), syscall.EINVAL)
		if err := b.Move(vt, 0); err != nil { // Linux 6.17 and later move several mappings at once
			expect("move three mappings", err, syscall.EFAULT)
		}
		expect("protect", b.Protect(vt, page, page, verbs.ProtRead|verbs.ProtWrite), 0)
		expect("write", write(b, 2*page, 5), 0)
		was := b.Addr()
		expect("move", b.Move(vt, 0), 0)
		if b.Addr() == was {
			t.Error("memory that was moved has its address")
		}
		holds(b, 2*page, 5)
		expect("unmap a part", b.UnmapPart(vt, page, page), 0)
		expect("discard beside a hole", b.Advise(vt, 0, 4*page, verbs.AdviceDontNeed), syscall.ENOMEM)
		_, err = b.Resident(vt, 0, 4*page)
		expect("residency of a hole", err, syscall.ENOMEM)
		expect("protect a hole", b.Protect(vt, 0, 4*page, verbs.ProtRead), syscall.ENOMEM)
		holds(b, 2*page, 0)
		expect("unmap", b.Unmap(vt), 0)
		expect("unmap again", b.Unmap(vt), 0)
		objects(t, vt, lazy, expect, holds, write)
		if n, err := p.(verbs.PageFaultCounter).PageFaults(vt); err != nil || n.Minor == 0 {
			t.Error(n, err)
		}
		if n, err := p.(verbs.MemoryUser).MemoryUse(vt); err != nil || n.Resident == 0 {
			t.Error(n, err)
		}
	})
}

// objects is what TestPagedMemory tests of files and shared memory.
func objects(t *testing.T, vt verbs.Thread, lazy func(uint64, verbs.MapOptions) verbs.PagedBuffer,
	expect func(string, error, syscall.Errno), holds func(verbs.Buffer, uint64, byte), write func(verbs.Buffer, uint64, byte) error) {
	p, page := vt.Process(), uint64(vt.Process().Host().PageSize())
	shared, err := p.(verbs.MemObjects).NewShared(vt, 3*page)
	expect("shared memory", err, 0)
	file, err := p.(verbs.MemObjects).NewFile(vt, page)
	expect("file", err, 0)
	for _, o := range []verbs.MemObject{shared, file} {
		_, err := o.WriteAt(vt, []byte{3}, 0)
		expect("write", err, 0)
		a, b := lazy(page, verbs.MapOptions{Object: o}), lazy(page, verbs.MapOptions{Object: o, Private: true})
		expect("write", write(b, 0, 4), 0)
		holds(a, 0, 3)
		holds(b, 0, 4)
		expect("write", write(a, 0, 5), 0)
		var got [1]byte
		if _, err := o.ReadAt(vt, got[:], 0); err != nil || got[0] != 5 {
			t.Errorf("the object has %d, %v", got[0], err)
		}
		expect("truncate", o.Truncate(vt, 0), 0)
		_, err = a.ReadAt(vt, got[:], 0)
		expect("a page behind the end", err, syscall.EFAULT)
		_, err = b.ReadAt(vt, got[:], 0)
		expect("a copy behind the end", err, syscall.EFAULT)
		expect("close", o.Close(vt), 0)
		_, err = p.Map(vt, page, verbs.MapOptions{Object: o})
		expect("a closed object", err, syscall.EBADF)
	}
	keep := lazy(16*page, verbs.MapOptions{NoAccess: true})
	at := keep.Addr() + 4*page
	_, err = p.Map(vt, page, verbs.MapOptions{At: at, NoReplace: true})
	expect("where something is", err, syscall.EEXIST)
	b := lazy(page, verbs.MapOptions{At: at})
	if b.Addr() != at {
		t.Errorf("mapped at %#x, not %#x", b.Addr(), at)
	}
	expect("write", write(b, 0, 1), 0)
	_, err = keep.ReadAt(vt, make([]byte, 1), 0)
	expect("a read without rights", err, syscall.EFAULT)
}
