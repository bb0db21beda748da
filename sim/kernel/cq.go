package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// CQReq holds the arguments of CREATE_CQ: mlx5_ib_create_cq and the core's fields. BufAddr and
// DBAddr are addresses in the process.
type CQReq struct {
	Entries         uint32 // of the ring, a power of two; 0: what follows from CQE
	CQE             uint32 // what is asked for, checked against the caps; the ring has room for one more
	CompVector      uint32
	Channel         *Channel // nil: none
	Cookie          uint64
	BufAddr, DBAddr uint64
	CQESize         uint32 // 64 or 128
	Pad             bool   // of 128: 64 bytes are padding (MLX5_IB_CQ_PR_FLAGS_CQE_128_PAD)
	UARPage         uint32 // for arming; with UARValid
	UARValid        bool
	IgnoreOverrun   bool
	Compress        bool  // cqe_comp_en
	CompFormat      uint8 // one of verbs.CQEComp*, with Compress
}

type cq struct {
	u         *Ucontext
	cqn       uint32
	cookie    uint64
	channel   *Channel
	mem       *umem
	dbAddr    uint64
	cqeSize   uint32
	entries   uint32
	refs      int    // QPs, a QP that uses it twice counts twice (usecnt)
	compSeen  uint32 // completion events that programs have read
	asyncSeen uint32
}

// CreateCQ is CREATE_CQ. EINVAL: no entries or too many, a vector that does not exist,
// a channel of another context, a wrong CQE size, a ring that does not begin a page, no
// UAR named by a library of the dynamic generation.
func (u *Ucontext) CreateCQ(c Caller, r CQReq) (h Handle, cqn uint32, err error) {
	err = u.do(c, func(k *call) error {
		q, err := u.createCQ(k, &r)
		if err != nil {
			return fmt.Errorf("create CQ: %w", err)
		}
		h, cqn = u.objs.add(q), q.cqn
		return nil
	})
	return h, cqn, err
}

func (u *Ucontext) createCQ(k *call, r *CQReq) (*cq, error) {
	d := u.dev
	entries, err := d.cqEntries(r.CQE)
	if err != nil {
		return nil, err
	}
	switch {
	case r.CompVector >= uint32(d.NumCompVectors()):
		return nil, fmt.Errorf("completion vector %d of %d: %w", r.CompVector, d.NumCompVectors(), syscall.EINVAL)
	case r.Channel != nil && (r.Channel.u != u || r.Channel.file.closed):
		return nil, fmt.Errorf("channel is not open in this context: %w", syscall.EBADF)
	case r.Entries != 0 && r.Entries != entries:
		return nil, fmt.Errorf("ring of %d entries for a CQ of %d: %w", r.Entries, entries, syscall.EINVAL)
	case r.CQESize != 64 && r.CQESize != 128:
		return nil, fmt.Errorf("CQE of %d bytes: %w", r.CQESize, syscall.EINVAL)
	case r.Compress && !d.caps.compresses(r.CQESize):
		return nil, fmt.Errorf("compressed CQEs of %d bytes: %w", r.CQESize, syscall.EOPNOTSUPP)
	case r.Pad && (r.CQESize != 128 || !d.caps.cq128):
		return nil, fmt.Errorf("padded CQE of %d bytes: %w", r.CQESize, syscall.EOPNOTSUPP)
	}
	k.work += d.p.CreateCQ
	q := &cq{u: u, cookie: r.Cookie, channel: r.Channel, dbAddr: r.DBAddr, cqeSize: r.CQESize, entries: entries}
	if q.mem, err = k.pin(u.proc, r.BufAddr, uint64(entries)*uint64(r.CQESize), verbs.AccessLocalWrite); err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	if err := q.create(k, r); err != nil {
		k.unpin(q.mem)
		return nil, err
	}
	d.cqs[q.cqn] = q
	if q.channel != nil {
		q.channel.refs++
	}
	d.res.CQ++
	return q, nil
}

// cqEntries is the size of the ring: a power of two above what is asked for.
func (d *Device) cqEntries(cqe uint32) (uint32, error) {
	most := uint32(1) << d.caps.logCQSz
	if cqe < 1 || cqe >= most {
		return 0, fmt.Errorf("%d entries, at most %d: %w", cqe, most-1, syscall.EINVAL)
	}
	return 1 << bits.Len32(cqe), nil
}

