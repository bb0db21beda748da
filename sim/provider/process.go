package provider

import (
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// Process is what the library knows of the process that it is linked into.
type Process struct {
	K        *kernel.Process
	Mem      *mem.Memory // of the host
	Env      map[string]string
	PageSize int
	Params   *Params
	// CopiesOnFork says that the kernel gives a forked child copies of pinned pages, which
	// libibverbs asks it: Linux does from 5.12 on.
	CopiesOnFork bool
	// DoorbellRecord, when set, is called for each store to a send doorbell record,
	// which the register log shows.
	DoorbellRecord func(t *Thread, qpn uint32, counter uint16)
	// Registered, when set, is called for each memory region that is registered.
	Registered func(addr, length uint64)

	// Alloc maps anonymous memory for a program.
	Alloc func(t verbs.Thread, n uint64) (verbs.Buffer, error)

	// Folder is where the process opens files.
	Folder *Folder

	C Counters

	contexts []openContext
	cm       connections
	fork     forkSupport
	fds      []*descriptor // from firstFD on; nil: closed
	freeFD   int           // no place of fds below it is free
}

// openContext is a context, as its process knows it.
type openContext interface {
	exit(k kernel.Caller)
	closeFile(k kernel.Caller)
	mappings() int
}

// Counters of the library in one process.
type Counters struct {
	SendCalls, SendWRs uint64 // calls that posted, and requests posted
	RecvCalls, RecvWRs uint64
	Doorbells          uint64 // registers rung by 8 bytes
	BlueFlame          uint64 // requests pushed
	BlueFlameBytes     uint64
	Polls, PollsEmpty  uint64 // calls of poll that ran; a spinning thread's empty turns are not run
	CQEs               uint64
}

// Fields calls f with where each counter is kept.
func (c *Counters) Fields(f func(name string, p *uint64)) {
	f("post_send_calls", &c.SendCalls)
	f("post_send_wrs", &c.SendWRs)
	f("post_recv_calls", &c.RecvCalls)
	f("post_recv_wrs", &c.RecvWRs)
	f("doorbells", &c.Doorbells)
	f("blueflame", &c.BlueFlame)
	f("blueflame_bytes", &c.BlueFlameBytes)
	f("polls", &c.Polls)
	f("polls_empty", &c.PollsEmpty)
	f("cqes", &c.CQEs)
}

// forkSupport is what libibverbs remembers of fork (memory.c).
type forkSupport struct {
	enabled bool // mm_root: memory that the device uses is kept from children
	late    bool // too_late: there is such memory already, and it is not kept from them
}

// Exit is the end of the process: the kernel closes what it has open, from the highest descriptor
// down. close_files (fs/file.c) goes through the table upwards, fput leaves each file to the list
// of task_work_add, and that is run from the latest on (Linux 6.1, 6.12 and 7.3). No thread of the
// process runs any more; c is the thread that does the work.
func (p *Process) Exit(c kernel.Caller) {
	defer func() {
		p.closeAll(kernel.Caller{}) // the rest, where c is killed meanwhile
		p.fds, p.contexts, p.cm = nil, nil, connections{}
		p.K.Gone = true
	}()
	p.closeAll(c)
}

func (p *Process) closeAll(c kernel.Caller) {
	for n := len(p.fds) - 1; n >= 0; n-- {
		if d := p.takeFD(firstFD + n); d != nil {
			d.close(c)
		}
	}
}

// Mappings counts the device pages that the process maps.
func (p *Process) Mappings() int {
	n := 0
	for _, c := range p.contexts {
		n += c.mappings()
	}
	return n
}
