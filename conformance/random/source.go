package random

import (
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/verbs"
)

// Source returns the program as the body of a case in Go, in a function called name. The reader
// decides what the case must check: a comment says what the two targets did, and the body observes
// the completions.
func (p *Program) Source(name string, d *Difference) string {
	var b strings.Builder
	if d != nil {
		d.source(&b, name)
	}
	fmt.Fprintf(&b, "func %s(c *spec.C) {\n", name)
	o := p.options()
	fmt.Fprintf(&b, "o := kit.Default()\no.MTU, o.RNRRetry, o.RetryCnt, o.Timeout, o.MinRNRTimer, o.SigAll = %d, %d, %d, %d, %d, %t\n", o.MTU, o.RNRRetry, o.RetryCnt, o.Timeout, o.MinRNRTimer, o.SigAll)
	fmt.Fprintf(&b, "o.Cap = verbs.QPCap{MaxSendWR: %d, MaxRecvWR: %d, MaxSendSGE: %d, MaxRecvSGE: %d, MaxInline: %d}\n", o.Cap.MaxSendWR, o.Cap.MaxRecvWR, o.Cap.MaxSendSGE, o.Cap.MaxRecvSGE, o.Cap.MaxInline)
	if p.PSN > 0 || p.RdAtomic > 0 {
		fmt.Fprintf(&b, "o.PSN, o.RdAtomic = %d, %d\n", o.PSN, o.RdAtomic)
	}
	b.WriteString("e := kit.Open(c)\n")
	p.sourceShape(&b)
	ch := ""
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind == StepArm || s.Kind == StepEvent }) {
		b.WriteString("ch := e.Channel(c)\n")
		ch = ", Channel: ch"
	}
	if p.Shared {
		fmt.Fprintf(&b, "o.SendCQ = e.CreateCQWith(c, verbs.CQAttr{CQE: %d%s})\no.RecvCQ = o.SendCQ\n", o.CQE, ch)
	}
	if p.UC {
		b.WriteString("o.Type = verbs.QPTUC\n")
	}
	if p.UD {
		b.WriteString("o.Type = verbs.QPTUD\n")
	}
	if p.XRC {
		b.WriteString("// the queue pairs are an XRC sender and its target, and the receives those of two XRC SRQs of the target's domain\n")
	}
	if p.SRQ {
		fmt.Fprintf(&b, "s := e.CreateSRQ(c, %d, %d)\no.SRQ = s.SRQ\n", queueDepth, maxPieces)
	}
	if p.Extended {
		fmt.Fprintf(&b, "o.SendOps = %#x\n", o.SendOps)
	}
	if ch != "" && !p.Shared { // CQs of a channel, for each queue its own
		fmt.Fprintf(&b, "p := &kit.Pair{Env: e}\nfor _, q := range []**kit.QP{&p.A, &p.B} {\n"+
			"o.SendCQ, o.RecvCQ = e.CreateCQWith(c, verbs.CQAttr{CQE: %d%s}), e.CreateCQWith(c, verbs.CQAttr{CQE: %d%s})\n*q = e.CreateQP(c, o)\no.PSN = o.NthPSN(0x1000)\n}\n", o.CQE, ch, o.CQE, ch)
	} else {
		fmt.Fprintf(&b, "o.CQE = %d\np := e.UnconnectedPair(c, o)\n", o.CQE)
	}
	fmt.Fprintf(&b, "p.A.Opt.Access, p.B.Opt.Access = %s, %s\np.Connect(c)\n", flagWords(uint64(p.Access[0]), accessWords, "verbs.AccessFlags"),
		flagWords(uint64(p.Access[1]), accessWords, "verbs.AccessFlags"))
	if p.IPv6 || p.Class > 0 || p.Hops > 0 || p.Flow > 0 || p.SL > 0 {
		fmt.Fprintf(&b, "// the path: IPv6 %t, traffic class %d, hop limit %d, flow label %#x, service level %d\n", p.IPv6, p.Class, p.Hops, p.Flow, p.SL)
	}
	if p.UD && slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind == StepSend }) {
		fmt.Fprintf(&b, "way := e.AHTo(e.LocalAddr)\nway.GRH.TrafficClass = %d\nah := e.CreateAH(c, way)\n", p.Class)
	}
	b.WriteString("var m []*kit.Buffer\n")
	if slices.ContainsFunc(p.Steps, func(s Step) bool {
		return !slices.Contains([]string{StepDereg, StepReg, StepRereg, StepEvict, StepAdvise, StepLimit, StepEvent, StepGroup}, s.Kind) && (s.Kind != StepRecv || !p.SRQ)
	}) {
		b.WriteString("q := [2]*kit.QP{p.A, p.B}\n")
	}
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: %s.QPN(), Skip: %d, Count: %d, Action: %d, Delay: %d * 1000})\n",
			[2]string{"p.A", "p.B"}[f.To], f.Skip, f.Count, f.Action, f.Delay)
	}
	fmt.Fprintf(&b, "for _, access := range []verbs.AccessFlags{")
	for i, r := range p.Regions {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(flagWords(uint64(r.Access), accessWords, "verbs.AccessFlags"))
	}
	fmt.Fprintf(&b, "} {\nm = append(m, p.Buffer(c, %d, access))\n}\n", p.Regions[0].Size)
	for i, s := range p.Steps {
		p.sourceStep(&b, i, &s)
	}
	b.WriteString("}\n")
	out, err := format.Source([]byte(b.String()))
	if err != nil { // a defect here; the text is still of use
		return b.String()
	}
	return string(out)
}

