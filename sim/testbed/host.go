package testbed

import (
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/gpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// host is a machine.
type host struct {
	tb      *Testbed
	index   int
	name    string
	mem     *mem.Memory
	cpu     *cpu.Host
	devices []*device
	cm      *cm.Manager
	load    []int // live threads of each core
	folder  provider.Folder
	gpus    []*gpu.GPU // made when the first is opened
}

func (h *host) Name() string  { return h.name }
func (h *host) Cores() int    { return h.cpu.Cores() }
func (h *host) PageSize() int { return int(h.mem.PageSize()) }

// NewProcess starts a process without threads.
func (h *host) NewProcess(t verbs.Thread, env map[string]string) (verbs.Process, error) {
	provider.Of(t).P.Sync()
	return h.newProcess(env), nil
}

func (h *host) newProcess(env map[string]string) *process {
	p := &process{host: h, name: fmt.Sprintf("%s/p%d", h.name, len(h.tb.procs)+1), devs: map[*device]verbs.Device{}}
	p.lib = provider.Process{
		K:   &kernel.Process{Name: p.name, Space: mem.NewSpace(h.mem), IPCLock: true, NetRaw: true, RawIO: true, NetBindService: true},
		Mem: h.mem, Env: maps.Clone(env), PageSize: h.PageSize(), Params: &h.tb.cfg.Profile.Provider,
		Folder:       &h.folder,
		CopiesOnFork: h.tb.cfg.Profile.Kernel.Generation != kernel.Static, // which is 4.16
	}
	p.lib.Alloc = func(t verbs.Thread, n uint64) (verbs.Buffer, error) { return p.Map(t, n, verbs.MapOptions{}) }
	p.lib.C.Fields(func(name string, c *uint64) { h.tb.eng.Counters.Add(p.name, name, c) })
	if !h.tb.cfg.NoTap {
		p.lib.DoorbellRecord = h.tb.log.doorbellRecord
	}
	h.tb.procs = append(h.tb.procs, p)
	if h.tb.remembers(p.name) {
		p.lib.Registered = func(addr, n uint64) { p.regions = append(p.regions, region{addr, n}) }
	}
	return p
}

// core picks the core with the fewest threads, the lowest of equals.
func (h *host) core() int {
	best := 0
	for i, n := range h.load {
		if n < h.load[best] {
			best = i
		}
	}
	return best
}

// process owns an address space, open devices and threads.
type process struct {
	host     *host
	name     string
	lib      provider.Process
	devs     map[*device]verbs.Device
	threads  []*provider.Thread
	dead     bool
	obituary string // why, when it ended by itself
	onDeath  []func(at sim.Time)
	regions  []region // that it has registered, where the plan asks for them
	objects  []*mem.Object
	gpuMem   []*gpuBuffer // of GPUs, allocated
}

// region is memory that was registered.
type region struct{ addr, n uint64 }

func (p *process) Host() verbs.Host { return p.host }
func (p *process) Name() string     { return p.name }

// Start runs body in a new thread.
func (p *process) Start(t verbs.Thread, name string, core int, body func(verbs.Thread)) verbs.Thread {
	provider.Of(t).P.Sync()
	if core >= p.host.Cores() {
		panic(fmt.Sprintf("testbed: thread %s on core %d of a host with %d", name, core, p.host.Cores()))
	}
	if core < 0 {
		core = p.host.core()
	}
	return p.start(name, core, body)
}

// notice is how long what a program does to others that run is announced before: the time in
// which a thread wakes up.
func (tb *Testbed) notice() sim.Time { return max(tb.prof.Kernel.Wakeup, sim.Picosecond) }

// start runs body in a new thread. On a core on which another thread runs, which may be ahead of
// the queue as long as it has the core for itself, it takes a wake-up until the new one does.
func (p *process) start(name string, core int, body func(verbs.Thread)) *provider.Thread {
	if p.dead {
		body = func(verbs.Thread) {} // a process that has ended runs nothing
	}
	c, tb := p.host.cpu.Core(core), p.host.tb
	th := provider.NewThread(p, name)
	p.host.load[core]++
	free := c.Idle()
	proc := tb.eng.Go(p.name+"/"+name, func(sp *sim.Proc) {
		defer p.aborted(th)
		if !free {
			sp.Sleep(tb.notice())
			c.Attach(sp)
		}
		body(th)
		sp.Sync() // a thread that joins sees the end in the order of the clocks
	})
	if free {
		c.Attach(proc) // now, before another thread on the core runs ahead of it
	} else {
		tb.eng.Barrier(proc.Now() + tb.notice())
	}
	proc.OnExit(func() { p.host.load[core]-- })
	th.Bind(proc, c)
	if o := tb.cfg.Outside; o != nil {
		th.SetClock(o.Now)
	}
	p.threads = append(p.threads, th)
	return th
}

// aborted ends the process when one of its threads was ended by the library.
func (p *process) aborted(th *provider.Thread) {
	r := recover()
	if r == nil {
		return
	}
	a, ok := r.(provider.Abort)
	if !ok {
		panic(r)
	}
	th.P.Sync()
	p.obituary = a.Text
	p.end(th)
}

// Kill ends the process as SIGKILL does, and returns when the kernel has cleaned up.
func (p *process) Kill(t verbs.Thread) {
	th := provider.Of(t)
	th.P.Sync()
	p.end(th)
	if t.Process() == verbs.Process(p) {
		panic(sim.Killed{Name: th.P.Name()})
	}
}

// end stops all threads but th, has the kernel close what is open, in th's time, and
// frees the memory. Without th the kernel does it at once.
func (p *process) end(th *provider.Thread) {
	if th != nil && p == p.host.tb.main {
		p.host.tb.stopAhead(th, p.host.tb.procs...) // its end is that of the run
	} else if th != nil {
		p.host.tb.stopAhead(th, p)
	}
	if p.dead {
		return
	}
	p.dead = true
	for _, x := range p.threads {
		if x != th {
			x.P.Kill()
		}
	}
	now, by := p.host.tb.eng.Now, kernel.Caller{}
	if th != nil {
		now, by = th.P.Now, kernel.Caller{P: th.P, Core: th.Core}
	}
	p.lib.Exit(by)
	p.lib.K.Space.Release()
	for _, o := range p.objects {
		o.Close()
	}
	for _, b := range p.gpuMem {
		b.a.Free()
	}
	p.gpuMem = nil
	for _, f := range p.onDeath {
		f(now())
	}
	if p == p.host.tb.main {
		p.host.tb.eng.Stop()
	}
}

// stopAhead waits, when other threads of the processes run, until none of them is ahead of th:
// the time in which a signal wakes them up. th is in order.
func (tb *Testbed) stopAhead(th *provider.Thread, procs ...*process) {
	runs := func(x *provider.Thread) bool { return x != th && !x.P.Idle() }
	for _, p := range procs {
		if slices.ContainsFunc(p.threads, runs) {
			d := tb.notice()
			tb.eng.Barrier(th.P.Now() + d)
			th.P.Sleep(d)
			return
		}
	}
}

// Devices lists the devices of the host.
func (p *process) Devices(t verbs.Thread) ([]verbs.Device, error) {
	provider.Of(t)
	var list []verbs.Device
	for _, d := range p.host.devices {
		if d.kern.Removed() {
			continue
		}
		if p.devs[d] == nil {
			p.devs[d] = provider.NewDevice(&p.lib, d.kern, d.name, d.kern.NodeGUID())
		}
		list = append(list, p.devs[d])
	}
	return list, nil
}

// DeviceMappings counts the device pages that the process maps.
func (p *process) DeviceMappings(t verbs.Thread) (int, error) {
	provider.Of(t)
	return p.lib.Mappings(), nil
}

// CreateEventChannel is rdma_create_event_channel.
func (p *process) CreateEventChannel(t verbs.Thread) (verbs.EventChannel, error) {
	provider.Of(t).P.Sync()
	if err := p.host.tb.loadCM(); err != nil {
		return nil, err
	}
	if _, err := p.Devices(t); err != nil {
		return nil, err
	}
	return p.lib.CreateEventChannel(t, p.host.cm, p.device)
}

// device is the library's entry of a device of the kernel; nil when it was removed.
func (p *process) device(k *kernel.Device) *provider.Device {
	for d, v := range p.devs {
		if d.kern == k && !k.Removed() {
			return v.(*provider.Device)
		}
	}
	return nil
}

// DropRights makes the process one without privileges. Its rights are those of all its
// threads.
func (p *process) DropRights(t verbs.Thread, memlock uint64) error {
	provider.Of(t).P.Sync()
	k := p.lib.K
	if !k.IPCLock && memlock > k.MemlockLimit {
		return fmt.Errorf("memlock limit %d, and it is %d already: %w", memlock, k.MemlockLimit, syscall.EINVAL)
	}
	k.IPCLock, k.NetRaw, k.NetBindService, k.MemlockLimit = false, false, false, memlock
	return nil
}

var (
	_ verbs.MappingLister = (*process)(nil)
	_ verbs.Dropper       = (*process)(nil)

	_ verbs.ConnectionManager = (*process)(nil)
)
