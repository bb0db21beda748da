package provider

import (
	"fmt"
	"syscall"

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
	// Generation of library and kernel: which UAR rules they follow.
	Generation kernel.Generation
	// DoorbellRecord, when set, is told of each store to a send doorbell record, for
	// the log of registers: virtual time, QPN, and the new counter.
	DoorbellRecord func(t *Thread, qpn uint32, counter uint16)
	// Registered, when set, is told of each memory region that is registered.
	Registered func(addr, length uint64)

	C Counters

	contexts []*Context
	fork     forkSupport
	fds      []*descriptor // from firstFD on; nil: closed
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

// Device is an entry of the device list of a process.
type Device struct {
	proc   *Process
	kernel *kernel.Device
	name   string
	guid   uint64
}

// NewDevice makes the entry of proc for a kernel device.
func NewDevice(proc *Process, k *kernel.Device, name string, guid uint64) *Device {
	return &Device{proc, k, name, guid}
}

// Name is the name of the ib_device.
func (d *Device) Name() string { return d.name }

// GUID is the node GUID.
func (d *Device) GUID() uint64 { return d.guid }

// Open is ibv_open_device: it reads the environment, asks for a context, maps the
// static UARs of an old kernel or allocates the non-cached UAR of a new one
// (mlx5.c, mlx5_alloc_context and mlx5_set_context).
func (d *Device) Open(vt verbs.Thread) (verbs.Context, error) {
	t := Of(vt)
	t.Core.Run(t.P, d.proc.Params.Control)
	env, err := parseEnviron(d.proc.Env, d.proc.PageSize, d.proc.Params.ScatterToCQE)
	if err != nil {
		return nil, err
	}
	u, resp, err := d.kernel.AllocUcontext(t.caller, d.proc.K, env.request(d.proc.Generation))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.name, err)
	}
	c := &Context{dev: d, proc: d.proc, u: u, env: env, resp: resp}
	if err := c.setUp(t); err != nil {
		u.Close(t.caller)
		return nil, fmt.Errorf("open %s: %w", d.name, err)
	}
	d.proc.contexts = append(d.proc.contexts, c)
	return c, nil
}

// setUp is the rest of an open, once the kernel has given a context.
func (c *Context) setUp(t *Thread) error {
	if c.resp.CQEVersion > 1 {
		return fmt.Errorf("CQE version %d is unknown: %w", c.resp.CQEVersion, syscall.EINVAL)
	}
	var err error
	if c.attr, err = c.u.QueryDevice(t.caller); err != nil {
		return err
	}
	if c.isStatic() {
		err = c.mapStatic(t)
	} else {
		err = c.allocNC(t)
	}
	if err != nil {
		return err
	}
	if c.clock, err = c.mapping(c.u.MmapUAR(t.caller, kernel.MmapClock, 0)); err != nil {
		return err
	}
	c.uidx = append(c.uidx, nil) // index 0 stays unused, so that a zeroed CQE names nobody
	c.cookies = append(c.cookies, nil)
	return nil
}

// Exit is the end of the process: the kernel closes what it has open. No thread of
// the process runs any more; c is whoever does the work.
func (p *Process) Exit(c kernel.Caller) {
	for _, x := range p.contexts {
		if !x.closed {
			x.closed = true
			x.u.Close(c)
		}
	}
	p.contexts = nil
	for _, d := range p.fds {
		if d != nil && d.ctx != nil {
			d.ctx.u.Close(c)
		}
	}
	p.fds = nil
}

// Mappings counts the device pages that the process maps.
func (p *Process) Mappings() int {
	n := 0
	for _, c := range p.contexts {
		if !c.closed {
			n += c.mapped
		}
	}
	return n
}
