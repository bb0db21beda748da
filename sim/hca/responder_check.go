package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Here stands what a request packet must satisfy, and in which order: a list for each
// transport, whose steps are the small functions below. A new rule is a step.

// verdict is what the checks say of a request packet.
type verdict uint8

const (
	passed       verdict = iota
	mustWait             // for a receive WQE; nothing has changed, and the packet is looked at again
	outOfOrder           // a packet before it is missing
	duplicate            // it was executed before
	suspended            // the driver has yet to answer a page fault of this side
	noReceive            // there is no receive WQE
	invalid              // invalid request
	noAccess             // a memory key does not allow it
	noSRQ                // its XRCETH names no SRQ that the QP may use
	noPage               // a page of its target is to be paged in
	tooLong              // longer than the buffers of the receive WQE
	noScatter            // a memory key of the receive WQE does not allow it
	noBuffer             // a page of the receive WQE's buffers is to be paged in
	noInvalidate         // the key that it invalidates cannot be
	discarded            // a datagram that leaves no trace
)

// check looks at a request packet before anything is done for it.
func (q *responder) check(p *roce.Packet, info *roce.OpInfo) verdict {
	switch q.st {
	case prm.STUC:
		return q.checkUC(p, info)
	case prm.STUD:
		return q.checkUD(p, info)
	case prm.STXRC:
		return q.checkXRC(p, info)
	}
	return q.checkRC(p, info)
}

// checkRC is the order for reliable connections (IBTA Vol. 1, 9.7.4).
func (q *responder) checkRC(p *roce.Packet, info *roce.OpInfo) verdict {
	switch ahead := roce.CmpPSN(p.BTH().PSN(), q.epsn); {
	case ahead > 0 && !q.breaks(rule.RequestsAreInOrder):
		return outOfOrder
	case ahead < 0 && !q.breaks(rule.DuplicatesAreNotExecuted):
		return duplicate
	case q.awaitsDriver(info):
		return suspended
	case !q.follows(info):
		return invalid
	case !q.supports(info):
		return invalid
	case !q.enabled(info):
		return invalid
	case !q.hasResources(info):
		return invalid
	case !q.hasReceive(info):
		return q.awaitReceive()
	case !q.payloadOK(p, info):
		return invalid
	case !q.padOK(p):
		return invalid
	}
	switch info.Class {
	case roce.ClassWrite:
		return q.checkWrite(p, info)
	case roce.ClassReadRequest:
		return q.checkRead(p)
	case roce.ClassAtomic:
		return q.checkAtomic(p)
	case roce.ClassAtomicWrite:
		return q.checkAtomicWrite(p)
	}
	return passed
}

// checkUC is the order for unreliable connections (IBTA Vol. 1, 9.8.3). A gap, like the
// first packet of another message, ends the message that was arriving.
func (q *responder) checkUC(p *roce.Packet, info *roce.OpInfo) verdict {
	q.resynchronize(p.BTH().PSN(), info)
	switch {
	case !q.follows(info):
		return invalid
	case !q.payloadOK(p, info):
		return invalid
	case !q.padOK(p):
		return invalid
	case !q.enabled(info):
		return invalid
	case !q.hasReceive(info):
		return q.awaitReceive()
	}
	if info.Class == roce.ClassWrite {
		return q.checkWrite(p, info)
	}
	return passed
}

// checkUD is the order for datagrams.
func (q *responder) checkUD(p *roce.Packet, info *roce.OpInfo) verdict {
	switch {
	case q.awaitsDriver(info):
		return suspended
	case !q.hasReceive(info):
		return q.awaitReceive()
	case p.PayloadLen() > q.mtu && !q.breaks(rule.DatagramsFitTheMTU):
		return discarded
	case !q.padOK(p):
		return discarded
	}
	return passed
}

// checkWrite is what a packet of a WRITE must satisfy beside what all must: length, range
// of the message, length again, and the key for its own bytes.
func (q *responder) checkWrite(p *roce.Packet, info *roce.OpInfo) verdict {
	n := uint32(p.PayloadLen())
	if info.First {
		q.openWrite(p.RETH())
	}
	switch {
	case info.First && !q.writeLengthOK(n):
		return invalid
	case info.First && !q.writeRangeOK(info, n):
		return noAccess
	case !q.withinWrite(n):
		return invalid
	case info.Last && !q.completesWrite(n) && !q.breaks(rule.LastPacketCompletesTheWrite):
		return invalid
	case !info.Last && q.completesWrite(n) && !q.breaks(rule.NoEarlierPacketCompletesTheWrite):
		return invalid
	case n > 0 && !q.translates(q.wkey, q.wva, n, q.u.needs(mkey.RemoteWrite, rule.WritesNeedTheirRight)):
		return q.denied(prm.ODPWrite)
	}
	return passed
}

func (q *responder) checkRead(p *roce.Packet) verdict {
	h := p.RETH()
	switch {
	case h.Length() > roce.MaxMessage && !q.breaks(rule.ReadLengthIsPossible):
		return invalid
	case h.Length() > 0 && !q.readable(h):
		return noAccess
	case h.Length() > 0 && !q.sourceIsThere(h):
		return noPage
	}
	return passed
}

