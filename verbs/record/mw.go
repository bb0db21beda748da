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
	return made(p.c.r, t, "alloc_mw", list(uint32(typ)), err, func() (verbs.MW, []string) { return &mw{w, p.c.r}, nil })
}

func (x *mw) inner() verbs.MW { return x.MW }

func (w *mw) Dealloc(t verbs.Thread) error {
	return w.r.add(t, "dealloc_mw", nil, w.MW.Dealloc(innerThread(t)))
}

func (x *mr) inner() verbs.MR { return x.MR }

func (m *mr) Rereg(t verbs.Thread, flags verbs.ReregFlags, pd verbs.PD, addr, length uint64, access verbs.AccessFlags) error {
	old := m.r.key(m.LKey())
	err := m.MR.Rereg(innerThread(t), flags, bare(pd), addr, length, access)
	args := list(old, uint32(flags), m.r.addr(addr), length, mask(access))
	return m.r.add(t, "rereg_mr", args, err, m.r.key(m.LKey()), m.r.key(m.RKey()))
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
	in.Info.MR = bare(b.Info.MR)
	err := q.QP.BindMW(innerThread(t), bare(w), in)
	return q.r.add(t, "bind_mw", list(q.name(), b.ID, q.r.window(b.Info)), err)
}

// bareBind is the bind of a send request with the objects of the target.
func bareBind(b *verbs.MWBindWR) *verbs.MWBindWR {
	if b == nil {
		return nil
	}
	in := *b
	in.MW, in.Info.MR = bare(b.MW), bare(b.Info.MR)
	return &in
}
