package record

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/verbs"
)

type qp struct {
	verbs.QP
	r *Recorder
}

// mlx5QP is a QP of an mlx5 device; what is asked of its insides is not recorded.
type mlx5QP struct {
	*qp
	m verbs.Mlx5QP
}

func (q *mlx5QP) BFReg() verbs.BFReg { return q.m.BFReg() }
func (q *mlx5QP) DoorbellRecord(t verbs.Thread) (recv, send uint32) {
	return q.m.DoorbellRecord(innerThread(t))
}
func (q *mlx5QP) SendQueue(t verbs.Thread, off int, p []byte) error {
	return q.m.SendQueue(innerThread(t), off, p)
}

func (q *mlx5QP) WriteSendQueue(t verbs.Thread, off int, p []byte) error {
	return q.m.WriteSendQueue(innerThread(t), off, p)
}
func (q *mlx5QP) WriteDoorbellRecord(t verbs.Thread, n uint16) error {
	return q.m.WriteDoorbellRecord(innerThread(t), n)
}
func (q *mlx5QP) RingDoorbell(t verbs.Thread, ctrl uint64) error {
	return q.m.RingDoorbell(innerThread(t), ctrl)
}

// lockedQP is an mlx5 QP of a testbed that counts locks.
type lockedQP struct {
	*mlx5QP
	verbs.LockCounter
}

func (r *Recorder) qp(q verbs.QP) verbs.QP {
	plain := func() *qp { return &qp{q, r} }
	m, ok := q.(verbs.Mlx5QP)
	if !ok {
		return wrap(r, q, plain)
	}
	l, ok := q.(verbs.LockCounter)
	if !ok {
		return wrap(r, q, func() *mlx5QP { return &mlx5QP{plain(), m} })
	}
	return wrap(r, q, func() *lockedQP { return &lockedQP{&mlx5QP{plain(), m}, l} })
}

func (x *qp) inner() verbs.QP { return x.QP }

func (q *qp) name() string { return q.r.qpn(q.QPN()) }

func (q *qp) Modify(t verbs.Thread, a *verbs.QPAttr, m verbs.QPAttrMask) error {
	err := q.QP.Modify(innerThread(t), a, m)
	args := list(q.name(), mask(m))
	if m&verbs.QPMaskState != 0 {
		args = append(args, a.State.String())
	}
	if m&verbs.QPMaskDestQPN != 0 {
		args = append(args, "dest "+q.r.qpn(a.DestQPN))
	}
	if m&verbs.QPMaskAV != 0 {
		args = append(args, "to "+q.r.gid(a.AH.GRH.DGID))
	}
	return q.r.add(t, "modify_qp", args, err)
}

func (q *qp) Query(t verbs.Thread, m verbs.QPAttrMask) (verbs.QPAttr, verbs.QPInitAttr, error) {
	a, init, err := q.QP.Query(innerThread(t), m)
	q.r.add(t, "query_qp", list(q.name(), mask(m)), err, a.State.String())
	if err == nil {
		if init.SendCQ != nil {
			init.SendCQ, _ = q.r.known(init.SendCQ).(verbs.CQ)
		}
		if init.RecvCQ != nil {
			init.RecvCQ, _ = q.r.known(init.RecvCQ).(verbs.CQ)
		}
		if init.SRQ != nil {
			init.SRQ, _ = q.r.known(init.SRQ).(verbs.SRQ)
		}
	}
	return a, init, err
}

func (r *Recorder) sges(l []verbs.SGE) string {
	s := make([]string, len(l))
	for i, g := range l {
		s[i] = fmt.Sprintf("%s:%d:%s", r.addr(g.Addr), g.Length, r.key(g.LKey))
	}
	return "[" + strings.Join(s, " ") + "]"
}

func (q *qp) PostSend(t verbs.Thread, wrs []verbs.SendWR) (int, error) {
	bad, err := q.QP.PostSend(innerThread(t), bareWRs(wrs))
	args := []string{q.name()}
	for i := range wrs {
		w := &wrs[i]
		s := fmt.Sprintf("{wr_id %d op %d flags %#x %s", w.ID, w.Opcode, uint32(w.Flags), q.r.sges(w.SGEs))
		switch w.Opcode {
		case verbs.WRSend:
		case verbs.WRSendImm:
			s += fmt.Sprintf(" imm %#x", w.Imm)
		case verbs.WRSendInv, verbs.WRLocalInv:
			s += " inv " + q.r.key(w.Imm)
		case verbs.WRBindMW:
			if w.Bind != nil {
				s += fmt.Sprintf(" bind %s to %s", q.r.key(w.Bind.RKey), q.r.window(w.Bind.Info))
			}
		default:
			s += fmt.Sprintf(" to %s:%s", q.r.addr(w.RemoteAddr), q.r.key(w.RKey))
		}
		if w.AH != nil {
			s += fmt.Sprintf(" to %s qkey %#x", q.r.qpn(w.RemoteQPN), w.RemoteQKey)
		}
		if w.XRCRemoteSRQN != 0 {
			s += " xrc srq " + q.r.sym("srq", w.XRCRemoteSRQN)
		}
		args = append(args, s+"}")
	}
	q.post(t, "post_send", args, bad, err)
	return bad, err
}

