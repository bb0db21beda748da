package mutant

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/testbed"
)

// packets are mutants of the device at its wire: headers with one field that is wrong.
var packets = []Mutant{
	{Name: "rnr-timer-next", Area: "ERR", Killers: []string{"RC-014"}, Rule: "An RNR NAK carries the timer of the QP", wrap: edit(nextRNRTimer)},
	{Name: "nak-access-as-invalid", Area: "RC", Killers: []string{"RC-007"}, Rule: "A wrong key or range is answered with Remote Access Error", wrap: edit(nakAs(roce.NAKRemoteAccess, roce.NAKInvalidRequest))},
	{Name: "nak-invalid-as-access", Area: "RC", Killers: []string{"RC-012"}, Rule: "A malformed request is answered with Invalid Request", wrap: edit(nakAs(roce.NAKInvalidRequest, roce.NAKRemoteAccess))},
	{Name: "nak-operation-as-invalid", Area: "ERR", Killers: []string{"ERR-009"}, Rule: "A failure of the responder itself is answered with Remote Operational Error", wrap: edit(nakAs(roce.NAKRemoteOp, roce.NAKInvalidRequest))},
	{Name: "msn-one-behind", Area: "WIRE", Killers: []string{"WIRE-016"}, Rule: "Acknowledgements carry the number of completed messages", wrap: edit(func(p *roce.Packet) {
		if p.Has(roce.HasAETH) {
			p.AETH().SetMSN((p.AETH().MSN() - 1) & roce.PSNMask)
		}
	})},
	{Name: "solicited-unsent", Area: "COMP", Killers: []string{"COMP-003"}, Rule: "A solicited request carries the solicited event bit", wrap: edit(func(p *roce.Packet) { p.BTH().SetSolicited(false) })},
	{Name: "immediate-reversed", Area: "RC", Killers: []string{"RC-002"}, Rule: "Immediate data arrives as it was posted", wrap: edit(func(p *roce.Packet) {
		if p.Has(roce.HasImmDt) {
			p.ImmDt().SetValue(bits.ReverseBytes32(p.ImmDt().Value()))
		}
	})},
	{Name: "ack-never-asked", Area: "RC", Killers: []string{"RC-001"}, Rule: "The last packet of a signalled message asks for an acknowledgement", wrap: edit(func(p *roce.Packet) {
		if p.Info().Class == roce.ClassSend || p.Info().Class == roce.ClassWrite {
			p.BTH().SetAckReq(false)
		}
	})},
	{Name: "limited-pkey", Area: "WIRE", Killers: []string{"WIRE-001"}, Rule: "Packets carry the P_Key of the QP", wrap: edit(func(p *roce.Packet) { p.BTH().SetPKey(p.BTH().PKey() &^ 0x8000) })},
	{Name: "not-migrated", Area: "WIRE", Rule: "Packets of a QP that has not migrated say so", wrap: edit(func(p *roce.Packet) { p.BTH().SetMigReq(false) })},
	{Name: "wrong-qkey", Area: "UD", Killers: []string{"UD-001"}, Rule: "A datagram carries the Q_Key of its request", wrap: edit(func(p *roce.Packet) {
		if p.Has(roce.HasDETH) {
			p.DETH().SetQKey(p.DETH().QKey() ^ 1)
		}
	})},
	{Name: "source-qp-zero", Area: "UD", Killers: []string{"UD-003"}, Rule: "A datagram names the QP that sent it", wrap: edit(func(p *roce.Packet) {
		if p.Has(roce.HasDETH) {
			p.DETH().SetSrcQP(0)
		}
	})},
	{Name: "compare-and-swap-swapped", Area: "ATOM", Killers: []string{"ATOM-001"}, Rule: "Compare and swap carries swap and compare values in their places", wrap: edit(func(p *roce.Packet) {
		if p.Op == roce.RCCmpSwap {
			h := p.AtomicETH()
			s, c := h.SwapAdd(), h.Compare()
			h.SetSwapAdd(c)
			h.SetCompare(s)
		}
	})},
	{Name: "atomic-result-reversed", Area: "ATOM", Killers: []string{"ATOM-001"}, Rule: "An atomic returns the value that was there, in the order of the host", wrap: edit(func(p *roce.Packet) {
		if p.Has(roce.HasAtomicAckETH) {
			p.AtomicAckETH().SetOriginal(bits.ReverseBytes64(p.AtomicAckETH().Original()))
		}
	})},
	{Name: "solicited-always", Area: "COMP", Killers: []string{"COMP-003", "WIRE-014"}, Rule: "Only a solicited request carries the solicited event bit", wrap: edit(func(p *roce.Packet) {
		if p.Info().Class == roce.ClassSend {
			p.BTH().SetSolicited(true)
		}
	})},
	{Name: "psn-of-23-bits", Area: "WIRE", Killers: []string{"QPS-011", "WIRE-003"}, Rule: "A PSN has 24 bits", wrap: edit(func(p *roce.Packet) { p.BTH().SetPSN(p.BTH().PSN() & 0x7fffff) })},
	{Name: "length-one-more", Area: "RC", Killers: []string{"WIRE-006"}, Rule: "A WRITE announces its own length", wrap: edit(func(p *roce.Packet) {
		if p.Info().Class == roce.ClassWrite && p.Has(roce.HasRETH) {
			p.RETH().SetLength(p.RETH().Length() + 1)
		}
	})},
	{Name: "read-of-the-next-byte", Area: "RC", Killers: []string{"RC-005"}, Rule: "A READ asks for its own address", wrap: edit(func(p *roce.Packet) {
		if p.Info().Class == roce.ClassReadRequest {
			p.RETH().SetVA(p.RETH().VA() + 1)
		}
	})},
	{Name: "datagram-of-another-hop-limit", Area: "UD", Killers: []string{"UD-002", "UD-014"}, Rule: "A datagram has the hop limit of its address handle", wrap: edit(func(p *roce.Packet) {
		if p.Framing == roce.RoCEv2IPv4 && p.Has(roce.HasDETH) {
			h := p.IPv4()
			h.SetTTL(h.TTL() - 1)
			h.SetChecksum(h.ComputeChecksum())
		}
	})},
	{Name: "invalidates-another-key", Area: "MW", Killers: []string{"MW-014"}, Rule: "A SEND with invalidate carries the key of its request", wrap: edit(func(p *roce.Packet) {
		if p.Has(roce.HasIETH) {
			p.IETH().SetRKey(p.IETH().RKey() ^ 1)
		}
	})},
}

