package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// InvalidBFReg in QPResp.BFRegIndex means that the kernel assigned none.
const InvalidBFReg = 1 << 31

// QPReq holds the arguments of CREATE_QP: mlx5_ib_create_qp and the core's fields.
type QPReq struct {
	Type                               verbs.QPType
	PD, SendCQ, RecvCQ, SRQ            Handle
	HasSRQ                             bool
	Cap                                verbs.QPCap
	SigAll                             bool
	BufAddr, DBAddr                    uint64 // receive ring, then send ring
	SQWQECount, RQWQECount, RQWQEShift uint32 // send ring in units of 64 bytes
	Flags                              uint32 // ibv_qp_create_flags
	UIDX                               uint32 // user index, or 0xffffff with CQE version 0
	XRCD                               Handle // of an XRC target, for which PD, CQs and rings do not count
	BFRegIndex                         uint32
	BFRegMode                          uint8 // BFRegKernel, BFRegDynamic, BFRegUARPage
	ScatterToCQE                       bool
	DC                                 DCEnd       // of the driver's type
	AccessKey                          uint64      // of a DCT
	Streams                            *DCIStreams // that a DCI asks for; nil: none
	AllowScatterToCQE                  bool        // of answers too, although not every request is signalled
	Vendor                             uint32      // other flags of mlx5_ib_create_qp (MLX5_QP_FLAG_*)
	Cookie                             uint64
}

// QPResp is mlx5_ib_create_qp_resp.
type QPResp struct {
	QPN        uint32
	BFRegIndex uint32 // gross numbering; bit 31: none assigned
	Cap        verbs.QPCap
	Packets    PacketNumbers
}

// PacketNumbers holds the device's numbers of a raw packet QP's queues and of what leads to them;
// 0: none.
type PacketNumbers struct {
	TIRN, TISN, RQN, SQN uint32
	TIRAddress           uint64 // where flow table entries that programs write find the TIR
}

// queuePair is a handle of a QP: the QP itself, or one of those of an XRC target.
type queuePair interface {
	object
	queue() *qp
	// asyncEvents is how many asynchronous events programs have read through the handle.
	asyncEvents() uint32
}

func (q *qp) queue() *qp          { return q }
func (q *qp) asyncEvents() uint32 { return q.asyncSeen }

// qp is a QP as the driver has it, and what uverbs has of one with a single handle.
type qp struct {
	dev       *Device
	u         *Ucontext // nil for an XRC target, as are the objects below
	typ       verbs.QPType
	svc       service
	nums      qpNumbers
	pd        *pd
	sendCQ    *cq
	recvCQ    *cq
	srq       *srq // or nil
	qpn       uint32
	cookie    uint64
	mem       *umem // nil when both rings are empty
	dbAddr    uint64
	bfreg     uint32 // of the kernel's table, or InvalidBFReg
	rqCount   uint32
	rqShift   uint32
	sqCount   uint32
	sigAll    bool
	inline    uint32
	asyncSeen uint32
	groups    groups
	holds     holders
	dct       *dctState // nil of others
	packets   *packetQP // nil of others than raw packet QPs

	state     verbs.QPState // as the driver remembers it
	port      uint8
	access    verbs.AccessFlags // last ones set (atomic_rd_en)
	respDepth uint8             // last max_dest_rd_atomic
}

// qpNumbers are what a QP's context names, each by its number.
type qpNumbers struct {
	pd, sendCQ, recvCQ uint32
	srq                uint32 // 0: none
	xrcd               uint32
}

// serviceType is the QPC's code.
func (q *qp) serviceType() uint32 {
	switch q.svc {
	case svcUC:
		return prm.STUC
	case svcUD:
		return prm.STUD
	case svcXRCSend, svcXRCRecv:
		return prm.STXRC
	case svcDCI:
		return prm.STDCI
	}
	return prm.STRC
}

// DestroyQP is DESTROY_QP; it returns how many asynchronous events of the QP programs
// have read.
func (u *Ucontext) DestroyQP(c Caller, h Handle) (asyncEvents uint32, err error) {
	err = u.doDestroy(c, func(k *call) error {
		q, err := destroyObject[queuePair](&u.objs, k, h, "QP")
		if err == nil {
			asyncEvents = q.asyncEvents()
		}
		return err
	})
	return asyncEvents, err
}

// destroy is destroy_qp_common: to RESET first, so that the device no longer uses the rings.
func (q *qp) destroy(k *call) error {
	if q.dct != nil {
		if err := q.removeDCT(k); err != nil {
			return err
		}
		q.drop()
		return nil
	}
	if q.packets != nil {
		if q.packets.flows > 0 {
			return fmt.Errorf("%d flows lead to it: %w", q.packets.flows, syscall.EBUSY)
		}
		q.destroyPackets(k)
		q.drop()
		return nil
	}
	if err := q.groups.leaveAll(k, q.qpn, !q.u.closed && !q.u.removed); err != nil {
		return err
	}
	if err := q.remove(k); err != nil {
		return err
	}
	if !k.d.breaks(rule.QPEventsGoWithTheQP) {
		q.u.async.forget(&q.asyncSeen)
	}
	if q.bfreg != InvalidBFReg {
		q.u.bfregs.Free(q.bfreg)
	}
	q.u.dbPages.unpin(k, q.dbAddr)
	k.unpin(q.mem)
	q.drop()
	return nil
}

// drop ends the references to what the QP was made with.
func (q *qp) drop() {
	q.pd.refs--
	if q.sendCQ != nil {
		q.sendCQ.refs--
	}
	if q.recvCQ != nil {
		q.recvCQ.refs--
	}
	if q.srq != nil {
		q.srq.refs--
	}
}

// remove takes the QP from the device.
func (q *qp) remove(k *call) error {
	if q.state != verbs.QPSReset {
		in := prm.NewIn(prm.Op2RstQP, 0)
		prm.Cmd2RstQPIn(in).SetQPN(q.qpn)
		if err := k.destroy(in); err != nil {
			return err
		}
	}
	in := prm.NewIn(prm.OpDestroyQP, 0)
	prm.DestroyQPIn(in).SetQPN(q.qpn)
	if err := k.destroy(in); err != nil {
		return err
	}
	k.leaveTo(&q.holds)
	delete(q.dev.qps, q.qpn)
	q.dev.res.QP--
	return nil
}

// qpEvents are the events that programs see (mlx5_ib_qp_event).
var qpEvents = map[prm.EventType]verbs.EventType{
	prm.EventPathMig: verbs.EventPathMig, prm.EventCommEst: verbs.EventCommEst, prm.EventSQDrained: verbs.EventSQDrained,
	prm.EventSRQLastWQE: verbs.EventQPLastWQEReached, prm.EventWQCatasError: verbs.EventQPFatal, prm.EventPathMigFailed: verbs.EventPathMigErr,
	prm.EventWQInvalReqError: verbs.EventQPReqErr, prm.EventWQAccessError: verbs.EventQPAccessErr,
}

// event gives an event of the QP to programs. The entry must be of a QP: numbers of
// other queues are counted apart.
func (q *qp) event(e prm.EQE) bool {
	t, ok := qpEvents[e.Type()]
	if !ok || e.QueueType() != prm.EventQueueQP {
		return false
	}
	q.u.objectEvent(t, q.cookie, &q.asyncSeen)
	return true
}
