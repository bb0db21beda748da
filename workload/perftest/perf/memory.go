package perf

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// memoryKind is where the buffers of a test lie (struct memory_ctx): what copies to and from a
// buffer is the buffer's own.
type memoryKind interface {
	init(t verbs.Thread) error
	destroy(t verbs.Thread) error
	allocate(t verbs.Thread, n uint64) (verbs.Buffer, error)
	free(t verbs.Thread, b verbs.Buffer) error
	// register makes the region: of the addresses, or of what the memory is exported as.
	register(t verbs.Thread, pd verbs.PD, b verbs.Buffer, n uint64, access verbs.AccessFlags) (verbs.MR, error)
	// touchable reports whether the processor may fill the memory.
	touchable() bool
}

// hostMemory is anonymous memory, in pages of a size.
type hostMemory struct{ page uint64 }

func (hostMemory) init(verbs.Thread) error    { return nil }
func (hostMemory) destroy(verbs.Thread) error { return nil }
func (hostMemory) touchable() bool            { return true }

func (m hostMemory) allocate(t verbs.Thread, n uint64) (verbs.Buffer, error) {
	b, err := t.Process().Map(t, n, verbs.MapOptions{PageSize: m.page})
	if err != nil && m.page != 0 {
		return nil, &StepError{Step: stepMR, Err: fmt.Errorf("%d bytes in pages of %d: %w", n, m.page, err), Hint: "configure huge pages: echo 64 > /proc/sys/vm/nr_hugepages", Words: "Couldn't allocate work buf.\n Please configure hugepages\n"}
	}
	if err != nil {
		return nil, &StepError{Step: stepMR, Err: fmt.Errorf("%d bytes of memory: %w", n, err), Hint: "give a smaller -s or -q", Words: "Couldn't allocate work buf.\n"}
	}
	return b, nil
}

func (hostMemory) free(t verbs.Thread, b verbs.Buffer) error { return b.Unmap(t) }

func (hostMemory) register(t verbs.Thread, pd verbs.PD, b verbs.Buffer, n uint64, access verbs.AccessFlags) (verbs.MR, error) {
	return pd.RegMR(t, b.Addr(), n, access)
}

const hugePage = 2 << 20

// prepareMemory makes the kind of memory ready.
func (e *End) prepareMemory(t verbs.Thread) error {
	switch {
	case e.o.Memory.Kind == "cuda":
		e.memory = &cudaMemory{e: e}
	case e.o.HugePages:
		e.memory = hostMemory{hugePage}
	default:
		e.memory = hostMemory{}
	}
	if err := e.memory.init(t); err != nil {
		return err
	}
	e.later(func(t verbs.Thread) error { return e.memory.destroy(t) })
	return nil
}