func (q *responder) checkAtomic(p *roce.Packet) verdict {
	h := p.AtomicETH()
	switch {
	case h.VA()%atomicSize != 0 && !q.breaks(rule.AtomicsAreAligned):
		return invalid
	case !q.translates(h.RKey(), h.VA(), atomicSize, q.u.needs(mkey.RemoteAtomic, rule.AtomicsNeedTheirRight)) || q.u.dma.runs[0].Len != atomicSize:
		return q.denied(prm.ODPAtomic)
	}
	return passed
}

func (q *responder) checkAtomicWrite(p *roce.Packet) verdict {
	h := p.RETH()
	switch {
	case h.Length() != atomicSize && !q.breaks(rule.AtomicWriteHasItsLength):
		return invalid
	case h.VA()%atomicSize != 0 && !q.breaks(rule.AtomicWritesAreAligned):
		return invalid
	case !q.translates(h.RKey(), h.VA(), uint32(p.PayloadLen()), q.u.needs(mkey.RemoteWrite, rule.AtomicWritesNeedTheirRight)):
		return q.denied(prm.ODPAtomic)
	}
	return passed
}

// fillReceive checks a packet of a SEND against the receive WQE that is open, and puts its
// payload where that says, unless the CQE is to carry it.
func (q *responder) fillReceive(p *roce.Packet, info *roce.OpInfo, inCQE bool) verdict {
	switch {
	case !q.fitsReceive(p.PayloadLen()):
		return tooLong
	case !inCQE && !q.scatter(p.Payload()) && !q.breaks(rule.ReceivesNeedTheirKey):
		return q.unscattered()
	case info.Headers.Has(roce.HasIETH) && !q.invalidates(p.IETH().RKey()):
		return noInvalidate
	}
	return passed
}

// fillDatagram is fillReceive for a datagram, behind the routing header.
func (q *responder) fillDatagram(p *roce.Packet) verdict {
	switch {
	case !q.fitsReceive(roce.GRHSize + p.PayloadLen()):
		return tooLong
	case (!q.scatterGRH(p) || !q.scatter(p.Payload())) && !q.breaks(rule.DatagramReceivesNeedTheirKey):
		return q.unscattered()
	}
	return passed
}

// awaitsDriver says whether the packet needs the side of the queue that stands still for a page
// fault: READs have one of their own.
func (q *responder) awaitsDriver(info *roce.OpInfo) bool {
	waits := q.paging
	if info.Class == roce.ClassReadRequest {
		waits = q.faults[odp.ReadSide-odp.WriteSide] != 0 && !q.heldFault
	}
	return waits && !q.breaks(rule.FaultHoldsItsSide)
}

// follows is the opcode sequence: a packet continues the message that is arriving, or
// begins one when none is.
func (q *responder) follows(info *roce.OpInfo) bool {
	want := inNone
	switch {
	case info.Class == roce.ClassSend && !info.First:
		want = inSend
	case info.Class == roce.ClassWrite && !info.First:
		want = inWrite
	}
	return q.in == want || q.breaks(rule.OpcodesFollow)
}

// supports says whether the device has the operation. FLUSH is not modelled.
func (q *responder) supports(info *roce.OpInfo) bool {
	switch info.Class {
	case roce.ClassSend, roce.ClassWrite, roce.ClassReadRequest:
		return true
	case roce.ClassAtomic:
		return q.u.p.Atomics || q.breaks(rule.OperationIsSupported)
	case roce.ClassAtomicWrite:
		return q.u.p.AtomicWrite || q.breaks(rule.AtomicWriteIsSupported)
	}
	return q.breaks(rule.FlushIsSupported)
}

// enabled says whether the QP's access flags allow the operation.
func (q *responder) enabled(info *roce.OpInfo) bool {
	switch info.Class {
	case roce.ClassWrite, roce.ClassAtomicWrite:
		return q.rwe || q.breaks(rule.WriteIsEnabled)
	case roce.ClassReadRequest:
		return q.rre || q.breaks(rule.ReadIsEnabled)
	case roce.ClassAtomic:
		return q.rae || q.breaks(rule.AtomicIsEnabled)
	}
	return true
}

// hasResources says whether a READ or an atomic can be remembered for a repetition.
func (q *responder) hasResources(info *roce.OpInfo) bool {
	switch info.Class {
	case roce.ClassReadRequest, roce.ClassAtomic, roce.ClassAtomicWrite:
		return q.saved.free() || q.breaks(rule.ResourcesAreLimited)
	}
	return true
}

// hasReceive says whether a packet that takes a receive WQE finds one.
func (q *responder) hasReceive(info *roce.OpInfo) bool {
	return !info.TakesReceive || q.recvOpen || q.rq.has()
}

// awaitReceive looks for receive WQEs in memory, unless that has just been done in vain.
func (q *responder) awaitReceive() verdict {
	if q.rq.want() {
		return mustWait
	}
	if q.breaks(rule.MissingReceiveIsAnswered) {
		return discarded
	}
	return noReceive
}

