package mutant

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/testbed"
)

// contexts are mutants of what the driver tells the device of an object, and of what the device
// answers: one field that is lost, or one more or less than it should be.
var contexts = []Mutant{
	{Name: "path-mtu-one-up", Area: "QPS", Killers: []string{"WIRE-002"}, Rule: "Packets are no longer than the path MTU", wrap: inQP(func(q prm.QPC) { q.SetMTU(min(5, q.MTU()+1)) }, prm.OpInit2RTRQP)},
	{Name: "path-mtu-one-down", Area: "QPS", Killers: []string{"WIRE-002"}, Rule: "Packets are as long as the path MTU allows", wrap: inQP(func(q prm.QPC) { q.SetMTU(max(1, q.MTU()-1)) }, prm.OpInit2RTRQP)},
	{Name: "first-psn-one-late", Area: "QPS", Killers: []string{"WIRE-003"}, Rule: "The first request has sq_psn", wrap: inQP(func(q prm.QPC) { q.SetNextSendPSN((q.NextSendPSN() + 1) & 0xffffff) }, prm.OpRTR2RTSQP)},
	{Name: "expected-psn-one-late", Area: "QPS", Killers: []string{"WIRE-003"}, Rule: "A responder expects rq_psn first", wrap: inQP(func(q prm.QPC) { q.SetNextRcvPSN((q.NextRcvPSN() + 1) & 0xffffff) }, prm.OpInit2RTRQP)},
	{Name: "requester-reads-doubled", Area: "QPS", Killers: []string{"WIRE-054"}, Rule: "max_rd_atomic is the number that was given", wrap: inQP(func(q prm.QPC) { q.SetLogSRAMax(q.LogSRAMax() + 1) }, prm.OpRTR2RTSQP)},
	{Name: "responder-reads-doubled", Area: "QPS", Killers: []string{"WIRE-045"}, Rule: "max_dest_rd_atomic is the number that was given", wrap: inQP(func(q prm.QPC) { q.SetLogRRAMax(q.LogRRAMax() + 1) }, prm.OpInit2RTRQP)},
	{Name: "responder-reads-halved", Area: "QPS", Killers: []string{"QPS-010"}, Rule: "As many READs are taken as max_dest_rd_atomic says", wrap: inQP(func(q prm.QPC) { q.SetLogRRAMax(max(1, q.LogRRAMax()) - 1) }, prm.OpInit2RTRQP)},
	{Name: "remote-write-always", Area: "QPS", Killers: []string{"RC-011"}, Rule: "A QP without remote write is told to the device", wrap: inQP(func(q prm.QPC) { q.SetRWE(true) }, prm.OpRst2InitQP, prm.OpInit2InitQP, prm.OpInit2RTRQP)},
	{Name: "remote-read-always", Area: "QPS", Killers: []string{"RC-011"}, Rule: "A QP without remote read is told to the device", wrap: inQP(func(q prm.QPC) { q.SetRRE(true) }, prm.OpRst2InitQP, prm.OpInit2InitQP, prm.OpInit2RTRQP)},
	{Name: "hop-limit-one-less", Area: "WIRE", Killers: []string{"QPS-010"}, Rule: "Packets have the hop limit of the path", wrap: inPath(func(p prm.ADS) { p.SetHopLimit(p.HopLimit() - 1) }, prm.OpInit2RTRQP)},
	{Name: "traffic-class-lost", Area: "WIRE", Killers: []string{"WIRE-036"}, Rule: "Packets have the traffic class of the path", wrap: inPath(func(p prm.ADS) { p.SetTClass(0); p.SetDSCP(0) }, prm.OpInit2RTRQP)},
	{Name: "source-port-too-low", Area: "WIRE", Killers: []string{"WIRE-035"}, Rule: "The UDP source port of a connection is in 0xC000 to 0xFFFF", wrap: inPath(func(p prm.ADS) { p.SetUDPSport(p.UDPSport() &^ 0x4000) }, prm.OpInit2RTRQP)},
	{Name: "priority-lost", Area: "WIRE", Killers: []string{"WIRE-042"}, Rule: "A VLAN tag has the priority of the service level", wrap: inPath(func(p prm.ADS) { p.SetEthPrio(0) }, prm.OpInit2RTRQP)},
	{Name: "service-level-lost", Area: "IB", Profile: "connectx-5-ib", Killers: []string{"IB-010"}, Rule: "Packets have the service level of the path", wrap: inPath(func(p prm.ADS) { p.SetSL(0) }, prm.OpInit2RTRQP)},
	{Name: "key-index-lost", Area: "IB", Profile: "connectx-5-ib", Killers: []string{"IB-014"}, Rule: "A QP sends the P_Key of its index", wrap: inPath(func(p prm.ADS) { p.SetPKeyIndex(0) }, prm.OpRst2InitQP, prm.OpInit2InitQP, prm.OpInit2RTRQP)},
	{Name: "overrun-always-ignored", Area: "CQ", Killers: []string{"CQ-024"}, Rule: "A CQ that overruns fails unless it was asked to ignore that", wrap: inCQ(func(c prm.CQC) { c.SetOI(true) })},
	{Name: "overrun-never-ignored", Area: "CQ", Killers: []string{"CQ-025"}, Rule: "A CQ that was asked to ignore overruns does", wrap: inCQ(func(c prm.CQC) { c.SetOI(false) })},
	{Name: "srq-limit-one-above", Area: "SRQ", Killers: []string{"SRQ-008"}, Rule: "The limit of an SRQ is not reported while it has so many receives", wrap: inCommand(prm.OpModifyRMP, func(in []byte) {
		w := prm.ModifyRMPIn(in).RMPC().WQ()
		w.SetLWM(w.LWM() + 1)
	})},
	{Name: "srq-limit-one-below", Area: "SRQ", Killers: []string{"SRQ-008"}, Rule: "The limit of an SRQ is reported as soon as it has fewer receives", wrap: inCommand(prm.OpModifyRMP, func(in []byte) {
		w := prm.ModifyRMPIn(in).RMPC().WQ()
		w.SetLWM(max(2, w.LWM()) - 1)
	})},
	{Name: "key-one-byte-longer", Area: "MR", Killers: []string{"MW-010"}, Rule: "A key that is made by a command gives no access to the byte behind its range", wrap: inKey(func(k prm.MKC) { k.SetLen(k.Len() + 1) })},
	{Name: "key-one-byte-shorter", Area: "MR", Killers: []string{"MR-036"}, Rule: "A key that is made by a command gives access to the last byte of its range", wrap: inKey(func(k prm.MKC) { k.SetLen(k.Len() - 1) })},
	{Name: "cq-size-promised-twice", Area: "DEV", Killers: []string{"DEV-004"}, Rule: "A device has CQs as large as it says", wrap: caps(func(h prm.HCACap, by int) { h.SetLogMaxCQSz(uint32(int(h.LogMaxCQSz()) + by)) })},
	{Name: "srq-size-promised-twice", Area: "DEV", Killers: []string{"DEV-004"}, Rule: "A device has SRQs as large as it says", wrap: caps(func(h prm.HCACap, by int) { h.SetLogMaxSRQSz(uint32(int(h.LogMaxSRQSz()) + by)) })},
}