func (q *cq) create(k *call, r *CQReq) error {
	u, d := q.u, q.u.dev
	format := uint32(0)
	if r.Compress {
		var err error
		if format, err = d.caps.miniCQEFormat(r.CompFormat); err != nil {
			return err
		}
	}
	layout, err := q.mem.ringLayout(0)
	if err != nil {
		return err
	}
	uar := r.UARPage
	if !r.UARValid {
		if u.dynUAR {
			return fmt.Errorf("no UAR named: %w", syscall.EINVAL)
		}
		uar = u.bfregs.Page(0)
	}
	db, err := u.dbPages.pin(k, u.proc, q.dbAddr)
	if err != nil {
		return err
	}
	in, out := prm.NewIn(prm.OpCreateCQ, 8*layout.blocks), prm.NewOut(prm.OpCreateCQ, 0)
	m := prm.CreateCQIn(in)
	q.mem.fillPAS(m.PAS(), layout.pageSize)
	c := m.CQC()
	switch {
	case r.Pad:
		c.SetCQESz(prm.CQESz128Pad)
	case q.cqeSize == 128:
		c.SetCQESz(prm.CQESz128)
	}
	c.SetOI(r.IgnoreOverrun)
	c.SetCQECompEn(r.Compress)
	c.SetMiniCQEResFormat(format)
	c.SetPageOffset(layout.pageOffset)
	c.SetLogPageSize(layout.logPageSize())
	c.SetLogCQSize(uint32(bits.TrailingZeros32(q.entries)))
	c.SetUARPage(uar)
	c.SetEQN(uint32(d.eqs[1+r.CompVector].eqn))
	c.SetDBRAddr(db)
	if err := k.exec(in, out); err != nil {
		u.dbPages.unpin(k, q.dbAddr)
		return err
	}
	q.cqn = prm.CreateCQOut(out).CQN()
	return nil
}

// ResizeCQ is RESIZE_CQ (mlx5_ib_resize_cq): it makes the device go on in the ring at bufAddr, with
// entries of cqeSize bytes, and returns the CQ's new size. The library moves the contents of the
// old ring. EINVAL: an impossible size, or one below the number of outstanding completions; ENOSYS:
// the device cannot resize. A size that rounds to the present one succeeds and changes nothing.
func (u *Ucontext) ResizeCQ(c Caller, h Handle, cqe uint32, bufAddr uint64, cqeSize uint32) (got uint32, err error) {
	err = u.do(c, func(k *call) error {
		q, err := lookup[*cq](&u.objs, h, "CQ")
		if err != nil {
			return err
		}
		if !u.dev.caps.cqResize {
			return fmt.Errorf("resize CQ: the device cannot: %w", syscall.ENOSYS)
		}
		n, err := u.dev.cqEntries(cqe)
		if err == nil && n != q.entries {
			err = q.resize(k, n, bufAddr, cqeSize)
		}
		if err != nil {
			return fmt.Errorf("resize CQ to %d entries: %w", cqe, err)
		}
		got = q.entries - 1
		return nil
	})
	return got, err
}

func (q *cq) resize(k *call, n uint32, bufAddr uint64, cqeSize uint32) error {
	k.work += q.u.dev.p.CreateCQ
	m, err := k.pin(q.u.proc, bufAddr, uint64(n)*uint64(cqeSize), verbs.AccessLocalWrite)
	if err != nil {
		return fmt.Errorf("ring: %w", err)
	}
	if err := q.moveTo(k, m, n, cqeSize); err != nil {
		k.unpin(m)
		return err
	}
	k.unpin(q.mem)
	q.mem, q.entries = m, n
	return nil
}