// payloadOK is the length that the opcode allows at the path MTU.
func (q *responder) payloadOK(p *roce.Packet, info *roce.OpInfo) bool {
	return info.Payload.Allows(p.PayloadLen(), q.mtu) || q.breaks(rule.PayloadFitsTheMTU)
}

// padOK says whether the pad count is the one that belongs to the payload.
func (q *responder) padOK(p *roce.Packet) bool {
	return p.PadCount() == roce.PadCount(p.PayloadLen()) || q.breaks(rule.PadBelongsToThePayload)
}

// writeLengthOK is the length in the RETH of a first packet that brings n bytes.
func (q *responder) writeLengthOK(n uint32) bool {
	return q.wlen <= roce.MaxMessage && q.wlen >= n || q.breaks(rule.WriteLengthIsPossible)
}

// writeRangeOK checks the key for the whole message with its first packet. A message that is
// all here is checked when it is written, and with CardFaults each packet by itself.
func (q *responder) writeRangeOK(info *roce.OpInfo, n uint32) bool {
	return q.wlen == 0 || info.Last && q.wlen == n || q.u.p.CardFaults && !q.breaks(rule.WritesAreCheckedByPacket) || q.breaks(rule.FirstPacketChecksTheRange) || q.wholeWriteOK()
}

//go:noinline
func (q *responder) wholeWriteOK() bool {
	_, r := q.u.dma.keys.Check(q.user(), q.wkey, q.wva, uint64(q.wlen), mkey.RemoteWrite)
	return r == mkey.OK
}

// withinWrite says whether n bytes are no more than what is left of the message.
func (q *responder) withinWrite(n uint32) bool {
	return n <= q.wleft || q.breaks(rule.PacketsStayInTheWrite)
}

// completesWrite says whether n bytes are what is left of the message: those of the last
// packet are, and no others.
func (q *responder) completesWrite(n uint32) bool { return n == q.wleft }

// translates checks the key for an access and leaves in runs where it goes.
func (q *responder) translates(key uint32, va uint64, n uint32, a mkey.Access) bool {
	runs, r := q.u.dma.keys.Translate(q.user(), key, va, int(n), a, q.u.dma.runs[:0])
	q.u.dma.result = r
	q.u.dma.runs = runs
	return r == mkey.OK
}

// readable checks the key of a READ.
func (q *responder) readable(h roce.RETH) bool {
	_, r := q.u.dma.keys.Check(q.user(), h.RKey(), h.VA(), uint64(h.Length()), mkey.RemoteRead)
	return r == mkey.OK || q.breaks(rule.ReadIsCheckedWhole)
}

// sourceIsThere says whether the first packet of a READ's response finds its pages, or fails for
// another reason when its turn comes.
func (q *responder) sourceIsThere(h roce.RETH) bool {
	return q.pagedOperations()&prm.ODPRead == 0 || q.translates(h.RKey(), h.VA(), min(h.Length(), uint32(q.mtu)), mkey.RemoteRead) ||
		!q.pages(q.u.dma.result, prm.ODPRead) || q.breaks(rule.ReadWaitsForPages)
}

// fitsReceive says whether n more bytes fit into the receive WQE.
func (q *responder) fitsReceive(n int) bool {
	return uint64(q.recvGot)+uint64(n) <= q.recvCap || q.breaks(rule.SendFitsTheReceive)
}

// invalidates does what a SEND with invalidate asks for.
func (q *responder) invalidates(key uint32) bool {
	q.u.settle() // what has arrived looked at keys as they were
	return q.u.dma.keys.Invalidate(q.user(), key) == mkey.OK || q.breaks(rule.FailedInvalidationIsAnswered)
}

// refuse does what a verdict other than passed and mustWait asks for.
func (q *responder) refuse(v verdict, p *roce.Packet) {
	switch v {
	case outOfOrder:
		q.qs.add(prm.QCOutOfSequence)
		q.sendSequenceNAK()
	case duplicate:
		q.qs.add(prm.QCDuplicateRequest)
		q.answerAgain(p)
	case suspended:
		q.notReady()
	case noReceive:
		q.qs.add(prm.QCOutOfBuffer)
		q.notReady()
	case invalid:
		q.fatal(roce.NAKInvalidRequest)
	case noAccess:
		q.fatal(roce.NAKRemoteAccess)
	case noSRQ:
		q.fatal(q.u.p.XRCViolation.nak())
	case tooLong:
		q.qs.add(prm.QCRespLocalLengthError)
		q.failRecv(prm.SyndromeLocalLength, roce.NAKInvalidRequest)
	case noScatter:
		q.qs.add(prm.QCRespLocalProtection)
		q.failRecv(prm.SyndromeLocalProt, roce.NAKRemoteOp)
	case noPage:
		q.targetFault(p)
	case noBuffer:
		q.receiveFault(p)
	case noInvalidate:
		q.failRecv(prm.SyndromeRemoteInvalReq, roce.NAKRemoteAccess)
	}
}
