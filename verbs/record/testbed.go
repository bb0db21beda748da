package record

import (
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Testbed is a decorated testbed.
type Testbed struct {
	verbs.Testbed
	*Recorder
}

// New decorates a testbed. Programs that are to be recorded use what it gives out:
// the thread that the inner testbed made goes through Thread first.
func New(tb verbs.Testbed) *Testbed { return &Testbed{tb, newRecorder()} }

// Thread decorates a thread of the inner testbed.
func (tb *Testbed) Thread(t verbs.Thread) verbs.Thread {
	if w, ok := t.(*thread); ok {
		return w
	}
	return wrap(tb.Recorder, t, func() *thread { return &thread{t, tb.Recorder} })
}

// Hosts are the decorated hosts.
func (tb *Testbed) Hosts() []verbs.Host {
	in := tb.Testbed.Hosts()
	out := make([]verbs.Host, len(in))
	for i, h := range in {
		out[i] = tb.host(h)
	}
	return out
}

// Wire is the inner testbed's, with threads unwrapped. What a tester does is no verbs
// call and is not recorded.
func (tb *Testbed) Wire() verbs.Wire {
	if w := tb.Testbed.Wire(); w != nil {
		return wire{w}
	}
	return nil
}

// Faults are the inner testbed's, with threads unwrapped.
func (tb *Testbed) Faults() verbs.Faults {
	if f := tb.Testbed.Faults(); f != nil {
		return faults{f}
	}
	return nil
}

// Player starts another process. Its commands are recorded, what it does is not.
func (tb *Testbed) Player(t verbs.Thread, host int, env map[string]string) (verbs.Player, error) {
	p, err := tb.Testbed.Player(innerThread(t), host, env)
	return made(tb.Recorder, t, "player", list(host), err, func() (verbs.Player, []string) { return &player{p, tb.Recorder}, nil })
}

// wrap is the one wrapper of an inner object, so that wrappers compare as the objects
// do.
func wrap[T any](r *Recorder, inner any, make func() T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.objs[inner]; ok {
		if w, ok := w.(T); ok {
			return w
		}
	}
	w := make()
	r.objs[inner] = w
	return w
}

// innerThread is the inner thread.
func innerThread(t verbs.Thread) verbs.Thread {
	if w, ok := t.(*thread); ok {
		return w.Thread
	}
	return t
}

type thread struct {
	verbs.Thread
	r *Recorder
}

func (t *thread) Process() verbs.Process  { return t.r.process(t.Thread.Process()) }
func (t *thread) Join(other verbs.Thread) { t.Thread.Join(innerThread(other)) }

func (t *thread) Interrupt(other verbs.Thread) error { return t.Thread.Interrupt(innerThread(other)) }

type host struct {
	verbs.Host
	r *Recorder
}

func (r *Recorder) host(h verbs.Host) verbs.Host {
	return wrap(r, h, func() *host { return &host{h, r} })
}

func (h *host) NewProcess(t verbs.Thread, env map[string]string) (verbs.Process, error) {
	p, err := h.Host.NewProcess(innerThread(t), env)
	if err != nil {
		return nil, err
	}
	return h.r.process(p), nil
}

type process struct {
	verbs.Process
	r *Recorder
}

func (r *Recorder) process(p verbs.Process) verbs.Process {
	return wrap(r, p, func() *process { return &process{p, r} })
}

func (p *process) Host() verbs.Host { return p.r.host(p.Process.Host()) }

func (p *process) Start(t verbs.Thread, name string, core int, body func(verbs.Thread)) verbs.Thread {
	in := p.Process.Start(innerThread(t), name, core, func(in verbs.Thread) {
		body(wrap(p.r, in, func() *thread { return &thread{in, p.r} }))
	})
	return wrap(p.r, in, func() *thread { return &thread{in, p.r} })
}

func (p *process) Devices(t verbs.Thread) ([]verbs.Device, error) {
	in, err := p.Process.Devices(innerThread(t))
	out := make([]verbs.Device, len(in))
	for i, d := range in {
		out[i] = wrap(p.r, d, func() *device { return &device{d, p.r} })
	}
	return out, p.r.add(t, "get_device_list", nil, err, list(len(in))...)
}

func (p *process) Kill(t verbs.Thread) {
	p.r.add(t, "kill", nil, nil)
	p.Process.Kill(innerThread(t))
}

// DeviceMappings passes through where the inner process can tell.
func (p *process) DeviceMappings(t verbs.Thread) (int, error) {
	return valueOn(p.Process, "device mappings of this target", func(m verbs.MappingLister) (int, error) { return m.DeviceMappings(innerThread(t)) })
}

// DropRights passes through where the inner process has rights to give up.
func (p *process) DropRights(t verbs.Thread, memlock uint64) error {
	return on(p.Process, "rights of this target's processes", func(d verbs.Dropper) error {
		return p.r.add(t, "drop_rights", list(memlock), d.DropRights(innerThread(t), memlock))
	})
}

type player struct {
	verbs.Player
	r *Recorder
}

func (h *player) Do(t verbs.Thread, cmd verbs.PlayerCommand) (verbs.PlayerReply, error) {
	rep, err := h.Player.Do(innerThread(t), cmd)
	return rep, h.r.add(t, "player."+cmd.Op, nil, err, list(rep.Errno)...)
}

func (h *player) Kill(t verbs.Thread) {
	h.r.add(t, "player.kill", nil, nil)
	h.Player.Kill(innerThread(t))
}

type wire struct{ w verbs.Wire }

func (w wire) StartTap(t verbs.Thread) error                     { return w.w.StartTap(innerThread(t)) }
func (w wire) StopTap(t verbs.Thread) ([]verbs.WireFrame, error) { return w.w.StopTap(innerThread(t)) }
func (w wire) Inject(t verbs.Thread, r verbs.WireRule) error     { return w.w.Inject(innerThread(t), r) }
func (w wire) ClearRules(t verbs.Thread) ([]int, error)          { return w.w.ClearRules(innerThread(t)) }
func (w wire) SetLink(t verbs.Thread, host, port int, up bool) error {
	return w.w.SetLink(innerThread(t), host, port, up)
}

type faults struct{ f verbs.Faults }

func (f faults) TearBlueFlame(t verbs.Thread, n, keep int) error {
	return f.f.TearBlueFlame(innerThread(t), n, keep)
}
func (f faults) SwapDoorbells(t verbs.Thread, n int) error {
	return f.f.SwapDoorbells(innerThread(t), n)
}
func (f faults) FailNext(t verbs.Thread, qpn uint32, syndrome, vendor uint8) error {
	return f.f.FailNext(innerThread(t), qpn, syndrome, vendor)
}

type device struct {
	verbs.Device
	r *Recorder
}

func (d *device) Open(t verbs.Thread) (verbs.Context, error) {
	c, err := d.Device.Open(innerThread(t))
	return made(d.r, t, "open_device", list(d.Name()), err,
		func() (verbs.Context, []string) {
			return wrap(d.r, c, func() *context { return &context{c, d, d.r} }), nil
		})
}

// seconds prints a timeout.
func seconds(d time.Duration) string { return d.String() }
