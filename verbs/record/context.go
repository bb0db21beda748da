package record

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

type context struct {
	verbs.Context
	dev *device
	r   *Recorder
}

func (c *context) Device() verbs.Device { return c.dev }

func (c *context) inner() verbs.Context { return c.Context }

// context is the context as programs see it, of a device that they see.
func (r *Recorder) context(c verbs.Context) verbs.Context {
	d := wrap(r, c.Device(), func() *device { return &device{c.Device(), r} })
	return wrap(r, c, func() *context { return &context{c, d, r} })
}

func (c *context) pd(p verbs.PD) verbs.PD { return wrap(c.r, p, func() *pd { return &pd{p, c} }) }

func (c *context) Close(t verbs.Thread) error {
	return c.r.add(t, "close_device", nil, c.Context.Close(innerThread(t)))
}

// Queries are recorded with what two targets of one kind must share; numbers that
// belong to the device are left out.

func (c *context) QueryDevice(t verbs.Thread) (verbs.DeviceAttr, error) {
	a, err := c.Context.QueryDevice(innerThread(t))
	return a, c.r.add(t, "query_device", nil, err)
}

func (c *context) QueryDeviceEx(t verbs.Thread, m uint32) (verbs.DeviceAttrEx, error) {
	a, err := c.Context.QueryDeviceEx(innerThread(t), m)
	return a, c.r.add(t, "query_device_ex", list(mask(m)), err)
}

func (c *context) QueryPort(t verbs.Thread, port int) (verbs.PortAttr, error) {
	a, err := c.Context.QueryPort(innerThread(t), port)
	return a, c.r.add(t, "query_port", list(port), err, list(uint32(a.State), a.LinkLayer)...)
}

func (c *context) QueryGID(t verbs.Thread, port, index int) (verbs.GID, error) {
	g, err := c.Context.QueryGID(innerThread(t), port, index)
	return g, c.r.add(t, "query_gid", list(port, index), err, c.r.gid(g))
}

func (c *context) QueryGIDEx(t verbs.Thread, port, index int, flags uint32) (verbs.GIDEntry, error) {
	g, err := c.Context.QueryGIDEx(innerThread(t), port, index, flags)
	return g, c.r.add(t, "query_gid_ex", list(port, index, mask(flags)), err, list(c.r.gid(g.GID), uint32(g.Type))...)
}

func (c *context) QueryGIDTable(t verbs.Thread, e []verbs.GIDEntry, flags uint32) (int, error) {
	n, err := c.Context.QueryGIDTable(innerThread(t), e, flags)
	return n, c.r.add(t, "query_gid_table", list(len(e), mask(flags)), err, list(n)...)
}

func (c *context) QueryPKey(t verbs.Thread, port, index int) (uint16, error) {
	k, err := c.Context.QueryPKey(innerThread(t), port, index)
	return k, c.r.add(t, "query_pkey", list(port, index), err, mask(uint32(k)))
}

func (c *context) PKeyIndex(t verbs.Thread, port int, pkey uint16) (int, error) {
	i, err := c.Context.PKeyIndex(innerThread(t), port, pkey)
	return i, c.r.add(t, "get_pkey_index", list(port, mask(uint32(pkey))), err, list(i)...)
}

func (c *context) InitAHFromWC(t verbs.Thread, port int, wc *verbs.WC, grh []byte) (verbs.AHAttr, error) {
	a, err := c.Context.InitAHFromWC(innerThread(t), port, wc, grh)
	return a, c.r.add(t, "init_ah_from_wc", list(port), err, c.r.gid(a.GRH.DGID))
}

func (c *context) RawClock(t verbs.Thread) (uint64, error) {
	v, err := c.Context.RawClock(innerThread(t))
	return v, c.r.add(t, "query_rt_values_ex", nil, err)
}

func (c *context) AllocPD(t verbs.Thread) (verbs.PD, error) {
	p, err := c.Context.AllocPD(innerThread(t))
	return made(c.r, t, "alloc_pd", nil, err, func() (verbs.PD, []string) { return c.pd(p), nil })
}

func (c *context) AllocTD(t verbs.Thread, a verbs.TDInitAttr) (verbs.TD, error) {
	d, err := c.Context.AllocTD(innerThread(t), a)
	return made(c.r, t, "alloc_td", list(mask(a.CompMask)), err, func() (verbs.TD, []string) { return &td{d, c.r}, nil })
}