// wire is a port with a hand on what the device sends.
type wire struct {
	*link.Port
	edit func(p *roce.Packet)
}

var (
	_ hca.Wire   = (*wire)(nil)
	_ hca.Looper = (*wire)(nil)
)

func (w *wire) Send(f *roce.Frame) {
	w.change(f)
	w.Port.Send(f)
}

func (w *wire) Loopback(f *roce.Frame, after sim.Time) {
	w.change(f)
	w.Port.Loopback(f, after)
}

// change edits a frame of the transport before its ICRC is made.
func (w *wire) change(f *roce.Frame) {
	if f.ICRC != roce.ICRCPending {
		return
	}
	if p, err := f.Decode(); err == nil {
		w.edit(p)
	}
}

func edit(change func(p *roce.Packet)) func(*testbed.Wrap) {
	return func(w *testbed.Wrap) {
		w.Wire = func(p *link.Port) hca.Wire { return &wire{p, change} }
	}
}

func nextRNRTimer(p *roce.Packet) {
	if p.Has(roce.HasAETH) && p.AETH().Syndrome().Type() == roce.SyndromeTypeRNR {
		p.AETH().SetSyndrome(roce.RNRSyndrome((p.AETH().Syndrome().Value() + 1) & 31))
	}
}

func nakAs(is, as roce.Syndrome) func(p *roce.Packet) {
	return func(p *roce.Packet) {
		if p.Has(roce.HasAETH) && p.AETH().Syndrome() == is {
			p.AETH().SetSyndrome(as)
		}
	}
}