// slot is the place of the messages of one queue pair in one direction: at least a page, in whole
// cache lines, and for datagrams a cache line more, which has the routing header at its end.
func (e *End) slot() uint64 {
	n := roundUp(max(e.o.Size, uint64(e.page)), uint64(e.line))
	if e.o.Connection == UD {
		n += uint64(e.line)
	}
	return n
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// access are the rights of the test's memory (setup_mr_flags).
func (e *End) access() verbs.AccessFlags {
	a := verbs.AccessLocalWrite
	switch e.o.Test.Verb {
	case Write, WriteImm:
		a |= verbs.AccessRemoteWrite
	case Read:
		a |= verbs.AccessRemoteRead
	case Atomic:
		a |= verbs.AccessRemoteAtomic
	}
	if e.o.ODP {
		a |= verbs.AccessOnDemand
	}
	if e.relaxed() {
		a |= verbs.AccessRelaxedOrdering
	}
	return a
}

// relaxed reports whether memory is registered with relaxed ordering. A write latency test polls
// memory, and never has it.
func (e *End) relaxed() bool { return !e.o.NoRelaxed && (!e.o.Test.Latency || e.o.Test.Verb != Write) }

// register allocates the domain, buffers and regions.
func (e *End) register(t verbs.Thread) (err error) {
	if e.pd, err = e.ctx.AllocPD(t); err != nil {
		return fmt.Errorf("ibv_alloc_pd: %w", err)
	}
	e.later(func(t verbs.Thread) error { return e.pd.Dealloc(t) })
	e.dom = e.pd
	if e.o.NoLock {
		if err := e.threadDomain(t); err != nil {
			return err
		}
	}
	if e.o.NullMR {
		if e.nullMR, err = e.pd.AllocNullMR(t); err != nil {
			return fmt.Errorf("ibv_alloc_null_mr: %w", err)
		}
		e.later(func(t verbs.Thread) error { return e.nullMR.Dereg(t) })
	}
	slot, n := e.slot(), e.o.QPs
	var buf verbs.Buffer
	var mr verbs.MR
	for i := range n {
		c := &conn{index: i, out: uint64(i) * slot, in: uint64(n+i) * slot}
		if e.o.MRPerQP {
			c.out, c.in = 0, slot
		}
		switch {
		case e.o.MRPerQP:
			buf, mr, err = e.region(t, 2*slot, i)
		case i == 0:
			buf, mr, err = e.region(t, 2*slot*uint64(n), 0)
		}
		if err != nil {
			return err
		}
		c.buf, c.mr, c.psn = buf, mr, e.env.Random()&0xffffff
		e.conns = append(e.conns, c)
	}
	return nil
}

func (e *End) threadDomain(t verbs.Thread) error {
	td, err := e.ctx.AllocTD(t, verbs.TDInitAttr{})
	if err != nil {
		return &StepError{Step: stepMR, Err: fmt.Errorf("ibv_alloc_td: %w", err), Hint: "leave --no_lock out", Words: "Couldn't allocate TD\n"}
	}
	e.later(func(t verbs.Thread) error { return td.Dealloc(t) })
	dom, err := e.ctx.AllocParentDomain(t, verbs.ParentDomainAttr{PD: e.pd, TD: td})
	if err != nil {
		return fmt.Errorf("ibv_alloc_parent_domain: %w", err)
	}
	e.later(func(t verbs.Thread) error { return dom.Dealloc(t) })
	e.dom = dom
	return nil
}

// region is a buffer with its registration.
func (e *End) region(t verbs.Thread, n uint64, of int) (verbs.Buffer, verbs.MR, error) {
	buf, err := e.memory.allocate(t, n)
	if err != nil {
		return nil, nil, err
	}
	e.later(func(t verbs.Thread) error { return e.memory.free(t, buf) })
	mr, err := e.memory.register(t, e.dom, buf, n, e.access())
	if err != nil {
		return nil, nil, &StepError{Step: stepMR, Err: fmt.Errorf("ibv_reg_mr of %d bytes for queue pair %d: %w", n, of, err), Hint: registerHint(err), Words: fmt.Sprintf("Couldn't allocate MR with error=%d\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n", int(verbs.ErrnoOf(err)))}
	}
	e.later(func(t verbs.Thread) error { return mr.Dereg(t) })
	if !e.memory.touchable() {
		return buf, mr, nil
	}
	return buf, mr, e.fill(t, buf, n)
}

func registerHint(err error) string {
	switch verbs.ErrnoName(verbs.ErrnoOf(err)) {
	case "ENOMEM":
		return "the limit of locked memory may be too low (ulimit -l)"
	}
	return ""
}

// fill writes what is sent: pseudo-random bytes, or zeros for a write latency test, which polls
// memory.
func (e *End) fill(t verbs.Thread, buf verbs.Buffer, n uint64) error {
	piece := make([]byte, min(n, 64<<10))
	for at := uint64(0); at < n; at += uint64(len(piece)) {
		piece = piece[:min(uint64(len(piece)), n-at)]
		if !e.o.Test.Latency || e.o.Test.Verb != Write {
			for i := 0; i < len(piece); i += 4 {
				word := e.env.Random()
				for k := i; k < min(i+4, len(piece)); k++ {
					piece[k] = byte(word)
					word /= 256
				}
			}
		}
		if _, err := buf.WriteAt(t, piece, int64(at)); err != nil {
			return fmt.Errorf("fill the buffer: %w", err)
		}
	}
	return nil
}
