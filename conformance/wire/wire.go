// Package wire holds the cases of area WIRE: what a device puts on the link, and what
// it does when packets are lost, changed, repeated or reordered there.
//
// Each case connects two hosts, records every frame, and has the whole recording
// judged by the oracle besides what the case itself looks for: a rule that is broken
// fails the case, a recording that is not whole leaves it without a verdict.
package wire

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("WIRE-001", headers)
	s.Case("WIRE-002", segmentation)
	s.Case("WIRE-003", requestPSNs)
	s.Case("WIRE-004", readPSNs)
	s.Case("WIRE-005", readResponses)
	s.Case("WIRE-006", reth)
	s.Case("WIRE-007", immediates)
	s.Case("WIRE-008", ieth)
	s.Case("WIRE-009", atomics)
	s.Case("WIRE-010", deth)
	s.Case("WIRE-011", padding)
	s.Case("WIRE-012", icrc)
	s.Case("WIRE-013", corruption)
	s.Case("WIRE-014", solicited)
	s.Case("WIRE-015", ackReq)
	s.Case("WIRE-016", ackFields)
	s.Case("WIRE-017", dropMiddle)
	s.Case("WIRE-018", dropLast)
	s.Case("WIRE-019", dropTwice)
	s.Case("WIRE-020", oneNAK)
	s.Case("WIRE-021", dropReadResponse)
	s.Case("WIRE-022", dropACK)
	s.Case("WIRE-023", reorder)
	s.Case("WIRE-024", duplicateWrite)
	s.Case("WIRE-025", duplicateRead)
	s.Case("WIRE-026", rnrTimer)
	s.Case("WIRE-027", wrongPKey)
	s.Case("WIRE-028", unknownQPN)
	s.Case("WIRE-029", otherTransport)
	s.Case("WIRE-030", middleFirst)
	s.Case("WIRE-031", shortMiddle)
	s.Case("WIRE-032", truncated, spec.Deadline(4*time.Minute)) // 50 timers
	s.Case("WIRE-033", notification)
	s.Case("WIRE-034", reaction)
	s.Case("WIRE-035", sourcePort)
	s.Case("WIRE-036", trafficClass)
	s.Case("WIRE-037", windowOfPSNs)
	s.Case("WIRE-038", portCounters)
	s.Case("WIRE-039", hardwareCounters)
	s.Case("WIRE-040", accepted, spec.Deadline(4*time.Minute))
	s.Case("WIRE-041", ipv6)
	s.Case("WIRE-042", vlan)
	s.Case("WIRE-043", writeLength)
	s.Case("WIRE-044", wholeRange)
	s.Case("WIRE-045", beyondResources)
	s.Case("WIRE-046", ackBehindRead)
	s.Case("WIRE-047", gapAfterDuplicate)
	s.Case("WIRE-048", repeatedAtomic)
	s.Case("WIRE-049", anotherReplay)
	s.Case("WIRE-050", answerBehindRead)
	s.Case("WIRE-051", timerRestarts)
	s.Case("WIRE-052", badReadData)
	s.Case("WIRE-053", ghost)
	s.Case("WIRE-054", outstandingReads)
	s.Case("WIRE-055", unsupportedOperations)
	s.Case("WIRE-056", badAtomicWrite)
	s.Case("WIRE-057", wrongAtomicAnswer)
	s.Case("WIRE-058", wrongAtomicWriteAnswer)
	s.Case("WIRE-059", aboveTwoGiB)
	s.Case("WIRE-060", staleData)
	s.Case("WIRE-061", credits)
	s.Case("WIRE-062", repeatedEmptyRead)
	s.Case("WIRE-063", otherDestination)
	s.Case("WIRE-064", changedOnTheWay)
}

// mtu is the path MTU of the cases in bytes.
const mtu = 1024

// size is of the buffers on either side.
const size = 64 << 10

// link is a connection between two hosts with a buffer on each.
type link struct {
	*kit.Env
	a   *kit.QP
	b   *kit.OtherQP
	opt kit.Options
	ack kit.AckTimer
	mem *kit.Buffer
	far *kit.OtherBuffer
}

// options are the usual ones with a timer of 4.2 ms, or half a second where an answer may take
// that long: an emulated machine whose frames the tester moves.
func options(c *spec.C) kit.Options {
	o := kit.Default()
	o.Timeout = 10
	if !c.Has(kit.ExactTime) {
		o.Timeout = 17
	}
	return o
}

// slow is how long a packet may be on its way where time is not exact, in nanoseconds.
const slow = int64(100 * time.Millisecond)

func connect(c *spec.C, o kit.Options) *link {
	e, other := open(c)
	return join(c, e, other, o, func(*verbs.QPAttr) {})
}

// open opens the devices. A QP of no use on this side keeps the numbers of the two
// ends of later connections apart: rules and recordings tell directions by them.
func open(c *spec.C) (*kit.Env, *kit.OtherProcess) {
	e := kit.Open(c)
	e.CreateQP(c, options(c))
	return e, kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
}

// join connects two QPs and makes their buffers.
func join(c *spec.C, e *kit.Env, other *kit.OtherProcess, o kit.Options, change func(a *verbs.QPAttr)) *link {
	a, b := e.PairWithModified(c, other, o, change)
	for a.QPN() == b.QPN { // devices that have had QPs before may be one apart
		e.CreateQP(c, options(c))
		a, b = e.PairWithModified(c, other, o, change)
	}
	return &link{Env: e, a: a, b: b, opt: o, ack: ackTimer(c, e, o), mem: e.Buffer(c, size, kit.AllAccess), far: other.Buffer(c, size, kit.AllAccess, 0)}
}