// sourceShape says in comments what the case has to make in another way than the kit does.
func (p *Program) sourceShape(b *strings.Builder) {
	if p.CQ.Extended {
		fmt.Fprintf(b, "// CQs by ibv_create_cq_ex, polled by ibv_start_poll: entries of 128 bytes %t, compressed in format %d\n", p.CQ.Wide, p.CQ.Compressed)
	}
	if p.Domain {
		b.WriteString("o.PD = e.AllocTD(c).PD\n")
	}
	if p.RdAtomic == tooMany {
		b.WriteString("// each transition asks first for one READ more than the device has\n")
	}
	for i, m := range p.Regions {
		if m.Off > 0 || m.Place > 0 || m.Paged || m.Size != p.Regions[0].Size {
			fmt.Fprintf(b, "// m[%d]: %d bytes from byte %d of its page on, place %d, on demand %t, behind 4 GiB %t\n", i, m.Size, m.Off, m.Place, m.Paged, m.Big)
		}
	}
}

// sourceOther writes the steps that are one call.
func (p *Program) sourceOther(b *strings.Builder, i int, s *Step) {
	cq := fmt.Sprintf("q[%d].%s", s.Side, map[bool]string{false: "SendCQ", true: "RecvCQ"}[s.Recv])
	number := fmt.Sprint(s.N)
	switch s.Anchor {
	case AnchorCap:
		number = fmt.Sprintf("%s.Cap()%+d", cq, s.N)
	case AnchorWaiting:
		number += " /* behind what waits */"
	}
	observe := func(call, expr string) {
		fmt.Fprintf(b, "c.Observe(%q, verbs.ErrnoName(verbs.ErrnoOf(%s)))\n", fmt.Sprintf("step %d: %s", i+1, call), expr)
	}
	switch s.Kind {
	case StepPoll:
		fmt.Fprintf(b, "kit.RecordCompletions(c, %q, %s, max(1, %s))\n", fmt.Sprintf("step %d: completion", i+1), cq, number)
	case StepArm:
		observe("req_notify_cq", fmt.Sprintf("%s.ReqNotify(c.T, %t)", cq, s.Solicited))
	case StepEvent:
		fmt.Fprintf(b, "if cq, err := ch.Event(c.T, kit.QuietPeriod); err == nil {\nch.Ack(c.T, cq, 1)\nc.Observe(%q, \"comes\")\n}\n", fmt.Sprintf("step %d: event", i+1))
	case StepResize:
		observe("resize_cq", fmt.Sprintf("%s.Resize(c.T, %s)", cq, number))
	case StepLimit:
		if s.Anchor == AnchorCap {
			number = fmt.Sprintf("s.Caps().MaxWR+uint32(%d)", max(0, s.N))
		}
		if p.XRC {
			fmt.Fprintf(b, "// the limit of SRQ %d becomes %s\n", s.Side, number)
			return
		}
		observe("modify_srq", fmt.Sprintf("s.Modify(c.T, verbs.SRQAttr{Limit: uint32(max(0, %s))}, verbs.SRQMaskLimit)", number))
	case StepReg:
		x := s.Pieces[0]
		fmt.Fprintf(b, "// m[%d] is registered anew: %d bytes from byte %d on, access %s, place %d\n", x.Region, x.Len, x.Off, flagWords(uint64(s.Access), accessWords, "verbs.AccessFlags"), s.N%places)
	case StepEvict:
		observe("madvise", fmt.Sprintf("m[%d].Pages(c).Advise(c.T, %d, %d, verbs.AdviceDontNeed)", s.Region, max(0, s.N-1)*kit.Page, memorySize-max(0, s.N-1)*kit.Page))
	case StepAdvise:
		observe("advise_mr", fmt.Sprintf("e.PD.AdviseMR(c.T, %d, verbs.AdviseFlush, %s)", s.N, sourcePieces(s.Pieces)))
	case StepRereg:
		if len(s.Pieces) > 0 {
			x := s.Pieces[0]
			observe("rereg_mr", fmt.Sprintf("m[%d].MR.Rereg(c.T, verbs.ReregTranslation, nil, m[%d].Addr(%d), %d, 0)", s.Region, s.Region, x.Off, x.Len))
			return
		}
		if s.All || s.N > 0 {
			pd := map[bool]string{true: "e.PD", false: "e.AllocPD(c)"}[s.All]
			observe("rereg_mr", fmt.Sprintf("m[%d].MR.Rereg(c.T, verbs.ReregPD, %s, 0, 0, 0)", s.Region, pd))
			return
		}
		observe("rereg_mr", fmt.Sprintf("m[%d].MR.Rereg(c.T, verbs.ReregAccess, nil, 0, 0, %s)", s.Region, flagWords(uint64(s.Access), accessWords, "verbs.AccessFlags")))
	case StepModify:
		a := s.attributes()
		observe("modify_qp", fmt.Sprintf("q[%d].Modify(c.T, &verbs.QPAttr{Access: %s, MinRNRTimer: %d, Timeout: %d, RetryCnt: %d, RNRRetry: %d, MaxRdAtomic: %d, MaxDestRdAtomic: %d, Port: 1, PathMTU: %d, QKey: %d}, verbs.QPAttrMask(%#x))",
			s.Side, flagWords(uint64(a.Access), accessWords, "verbs.AccessFlags"), a.MinRNRTimer, a.Timeout, a.RetryCnt, a.RNRRetry, a.MaxRdAtomic, a.MaxDestRdAtomic, a.PathMTU, a.QKey, uint32(s.Mask)))
	case StepDrain:
		fmt.Fprintf(b, "if q[%d].QueryState(c) == verbs.QPSSQD {\nq[%[1]d].ModifyState(c, verbs.QPSRTS)\n} else {\n", s.Side)
		observe("modify_qp to SQD", fmt.Sprintf("q[%d].Modify(c.T, &verbs.QPAttr{State: verbs.QPSSQD, EnSQDAsyncNotify: %t}, verbs.QPMaskState|verbs.QPMaskEnSQDAsyncNotify)", s.Side, s.N != 0))
		b.WriteString("}\n")
	case StepGroup:
		fmt.Fprintf(b, "// q[%d] joins the multicast group (1) or leaves it (0): %d\n", s.Side, s.N)
	case StepModer:
		observe("modify_cq", fmt.Sprintf("%s.Modify(c.T, verbs.CQModeration{Count: %d, Period: %d})", cq, s.N, s.Period))
	case StepQuery:
		fmt.Fprintf(b, "c.Observe(%q, q[%d].QueryState(c).String())\n", fmt.Sprintf("step %d: state", i+1), s.Side)
	}
}

