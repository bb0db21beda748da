package random

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/verbs"
)

// window is a memory window and its key before the last bind.
type window struct {
	mw    verbs.MW
	model model.MW
	old   uint32
}

// bind binds a window, which is allocated first, to a piece. A window of type 2 that is to be free
// is invalidated.
func (r *run) bind(i int, s *Step) {
	x, q := s.Pieces[0], r.qm[s.Side]
	w := r.mws[x.Window-1]
	if r.mrs[x.Region] == nil || r.rm[x.Region].Paged || q.Drained() || !r.room(i, s.Side, 2) {
		return
	}
	if w == nil {
		mw, err := r.env.PD.AllocMW(r.c.T, r.p.Window)
		kit.Must(r.c, "alloc_mw", err)
		w = &window{mw: mw, old: mw.RKey()}
		r.mws[x.Window-1] = w
	}
	info := verbs.MWBindInfo{MR: r.mrs[x.Region], Addr: r.addr(x), Length: uint64(x.Len), Access: s.Access}
	b := &model.Bind{MW: &w.model, MR: r.rm[x.Region], Off: x.Off, Len: x.Len, Access: s.Access, Type: r.p.Window}
	m := model.Request{ID: idOf(i, 0), Op: verbs.WRBindMW, Flags: verbs.SendSignaled, Bind: b}
	m.Remote.Mem, m.Remote.MR = r.mm[0], r.rm[0]
	before := w.mw.RKey()
	wr := verbs.SendWR{ID: m.ID, Opcode: m.Op, Flags: m.Flags}
	var err error
	switch {
	case r.p.Window == verbs.MWType1:
		if x.Len == 0 {
			info = verbs.MWBindInfo{}
		}
		err = r.qps[s.Side].BindMW(r.c.T, w.mw, verbs.MWBind{ID: m.ID, Flags: m.Flags, Info: info})
	case x.Len == 0 && w.model.MR == nil:
		return
	case x.Len == 0:
		if w.model.QP != q { // through another queue pair it fails (MW-022)
			return
		}
		wr.Opcode, m.Op, wr.Imm = verbs.WRLocalInv, verbs.WRLocalInv, before
		_, err = r.qps[s.Side].TryPost(r.c, []verbs.SendWR{wr})
	default:
		key := verbs.IncRKey(before)
		wr.Bind = &verbs.MWBindWR{MW: w.mw, RKey: key, Info: info}
		if _, err = r.qps[s.Side].TryPost(r.c, []verbs.SendWR{wr}); err == nil {
			w.mw.SetRKey(key)
		}
	}
	r.call("step %d: bind window %d: %s", i+1, x.Window, errnoName(err))
	if !r.judge(i, "bind of a window", q.PostSend([]model.Request{m}, 0, err)) || err != nil {
		return
	}
	if w.mw.RKey() != before {
		w.old = before
	}
	if r.take(i, r.cq(s.Side, false), m.ID); r.ended {
		return
	}
	if q.State != verbs.QPSRTS { // what a bind that failed leaves of the key is not looked at
		r.dropWindow(x.Window - 1)
	}
	r.certain(i)
}

// dropWindow deallocates a window.
func (r *run) dropWindow(n int) {
	if w := r.mws[n]; w != nil {
		r.mws[n] = nil
		err := w.mw.Dealloc(r.c.T)
		r.judge(len(r.p.Steps), "ibv_dealloc_mw", w.model.Dealloc(err))
	}
}

// dropWindows deallocates windows of type 2 before their queue pairs end, after which the
// specification leaves them open.
func (r *run) dropWindows() {
	for n, w := range r.mws {
		if w != nil && w.model.QP != nil {
			r.dropWindow(n)
		}
	}
}

// windowKey is the key of a remote piece that names a window; ok is false if there is none.
func (r *run) windowKey(x Piece) (key uint32, w *model.MW, ok bool) {
	m := r.mws[x.Window-1]
	if m == nil {
		return 0, nil, false
	}
	if key = m.mw.RKey(); x.Old {
		return m.old, &model.MW{}, m.old != key // a key that no window has
	}
	return key, &m.model, true
}
