package kit

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// Packet is a decoded frame of the link.
type Packet struct {
	roce.Packet
	At    time.Duration // see verbs.WireFrame
	Acted verbs.WireAction
}

// PSN returns the PSN in the packet's BTH.
func (p *Packet) PSN() uint32 { return p.BTH().PSN() }

// IsFrom reports whether the packet came from a port.
func (p *Packet) IsFrom(a Addr) bool {
	if p.Framing == roce.InfiniBand {
		return p.LRH().SLID() == a.LID
	}
	return verbs.GID(p.SrcGID()) == a.GID
}

// DestQPN returns the destination QPN in the packet's BTH.
func (p *Packet) DestQPN() uint32 { return p.BTH().DestQP() }

// OracleStep is the prefix of steps at which the judge of a capture, not an assertion of the case,
// found a broken rule of the transport.
const OracleStep = "rule "

// Tap returns the RDMA packets that are sent while body runs, without management datagrams (to QP0
// and QP1), which the kernel sends at any time. A frame that does not decode or has a wrong CRC
// ends the case without a verdict; so does a tap within body, since a wire has one recording.
func Tap(c *spec.C, body func()) []Packet {
	return slices.DeleteFunc(TapAll(c, body), func(p Packet) bool { return p.BTH().DestQP() <= 1 })
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

// TapFrames returns all frames that are sent while body runs, whatever they are.
func TapFrames(c *spec.C, body func()) []verbs.WireFrame {
	w := wire(c)
	release, free := c.Hold("tap")
	if !free {
		c.Errorf("a tap within a tap: a wire has one recording")
	}
	defer release()
	if err := w.StartTap(c.T); err != nil {
		c.Errorf("start the tap: %v", err)
	}
	body()
	frames, err := w.StopTap(c.T)
	if err != nil {
		c.Integrityf("the capture is not whole: %v", err)
	}
	return frames
}

func wire(c *spec.C) verbs.Wire {
	w := c.TB.Wire()
	if w == nil {
		c.Errorf("the testbed gives no access to its wire")
	}
	return w
}

// Inject adds rules to the wire. All rules are removed when the case ends.
func Inject(c *spec.C, rules ...verbs.WireRule) {
	w := wire(c)
	c.Defer(func() { _, _ = w.ClearRules(c.T) })
	for _, r := range rules {
		if err := w.Inject(c.T, r); err != nil {
			c.Errorf("inject: %v", err)
		}
	}
}

// ClearRules removes all rules and returns how many frames each of them matched.
func ClearRules(c *spec.C) []int {
	n, err := wire(c).ClearRules(c.T)
	if err != nil {
		c.Errorf("clear the injector: %v", err)
	}
	return n
}

// DropTo returns a rule that drops every frame to a QP.
func DropTo(qpn uint32) verbs.WireRule {
	return verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: qpn, Action: verbs.WireDrop}
}

// RuleForPSN returns a rule that acts on the first packet to a QP with a PSN.
func RuleForPSN(qpn, psn uint32, action verbs.WireAction) verbs.WireRule {
	return verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchPSN, DestQPN: qpn, PSN: psn, Count: 1, Action: action}
}

// RuleForOpcode returns a rule that acts on the first packet to a QP with an opcode.
func RuleForOpcode(qpn uint32, op roce.Opcode, action verbs.WireAction) verbs.WireRule {
	return verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchOpcode, DestQPN: qpn, Opcode: uint8(op), Count: 1, Action: action}
}

// NthPSN returns the PSN of A's packet n, counted from 0.
func (o Options) NthPSN(n uint32) uint32 { return (o.PSN + n) & roce.PSNMask }

// PSNs returns the distance of each packet's PSN from first, negative for a PSN before it.
func PSNs(ps []Packet, first uint32) []int {
	out := make([]int, 0, len(ps))
	for _, p := range ps {
		out = append(out, int(roce.CmpPSN(p.PSN(), first)))
	}
	return out
}

// Acknowledgements returns the RC acknowledge packets to a QP with this type of syndrome.
func Acknowledgements(ps []Packet, to uint32, t roce.SyndromeType) []Packet {
	return slices.DeleteFunc(PacketsTo(ps, to, roce.RCAcknowledge), func(p Packet) bool { return p.AETH().Syndrome().Type() != t })
}

// PacketsTo returns the packets to a QP that have one of the opcodes, or all without an opcode.
func PacketsTo(ps []Packet, to uint32, ops ...roce.Opcode) []Packet {
	return slices.DeleteFunc(slices.Clone(ps), func(p Packet) bool {
		return p.DestQPN() != to || len(ops) > 0 && !slices.Contains(ops, p.Op)
	})
}

// Transcript returns a line for each packet to the QPs in to, for a comparison of two runs of one
// program: the QP's place in to, the opcode, the distance of the PSN from that QP's base, the
// solicited bit and a digest of the payload. Acknowledgements are left out, because their number
// may differ.
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