func (c *context) AllocParentDomain(t verbs.Thread, a verbs.ParentDomainAttr) (verbs.PD, error) {
	in := a
	in.PD, in.TD = bare(a.PD), bare(a.TD)
	if alloc := a.Alloc; alloc != nil {
		in.Alloc = func(t verbs.Thread, size, alignment, resource uint64) (verbs.Buffer, verbs.AllocAnswer) {
			b, answer := alloc(c.r.thread(t), size, alignment, resource)
			return bare(b), answer
		}
	}
	if free := a.Free; free != nil {
		in.Free = func(t verbs.Thread, b verbs.Buffer, resource uint64) { free(c.r.thread(t), b, resource) }
	}
	p, err := c.Context.AllocParentDomain(innerThread(t), in)
	return made(c.r, t, "alloc_parent_domain", list(a.TD != nil, mask(a.CompMask)), err, func() (verbs.PD, []string) { return c.pd(p), nil })
}

// thread is the wrapper of an inner thread.
func (r *Recorder) thread(t verbs.Thread) verbs.Thread {
	return wrap(r, t, func() *thread { return &thread{t, r} })
}

func (c *context) CreateCompChannel(t verbs.Thread) (verbs.CompChannel, error) {
	ch, err := c.Context.CreateCompChannel(innerThread(t))
	return made(c.r, t, "create_comp_channel", nil, err, func() (verbs.CompChannel, []string) { return &channel{ch, c.r}, nil })
}

func (c *context) CreateCQ(t verbs.Thread, a verbs.CQAttr) (verbs.CQ, error) {
	in := a
	if ch, ok := a.Channel.(*channel); ok {
		in.Channel = ch.CompChannel
	}
	if a.ParentDomain != nil {
		in.ParentDomain = bare(a.ParentDomain)
	}
	q, err := c.Context.CreateCQ(innerThread(t), in)
	args := list(a.CQE, a.CompVector, a.Channel != nil)
	if a.Ex {
		args = append(args, list(mask(a.WCFlags), mask(a.CompMask), mask(a.Flags), a.ParentDomain != nil, a.CQESize, a.CQECompression)...)
	}
	return made(c.r, t, "create_cq", args, err, func() (verbs.CQ, []string) { return c.r.cq(q), list(q.Cap()) })
}

func (c *context) AllocUAR(t verbs.Thread, flags uint32) (verbs.UAR, error) {
	u, err := c.Context.AllocUAR(innerThread(t), flags)
	return made(c.r, t, "devx_alloc_uar", list(mask(flags)), err,
		func() (verbs.UAR, []string) { return &uar{u, c.r}, []string{c.r.sym("uar", u.Info().PageID)} })
}

func (c *context) AsyncEvent(t verbs.Thread, timeout time.Duration) (verbs.AsyncEvent, error) {
	e, err := c.Context.AsyncEvent(innerThread(t), timeout)
	var res []string
	if err == nil {
		res = []string{fmt.Sprintf("event %d", e.Type)}
		if e.QP != nil {
			res = append(res, c.r.qpn(e.QP.QPN()))
			e.QP = c.r.known(e.QP).(verbs.QP)
		}
		if e.SRQ != nil {
			e.SRQ = c.r.known(e.SRQ).(verbs.SRQ)
		}
		if e.CQ != nil {
			e.CQ = c.r.known(e.CQ).(verbs.CQ)
		}
	}
	return e, c.r.add(t, "get_async_event", list(seconds(timeout)), err, res...)
}

// known is the wrapper of an inner object, or the object itself.
func (r *Recorder) known(in any) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.objs[in]; ok {
		return w
	}
	return in
}

func (c *context) AckAsyncEvent(t verbs.Thread, e verbs.AsyncEvent) {
	e.QP, e.CQ, e.SRQ = bare(e.QP), bare(e.CQ), bare(e.SRQ)
	c.Context.AckAsyncEvent(innerThread(t), e)
	c.r.add(t, "ack_async_event", list(fmt.Sprintf("event %d", e.Type)), nil)
}

type td struct {
	verbs.TD
	r *Recorder
}

func (d *td) Dealloc(t verbs.Thread) error {
	return d.r.add(t, "dealloc_td", nil, d.TD.Dealloc(innerThread(t)))
}

type uar struct {
	verbs.UAR
	r *Recorder
}

func (u *uar) Store(t verbs.Thread, off uint32, v uint64) error {
	return u.r.add(t, "uar_store", list(mask(off)), u.UAR.Store(innerThread(t), off, v))
}

func (u *uar) Free(t verbs.Thread) error {
	return u.r.add(t, "devx_free_uar", nil, u.UAR.Free(innerThread(t)))
}

func (x *pd) inner() verbs.PD { return x.PD }

func (x *td) inner() verbs.TD { return x.TD }

func (x *buffer) inner() verbs.Buffer { return x.Buffer }
