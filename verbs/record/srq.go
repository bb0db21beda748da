package record

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

type srq struct {
	verbs.SRQ
	r *Recorder
}

func (r *Recorder) srq(s verbs.SRQ) (verbs.SRQ, []string) {
	return wrap(r, s, func() *srq { return &srq{s, r} }), []string{fmt.Sprintf("%+v", s.Caps())}
}

func (p *pd) CreateSRQ(t verbs.Thread, a verbs.SRQInitAttr) (verbs.SRQ, error) {
	s, err := p.PD.CreateSRQ(innerThread(t), a)
	args := list(a.MaxWR, a.MaxSGE, a.Limit)
	return made(p.c.r, t, "create_srq", args, err, func() (verbs.SRQ, []string) { return p.c.r.srq(s) })
}

func (x *srq) inner() verbs.SRQ { return x.SRQ }

func (s *srq) Num(t verbs.Thread) (uint32, error) {
	n, err := s.SRQ.Num(innerThread(t))
	return n, s.r.add(t, "get_srq_num", nil, err)
}

func (s *srq) PostRecv(t verbs.Thread, wrs []verbs.RecvWR) (int, error) {
	bad, err := s.SRQ.PostRecv(innerThread(t), wrs)
	var args []string
	for i := range wrs {
		args = append(args, fmt.Sprintf("{wr_id %d %s}", wrs[i].ID, s.r.sges(wrs[i].SGEs)))
	}
	if err != nil {
		args = append(args, fmt.Sprintf("bad %d", bad))
	}
	return bad, s.r.add(t, "post_srq_recv", args, err)
}

func (s *srq) Modify(t verbs.Thread, a verbs.SRQAttr, mask verbs.SRQAttrMask) error {
	return s.r.add(t, "modify_srq", list(fmt.Sprintf("%+v", a), uint32(mask)), s.SRQ.Modify(innerThread(t), a, mask))
}

func (s *srq) Query(t verbs.Thread) (verbs.SRQAttr, error) {
	a, err := s.SRQ.Query(innerThread(t))
	return a, s.r.add(t, "query_srq", nil, err, fmt.Sprintf("%+v", a))
}

func (s *srq) Destroy(t verbs.Thread) error {
	return s.r.add(t, "destroy_srq", nil, s.SRQ.Destroy(innerThread(t)))
}
