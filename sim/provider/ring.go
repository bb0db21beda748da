package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// ring is a queue's buffer: memory of the process that the device reads and writes,
// seen through windows into the host's memory. It is one window where the pages are
// contiguous, else one for each page. Elements never straddle pages.
type ring struct {
	va     mem.VA
	size   int
	shift  uint
	flat   []byte // the one window, if there is one
	chunks [][]byte
	first  mem.PA

	custom verbs.Buffer // of a parent domain's allocator
}

// one window: an offset never reaches the second chunk.
const oneChunk = 62

// at is the bytes from off to the end of their window.
func (r *ring) at(off int) []byte {
	if r.flat != nil {
		return r.flat[off:]
	}
	return r.chunks[off>>r.shift][off&(1<<r.shift-1):]
}

// allocator makes and frees the memory of queues and doorbell records on behalf of a
// parent domain.
type allocator struct {
	proc   *Process
	parent *PD // nil: the library's own allocator
}

// Resource codes that a parent domain's allocator is asked with (mlx5dv.h,
// MLX5DV_RES_TYPE_*: the driver's number in the upper half).
const (
	resDriver uint64 = 1 << 32
	resQP            = resDriver | 1
	resDBR           = resDriver | 3
	resSRQ           = resDriver | 4
	resCQ            = resDriver | 5
)

// alloc asks the parent domain's allocator, if there is one. ok is false when the
// default is to be used.
func (a allocator) alloc(t *Thread, size, align, resource uint64) (b verbs.Buffer, ok bool, err error) {
	if a.parent == nil || a.parent.attr.Alloc == nil {
		return nil, false, nil
	}
	b, answer := a.parent.attr.Alloc(t, size, align, resource)
	switch answer {
	case verbs.AllocUseDefault:
		return nil, false, nil
	case verbs.AllocOK:
		if b == nil || b.Len() < size {
			return nil, false, fmt.Errorf("the parent domain's allocator gave less than %d bytes: %w", size, syscall.ENOMEM)
		}
		return b, true, nil
	}
	return nil, false, fmt.Errorf("the parent domain's allocator refused %d bytes: %w", size, syscall.ENOMEM)
}

// newRing allocates size bytes for a queue.
func (a allocator) newRing(t *Thread, size int, resource uint64) (*ring, error) {
	page := uint64(a.proc.PageSize)
	n := (uint64(size) + page - 1) &^ (page - 1)
	custom, ok, err := a.alloc(t, n, page, resource)
	if err != nil {
		return nil, err
	}
	a.proc.dontFork()
	r := &ring{size: size, custom: custom}
	if ok {
		r.va = mem.VA(custom.Addr())
	} else if r.va, err = a.proc.K.Space.Map(n, mem.Read|mem.Write); err != nil {
		return nil, fmt.Errorf("memory of a queue: %w", err)
	}
	if err := r.window(a.proc, int(page)); err != nil {
		a.freeRing(t, r, resource)
		return nil, err
	}
	return r, nil
}

// window finds the physical pages behind the ring.
func (r *ring) window(proc *Process, page int) error {
	space, m := proc.K.Space, proc.Mem
	pa, contiguous, _, ok := space.Translate(r.va)
	if !ok {
		return fmt.Errorf("queue memory at %#x is not mapped: %w", r.va, syscall.EFAULT)
	}
	r.first = pa
	if contiguous >= uint64(r.size) {
		if w := m.Window(pa, r.size); w != nil {
			r.flat, r.chunks, r.shift = w, [][]byte{w}, oneChunk
			return nil
		}
	}
	for r.shift = 0; 1<<r.shift < page; r.shift++ {
	}
	run := contiguous // bytes from pa that need no new translation
	for off := 0; off < r.size; off += page {
		if run == 0 {
			if pa, run, _, ok = space.Translate(r.va + mem.VA(off)); !ok {
				return fmt.Errorf("queue memory at %#x is not mapped: %w", r.va+mem.VA(off), syscall.EFAULT)
			}
		}
		w := m.Window(pa, min(page, r.size-off))
		if w == nil {
			return fmt.Errorf("queue memory at %#x is not mapped: %w", r.va+mem.VA(off), syscall.EFAULT)
		}
		r.chunks = append(r.chunks, w)
		step := min(uint64(page), run)
		pa, run = pa+mem.PA(step), run-step
	}
	return nil
}

// watch has h called for each write of the device to the ring.
func (r *ring) watch(proc *Process, h func(uint64)) (ids []int) {
	if len(r.chunks) == 1 {
		return []int{proc.Mem.Watch(r.first, r.size, h, 0)}
	}
	for i := range r.chunks {
		pa, _, _, _ := proc.K.Space.Translate(r.va + mem.VA(i<<r.shift))
		ids = append(ids, proc.Mem.Watch(pa, len(r.chunks[i]), h, 0))
	}
	return ids
}

func (a allocator) freeRing(t *Thread, r *ring, resource uint64) {
	if r == nil {
		return
	}
	if r.custom != nil {
		if a.parent.attr.Free != nil {
			a.parent.attr.Free(t, r.custom, resource)
		}
		return
	}
	page := uint64(a.proc.PageSize)
	n := (uint64(r.size) + page - 1) &^ (page - 1)
	if err := a.proc.K.Space.Unmap(r.va, n); err != nil {
		panic(fmt.Sprintf("provider: %s: unmapping its own ring at %#x: %v", t.name, r.va, err))
	}
}