// moveTo is the command.
func (q *cq) moveTo(k *call, m *umem, n, cqeSize uint32) error {
	layout, err := m.ringLayout(0)
	if err != nil {
		return err
	}
	in := prm.NewIn(prm.OpModifyCQ, 8*layout.blocks)
	prm.CmdIn(in).SetOpMod(prm.ModifyCQResize)
	mod := prm.ModifyCQIn(in)
	mod.SetCQN(q.cqn)
	mod.SetFieldSelect(prm.CQResizeLogSize | prm.CQResizePageOff | prm.CQResizePageSize)
	m.fillPAS(mod.PAS(), layout.pageSize)
	c := mod.CQC()
	c.SetLogCQSize(uint32(bits.TrailingZeros32(n)))
	c.SetPageOffset(layout.pageOffset)
	c.SetLogPageSize(layout.logPageSize())
	if cqeSize == 128 {
		c.SetCQESz(prm.CQESz128)
	}
	return k.exec(in, prm.NewOut(prm.OpModifyCQ, 0))
}

// maxCQPeriod is MLX5_MAX_CQ_PERIOD: what the context's field holds, in microseconds.
const maxCQPeriod = 1<<12 - 1

// ModerateCQ is MODIFY_CQ (mlx5_ib_modify_cq): an event waits for count completions or
// for period microseconds. EOPNOTSUPP when the device cannot; EINVAL for a period that
// the context cannot hold.
func (u *Ucontext) ModerateCQ(c Caller, h Handle, count, period uint16) error {
	return u.do(c, func(k *call) error {
		q, err := lookup[*cq](&u.objs, h, "CQ")
		if err != nil {
			return err
		}
		switch {
		case !u.dev.caps.cqModeration:
			return fmt.Errorf("moderate CQ: the device cannot: %w", syscall.EOPNOTSUPP)
		case period > maxCQPeriod:
			return fmt.Errorf("moderate CQ: period of %d us: %w", period, syscall.EINVAL)
		}
		in := prm.NewIn(prm.OpModifyCQ, 0)
		m := prm.ModifyCQIn(in)
		m.SetCQN(q.cqn)
		m.SetFieldSelect(prm.CQModifyPeriod | prm.CQModifyCount)
		m.CQC().SetCQPeriod(uint32(period))
		m.CQC().SetCQMaxCount(uint32(count))
		return k.exec(in, prm.NewOut(prm.OpModifyCQ, 0))
	})
}

// DestroyCQ is DESTROY_CQ: EBUSY while a QP uses it. It returns how many events of each
// kind programs have read, which the library waits to see acknowledged.
func (u *Ucontext) DestroyCQ(c Caller, h Handle) (compEvents, asyncEvents uint32, err error) {
	err = u.doDestroy(c, func(k *call) error {
		q, err := destroyObject[*cq](&u.objs, k, h, "CQ")
		if err == nil {
			compEvents, asyncEvents = q.compSeen, q.asyncSeen
		}
		return err
	})
	return compEvents, asyncEvents, err
}

func (q *cq) destroy(k *call) error {
	if q.refs > 0 && !k.d.breaks(rule.CQInUseIsBusy) {
		return fmt.Errorf("%d queues use it: %w", q.refs, syscall.EBUSY)
	}
	in := prm.NewIn(prm.OpDestroyCQ, 0)
	prm.DestroyCQIn(in).SetCQN(q.cqn)
	if err := k.destroy(in); err != nil {
		return err
	}
	d := q.u.dev
	delete(d.cqs, q.cqn)
	q.u.dbPages.unpin(k, q.dbAddr)
	k.unpin(q.mem)
	if !k.d.breaks(rule.CQErrorsGoWithTheCQ) {
		q.u.async.forget(&q.asyncSeen)
	}
	if q.channel != nil {
		if !k.d.breaks(rule.EventsGoWithTheirObject) {
			q.channel.file.forget(&q.compSeen)
		}
		q.channel.refs--
	}
	d.res.CQ--
	return nil
}

// completion is the handler of a completion event (ib_uverbs_comp_handler).
func (q *cq) completion() {
	if q.channel == nil {
		return
	}
	q.channel.file.push(0, q.cookie, &q.compSeen)
	q.u.dev.count.CompEvents++
}

// event gives an event of the CQ to programs: a completion, or an error.
func (q *cq) event(e prm.EQE) bool {
	if e.Type() == prm.EventComp {
		q.completion()
	} else {
		q.u.objectEvent(verbs.EventCQErr, q.cookie, &q.asyncSeen)
	}
	return true
}
