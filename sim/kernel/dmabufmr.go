package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// DmabufMRReq holds the arguments of REG_DMABUF_MR.
type DmabufMRReq struct {
	PD                   Handle
	Offset, Length, Iova uint64
	Access               verbs.AccessFlags
	// Driver says that the driver's own attribute is given, and Flags are its value
	// (MLX5_IB_ATTR_REG_DMABUF_MR_ACCESS_FLAGS).
	Driver bool
	Flags  uint32
	// File is the DMA-BUF behind the descriptor that was given. EBADF: it is not open; EINVAL:
	// another file.
	File func() (*DMABuf, error)
}

// dmabufAccess are the access bits that the call takes.
const dmabufAccess = verbs.AccessLocalWrite | verbs.AccessRemoteRead | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic | verbs.AccessRelaxedOrdering

// RegDmabufMR is REG_DMABUF_MR: it registers a part of a DMA-BUF, which may move while the region
// lives; the device then takes a page fault. EOPNOTSUPP: the kernel does not have the call; EINVAL:
// offset and iova differ within a page, access bits that a DMA-BUF cannot have, more than the
// DMA-BUF has, length 0, or more than the device's UMR loads; EBADF; ENOMEM: the exporter cannot
// map it.
func (u *Ucontext) RegDmabufMR(c Caller, r DmabufMRReq) (mh Handle, lkey, rkey uint32, err error) {
	err = u.do(c, func(k *call) error {
		m, err := u.regDmabufMR(k, &r)
		if err != nil {
			return fmt.Errorf("register a DMA-BUF: %w", err)
		}
		mh, lkey, rkey = u.objs.add(m), m.mkey, m.mkey
		return nil
	})
	return mh, lkey, rkey, err
}

func (u *Ucontext) regDmabufMR(k *call, r *DmabufMRReq) (*mr, error) {
	if !k.d.p.Dmabuf {
		return nil, errNoDmabuf
	}
	p, err := lookup[*pd](&u.objs, r.PD, "PD")
	if err != nil {
		return nil, err
	}
	if r.Offset&pageMask != r.Iova&pageMask && !k.d.breaks(rule.DmabufOffsetMatchesIova) {
		return nil, fmt.Errorf("offset %#x and iova %#x differ within a page: %w", r.Offset, r.Iova, syscall.EINVAL)
	}
	if r.Access&^dmabufAccess != 0 && !k.d.breaks(rule.DmabufAccessIsLimited) {
		return nil, fmt.Errorf("access %#x: of a DMA-BUF only local write, remote access and relaxed ordering can be had: %w", uint32(r.Access), syscall.EINVAL)
	}
	if err := checkMRAccess(r.Access); err != nil {
		return nil, err
	}
	m := &mr{u: u, pd: p, iova: r.Iova, access: r.Access}
	if err := m.registerDmabuf(k, r); err != nil {
		return nil, err
	}
	p.refs++
	u.dev.res.MR++
	return m, nil
}

// registerDmabuf is mlx5_ib_reg_user_mr_dmabuf.
func (m *mr) registerDmabuf(k *call, r *DmabufMRReq) error {
	d := k.d
	k.work += d.p.RegMRBase
	if err := d.checkDmabufFlags(r); err != nil {
		return err
	}
	if _, err := k.umrs(); err != nil {
		return err
	}
	if d.caps.odp.support {
		if err := k.pagingEQ(); err != nil {
			return err
		}
	}
	if r.Length >= maxUMRLength && !d.caps.odp.extended {
		return fmt.Errorf("%d B, of which a UMR of the device loads less than %d: %w", r.Length, uint64(maxUMRLength), syscall.EINVAL)
	}
	o, err := m.attachDmabuf(r)
	if err != nil {
		return err
	}
	m.odp = o
	if err := m.loadDmabuf(k); err != nil {
		o.release()
		m.odp = nil
		return err
	}
	return nil
}