// tap records what body sends and has the oracle judge it.
func (l *link) tap(c *spec.C, body func()) []kit.Packet {
	packets := kit.Tap(c, body)
	l.judgeCapture(c, packets)
	return packets
}

// judgeCapture fails the case when a rule of the transport is broken: a rule is a step of the case
// when it is. That waits until the body has ended: what the case itself asserts comes
// first. Every frame of the recording is there, and what no rule dropped arrived.
func (l *link) judgeCapture(c *spec.C, packets []kit.Packet) {
	capture := oracle.Capture{}
	for i, p := range packets {
		capture.Frames = append(capture.Frames, oracle.Frame{Number: i + 1, Time: int64(p.At), Data: p.B, Length: len(p.B), Fate: fates[p.Acted],
			InfiniBand: p.Framing == roce.InfiniBand})
	}
	start := (l.opt.PSN) & roce.PSNMask
	timer, retries, rnrs, reads := int(l.opt.MinRNRTimer), int(l.opt.RetryCnt), int(l.opt.RNRRetry), int(l.opt.RdAtomic)
	flight := slow
	if c.Has(kit.ExactTime) {
		flight = 0
	}
	res := oracle.Judge(capture, oracle.Options{Tolerance: int64(kit.TimerSlack(c)), Flight: flight, MTU: mtu, Complete: true, Delivered: true, Timeout: l.opt.Timeout,
		Adaptive: l.ack.Adapts, RNRTimer: &timer, RetryCount: &retries, RNRRetry: &rnrs, MaxRdAtomic: &reads, StartPSN: &start})
	if !res.Whole {
		c.Integrityf("the recording is not whole: %v", res.Broken)
	}
	c.Defer(func() {
		for _, v := range res.Verdicts {
			if v.Kind == oracle.Violation {
				c.True(kit.OracleStep+v.Rule, false, "the oracle: %v", v)
			}
		}
	})
}

var fates = map[verbs.WireAction]oracle.Fate{
	verbs.WirePass: oracle.Sent, verbs.WireDrop: oracle.Lost, verbs.WireCorrupt: oracle.Corrupted, verbs.WireEdit: oracle.Edited,
	verbs.WireDelay: oracle.Late, verbs.WireDuplicate: oracle.Twice, verbs.WireMark: oracle.Marked,
}

// write is a WRITE of n bytes of the near buffer to the beginning of the far one.
func (l *link) write(id uint64, n int) verbs.SendWR { return l.far.WriteTo(id, 0, l.mem.SGE(0, n)) }

// read is a READ of n bytes of the far buffer.
func (l *link) read(id uint64, n int) verbs.SendWR { return l.far.ReadFrom(id, 0, l.mem.SGE(0, n)) }

// postSuccessfully posts requests and waits for all to succeed.
func (l *link) postSuccessfully(c *spec.C, wrs ...verbs.SendWR) {
	l.a.Post(c, wrs...)
	kit.ExpectSuccess(c, l.a.SendCQ, len(wrs))
}

// requests are the packets to the far QP, responses those that come back.
func (l *link) requests(ps []kit.Packet, ops ...roce.Opcode) []kit.Packet {
	return kit.PacketsTo(ps, l.b.QPN, ops...)
}

func (l *link) responses(ps []kit.Packet, ops ...roce.Opcode) []kit.Packet {
	return kit.PacketsTo(ps, l.a.QPN(), ops...)
}

// naks are the acknowledgements of a type.
func (l *link) naks(ps []kit.Packet, t roce.SyndromeType) []kit.Packet {
	return kit.Acknowledgements(ps, l.a.QPN(), t)
}

// psn is the nth PSN of the requests, from 0.
func (l *link) psn(n uint32) uint32 { return l.opt.NthPSN(n) }

// psns are the distances of the packets' PSNs from the first.
func (l *link) psns(ps []kit.Packet) []int {
	return kit.PSNs(ps, l.opt.PSN)
}

// countUpTo counts from a up to b.
func countUpTo(a, b int) []int {
	var out []int
	for i := a; i <= b; i++ {
		out = append(out, i)
	}
	return out
}

// ruleForRequest is a rule for packets to the far QP with the nth PSN.
func (l *link) ruleForRequest(n uint32, action verbs.WireAction) verbs.WireRule {
	return kit.RuleForPSN(l.b.QPN, l.psn(n), action)
}

// ruleForResponse is a rule for responses with an opcode.
func (l *link) ruleForResponse(op roce.Opcode, action verbs.WireAction) verbs.WireRule {
	return kit.RuleForOpcode(l.a.QPN(), op, action)
}

// ackTimer is what is known of the acknowledgement timer of a QP with these options.
func ackTimer(c *spec.C, e *kit.Env, o kit.Options) kit.AckTimer {
	if o.Timeout == 0 {
		return kit.AckTimer{}
	}
	return e.AckTimer(c, o.Timeout)
}

// sentAgain judges the time after which a packet that nobody has answered was sent again.
func (l *link) sentAgain(c *spec.C, after time.Duration) {
	c.True("timer", after >= l.ack.Least, "sent again after %v; the timer is %v, and nothing is sent again before %v", after, l.ack.Timeout, l.ack.Least)
	if !l.ack.Adapts {
		return
	}
	by := "the ACK timer"
	if after < l.ack.Timeout-kit.TimerSlack(c) {
		by = "adaptive retransmission"
	}
	c.ObservePlatform("sent again by", by)
}

// unanswered waits for a part of the timer while an answer is lost. Where the timer may be a few
// milliseconds an answer to what it sends again may come before this thread runs on.
func (l *link) unanswered(c *spec.C, part int) {
	if l.ack.Adapts {
		c.T.Sleep(l.ack.Least / time.Duration(part))
		return
	}
	kit.ExpectNoCompletion(c, l.a.SendCQ, l.ack.Timeout/time.Duration(part))
}