// lostBits are mutants that lose one bit of a field of a QP's context: a field that is tried with
// one value hides them.
var lostBits = loseBits()

func loseBits() []Mutant {
	var all []Mutant
	for _, f := range []struct {
		name, rule, area string
		killers          []string
		bits             int
		to               prm.Opcode
		lose             func(q prm.QPC, mask uint32)
	}{
		{"retry-count", "of retry_cnt counts", "RC", []string{"RC-017"}, 3, prm.OpRTR2RTSQP, func(q prm.QPC, m uint32) { q.SetRetryCount(q.RetryCount() &^ m) }},
		{"rnr-retry", "of rnr_retry counts", "RC", []string{"RC-014"}, 3, prm.OpRTR2RTSQP, func(q prm.QPC, m uint32) { q.SetRNRRetry(q.RNRRetry() &^ m) }},
		{"rnr-timer", "of min_rnr_timer counts", "RC", []string{"RC-014", "QPS-010", "XRC-017"}, 5, prm.OpInit2RTRQP, func(q prm.QPC, m uint32) { q.SetMinRNRNAK(q.MinRNRNAK() &^ m) }},
		{"ack-timeout", "of the timeout counts", "RC", []string{"RC-018", "QPS-010"}, 5, prm.OpRTR2RTSQP, func(q prm.QPC, m uint32) {
			p := q.PrimaryPath()
			p.SetAckTimeout(p.AckTimeout() &^ m)
		}},
	} {
		for b := range f.bits {
			all = append(all, Mutant{Name: fmt.Sprintf("%s-without-bit-%d", f.name, b), Area: f.area, Killers: f.killers,
				Rule: fmt.Sprintf("Bit %d %s", b, f.rule), wrap: inQP(func(q prm.QPC) { f.lose(q, 1<<b) }, f.to)})
		}
	}
	return all
}

