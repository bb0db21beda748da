package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// WQReq holds the arguments of CREATE_WQ: mlx5_ib_create_wq and the core's fields.
type WQReq struct {
	PD, CQ          Handle
	MaxWR, MaxSGE   uint32
	Count, Shift    uint32 // of the ring: WQEs, and the logarithm of their bytes
	BufAddr, DBAddr uint64
	UIDX            uint32
	Flags           uint32 // ibv_wq_flags
	Cookie          uint64
}

// Flags of a WQ (enum ib_wq_flags).
const (
	wqCVLANStripping = 1 << 0
	wqScatterFCS     = 1 << 1
)

// wq is a receive queue of its own, for tables that a hash chooses from (ib_wq).
type wq struct {
	u      *Ucontext
	pd     *pd
	cq     *cq
	q      packetQueue
	dbAddr uint64
	state  WQState
	refs   int // entries of tables
}

// CreateWQ is CREATE_WQ for an RQ (mlx5_ib_create_wq). The right to receive raw packets is checked
// for the QP that uses it. EINVAL: sizes; EOPNOTSUPP: a device without such queues, or flags that
// it does not have.
func (u *Ucontext) CreateWQ(c Caller, r WQReq) (h Handle, wqn uint32, err error) {
	err = u.do(c, func(k *call) error {
		w, err := u.createWQ(k, &r)
		if err != nil {
			return fmt.Errorf("create WQ: %w", err)
		}
		h, wqn = u.objs.add(w), w.q.num
		return nil
	})
	return h, wqn, err
}

func (u *Ucontext) createWQ(k *call, r *WQReq) (*wq, error) {
	d := u.dev
	w := &wq{u: u, dbAddr: r.DBAddr}
	var err error
	if w.pd, err = lookup[*pd](&u.objs, r.PD, "PD"); err != nil {
		return nil, err
	}
	if w.cq, err = lookup[*cq](&u.objs, r.CQ, "CQ"); err != nil {
		return nil, err
	}
	uidx, err := u.userIndex(r.UIDX)
	if err != nil {
		return nil, err
	}
	switch {
	case d.caps.packets.MaxWQ == 0:
		return nil, fmt.Errorf("the device has no queues for packets: %w", syscall.EOPNOTSUPP)
	case r.Flags&^d.caps.packets.queueFlags(wqCVLANStripping, wqScatterFCS) != 0:
		return nil, fmt.Errorf("flags %#x: %w", r.Flags, syscall.EOPNOTSUPP)
	case r.Count == 0 || r.MaxWR > 1<<d.caps.logMaxWQSz:
		return nil, fmt.Errorf("%d receives, ring of %d: %w", r.MaxWR, r.Count, syscall.EINVAL)
	case r.Shift >= 32 || uint64(r.Count)<<r.Shift > 1<<31:
		return nil, fmt.Errorf("ring of %d receives of 2^%d bytes: %w", r.Count, r.Shift, syscall.EINVAL)
	}
	db, err := u.dbPages.pin(k, u.proc, r.DBAddr)
	if err != nil {
		return nil, err
	}
	x := rqReq{addr: r.BufAddr, db: db, count: r.Count, shift: r.Shift, uidx: uidx, cqn: w.cq.cqn, pdn: w.pd.pdn, stripped: r.Flags&wqCVLANStripping != 0, scatterFCS: r.Flags&wqScatterFCS != 0}
	if err := w.q.create(k, u, x); err != nil {
		k.unpin(w.q.mem)
		u.dbPages.unpin(k, r.DBAddr)
		return nil, err
	}
	w.pd.refs++
	w.cq.refs++
	return w, nil
}

// WQState is a state of a WQ (enum ib_wq_state).
type WQState uint32

// States.
const (
	WQReset WQState = iota
	WQReady
	WQError
)

// wqStates are the device's states.
var wqStates = [...]uint32{WQReset: prm.PacketQueueRST, WQReady: prm.PacketQueueRDY, WQError: prm.PacketQueueERR}