// source writes the difference as a comment.
func (d *Difference) source(b *strings.Builder, name string) {
	if v := d.Violation; v != nil {
		fmt.Fprintf(b, "// %s: %s (%s). Step %d, %s:\n//\n//\twant: %s\n//\tgot:  %s\n", name, v.Rule, v.Source, v.Step, v.What, v.Want, v.Got)
		return
	}
	fmt.Fprintf(b, "// %s: two targets differ. %s, line %d:\n//\n//\tfirst:  %s\n//\tsecond: %s\n", name, d.Stream, d.Line, d.Sides[0], d.Sides[1])
}

func (p *Program) sourceStep(b *strings.Builder, i int, s *Step) {
	if s.Kind == StepError || s.Kind == StepDrain || s.Kind == StepRenew {
		p.sourceUnderWay(b, i, s)
	}
	p.sourceOther(b, i, s)
	switch s.Kind {
	case StepRecv:
		queue := fmt.Sprintf("q[%d]", s.Side)
		if p.SRQ {
			queue = "s"
		}
		if s.Times > 1 {
			fmt.Fprintf(b, "for range %d {\n", s.Times)
			defer b.WriteString("}\n")
		}
		fmt.Fprintf(b, "_, err%d := %s.PostRecv(c.T, []verbs.RecvWR{{ID: %d, SGEs: %s}})\nc.Observe(%q, verbs.ErrnoName(verbs.ErrnoOf(err%d)))\n",
			i, queue, idOf(i, 0), sourcePieces(s.Pieces), fmt.Sprintf("step %d: post_recv", i+1), i)
	case StepSend:
		if s.Times > 1 {
			fmt.Fprintf(b, "for range %d {\n", s.Times)
			defer b.WriteString("}\n")
		}
		if s.Late > 0 {
			fmt.Fprintf(b, "// The receive for it, of pieces %s, is posted %d microseconds later.\n", sourcePieces(s.Pieces), s.Late)
		}
		fmt.Fprintf(b, "_, err%d := q[%d].TryPost(c, []verbs.SendWR{\n", i, s.Side)
		p.sourceList(b, i, s)
		last := "Opcode: verbs.WRRDMAWrite"
		if p.UD {
			last = fmt.Sprintf("Opcode: verbs.WRSend, AH: ah, RemoteQPN: q[%d].QPN(), RemoteQKey: %#x", 1-s.Side, noQKey)
		}
		fmt.Fprintf(b, "{ID: %d, %s, Flags: verbs.SendSignaled}, // when it has completed all have\n})\n", idOf(i, marker), last)
		fmt.Fprintf(b, "c.Observe(%q, verbs.ErrnoName(verbs.ErrnoOf(err%d)))\n", fmt.Sprintf("step %d: post_send", i+1), i)
		fmt.Fprintf(b, "for err%d == nil {\nwc := kit.PollOne(c, q[%d].SendCQ)\nc.Observe(fmt.Sprintf(\"request %%#x\", wc.ID), wc.Status.String())\nif wc.ID == %d {\nbreak\n}\n}\n", i, s.Side, idOf(i, marker))
	case StepError:
		fmt.Fprintf(b, "q[%d].ModifyState(c, verbs.QPSErr)\n", s.Side)
	case StepDereg:
		fmt.Fprintf(b, "c.NoErr(\"dereg_mr\", m[%d].MR.Dereg(c.T))\n", s.Region)
	case StepRestart, StepRenew:
		if s.Kind == StepRenew {
			fmt.Fprintf(b, "q[%d].DestroyNow(c)\n", s.Side)
			for _, cq := range []string{"SendCQ", "RecvCQ"} {
				if s.N > 0 {
					fmt.Fprintf(b, "kit.RecordCompletions(c, %q, q[%d].%s, %d)\n", fmt.Sprintf("step %d: completion", i+1), 1-s.Side, cq, s.N)
				}
			}
			fmt.Fprintf(b, "q[%d].DestroyNow(c)\n", 1-s.Side)
			b.WriteString("for i, x := range q {\no := x.Opt\no.SendCQ, o.RecvCQ = x.SendCQ, x.RecvCQ\nq[i] = e.CreateQP(c, o)\n}\np.A, p.B = q[0], q[1]\np.Connect(c)\n")
			return
		}
		b.WriteString("for _, x := range q {\nx.ModifyState(c, verbs.QPSErr)\nx.ModifyState(c, verbs.QPSReset)\n}\np.Connect(c)\n")
	}
}