// bareWRs are the requests with the objects of the target.
func bareWRs(wrs []verbs.SendWR) []verbs.SendWR {
	out := wrs
	for i := range wrs {
		if wrs[i].AH == nil && wrs[i].Bind == nil {
			continue
		}
		if &out[0] == &wrs[0] {
			out = append([]verbs.SendWR(nil), wrs...)
		}
		out[i].AH, out[i].Bind = bare(wrs[i].AH), bareBind(wrs[i].Bind)
	}
	return out
}

func (q *qp) AttachMcast(t verbs.Thread, group verbs.GID, lid uint16) error {
	err := q.QP.AttachMcast(innerThread(t), group, lid)
	return q.r.add(t, "attach_mcast", list(q.name(), group.String()), err)
}

func (q *qp) DetachMcast(t verbs.Thread, group verbs.GID, lid uint16) error {
	err := q.QP.DetachMcast(innerThread(t), group, lid)
	return q.r.add(t, "detach_mcast", list(q.name(), group.String()), err)
}

func (q *qp) PostRecv(t verbs.Thread, wrs []verbs.RecvWR) (int, error) {
	bad, err := q.QP.PostRecv(innerThread(t), wrs)
	args := []string{q.name()}
	for i := range wrs {
		args = append(args, fmt.Sprintf("{wr_id %d %s}", wrs[i].ID, q.r.sges(wrs[i].SGEs)))
	}
	q.post(t, "post_recv", args, bad, err)
	return bad, err
}

// post records a post with the index of the request that was refused.
func (q *qp) post(t verbs.Thread, name string, args []string, bad int, err error) {
	if err != nil {
		args = append(args, fmt.Sprintf("bad %d", bad))
	}
	q.r.add(t, name, args, err)
}

func (q *qp) Destroy(t verbs.Thread) error {
	name := q.name()
	return q.r.add(t, "destroy_qp", list(name), q.QP.Destroy(innerThread(t)))
}

func (q *qp) DataInOrder(t verbs.Thread, op verbs.WROpcode, flags uint32) (int, error) {
	n, err := q.QP.DataInOrder(innerThread(t), op, flags)
	return n, q.r.add(t, "query_qp_data_in_order", list(uint32(op), mask(flags)), err, list(n)...)
}

type flow struct {
	verbs.Flow
	r *Recorder
}

func (q *qp) CreateFlow(t verbs.Thread, a verbs.FlowAttr) (verbs.Flow, error) {
	f, err := q.QP.CreateFlow(innerThread(t), a)
	args := list(q.name(), uint32(a.Type), a.Priority, a.Port, mask(a.Flags))
	for i := range a.Specs {
		args = append(args, flowSpec(&a.Specs[i]))
	}
	return made(q.r, t, "create_flow", args, err, func() (verbs.Flow, []string) { return &flow{f, q.r}, nil })
}

// flowSpec is a spec with the fields of which it masks bits. Addresses are of the machine, and are
// left out.
func flowSpec(s *verbs.FlowSpec) string {
	l := []string{fmt.Sprintf("%#x", uint32(s.Type))}
	for _, f := range []struct {
		name      string
		val, mask uint32
	}{
		{"type", uint32(s.Val.EtherType), uint32(s.Mask.EtherType)}, {"vlan", uint32(s.Val.VLANTag), uint32(s.Mask.VLANTag)},
		{"proto", uint32(s.Val.Proto), uint32(s.Mask.Proto)}, {"tos", uint32(s.Val.TOS), uint32(s.Mask.TOS)}, {"ttl", uint32(s.Val.TTL), uint32(s.Mask.TTL)},
		{"flags", uint32(s.Val.IPFlags), uint32(s.Mask.IPFlags)}, {"label", s.Val.FlowLabel, s.Mask.FlowLabel},
		{"sport", uint32(s.Val.SrcPort), uint32(s.Mask.SrcPort)}, {"dport", uint32(s.Val.DstPort), uint32(s.Mask.DstPort)},
		{"tag", s.Tag, s.Tag},
	} {
		if f.mask != 0 {
			l = append(l, fmt.Sprintf("%s %#x/%#x", f.name, f.val, f.mask))
		}
	}
	return "{" + strings.Join(l, " ") + "}"
}

func (f *flow) Destroy(t verbs.Thread) error {
	return f.r.add(t, "destroy_flow", nil, f.Flow.Destroy(innerThread(t)))
}
