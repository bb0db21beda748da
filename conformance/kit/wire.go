package kit

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// Packet is a frame of the link, decoded.
type Packet struct {
	roce.Packet
	At    time.Duration
	Acted verbs.WireAction
}

// PSN is the packet's.
func (p *Packet) PSN() uint32 { return p.BTH().PSN() }

// IsFrom reports whether the packet came from a port.
func (p *Packet) IsFrom(a Addr) bool {
	if p.Framing == roce.InfiniBand {
		return p.LRH().SLID() == a.LID
	}
	return verbs.GID(p.SrcGID()) == a.GID
}

// DestQPN is the QPN in the packet's BTH.
func (p *Packet) DestQPN() uint32 { return p.BTH().DestQP() }

// OracleStep begins the names of the steps at which the judge of a capture, and no
// assertion of the case, found a rule of the transport broken.
const OracleStep = "rule "

// Tap records the frames that are sent while body runs. A frame that does not decode
// or has a wrong ICRC leaves no verdict on the case. Management datagrams, to QP0 and QP1, are
// the kernel's own and left out. A body that taps again would end the recording, and its case is an error.
func Tap(c *spec.C, body func()) []Packet {
	var out []Packet
	for _, p := range TapAll(c, body) {
		if p.BTH().DestQP() > 1 { // others are management datagrams, which the kernel sends when it likes
			out = append(out, p)
		}
	}
	return out
}

// TapAll is Tap with the management datagrams.
func TapAll(c *spec.C, body func()) []Packet {
	w := wire(c)
	release, free := c.Hold("tap")
	if !free {
		c.Errorf("a tap within a tap: a wire has one recording; tap once and pick the packets by QPN or time")
	}
	defer release()
	if err := w.StartTap(c.T); err != nil {
		c.Errorf("start the tap: %v", err)
	}
	stopped := false
	defer func() {
		if !stopped && c.Failed() && !c.Has(ExactTime) {
			frames, _ := w.StopTap(c.T)
			c.KeepFrames(frames)
		}
	}()
	body()
	stopped = true
	frames, err := w.StopTap(c.T)
	if !c.Has(ExactTime) { // where times are exact, a case that failed runs again with a capture
		c.KeepFrames(frames)
	}
	if err != nil {
		c.Integrityf("the capture is not whole: %v", err)
	}
	out := make([]Packet, 0, len(frames))
	for i, f := range frames {
		parse := roce.Parse
		if f.InfiniBand {
			parse = roce.ParseInfiniBand
		}
		p, err := parse(f.Data)
		if err == roce.DropNotRDMA {
			continue
		}
		if err != nil {
			c.Integrityf("frame %d of %d: %v", i+1, len(frames), err)
		}
		if !p.ICRCOK() {
			c.Integrityf("frame %d of %d: ICRC %#08x, want %#08x", i+1, len(frames), p.StoredICRC(), p.ComputeICRC())
		}
		if got, want, ok := p.VCRC(); f.InfiniBand && (!ok || got != want) {
			c.Integrityf("frame %d of %d: VCRC %#04x, want %#04x", i+1, len(frames), got, want)
		}
		out = append(out, Packet{p, f.At, f.Acted})
	}
	return out
}

func wire(c *spec.C) verbs.Wire {
	w := c.TB.Wire()
	if w == nil {
		c.Errorf("the testbed gives no access to its wire")
	}
	return w
}

// Inject adds rules that end with the case.
func Inject(c *spec.C, rules ...verbs.WireRule) {
	w := wire(c)
	c.Defer(func() { _, _ = w.ClearRules(c.T) })
	for _, r := range rules {
		if err := w.Inject(c.T, r); err != nil {
			c.Errorf("inject: %v", err)
		}
	}
}

// ClearRules removes all rules and returns how many frames each has matched.
func ClearRules(c *spec.C) []int {
	n, err := wire(c).ClearRules(c.T)
	if err != nil {
		c.Errorf("clear the injector: %v", err)
	}
	return n
}

// DropTo drops every frame to a QP.
func DropTo(qpn uint32) verbs.WireRule {
	return verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: qpn, Action: verbs.WireDrop}
}

// RuleForPSN acts on the first packet to a QP with a PSN.
func RuleForPSN(qpn, psn uint32, action verbs.WireAction) verbs.WireRule {
	return verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchPSN, DestQPN: qpn, PSN: psn, Count: 1, Action: action}
}

// RuleForOpcode acts on the first packet to a QP with an opcode.
func RuleForOpcode(qpn uint32, op roce.Opcode, action verbs.WireAction) verbs.WireRule {
	return verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchOpcode, DestQPN: qpn, Opcode: uint8(op), Count: 1, Action: action}
}

// NthPSN is the nth PSN of the requests of A, from 0.
func (o Options) NthPSN(n uint32) uint32 { return (o.PSN + n) & roce.PSNMask }

// PSNs are the distances of the packets' PSNs from the first.
func PSNs(ps []Packet, first uint32) []int {
	out := make([]int, 0, len(ps))
	for _, p := range ps {
		out = append(out, int(roce.CmpPSN(p.PSN(), first)))
	}
	return out
}

// Acknowledgements are those to a QP of a type: positive, or a kind of NAK.
func Acknowledgements(ps []Packet, to uint32, t roce.SyndromeType) []Packet {
	var out []Packet
	for _, p := range PacketsTo(ps, to, roce.RCAcknowledge) {
		if p.AETH().Syndrome().Type() == t {
			out = append(out, p)
		}
	}
	return out
}

// PacketsTo selects the packets to a QP that have one of the opcodes; without an opcode, all.
func PacketsTo(ps []Packet, to uint32, ops ...roce.Opcode) []Packet {
	var out []Packet
	for _, p := range ps {
		match := len(ops) == 0
		for _, op := range ops {
			match = match || p.Op == op
		}
		if match && p.DestQPN() == to {
			out = append(out, p)
		}
	}
	return out
}

// Transcript writes what is compared between two runs of one program: for each packet
// to the given QPs in order, the place of the QP in the list, the opcode, the distance
// of its PSN from the base given for that QP, the AckReq and solicited bits, and its
// payload. Acknowledgements are left out: their number may differ.
func Transcript(ps []Packet, to []uint32, base []uint32) []string {
	var out []string
	for _, p := range ps {
		for i, q := range to {
			if p.DestQPN() != q || p.Op == roce.RCAcknowledge {
				continue
			}
			h := p.BTH()
			out = append(out, fmt.Sprintf("%d op %#02x psn %d se %t %s", i, uint8(p.Op), (p.PSN()-base[i])&0xffffff,
				h.Solicited(), report.Digest(p.Payload())))
		}
	}
	return out
}
