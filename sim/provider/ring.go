package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// ring is a queue's buffer: memory of the process that the device reads and writes,
// seen through windows into the host's memory. It is one window where the pages are
// contiguous, else one for each page, which is opened when it is first used: a queue of
// hundreds of megabytes costs what is used of it. Elements never straddle pages.
type ring struct {
	va     mem.VA
	size   int
	shift  uint
	flat   []byte // the one window, if there is one
	chunks [][]byte
	runs   []physicalRun
	mem    *mem.Memory

	custom verbs.Buffer // of a parent domain's allocator
	mapped uint64       // bytes of its own memory
}

// physicalRun is a part of a ring that is contiguous in physical memory.
type physicalRun struct {
	pa mem.PA
	n  int
}

// one window: an offset never reaches the second chunk.
const oneChunk = 62

// at is the bytes from off to the end of their window.
func (r *ring) at(off int) []byte {
	if r.flat != nil {
		return r.flat[off:]
	}
	return r.inPage(off)
}

// inPage is at where each page has a window of its own.
func (r *ring) inPage(off int) []byte {
	w := r.chunks[off>>r.shift]
	if w == nil {
		w = r.open(off >> r.shift)
	}
	return w[off&(1<<r.shift-1):]
}

// open opens the window of a page. The page is allocated for as long as the ring is used:
// the kernel pins it.
func (r *ring) open(page int) []byte {
	off := page << r.shift
	n, rest := min(1<<r.shift, r.size-off), off
	for _, run := range r.runs {
		if rest < run.n {
			r.chunks[page] = r.mem.Window(run.pa+mem.PA(rest), n)
			break
		}
		rest -= run.n
	}
	if r.chunks[page] == nil {
		panic(fmt.Sprintf("provider: queue memory at %#x is gone", r.va+mem.VA(off)))
	}
	return r.chunks[page]
}

// fill writes a pattern, which fits into a page a whole number of times, over the ring.
func (r *ring) fill(pattern []byte) {
	rest := r.size
	for _, run := range r.runs {
		n := min(rest, run.n) / len(pattern) * len(pattern)
		r.mem.Fill(run.pa, n, pattern)
		rest -= n
	}
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
			return nil, false, fmt.Errorf("the parent domain's allocator gave less than %d B: %w", size, syscall.ENOMEM)
		}
		return b, true, nil
	}
	return nil, false, fmt.Errorf("the parent domain's allocator refused %d B: %w", size, syscall.ENOMEM)
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
	} else if r.va, r.mapped, err = a.proc.queueMemory(t, n, resource); err != nil {
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
	r.mem = proc.Mem
	for off := 0; off < r.size; {
		pa, contiguous, _, ok := proc.K.Space.Translate(r.va + mem.VA(off))
		if !ok {
			return fmt.Errorf("queue memory at %#x is not mapped: %w", r.va+mem.VA(off), syscall.EFAULT)
		}
		n := int(min(contiguous, uint64(r.size-off)))
		r.runs = append(r.runs, physicalRun{pa, n})
		off += n
	}
	if len(r.runs) == 1 && r.size <= mem.MaxWindow {
		if w := r.mem.Window(r.runs[0].pa, r.size); w != nil {
			r.flat, r.chunks, r.shift = w, [][]byte{w}, oneChunk
			return nil
		}
	}
	for r.shift = 0; 1<<r.shift < page; r.shift++ {
	}
	r.chunks = make([][]byte, (r.size+page-1)/page)
	return nil
}

// watch has h called for each write of the device to the ring.
func (r *ring) watch(h func(uint64)) (ids []int) {
	for _, run := range r.runs {
		ids = append(ids, r.mem.Watch(run.pa, run.n, h, 0))
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
	if err := a.proc.K.Space.Unmap(r.va, r.mapped); err != nil {
		panic(fmt.Sprintf("provider: %s: unmapping its own ring at %#x: %v", t.name, r.va, err))
	}
}
