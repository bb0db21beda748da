package kernel

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Inode identifies the file on the host that names an XRC domain.
type Inode struct{ Dev, Ino uint64 }

// XRCDReq holds the arguments of OPEN_XRCD. The caller resolves the file, and returns EBADF itself
// for a descriptor that is not open.
type XRCDReq struct {
	HasFile bool // else the descriptor was -1, and nothing below counts
	File    Inode
	OFlags  int // O_CREAT, O_EXCL
	// Release is called when the domain ends, until when the kernel holds the inode (igrab). It may
	// be nil.
	Release func()
}

// xrcTable is what the driver has of XRC beside the objects of programs.
type xrcTable struct {
	byFile map[Inode]*xrcDomain // the tree of an ib_uverbs_device
	spare  *spareXRC            // nil until something names it
	lost   int                  // domains without a name whose users died while a target QP lived in them
}

// xrcDomain is ib_xrcd.
type xrcDomain struct {
	num     uint32
	refs    int // usecnt: openers of a domain with a file, target QPs, SRQs
	openers int // handles
	hasFile bool
	file    Inode
	release func()
	targets map[uint32]*target
}

// xrcd is an XRC domain as one context has it open (ib_uxrcd_object).
type xrcd struct {
	u      *Ucontext
	domain *xrcDomain
	refs   int // objects that were made with the handle
}

// hold and drop count an object that lies in the domain and was made with the handle.
func (x *xrcd) hold() {
	x.refs++
	x.domain.refs++
}

func (x *xrcd) drop() {
	x.refs--
	x.domain.refs--
}

// hasXRC says EOPNOTSUPP on a device without it.
func (d *Device) hasXRC() error {
	if !d.caps.xrc {
		return fmt.Errorf("the device has no XRC: %w", syscall.EOPNOTSUPP)
	}
	return nil
}

// OpenXRCD is OPEN_XRCD (ib_uverbs_open_xrcd). EAGAIN: the file names no domain, and O_CREAT is not
// given. EINVAL: it does, and O_EXCL is given. EOPNOTSUPP: the device has no XRC. Without a file
// the flags are not looked at.
func (u *Ucontext) OpenXRCD(c Caller, r XRCDReq) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		x, err := u.openXRCD(k, &r)
		if err != nil {
			return fmt.Errorf("open XRC domain: %w", err)
		}
		h = u.objs.add(x)
		return nil
	})
	return h, err
}

func (u *Ucontext) openXRCD(k *call, r *XRCDReq) (*xrcd, error) {
	d := u.dev
	if err := d.hasXRC(); err != nil {
		return nil, err
	}
	var domain *xrcDomain
	if r.HasFile {
		domain = d.xrc.byFile[r.File]
		if d.breaks(rule.DomainOfAFileIsShared) {
			domain = nil
		}
		switch {
		case domain == nil && r.OFlags&syscall.O_CREAT == 0 && !d.breaks(rule.DomainIsMadeOnRequest):
			return nil, fmt.Errorf("the file names no domain, and O_CREAT is not given: %w", syscall.EAGAIN)
		case domain != nil && r.OFlags&syscall.O_EXCL != 0 && !d.breaks(rule.ExclusiveOpenIsExclusive):
			return nil, fmt.Errorf("the file names a domain, and O_EXCL is given: %w", syscall.EINVAL)
		}
	}
	if domain == nil {
		out, err := k.simple(prm.OpAllocXRCD, 0)
		if err != nil {
			return nil, err
		}
		domain = &xrcDomain{num: prm.AllocXRCDOut(out).XRCD(), hasFile: r.HasFile, file: r.File, release: r.Release, targets: map[uint32]*target{}}
		if r.HasFile {
			if d.xrc.byFile == nil {
				d.xrc.byFile = map[Inode]*xrcDomain{}
			}
			d.xrc.byFile[r.File] = domain
		}
		d.res.XRCD++
	} else if r.Release != nil {
		r.Release() // the domain holds the inode already
	}
	if r.HasFile {
		domain.refs++
	}
	domain.openers++
	return &xrcd{u: u, domain: domain}, nil
}

// CloseXRCD is CLOSE_XRCD. EBUSY: an object that was created with the handle is still alive.
func (u *Ucontext) CloseXRCD(c Caller, h Handle) error {
	return destroyByHandle[*xrcd](u, c, h, "XRC domain")
}

