package record

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

type pd struct {
	verbs.PD
	c *context
}

func (p *pd) Context() verbs.Context { return p.c }

func (p *pd) Dealloc(t verbs.Thread) error {
	return p.c.r.add(t, "dealloc_pd", nil, p.PD.Dealloc(innerThread(t)))
}

func (p *pd) RegMR(t verbs.Thread, addr, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	m, err := p.PD.RegMR(innerThread(t), addr, length, access)
	return p.c.r.mr(t, "reg_mr", m, err, list(p.c.r.addr(addr), length, mask(access)))
}

func (p *pd) RegMRIova(t verbs.Thread, addr, length, iova uint64, access verbs.AccessFlags) (verbs.MR, error) {
	m, err := p.PD.RegMRIova(innerThread(t), addr, length, iova, access)
	return p.c.r.mr(t, "reg_mr_iova", m, err, list(p.c.r.addr(addr), length, p.c.r.addr(iova), mask(access)))
}

func (p *pd) AllocNullMR(t verbs.Thread) (verbs.MR, error) {
	m, err := p.PD.AllocNullMR(innerThread(t))
	return p.c.r.mr(t, "alloc_null_mr", m, err, nil)
}

func (r *Recorder) mr(t verbs.Thread, name string, m verbs.MR, err error, args []string) (verbs.MR, error) {
	if err != nil {
		r.add(t, name, args, err)
		return nil, err
	}
	r.add(t, name, args, nil, r.key(m.LKey()), r.key(m.RKey()))
	return &mr{m, r}, nil
}

type mr struct {
	verbs.MR
	r *Recorder
}

func (m *mr) Dereg(t verbs.Thread) error {
	k := m.r.key(m.LKey())
	return m.r.add(t, "dereg_mr", list(k), m.MR.Dereg(innerThread(t)))
}

func (p *pd) AdviseMR(t verbs.Thread, advice verbs.AdviseMRAdvice, flags verbs.AdviseMRFlags, ranges []verbs.SGE) error {
	err := p.PD.AdviseMR(innerThread(t), advice, flags, ranges)
	args := list(uint32(advice), mask(flags))
	for _, s := range ranges {
		args = append(args, p.c.r.addr(s.Addr), fmt.Sprint(s.Length), p.c.r.key(s.LKey))
	}
	return p.c.r.add(t, "advise_mr", args, err)
}

// Counters are not recorded: what they say of a real system depends on what else it does.
func (m *mr) Counters(t verbs.Thread) ([]verbs.NamedCounter, error) {
	return m.MR.Counters(innerThread(t))
}

func (p *pd) CreateQP(t verbs.Thread, a verbs.QPInitAttr) (verbs.QP, error) {
	in := a
	in.SendCQ, in.RecvCQ = bare(a.SendCQ), bare(a.RecvCQ)
	in.SRQ = bare(a.SRQ)
	q, err := p.PD.CreateQP(innerThread(t), in)
	args := list(a.Type, fmt.Sprintf("%+v", a.Cap), a.SigAll, mask(a.CompMask), mask(a.CreateFlags), mask(a.SendOpsFlags))
	if d := a.Direct; d != nil {
		args = append(args, fmt.Sprintf("direct %#x flags %#x ops %#x", d.CompMask, d.CreateFlags, d.SendOpsFlags))
	}
	r := p.c.r
	return made(r, t, "create_qp", args, err, func() (verbs.QP, []string) { return r.qp(q), list(r.qpn(q.QPN()), fmt.Sprintf("%+v", q.Caps())) })
}

func (p *pd) CreateAH(t verbs.Thread, a verbs.AHAttr) (verbs.AH, error) {
	h, err := p.PD.CreateAH(innerThread(t), a)
	return made(p.c.r, t, "create_ah", list("to "+p.c.r.gid(a.GRH.DGID)), err, func() (verbs.AH, []string) { return &ah{h, p.c.r}, nil })
}

type ah struct {
	verbs.AH
	r *Recorder
}

func (h *ah) Destroy(t verbs.Thread) error {
	return h.r.add(t, "destroy_ah", nil, h.AH.Destroy(innerThread(t)))
}

func (x *ah) inner() verbs.AH { return x.AH }

type cq struct {
	verbs.CQ
	r *Recorder
}

