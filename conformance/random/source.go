package random

import (
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/verbs"
)

// Source is the program as the body of a case, in Go. What it must check is for the reader to say: a comment has what the two
// targets did, and the body observes the completions. name is that of the function.
func (p *Program) Source(name string, d *Difference) string {
	var b strings.Builder
	if d != nil {
		fmt.Fprintf(&b, "// %s: two targets differ. %s, line %d:\n//\n//\tfirst:  %s\n//\tsecond: %s\n", name, d.Stream, d.Line, d.Sides[0], d.Sides[1])
	}
	fmt.Fprintf(&b, "func %s(c *spec.C) {\n", name)
	o := p.options()
	fmt.Fprintf(&b, "o := kit.Default()\no.MTU, o.RNRRetry, o.RetryCnt, o.Timeout, o.MinRNRTimer, o.SigAll = %d, %d, %d, %d, %d, %t\n", o.MTU, o.RNRRetry, o.RetryCnt, o.Timeout, o.MinRNRTimer, o.SigAll)
	fmt.Fprintf(&b, "o.Cap = verbs.QPCap{MaxSendWR: %d, MaxRecvWR: %d, MaxSendSGE: %d, MaxRecvSGE: %d, MaxInline: %d}\n", o.Cap.MaxSendWR, o.Cap.MaxRecvWR, o.Cap.MaxSendSGE, o.Cap.MaxRecvSGE, o.Cap.MaxInline)
	b.WriteString("e := kit.Open(c)\n")
	if p.UC {
		b.WriteString("o.Type = verbs.QPTUC\n")
	}
	if p.SRQ {
		fmt.Fprintf(&b, "s := e.CreateSRQ(c, %d, %d)\no.SRQ = s.SRQ\n", queueDepth, maxPieces)
	}
	if p.Extended {
		b.WriteString("o.SendOps = " + map[bool]string{true: "kit.OpsUC", false: "kit.OpsRC"}[p.UC] + "\n")
	}
	fmt.Fprintf(&b, "p := e.UnconnectedPair(c, o)\np.A.Opt.Access, p.B.Opt.Access = %s, %s\np.Connect(c)\n", flagWords(uint64(p.Access[0]), accessWords, "verbs.AccessFlags"),
		flagWords(uint64(p.Access[1]), accessWords, "verbs.AccessFlags"))
	b.WriteString("var m []*kit.Buffer\n")
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind != StepDereg && (s.Kind != StepRecv || !p.SRQ) }) {
		b.WriteString("q := [2]*kit.QP{p.A, p.B}\n")
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

func (p *Program) sourceStep(b *strings.Builder, i int, s *Step) {
	switch s.Kind {
	case StepRecv:
		queue := fmt.Sprintf("q[%d]", s.Side)
		if p.SRQ {
			queue = "s"
		}
		fmt.Fprintf(b, "_, err%d := %s.PostRecv(c.T, []verbs.RecvWR{{ID: %d, SGEs: %s}})\nc.Observe(%q, verbs.ErrnoName(verbs.ErrnoOf(err%d)))\n",
			i, queue, idOf(i, 0), sourcePieces(s.Pieces), fmt.Sprintf("step %d: post_recv", i+1), i)
	case StepSend:
		fmt.Fprintf(b, "_, err%d := q[%d].TryPost(c, []verbs.SendWR{\n", i, s.Side)
		for n, r := range s.List {
			fmt.Fprintf(b, "{ID: %d, Opcode: %s, Flags: %s, SGEs: %s", idOf(i, n), opWords[r.Op], flagWords(uint64(r.Flags), sendWords, "verbs.SendFlags"), sourcePieces(r.Local))
			if names, _ := r.remote(); names {
				fmt.Fprintf(b, ", RemoteAddr: m[%d].Addr(%d), RKey: m[%d].MR.RKey()%s", r.Remote.Region, r.Remote.Off, r.Remote.Region, wrongKey(r.Remote))
			}
			if r.Imm != 0 {
				fmt.Fprintf(b, ", Imm: %#x", r.Imm)
			}
			if r.atomic() {
				fmt.Fprintf(b, ", CompareAdd: %d, Swap: %d", r.CompareAdd, r.Swap)
			}
			b.WriteString("},\n")
		}
		fmt.Fprintf(b, "{ID: %d, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled}, // when it has completed all have\n})\n", idOf(i, marker))
		fmt.Fprintf(b, "c.Observe(%q, verbs.ErrnoName(verbs.ErrnoOf(err%d)))\n", fmt.Sprintf("step %d: post_send", i+1), i)
		fmt.Fprintf(b, "for err%d == nil {\nwc := kit.PollOne(c, q[%d].SendCQ)\nc.Observe(fmt.Sprintf(\"request %%#x\", wc.ID), wc.Status.String())\nif wc.ID == %d {\nbreak\n}\n}\n", i, s.Side, idOf(i, marker))
	case StepError:
		fmt.Fprintf(b, "q[%d].ModifyState(c, verbs.QPSErr)\n", s.Side)
	case StepDereg:
		fmt.Fprintf(b, "c.NoErr(\"dereg_mr\", m[%d].MR.Dereg(c.T))\n", s.Region)
	case StepRestart:
		b.WriteString("for _, x := range q {\nx.ModifyState(c, verbs.QPSErr)\nx.ModifyState(c, verbs.QPSReset)\n}\np.Connect(c)\n")
	}
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
	verbs.WRSendImm: "verbs.WRSendImm", verbs.WRRDMARead: "verbs.WRRDMARead", verbs.WRAtomicCmpSwp: "verbs.WRAtomicCmpSwp", verbs.WRAtomicFetchAdd: "verbs.WRAtomicFetchAdd"}

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
