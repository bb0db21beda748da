package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// What a file has is destroyed newest first, whatever was made in which order and given back before
// (uverbs_destroy_ufile_hw of drivers/infiniband/core/rdma_core.c: rdma_alloc_commit_uobject adds
// at the head of the list).
func TestClosedFileDestroysNewestFirst(t *testing.T) {
	for seed := range uint64(50) {
		p := testParams()
		p.MKeyCache = NoKeyAgain
		s, rnd := newSetup(t, p), rand.New(rand.NewPCG(seed, 1))
		u := s.open()
		type made struct {
			gone
			destroy func() error
		}
		var all []made
		pd, cq := s.pd(u), s.cq(u) // of all queue pairs and regions: older than they are
		for range 20 {
			m, c := made{}, Caller{}
			switch rnd.IntN(4) {
			case 0:
				h := s.pd(u)
				m = made{gone{prm.OpDeallocPD, s.f.next}, func() error { return u.DeallocPD(c, h) }}
			case 1:
				h := s.cq(u)
				m = made{gone{prm.OpDestroyCQ, s.f.next}, func() error { _, _, err := u.DestroyCQ(c, h); return err }}
			case 2:
				h := s.qp(u, pd, cq, verbs.QPTRC)
				m = made{gone{prm.OpDestroyQP, s.f.next}, func() error { _, err := u.DestroyQP(c, h); return err }}
			case 3:
				h, lkey, _, err := u.RegMR(c, pd, s.buf(4096, mem.Read|mem.Write), 4096, 0, verbs.AccessLocalWrite)
				if err != nil {
					t.Fatal(err)
				}
				m = made{gone{prm.OpDestroyMKey, lkey >> 8}, func() error { return u.DeregMR(c, h) }}
			}
			if all = append(all, m); rnd.IntN(3) > 0 {
				continue
			}
			i := rnd.IntN(len(all)) // one that the program destroys itself
			if err := all[i].destroy(); err != nil {
				t.Fatal(err)
			}
			all = slices.Delete(all, i, i+1)
		}
		var want []gone
		for _, m := range slices.Backward(all) {
			want = append(want, m.gone)
		}
		s.f.gone = nil
		u.Close(Caller{})
		if got := s.f.gone; len(got) < len(want)+2 || !slices.Equal(got[:len(want)], want) {
			t.Errorf("seed %d: destroyed %v, want %v first, then a CQ and a PD", seed, got, want)
		}
	}
}

// What others still use is left for another pass.
func TestBusyObjectsGoInALaterPass(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	cq := s.cq(u)
	number := map[prm.Opcode]uint32{prm.OpDestroyCQ: s.f.next}
	pd := s.pd(u)
	number[prm.OpDeallocPD] = s.f.next
	s.qp(u, pd, cq, verbs.QPTRC)
	number[prm.OpDestroyQP] = s.f.next
	qp := u.objs.tab[u.objs.last]
	u.objs.remove(u.objs.last) // as if it were the oldest
	u.objs.tab[0] = qp
	s.f.gone = nil
	u.Close(Caller{})
	want := []gone{{prm.OpDestroyQP, number[prm.OpDestroyQP]}, {prm.OpDeallocPD, number[prm.OpDeallocPD]}, {prm.OpDestroyCQ, number[prm.OpDestroyCQ]}}
	if got := s.f.gone; len(got) < 3 || !slices.Equal(got[:3], want) {
		t.Errorf("destroyed %v, want %v", got, want)
	}
}