// destroy is uverbs_free_xrcd and ib_uverbs_dealloc_xrcd: the domain ends with its last opener,
// unless a target QP without handles pins it.
func (x *xrcd) destroy(k *call) error {
	if x.refs > 0 && !k.d.breaks(rule.DomainHandleInUseIsBusy) {
		return fmt.Errorf("%d objects were made with it: %w", x.refs, syscall.EBUSY)
	}
	g := x.domain
	g.openers--
	if g.hasFile {
		g.refs--
	}
	if k.d.p.XRC == XRCProposal && g.openers == 0 {
		if err := k.endTargets(g); err != nil {
			return err
		}
	}
	switch {
	case g.refs == 0:
		return k.endDomain(g)
	case g.hasFile:
		return nil
	case !k.closes:
		g.openers++
		return fmt.Errorf("%d objects are in it: %w", g.refs, syscall.EBUSY)
	}
	k.d.xrc.lost++
	return nil
}

// endTargets ends the QPs of a domain that has lost its last opener, by their numbers.
func (k *call) endTargets(g *xrcDomain) error {
	for _, qpn := range slices.Sorted(maps.Keys(g.targets)) {
		if err := k.endTarget(g.targets[qpn]); err != nil {
			return err
		}
	}
	return nil
}

// endDomain takes a domain from the device.
func (k *call) endDomain(g *xrcDomain) error {
	in := prm.NewIn(prm.OpDeallocXRCD, 0)
	prm.DeallocXRCDIn(in).SetXRCD(g.num)
	if err := k.destroy(in); err != nil {
		return err
	}
	if g.hasFile {
		delete(k.d.xrc.byFile, g.file)
	}
	if g.release != nil {
		g.release()
	}
	k.d.res.XRCD--
	return nil
}

// spareXRC is the CQ and the SRQ that XRC QPs name where they have none of their own (c0 and s0 of
// mlx5_ib_resources, which the driver makes when it first needs them).
type spareXRC struct{ cqn, srqn uint32 }

const (
	spareEntries = 2 // of both rings: one more than the driver asks for
	spareStride  = 32
)

// spareXRC makes the spare objects if there are none yet. They lie in one page: the CQ, the SRQ's
// WQEs, then the doorbell records.
func (k *call) spareXRC() (*spareXRC, error) {
	d := k.d
	if d.xrc.spare != nil {
		return d.xrc.spare, nil
	}
	const srqAt, recordAt = prm.PageSize, 2 * prm.PageSize
	pa, err := d.mem.Alloc(3*prm.PageSize, prm.PageSize)
	if err != nil {
		return nil, err
	}
	var e [prm.CQE64Size]byte
	e[prm.CQE64Size-1] = prm.CQEOpOwnInit
	d.mem.Fill(pa, spareEntries*prm.CQE64Size, e[:])
	d.mem.Fill(pa+recordAt, prm.PageSize, make([]byte, prm.DBRecSize))
	s := &spareXRC{}
	if s.cqn, err = k.spareCQ(pa, uint64(pa+recordAt)); err != nil {
		return nil, err
	}
	if s.srqn, err = k.spareSRQ(s.cqn, pa+srqAt, uint64(pa+recordAt)+prm.DBRecSize); err != nil {
		return nil, err
	}
	d.xrc.spare = s
	return s, nil
}

func (k *call) spareCQ(ring mem.PA, record uint64) (uint32, error) {
	in, out := prm.NewIn(prm.OpCreateCQ, 8), prm.NewOut(prm.OpCreateCQ, 0)
	m := prm.CreateCQIn(in)
	c := m.CQC()
	c.SetLogCQSize(uint32(bits.TrailingZeros32(spareEntries)))
	c.SetUARPage(k.d.uar)
	c.SetEQN(uint32(k.d.eqs[1].eqn))
	c.SetDBRAddr(record)
	fillContiguous(m.PAS(), ring, 1)
	err := k.exec(in, out)
	return prm.CreateCQOut(out).CQN(), err
}

func (k *call) spareSRQ(cqn uint32, ring mem.PA, record uint64) (uint32, error) {
	in, out := prm.NewIn(prm.OpCreateXRCSRQ, 8), prm.NewOut(prm.OpCreateXRCSRQ, 0)
	m := prm.CreateXRCSRQIn(in)
	c := m.Context()
	c.SetState(prm.XRCSRQGood)
	c.SetPD(k.d.pdn)
	c.SetXRCD(k.d.xrcd[0])
	c.SetCQN(cqn)
	c.SetDBRAddr(record)
	c.SetLogSize(uint32(bits.TrailingZeros32(spareEntries)))
	c.SetLogRQStride(uint32(bits.TrailingZeros32(spareStride)) - 4)
	c.SetUserIndex(noUIDX)
	fillContiguous(m.PAS(), ring, 1)
	err := k.exec(in, out)
	return prm.CreateXRCSRQOut(out).SRQN(), err
}
