package nldev

import (
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// kind is how the objects of a kind are told (fill_entries).
type kind struct {
	kind         kernel.TrackedKind
	table, entry uint16
	id           uint16
	ofPort       bool // the objects belong to a port
	fill         func(r *request, w *uapi.NetlinkWriter, t *kernel.Tracked)
}

var kinds = map[kernel.TrackedKind]kind{
	kernel.TrackedQP:      {kernel.TrackedQP, uapi.NLAttrQP, uapi.NLAttrQPEntry, uapi.NLAttrLQPN, true, (*request).fillQP},
	kernel.TrackedCQ:      {kernel.TrackedCQ, uapi.NLAttrCQ, uapi.NLAttrCQEntry, uapi.NLAttrCQN, false, (*request).fillCQ},
	kernel.TrackedMR:      {kernel.TrackedMR, uapi.NLAttrMR, uapi.NLAttrMREntry, uapi.NLAttrMRN, false, (*request).fillMR},
	kernel.TrackedPD:      {kernel.TrackedPD, uapi.NLAttrPD, uapi.NLAttrPDEntry, uapi.NLAttrPDN, false, (*request).fillPD},
	kernel.TrackedContext: {kernel.TrackedContext, uapi.NLAttrCtx, uapi.NLAttrCtxEntry, uapi.NLAttrCtxN, false, (*request).fillContext},
	kernel.TrackedSRQ:     {kernel.TrackedSRQ, uapi.NLAttrSRQ, uapi.NLAttrSRQEntry, uapi.NLAttrSRQN, false, (*request).fillSRQ},
}

// regionCounters are regions with their counters alone.
var regionCounters = kind{kernel.TrackedMR, uapi.NLAttrMR, uapi.NLAttrMREntry, uapi.NLAttrMRN, false, fillRegionCounters}

// objectOf is res_get_common_doit.
func objectOf(k kind) func(*request) error {
	return func(r *request) error {
		id, given := r.attrs.U32(k.id)
		i, d, err := r.named()
		if err != nil || !given {
			return errInvalid
		}
		if n, err := r.portNumber(d); err != nil || k.ofPort != (n != 0) {
			return errInvalid
		}
		for _, t := range d.Kern.Tracked(kernel.Caller{}, k.kind) {
			if t.ID != id {
				continue
			}
			r.message(r.cmd, func(w *uapi.NetlinkWriter) {
				handle(w, i, d)
				k.fill(r, w, &t)
			})
			return nil
		}
		return errNone
	}
}

// entriesEnd is how long a datagram gets at most before another begins.
const entriesEnd = 3 << 10

// objectsOf is res_get_common_dumpit.
func objectsOf(k kind) func(*request) error {
	return func(r *request) error {
		i, d, err := r.named()
		if err != nil {
			return err
		}
		port, err := r.portNumber(d)
		if err != nil {
			return err
		}
		all := d.Kern.Tracked(kernel.Caller{}, k.kind)
		for len(all) > 0 {
			r.message(r.cmd, func(w *uapi.NetlinkWriter) {
				handle(w, i, d)
				w.Nest(k.table, func() {
					for len(all) > 0 && len(w.B) < entriesEnd {
						t := &all[0]
						all = all[1:]
						if k.ofPort && port != 0 && port != uint32(t.QP.Port) {
							continue
						}
						w.Nest(k.entry, func() { k.fill(r, w, t) })
					}
				})
			})
		}
		return nil
	}
}

func (r *request) noObjects() error {
	_, _, err := r.named()
	return err
}

// owner is fill_res_name_pid.
func (r *request) owner(w *uapi.NetlinkWriter, t *kernel.Tracked) {
	if pid := r.s.PID(t.Process); pid != 0 {
		w.U32(uapi.NLAttrPID, uint32(pid))
	}
}

func (r *request) fillQP(w *uapi.NetlinkWriter, t *kernel.Tracked) {
	a := &t.QP
	if a.Port != 0 {
		w.U32(uapi.NLAttrPortIndex, uint32(a.Port))
	}
	w.U32(uapi.NLAttrLQPN, t.ID)
	if !t.NoPD {
		w.U32(uapi.NLAttrPDN, t.PD)
	}
	r.owner(w, t)
	connected := t.QPType == verbs.QPTRC || t.QPType == verbs.QPTUC
	if connected {
		w.U32(uapi.NLAttrRQPN, a.DestQPN)
		w.U32(uapi.NLAttrRQPSN, a.RQPSN)
	}
	w.U32(uapi.NLAttrSQPSN, a.SQPSN)
	if connected || t.QPType == verbs.QPTXRCSend || t.QPType == verbs.QPTXRCRecv {
		w.U8(uapi.NLAttrPathMigState, a.PathMigState)
	}
	w.U8(uapi.NLAttrType, uint8(t.QPType))
	w.U8(uapi.NLAttrState, uint8(a.State))
}

func (r *request) fillCQ(w *uapi.NetlinkWriter, t *kernel.Tracked) {
	w.U32(uapi.NLAttrCQE, t.CQE)
	w.U64(uapi.NLAttrUseCount, uint64(t.Uses))
	w.U8(uapi.NLAttrDim, 0)
	w.U32(uapi.NLAttrCQN, t.ID)
	w.U32(uapi.NLAttrCtxN, t.Context)
	r.owner(w, t)
}

func (r *request) fillMR(w *uapi.NetlinkWriter, t *kernel.Tracked) {
	if r.admin {
		w.U32(uapi.NLAttrRKey, t.Key)
		w.U32(uapi.NLAttrLKey, t.Key)
	}
	w.U64(uapi.NLAttrMRLen, t.Length)
	w.U32(uapi.NLAttrMRN, t.ID)
	w.U32(uapi.NLAttrPDN, t.PD)
	r.owner(w, t)
	if t.OnDemand {
		w.Nest(uapi.NLAttrDriver|uapi.NetlinkNested, func() {
			w.String(uapi.NLAttrDriverString, "odp")
			w.String(uapi.NLAttrDriverString, map[bool]string{false: "explicit", true: "implicit"}[t.Implicit])
		})
	}
}

func (r *request) fillPD(w *uapi.NetlinkWriter, t *kernel.Tracked) {
	w.U64(uapi.NLAttrUseCount, uint64(t.Uses))
	w.U32(uapi.NLAttrPDN, t.ID)
	w.U32(uapi.NLAttrCtxN, t.Context)
	r.owner(w, t)
}

func (r *request) fillContext(w *uapi.NetlinkWriter, t *kernel.Tracked) {
	w.U32(uapi.NLAttrCtxN, t.ID)
	r.owner(w, t)
}

func (r *request) fillSRQ(w *uapi.NetlinkWriter, t *kernel.Tracked) {
	w.U32(uapi.NLAttrSRQN, t.ID)
	w.U8(uapi.NLAttrType, uint8(t.SRQType))
	w.U32(uapi.NLAttrPDN, t.PD)
	if t.SRQType == verbs.SRQXRC {
		w.U32(uapi.NLAttrCQN, t.CQ)
	}
	w.Nest(uapi.NLAttrQP|uapi.NetlinkNested, func() { ranges(w, t.QPNs) })
	r.owner(w, t)
}

// ranges are numbers of QPs, neighbours together (fill_res_srq_qps).
func ranges(w *uapi.NetlinkWriter, qpns []uint32) {
	for len(qpns) > 0 {
		n := 1
		for n < len(qpns) && qpns[n] == qpns[n-1]+1 {
			n++
		}
		w.Nest(uapi.NLAttrQPEntry|uapi.NetlinkNested, func() {
			if n == 1 {
				w.U32(uapi.NLAttrLQPN, qpns[0])
				return
			}
			w.U32(uapi.NLAttrMinRange, qpns[0])
			w.U32(uapi.NLAttrMaxRange, qpns[n-1])
		})
		qpns = qpns[n:]
	}
}

// fillRegionCounters is fill_stat_mr_entry.
func fillRegionCounters(_ *request, w *uapi.NetlinkWriter, t *kernel.Tracked) {
	w.U32(uapi.NLAttrMRN, t.ID)
	if t.OnDemand && len(t.Counters) > 0 {
		counters(w, t.Counters)
	}
}
