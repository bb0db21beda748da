package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// Open is ibv_open_device: it reads the environment, asks for a context, maps the
// static UARs of an old kernel or allocates the non-cached UAR of a new one
// (mlx5.c, mlx5_alloc_context and mlx5_set_context).
func (d *Device) Open(vt verbs.Thread) (_ verbs.Context, err error) {
	defer Of(vt).answers(&err)
	t := Of(vt)
	t.Core.Run(t.P, d.proc.Params.Control)
	env, err := parseEnviron(d.proc.Env, d.proc.PageSize, d.proc.Params.ScatterToCQE)
	if err != nil {
		return nil, err
	}
	u, resp, err := d.kernel.AllocUcontext(t.caller, d.proc.K, env.request(d.proc.Params.Generation))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.name, err)
	}
	c := &Context{dev: d, proc: d.proc, u: u, env: env, resp: resp, broken: t.P.Engine().Broken()}
	if err := c.setUp(t); err != nil {
		u.Close(t.caller)
		return nil, fmt.Errorf("open %s: %w", d.name, err)
	}
	c.fds = [2]*descriptor{{release: c.exit}, {}}
	for _, file := range c.fds { // the device's, then that of asynchronous events
		d.proc.openFD(file)
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
	if c.isStatic() { // an old kernel's answer, or the one to an old library
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
	c.uidx.take(nil) // index 0 stays unused, so that a zeroed CQE names no queue
	c.cookies.take(nil)
	return nil
}