// KeepTimes and CompletedAt are of verbs.TimedCQ, and are not recorded: they ask nothing of the
// library. A queue that keeps no times says so.
func (q *cq) KeepTimes(n int) bool {
	in, ok := q.CQ.(verbs.TimedCQ)
	return ok && in.KeepTimes(n)
}

func (q *cq) CompletedAt(i int) time.Duration { return q.CQ.(verbs.TimedCQ).CompletedAt(i) }

// lockedCQ is a CQ of a testbed that counts locks.
type lockedCQ struct {
	*cq
	verbs.LockCounter
}

func (r *Recorder) cq(q verbs.CQ) verbs.CQ {
	if l, ok := q.(verbs.LockCounter); ok {
		return wrap(r, q, func() *lockedCQ { return &lockedCQ{&cq{q, r}, l} })
	}
	return wrap(r, q, func() *cq { return &cq{q, r} })
}

func (x *cq) inner() verbs.CQ { return x.CQ }

// wcs prints completions. On an error only what the interface promises is there.
func (r *Recorder) wcs(wc []verbs.WC) []string {
	s := make([]string, len(wc))
	for i, w := range wc {
		s[i] = fmt.Sprintf("{wr_id %d %v %s", w.ID, w.Status, r.qpn(w.QPN))
		if w.Status == verbs.WCSuccess {
			s[i] += fmt.Sprintf(" op %d flags %#x", w.Opcode, uint32(w.Flags))
			if w.Opcode >= verbs.WCOpRecv || w.Opcode == verbs.WCOpRDMARead {
				s[i] += fmt.Sprintf(" len %d", w.ByteLen)
			}
			if w.Flags&verbs.WCWithImm != 0 {
				s[i] += fmt.Sprintf(" imm %#x", w.Imm)
			}
		}
		s[i] += "}"
	}
	return s
}

// Poll records polls that found something: how often a program looks in vain is its
// own affair.
func (q *cq) Poll(t verbs.Thread, wc []verbs.WC) (int, error) {
	n, err := q.CQ.Poll(innerThread(t), wc)
	if n > 0 || err != nil {
		q.r.add(t, "poll_cq", nil, err, q.r.wcs(wc[:max(n, 0)])...)
	}
	return n, err
}

func (q *cq) PollWait(t verbs.Thread, wc []verbs.WC, timeout time.Duration) (int, error) {
	n, err := q.CQ.PollWait(innerThread(t), wc, timeout)
	return n, q.r.add(t, "poll_cq", nil, err, q.r.wcs(wc[:max(n, 0)])...)
}

func (q *cq) ReqNotify(t verbs.Thread, solicitedOnly bool) error {
	return q.r.add(t, "req_notify_cq", list(solicitedOnly), q.CQ.ReqNotify(innerThread(t), solicitedOnly))
}

func (q *cq) Resize(t verbs.Thread, cqe int) error {
	err := q.CQ.Resize(innerThread(t), cqe)
	return q.r.add(t, "resize_cq", list(cqe), err, list(q.Cap())...)
}

func (q *cq) Modify(t verbs.Thread, m verbs.CQModeration) error {
	return q.r.add(t, "modify_cq", list(m.Count, m.Period), q.CQ.Modify(innerThread(t), m))
}

func (q *cq) Destroy(t verbs.Thread) error {
	return q.r.add(t, "destroy_cq", nil, q.CQ.Destroy(innerThread(t)))
}

type channel struct {
	verbs.CompChannel
	r *Recorder
}

func (ch *channel) Event(t verbs.Thread, timeout time.Duration) (verbs.CQ, error) {
	q, err := ch.CompChannel.Event(innerThread(t), timeout)
	return made(ch.r, t, "get_cq_event", list(seconds(timeout)), err, func() (verbs.CQ, []string) { return ch.r.cq(q), nil })
}

func (ch *channel) Ack(t verbs.Thread, q verbs.CQ, n int) {
	ch.CompChannel.Ack(innerThread(t), bare(q), n)
	ch.r.add(t, "ack_cq_events", list(n), nil)
}

func (ch *channel) Destroy(t verbs.Thread) error {
	return ch.r.add(t, "destroy_comp_channel", nil, ch.CompChannel.Destroy(innerThread(t)))
}