// ModifyWQ is MODIFY_WQ to a state and, if current is not nil, with the state that the WQ must have
// now (mlx5_ib_modify_wq). EINVAL: an unknown state, ERR to RDY, or another current state.
func (u *Ucontext) ModifyWQ(c Caller, h Handle, to WQState, current *WQState) error {
	return u.do(c, func(k *call) error {
		w, err := lookup[*wq](&u.objs, h, "WQ")
		if err != nil {
			return err
		}
		from := w.state
		if current != nil {
			from = *current
		}
		if int(to) >= len(wqStates) || int(from) >= len(wqStates) || from == WQError && to == WQReady {
			return fmt.Errorf("WQ from state %d to %d: %w", from, to, syscall.EINVAL)
		}
		if err := w.q.modifyRQ(k, wqStates[from], wqStates[to]); err != nil {
			return err
		}
		w.state = to
		return nil
	})
}

// DestroyWQ is DESTROY_WQ: EBUSY while a table has it.
func (u *Ucontext) DestroyWQ(c Caller, h Handle) error { return destroyByHandle[*wq](u, c, h, "WQ") }

func (w *wq) destroy(k *call) error {
	if w.refs > 0 {
		return fmt.Errorf("%d entries of tables: %w", w.refs, syscall.EBUSY)
	}
	w.q.destroy(k)
	k.unpin(w.q.mem)
	w.u.dbPages.unpin(k, w.dbAddr)
	w.pd.refs--
	w.cq.refs--
	return nil
}

// wqTable is a table of WQs (ib_rwq_ind_table).
type wqTable struct {
	rqtn uint32
	wqs  []*wq
	refs int // QPs
}

// CreateWQTable is CREATE_RWQ_IND_TBL for WQs whose number is a power of two
// (mlx5_ib_create_rwq_ind_table); num is the device's number of the table. EINVAL: more than the
// device takes.
func (u *Ucontext) CreateWQTable(c Caller, wqs []Handle) (h Handle, num uint32, err error) {
	err = u.do(c, func(k *call) error {
		t := &wqTable{}
		n := len(wqs)
		if n == 0 || bits.OnesCount(uint(n)) != 1 || uint32(n) > u.dev.caps.packets.MaxTableSize {
			return fmt.Errorf("table of %d WQs: %w", n, syscall.EINVAL)
		}
		in, out := prm.NewIn(prm.OpCreateRQT, 4*n), prm.NewOut(prm.OpCreateRQT, 0)
		m := prm.CreateRQTIn(in)
		m.Context().SetActualSize(uint32(n))
		m.Context().SetMaxSize(uint32(n))
		for i, x := range wqs {
			w, err := lookup[*wq](&u.objs, x, "WQ")
			if err != nil {
				return fmt.Errorf("table: %w", err)
			}
			t.wqs = append(t.wqs, w)
			m.List().Set(i, w.q.num)
		}
		if err := k.exec(in, out); err != nil {
			return err
		}
		t.rqtn = prm.CreateRQTOut(out).RQTN()
		for _, w := range t.wqs {
			w.refs++
		}
		h, num = u.objs.add(t), t.rqtn
		return nil
	})
	return h, num, err
}

// DestroyWQTable is DESTROY_RWQ_IND_TBL: EBUSY while a QP has it.
func (u *Ucontext) DestroyWQTable(c Caller, h Handle) error {
	return destroyByHandle[*wqTable](u, c, h, "table of WQs")
}

func (t *wqTable) destroy(k *call) error {
	if t.refs > 0 {
		return fmt.Errorf("%d QPs: %w", t.refs, syscall.EBUSY)
	}
	in := prm.NewIn(prm.OpDestroyRQT, 0)
	prm.DestroyRQTIn(in).SetRQTN(t.rqtn)
	k.mustDestroy(in)
	for _, w := range t.wqs {
		w.refs--
	}
	return nil
}

// RSSReq holds the arguments of mlx5_ib_create_qp_rss with the core's fields.
type RSSReq struct {
	PD, Table Handle
	Toeplitz  bool
	Key       []byte // 40 bytes
	Fields    uint64 // enum mlx5_rx_hash_fields
	Cookie    uint64
}

