package kernel

import "github.com/rdmasim/rdmasim/sim"

// workPool is a work queue of the kernel: programs, made when they are needed, that each carry out
// one thing at a time.
type workPool struct {
	d       *Device
	name    string
	most    int // at once
	running int
	idle    []*poolWorker
	queue   []func(k *call)
}

// poolWorker is one of them.
type poolWorker struct {
	p   *sim.Proc
	job func(k *call)
}

// add queues a job, which begins at this instant when a worker is free.
func (w *workPool) add(job func(k *call)) {
	switch {
	case len(w.idle) > 0:
		x := w.idle[len(w.idle)-1]
		w.idle = w.idle[:len(w.idle)-1]
		x.job = job
		x.p.Wake(w.d.eng.Now())
	case w.running < w.most:
		w.running++
		x := &poolWorker{job: job}
		x.p = w.d.eng.Go(w.name, func(p *sim.Proc) { w.run(x, p) })
	default:
		w.queue = append(w.queue, job)
	}
}

// run is the life of a worker.
func (w *workPool) run(x *poolWorker, p *sim.Proc) {
	p.SetDaemon()
	for {
		for x.job != nil {
			if !w.d.removed {
				k := call{d: w.d, c: Caller{P: p}}
				x.job(&k)
			}
			x.job = nil
			if len(w.queue) > 0 {
				x.job = w.queue[0]
				w.queue = w.queue[:copy(w.queue, w.queue[1:])]
			}
		}
		w.idle = append(w.idle, x)
		for x.job == nil {
			p.Park(w.name + ": nothing to do")
		}
	}
}

// pause spends time, after which what the call knew may have changed.
func (k *call) pause(t sim.Time) {
	if k.c.P != nil && t > 0 {
		k.c.P.Sleep(t)
	}
}

// awaitCommands waits until the command interface is free.
func (k *call) awaitCommands() {
	for k.c.P != nil && k.d.cmds.FreeAt() > k.c.P.Now() {
		k.c.P.Sleep(k.d.cmds.FreeAt() - k.c.P.Now())
	}
}

// holders are the handlers of page faults and the prefetches that use an object. Who destroys it
// waits for them.
type holders struct {
	n       int
	waiting []*sim.Proc
}

// take is one more; the function returned ends it.
func (h *holders) take(d *Device) func() {
	h.n++
	return func() {
		if h.n--; h.n > 0 {
			return
		}
		for _, p := range h.waiting {
			p.Wake(d.eng.Now() + d.p.Wakeup)
		}
		h.waiting = nil
	}
}

// leaveTo notes an object that the call has destroyed.
func (k *call) leaveTo(h *holders) {
	if h.n > 0 {
		k.gone = append(k.gone, h)
	}
}

// awaitHolders waits for those who use an object.
func (k *call) awaitHolders(h *holders) {
	for h.n > 0 && !k.d.removed {
		h.waiting = append(h.waiting, k.c.P)
		k.c.P.Park("handlers of page faults")
	}
}

// awaitGone waits for those who use what the call has destroyed (mlx5r_deref_wait_odp_mkey, and the
// completion in destroy_resource_common).
func (k *call) awaitGone() {
	for _, h := range k.gone {
		k.awaitHolders(h)
	}
	k.gone = nil
}
