package record

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

type mw struct {
	verbs.MW
	r *Recorder
}

func (p *pd) AllocMW(t verbs.Thread, typ verbs.MWType) (verbs.MW, error) {
	w, err := p.PD.AllocMW(innerThread(t), typ)
	p.c.r.add(t, "alloc_mw", list(uint32(typ)), err)
	if err != nil {
		return nil, err
	}
	return &mw{w, p.c.r}, nil
}

func bareMW(w verbs.MW) verbs.MW {
	if x, ok := w.(*mw); ok {
		return x.MW
	}
	return w
}

func (w *mw) Dealloc(t verbs.Thread) error {
	return w.r.add(t, "dealloc_mw", nil, w.MW.Dealloc(innerThread(t)))
}

func bareMR(m verbs.MR) verbs.MR {
	if x, ok := m.(*mr); ok {
		return x.MR
	}
	return m
}

func (m *mr) Rereg(t verbs.Thread, flags verbs.ReregFlags, pd verbs.PD, addr, length uint64, access verbs.AccessFlags) error {
	old := m.r.key(m.LKey())
	err := m.MR.Rereg(innerThread(t), flags, barePD(pd), addr, length, access)
	args := list(old, uint32(flags), m.r.addr(addr), length, mask(access))
	m.r.add(t, "rereg_mr", args, err, m.r.key(m.LKey()), m.r.key(m.RKey()))
	return err
}

// window prints what a bind asks for.
func (r *Recorder) window(b verbs.MWBindInfo) string {
	if b.MR == nil {
		return "no region"
	}
	return fmt.Sprintf("%s:%d of %s access %#x", r.addr(b.Addr), b.Length, r.key(b.MR.LKey()), uint32(b.Access))
}

func (q *qp) BindMW(t verbs.Thread, w verbs.MW, b verbs.MWBind) error {
	in := b
	in.Info.MR = bareMR(b.Info.MR)
	err := q.QP.BindMW(innerThread(t), bareMW(w), in)
	q.r.add(t, "bind_mw", list(q.name(), b.ID, q.r.window(b.Info)), err)
	return err
}

// bareBind is the bind of a send request with the objects of the target.
func bareBind(b *verbs.MWBindWR) *verbs.MWBindWR {
	if b == nil {
		return nil
	}
	in := *b
	in.MW, in.Info.MR = bareMW(b.MW), bareMR(b.Info.MR)
	return &in
}