// Bits of RSSReq.Fields, in pairs of which one may be: IPv4 or IPv6, TCP or UDP.
const (
	rssSrcIPv4 = 1 << iota
	rssDstIPv4
	rssSrcIPv6
	rssDstIPv6
	rssSrcTCP
	rssDstTCP
	rssSrcUDP
	rssDstUDP
	rssFields = 1<<iota - 1
)

const toeplitzKeySize = 40

// CreateRSSQP creates a raw packet QP that receives through a table of WQs (create_rss_raw_qp_tir).
// It has no number and no states. EPERM: without CAP_NET_RAW; EOPNOTSUPP: a hash function or fields
// that the device does not have; EINVAL: fields that exclude each other.
func (u *Ucontext) CreateRSSQP(c Caller, r RSSReq) (h Handle, tirn uint32, err error) {
	err = u.do(c, func(k *call) error {
		q, err := u.createRSSQP(k, &r)
		if err != nil {
			return fmt.Errorf("create QP on a table of WQs: %w", err)
		}
		h, tirn = u.objs.add(q), q.packets.tirn
		return nil
	})
	return h, tirn, err
}

func (u *Ucontext) createRSSQP(k *call, r *RSSReq) (*qp, error) {
	q := &qp{dev: u.dev, u: u, typ: verbs.QPTRawPacket, svc: svcRaw, cookie: r.Cookie, bfreg: InvalidBFReg, packets: &packetQP{}}
	if err := u.checkQPType(&QPReq{Type: verbs.QPTRawPacket}); err != nil {
		return nil, err
	}
	var err error
	if q.packets.table, err = lookup[*wqTable](&u.objs, r.Table, "table of WQs"); err != nil {
		return nil, err
	}
	if q.pd, err = lookup[*pd](&u.objs, r.PD, "PD"); err != nil {
		return nil, err
	}
	const v4, v6, tcp, udp = rssSrcIPv4 | rssDstIPv4, rssSrcIPv6 | rssDstIPv6, rssSrcTCP | rssDstTCP, rssSrcUDP | rssDstUDP
	f := r.Fields
	switch {
	case f&^rssFields != 0:
		return nil, fmt.Errorf("hash of fields %#x: %w", f, syscall.EOPNOTSUPP)
	case f != 0 && (!r.Toeplitz || len(r.Key) != toeplitzKeySize):
		return nil, fmt.Errorf("hash function, or key of %d bytes: %w", len(r.Key), syscall.EINVAL)
	case f&v4 != 0 && f&v6 != 0, f&tcp != 0 && f&udp != 0:
		return nil, fmt.Errorf("hash of fields %#x, which exclude each other: %w", f, syscall.EINVAL)
	}
	in, out := prm.NewIn(prm.OpCreateTIR, 0), prm.NewOut(prm.OpCreateTIR, 0)
	t := prm.CreateTIRIn(in).Context()
	t.SetDispType(prm.TIRIndirect)
	t.SetIndirectTable(q.packets.table.rqtn)
	t.SetTransportDomain(u.tdn)
	if f != 0 {
		t.SetRxHashFn(prm.RxHashToeplitz)
		t.SetRxHashSymmetric(true)
		copy(t.RxHashToeplitzKey(), r.Key)
		fields := uint32(0)
		for _, x := range [...]struct{ of, bit uint32 }{
			{rssSrcIPv4 | rssSrcIPv6, prm.RxHashSrcIP}, {rssDstIPv4 | rssDstIPv6, prm.RxHashDstIP},
			{rssSrcTCP | rssSrcUDP, prm.RxHashSport}, {rssDstTCP | rssDstUDP, prm.RxHashDport},
		} {
			if uint32(f)&x.of != 0 {
				fields |= x.bit
			}
		}
		t.SetOuterSelectedFields(fields)
	}
	if err := k.exec(in, out); err != nil {
		return nil, err
	}
	q.packets.tirn = prm.CreateTIROut(out).TIRN()
	q.packets.table.refs++
	q.pd.refs++
	u.dev.res.QP++
	return q, nil
}