// checkDmabufFlags judges the driver's flags. EINVAL: an unknown one, or the data-direct path,
// which no device here has. EOPNOTSUPP: that path and an iova that begins no page. EPROTONOSUPPORT:
// a kernel that does not know the attribute.
func (d *Device) checkDmabufFlags(r *DmabufMRReq) error {
	switch {
	case !r.Driver:
		return nil
	case d.p.Generation == Static:
		return fmt.Errorf("the driver has no flags of DMA-BUFs: %w", syscall.EPROTONOSUPPORT)
	case r.Flags&^verbs.RegDmabufDataDirect != 0:
		return fmt.Errorf("flags %#x of a DMA-BUF: %w", r.Flags, syscall.EINVAL)
	case r.Flags == 0 || d.breaks(rule.DataDirectIsAsked):
		return nil
	case r.Iova&pageMask != 0:
		return fmt.Errorf("a data-direct region begins a page, not at %#x: %w", r.Iova, syscall.EOPNOTSUPP)
	}
	return fmt.Errorf("the device has no data-direct function: %w", syscall.EINVAL)
}

// attachDmabuf is ib_umem_dmabuf_get.
func (m *mr) attachDmabuf(r *DmabufMRReq) (*odpMem, error) {
	end := r.Offset + r.Length
	if end < r.Offset {
		return nil, fmt.Errorf("[%#x, +%#x) wraps: %w", r.Offset, r.Length, syscall.EINVAL)
	}
	b, err := r.File()
	if err != nil {
		return nil, err
	}
	d := m.u.dev
	switch size := b.exp.Size(); {
	case exporterOf(b) != nil && exporterOf(b) != d:
		return nil, fmt.Errorf("memory of another adapter is not modelled: %w", syscall.EOPNOTSUPP)
	case end > size && (r.Length > size || !d.breaks(rule.DmabufEndsWhereItEnds)):
		return nil, fmt.Errorf("[%#x, +%#x) of a DMA-BUF of %d B: %w", r.Offset, r.Length, size, syscall.EINVAL)
	case r.Length == 0:
		return nil, fmt.Errorf("length 0: %w", syscall.EINVAL)
	}
	o := &odpMem{proc: m.u.proc, addr: r.Offset, length: r.Length, shift: mem.PageShift, writable: r.Access&writable != 0,
		start: r.Offset &^ pageMask, end: (end + pageMask) &^ pageMask}
	if err := o.proc.RAM.roomForRegions(o.keeps()); err != nil {
		return nil, err
	}
	o.pages = newPageList(o.count())
	o.note(o.keeps())
	if o.buf, err = b.attach(m.moved, d.p.PinDmabuf); err != nil {
		o.release()
		return nil, err
	}
	if d.breaks(rule.DmabufBeginsAtItsOffset) {
		o.end -= o.start
		o.start = 0
	}
	o.buf.leaks = d.breaks(rule.DmabufIsGivenBack)
	return o, nil
}

// loadDmabuf gives a new region a key with all its pages (mlx5_ib_init_dmabuf_mr).
func (m *mr) loadDmabuf(k *call) error {
	found, err := m.odp.findExported()
	if err != nil {
		return err
	}
	return m.loadPages(k, found, mem.PageSize, func() {}) // pages of this size, so that any list of them fits after a move
}

// findExported has the exporter map the memory, and gives its pages.
func (o *odpMem) findExported() ([]foundPage, error) {
	if err := o.buf.mapPages(); err != nil {
		return nil, err
	}
	rights := uint64(prm.MTTRead)
	if o.writable {
		rights |= prm.MTTWrite
	}
	found, first := make([]foundPage, o.count()), o.start/mem.PageSize
	for i := range found {
		found[i] = foundPage{uint64(i), uint64(o.buf.pages.at(first+uint64(i))) | rights}
	}
	return found, nil
}

// moved is mlx5_ib_dmabuf_invalidate_cb: the device forgets all pages before they move.
func (m *mr) moved() {
	o := m.odp
	if o == nil {
		return
	}
	o.seq++
	if o.mr != nil && o.pages.present > 0 {
		d := m.u.dev
		k := &call{d: d}
		n := o.count()
		if !d.breaks(rule.MovedDmabufIsForgotten) {
			_ = k.zapPages(m, 0, n) // what the driver does not look at either
		}
		d.link.Drain() // what the device has under way there reaches the pages as they are
		for i, ok := o.pages.next(0, n); ok; i, ok = o.pages.next(i+1, n) {
			o.pages.clear(i)
		}
		o.note(o.keeps())
		o.proc.owe(k, d.p.Invalidate+sim.Time(n)*d.p.InvalidatePage)
	}
	o.buf.unmapPages()
}
