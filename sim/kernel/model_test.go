package kernel

import (
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// refModel is what a context should hold: kinds of handles and who refers to whom.
type refModel struct {
	kind map[Handle]string
	uses map[Handle][]Handle
	refs map[Handle]int
}

func (m *refModel) add(h Handle, kind string, uses ...Handle) {
	m.kind[h], m.uses[h] = kind, uses
	for _, x := range uses {
		m.refs[x]++
	}
}

func (m *refModel) remove(h Handle) {
	for _, x := range m.uses[h] {
		m.refs[x]--
	}
	delete(m.kind, h)
	delete(m.uses, h)
}

// handles of a kind, in order.
func (m *refModel) handles(kind string, most Handle) (hs []Handle) {
	for h := Handle(1); h <= most; h++ {
		if m.kind[h] == kind {
			hs = append(hs, h)
		}
	}
	return hs
}

// Random calls: what a destroy answers, and what is counted, follows from who refers to
// whom and nothing else.
func TestObjectsAgainstModel(t *testing.T) {
	s := newSetup(t, testParams())
	buf := s.buf(1<<16, mem.Read|mem.Write)
	db := s.buf(mem.PageSize, mem.Read|mem.Write)
	rapid.Check(t, func(t *rapid.T) {
		u := s.open()
		c := Caller{}
		m := &refModel{kind: map[Handle]string{}, uses: map[Handle][]Handle{}, refs: map[Handle]int{}}
		last := Handle(0)
		pick := func(kind string) (Handle, bool) {
			hs := m.handles(kind, last)
			if len(hs) == 0 {
				return 0, false
			}
			return rapid.SampledFrom(hs).Draw(t, kind), true
		}
		note := func(h Handle, err error, kind string, uses ...Handle) {
			if err != nil {
				t.Fatalf("make %s: %v", kind, err)
			}
			last = max(last, h)
			m.add(h, kind, uses...)
		}
		destroy := map[string]func(Handle) error{
			"pd": func(h Handle) error { return u.DeallocPD(c, h) },
			"mr": func(h Handle) error { return u.DeregMR(c, h) },
			"cq": func(h Handle) error { _, _, err := u.DestroyCQ(c, h); return err },
			"qp": func(h Handle) error { _, err := u.DestroyQP(c, h); return err },
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch op := rapid.SampledFrom([]string{"pd", "cq", "mr", "qp", "destroy", "destroy", "destroy"}).Draw(t, "op"); op {
			case "pd":
				h, _, err := u.AllocPD(c)
				note(h, err, op)
			case "cq":
				h, _, err := u.CreateCQ(c, CQReq{CQE: 15, CQESize: 64, BufAddr: buf, DBAddr: db, UARValid: true})
				note(h, err, op)
			case "mr":
				if pd, ok := pick("pd"); ok {
					h, _, _, err := u.RegMR(c, pd, buf+5, 5000, buf+5, verbs.AccessLocalWrite)
					note(h, err, op, pd)
				}
			case "qp":
				pd, ok1 := pick("pd")
				scq, ok2 := pick("cq")
				if rcq, ok3 := pick("cq"); ok1 && ok2 && ok3 {
					h, _, err := u.CreateQP(c, QPReq{Type: verbs.QPTRC, PD: pd, SendCQ: scq, RecvCQ: rcq, SQWQECount: 16, BufAddr: buf, DBAddr: db, BFRegMode: BFRegUARPage})
					note(h, err, op, pd, scq, rcq)
				}
			case "destroy":
				h := Handle(rapid.IntRange(1, int(last)+2).Draw(t, "handle"))
				as := rapid.SampledFrom([]string{"pd", "mr", "cq", "qp"}).Draw(t, "as")
				want := syscall.Errno(0)
				switch kind := m.kind[h]; {
				case kind == "":
					want = syscall.ENOENT
				case kind != as:
					want = syscall.EINVAL
				case m.refs[h] > 0:
					want = syscall.EBUSY
				}
				if got := verbs.ErrnoOf(destroy[as](h)); got != want {
					t.Fatalf("destroy handle %d (%q, %d references) as %s: %v, want %v", h, m.kind[h], m.refs[h], as, got, want)
				}
				if want == 0 {
					m.remove(h)
				}
			}
			r := s.d.Resources()
			for kind, got := range map[string]int{"pd": r.PD, "mr": r.MR, "cq": r.CQ, "qp": r.QP} {
				if want := len(m.handles(kind, last)); got != want {
					t.Fatalf("%d of %s are counted, %d exist", got, kind, want)
				}
			}
		}
		u.Close(c)
		if r := s.d.Resources(); r != (Resources{}) || s.proc.Space.Pinned != 0 {
			t.Fatalf("left over: %+v, %d pages pinned", r, s.proc.Space.Pinned)
		}
	})
}