// sourceList writes the requests of a step.
func (p *Program) sourceList(b *strings.Builder, i int, s *Step) {
	for n, r := range s.List {
		fmt.Fprintf(b, "{ID: %d, Opcode: %s, Flags: %s, SGEs: %s", idOf(i, n), opWords[r.Op], flagWords(uint64(r.Flags), sendWords, "verbs.SendFlags"), sourcePieces(r.Local))
		if names, _ := r.remote(); names {
			fmt.Fprintf(b, ", RemoteAddr: m[%d].Addr(%d), RKey: m[%d].MR.RKey()%s", r.Remote.Region, r.Remote.Off, r.Remote.Region, wrongKey(r.Remote))
		}
		if p.UD {
			fmt.Fprintf(b, ", AH: ah, RemoteQPN: q[%d].QPN(), RemoteQKey: kit.QKey%s", 1-s.Side, map[bool]string{true: " ^ 1"}[r.BadQKey])
		}
		if r.Group {
			b.WriteString(" /* to the multicast group */")
		}
		if r.Op == verbs.WRSendInv {
			fmt.Fprintf(b, ", Imm: 0 /* the key of window %d */", r.Remote.Window)
		}
		if p.XRC {
			fmt.Fprintf(b, ", XRCRemoteSRQN: 0 /* the number of SRQ %d; %d: of none */", r.SRQ, noSRQ)
		}
		if r.Imm != 0 {
			fmt.Fprintf(b, ", Imm: %#x", r.Imm)
		}
		if r.atomic() {
			fmt.Fprintf(b, ", CompareAdd: %d, Swap: %d", r.CompareAdd, r.Swap)
		}
		b.WriteString("},\n")
	}
}