// answers are mutants whose device answers a query of a QP with another value than was set.
var answers = []Mutant{
	{Name: "query-of-another-retry-count", Area: "QPS", Killers: queried, Rule: "query_qp answers the retry_cnt that was set", wrap: inAnswer(func(q prm.QPC) { q.SetRetryCount(q.RetryCount() ^ 1) })},
	{Name: "query-of-another-rnr-retry", Area: "QPS", Killers: queried, Rule: "query_qp answers the rnr_retry that was set", wrap: inAnswer(func(q prm.QPC) { q.SetRNRRetry(q.RNRRetry() ^ 1) })},
	{Name: "query-of-another-rnr-timer", Area: "QPS", Killers: queried, Rule: "query_qp answers the min_rnr_timer that was set", wrap: inAnswer(func(q prm.QPC) { q.SetMinRNRNAK(q.MinRNRNAK() ^ 1) })},
	{Name: "query-of-another-timeout", Area: "QPS", Killers: queried, Rule: "query_qp answers the timeout that was set", wrap: inAnswer(func(q prm.QPC) { p := q.PrimaryPath(); p.SetAckTimeout(p.AckTimeout() ^ 1) })},
	{Name: "query-of-another-mtu", Area: "QPS", Killers: queried, Rule: "query_qp answers the path MTU that was set", wrap: inAnswer(func(q prm.QPC) { q.SetMTU(q.MTU()%5 + 1) })},
	{Name: "query-of-another-peer", Area: "QPS", Killers: queried, Rule: "query_qp answers the dest_qp_num that was set", wrap: inAnswer(func(q prm.QPC) { q.SetRemoteQPN(q.RemoteQPN() ^ 1) })},
	{Name: "query-of-other-rights", Area: "QPS", Killers: queried, Rule: "query_qp answers the access flags that were set", wrap: inAnswer(func(q prm.QPC) { q.SetRRE(!q.RRE()) })},
	{Name: "query-of-another-depth", Area: "QPS", Killers: queried, Rule: "query_qp answers the max_rd_atomic that was set", wrap: inAnswer(func(q prm.QPC) { q.SetLogSRAMax(q.LogSRAMax() + 1) })},
	{Name: "query-of-another-state", Area: "QPS", Killers: queried, Rule: "query_qp answers the state of the QP", wrap: inAnswer(func(q prm.QPC) { q.SetState(q.State() ^ 1) })},
}

// queried is the case that looks at all of them.
var queried = []string{"QPS-010"}

// inAnswer changes what the device answers to a query of a QP.
func inAnswer(change func(q prm.QPC)) func(*testbed.Wrap) {
	return func(w *testbed.Wrap) {
		w.Function = func(f pcie.Function) pcie.Function {
			return &function{Function: f, answer: func(op prm.Opcode, out []byte) {
				if op == prm.OpQueryQP {
					change(prm.QueryQPOut(out).QPC())
				}
			}}
		}
	}
}

// inCommand changes the mailboxes of a command on its way to the device.
func inCommand(of prm.Opcode, change func(in []byte)) func(*testbed.Wrap) {
	return inCommands([]prm.Opcode{of}, change)
}

func inCommands(of []prm.Opcode, change func(in []byte)) func(*testbed.Wrap) {
	return func(w *testbed.Wrap) {
		w.Function = func(f pcie.Function) pcie.Function {
			return &function{Function: f, command: func(op prm.Opcode, in []byte) bool {
				for _, o := range of {
					if op == o {
						change(in)
					}
				}
				return true
			}}
		}
	}
}

// inQP changes the context of the transitions of a QP.
func inQP(change func(q prm.QPC), of ...prm.Opcode) func(*testbed.Wrap) {
	return inCommands(of, func(in []byte) { change(prm.ModifyQPIn(in).QPC()) })
}

// inPath changes the path in them.
func inPath(change func(p prm.ADS), of ...prm.Opcode) func(*testbed.Wrap) {
	return inQP(func(q prm.QPC) { change(q.PrimaryPath()) }, of...)
}

func inCQ(change func(c prm.CQC)) func(*testbed.Wrap) {
	return inCommand(prm.OpCreateCQ, func(in []byte) { change(prm.CreateCQIn(in).CQC()) })
}

// inKey changes the key of each region that has a length.
func inKey(change func(k prm.MKC)) func(*testbed.Wrap) {
	return inCommand(prm.OpCreateMKey, func(in []byte) {
		if k := prm.CreateMKeyIn(in).MKC(); k.Len() > 0 {
			change(k)
		}
	})
}

// caps has the device say more of itself than is true: change adds to a capability. The driver sets
// the capabilities that it has read, and the device finds its own there.
func caps(change func(h prm.HCACap, by int)) func(*testbed.Wrap) {
	return func(w *testbed.Wrap) {
		w.Function = func(f pcie.Function) pcie.Function {
			general := false
			return &function{Function: f, command: func(op prm.Opcode, in []byte) bool {
				of := prm.CmdIn(in).OpMod() >> 1
				general = op == prm.OpQueryHCACap && of == prm.CapGeneral
				if op == prm.OpSetHCACap && of == prm.CapGeneral {
					change(prm.HCACap(prm.SetHCACapIn(in).Capability()), -1)
				}
				return true
			}, answer: func(_ prm.Opcode, out []byte) {
				if general {
					change(prm.HCACap(prm.QueryHCACapOut(out).Capability()), 1)
				}
			}}
		}
	}
}