// sourceUnderWay writes the requests that a change of the state meets.
func (p *Program) sourceUnderWay(b *strings.Builder, i int, s *Step) {
	if len(s.List) == 0 {
		return
	}
	fmt.Fprintf(b, "_, err%d := q[%d].TryPost(c, []verbs.SendWR{\n", i, s.Side)
	p.sourceList(b, i, s)
	fmt.Fprintf(b, "})\nc.Observe(%q, verbs.ErrnoName(verbs.ErrnoOf(err%d)))\n", fmt.Sprintf("step %d: post_send", i+1), i)
}

func sourcePieces(l []Piece) string {
	var all []string
	for _, x := range l {
		all = append(all, fmt.Sprintf("{Addr: m[%d].Addr(%d), Length: %d, LKey: m[%d].MR.LKey()%s}", x.Region, x.Off, x.Len, x.Region, wrongKey(x)))
	}
	return "[]verbs.SGE{" + strings.Join(all, ", ") + "}"
}

func wrongKey(x Piece) string {
	if x.WrongKey {
		return fmt.Sprintf(" ^ %#x", wrong)
	}
	return ""
}

type word struct {
	bit  uint64
	name string
}

var accessWords = []word{{uint64(verbs.AccessLocalWrite), "verbs.AccessLocalWrite"}, {uint64(verbs.AccessRemoteWrite), "verbs.AccessRemoteWrite"},
	{uint64(verbs.AccessRemoteRead), "verbs.AccessRemoteRead"}, {uint64(verbs.AccessRemoteAtomic), "verbs.AccessRemoteAtomic"}}

var sendWords = []word{{uint64(verbs.SendFence), "verbs.SendFence"}, {uint64(verbs.SendSignaled), "verbs.SendSignaled"},
	{uint64(verbs.SendSolicited), "verbs.SendSolicited"}, {uint64(verbs.SendInline), "verbs.SendInline"}}

var opWords = map[verbs.WROpcode]string{verbs.WRRDMAWrite: "verbs.WRRDMAWrite", verbs.WRRDMAWriteImm: "verbs.WRRDMAWriteImm", verbs.WRSend: "verbs.WRSend",
	verbs.WRSendImm: "verbs.WRSendImm", verbs.WRSendInv: "verbs.WRSendInv", verbs.WRRDMARead: "verbs.WRRDMARead", verbs.WRAtomicCmpSwp: "verbs.WRAtomicCmpSwp", verbs.WRAtomicFetchAdd: "verbs.WRAtomicFetchAdd"}

func flagWords(v uint64, words []word, typ string) string {
	var l []string
	for _, w := range words {
		if v&w.bit != 0 {
			l = append(l, w.name)
			v &^= w.bit
		}
	}
	if v != 0 || len(l) == 0 {
		l = append(l, fmt.Sprintf("%s(%d)", typ, v))
	}
	return strings.Join(l, "|")
}
