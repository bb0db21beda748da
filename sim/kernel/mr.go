package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

type mr struct {
	u   *Ucontext
	pd  *pd
	mem *umem     // nil of device memory
	dm  deviceMem // or nil
	// dmLength is how many bytes of dm the region covers.
	dmLength uint64
	mkey     uint32
	entry    *keyEntry // of the cache, from which the key is
	cached   bool      // the key goes into the cache when the region is deregistered
	shape    keyShape  // of a key that is to be cached and has no entry
	pageSize uint64    // of the translation
	iova     uint64
	access   verbs.AccessFlags
	odp      *odpMem // of on-demand paging; nil: the memory is pinned
	paging   odpRegion
}

// RegMR is ibv_reg_mr_iova: it pins the memory and creates an mkey whose MTTs have the
// largest page size that the memory allows. The keys are equal on mlx5.
//
// EINVAL: address and iova differ within a page, remote write or atomic without
// local write, an undefined access bit, length 0, a range that wraps.
// EOPNOTSUPP: on-demand paging or flush access that the device does not offer. ENOMEM:
// over the memlock limit; EPERM: a limit of 0. EFAULT: memory that is not mapped, or
// not writable where the access needs it.
func (u *Ucontext) RegMR(c Caller, h Handle, addr, length, iova uint64, access verbs.AccessFlags) (mh Handle, lkey, rkey uint32, err error) {
	err = u.do(c, func(k *call) error {
		m, err := u.regMR(k, h, addr, length, iova, access)
		if err != nil {
			return fmt.Errorf("register memory: %w", err)
		}
		mh, lkey, rkey = u.objs.add(m), m.mkey, m.mkey
		return nil
	})
	return mh, lkey, rkey, err
}

func (u *Ucontext) regMR(k *call, h Handle, addr, length, iova uint64, access verbs.AccessFlags) (*mr, error) {
	if addr&pageMask != iova&pageMask {
		return nil, fmt.Errorf("address %#x and iova %#x differ within a page: %w", addr, iova, syscall.EINVAL)
	}
	if err := checkMRAccess(access); err != nil && !k.d.breaks(rule.RemoteWriteNeedsLocalWrite) {
		return nil, err
	}
	p, err := lookup[*pd](&u.objs, h, "PD")
	if err != nil {
		return nil, err
	}
	m := &mr{u: u, pd: p, iova: iova, access: access}
	if access&verbs.AccessOnDemand != 0 {
		err = m.registerPaged(k, addr, length)
	} else {
		err = m.registerPinned(k, addr, length)
	}
	if err != nil {
		return nil, err
	}
	p.refs++
	u.dev.res.MR++
	return m, nil
}

// registerPinned is the rest of mlx5_ib_reg_user_mr for memory that stays where it is.
func (m *mr) registerPinned(k *call, addr, length uint64) error {
	k.work += k.d.p.RegMRBase
	pinned, err := k.pin(m.u.proc, addr, length, m.access)
	if err != nil {
		return err
	}
	m.mem = pinned
	if err := m.makeMKey(k, m.iova, m.access); err != nil {
		k.unpin(pinned)
		return err
	}
	return nil
}

// knownAccess is IB_ACCESS_SUPPORTED: every defined bit and the optional range, whose
// undefined bits are ignored.
const knownAccess = verbs.AccessFlushPersistent<<1 - 1 | verbs.AccessOptionalRange

// checkMRAccess is ib_check_mr_access for a device without flush.
func checkMRAccess(a verbs.AccessFlags) error {
	if a&(verbs.AccessRemoteAtomic|verbs.AccessRemoteWrite) != 0 && a&verbs.AccessLocalWrite == 0 {
		return fmt.Errorf("access %#x: remote write or atomic needs local write: %w", uint32(a), syscall.EINVAL)
	}
	if a&^knownAccess != 0 {
		return fmt.Errorf("access %#x: unknown bits: %w", uint32(a), syscall.EINVAL)
	}
	if a&(verbs.AccessFlushGlobal|verbs.AccessFlushPersistent) != 0 {
		return fmt.Errorf("access %#x: the device has no flush: %w", uint32(a), syscall.EOPNOTSUPP)
	}
	return nil
}

// makeMKey is create_real_mr: a key from the cache, or one of the driver's own making, is loaded by
// UMR, and one for which the device's UMR cannot is created with its translations.
func (m *mr) makeMKey(k *call, iova uint64, access verbs.AccessFlags) error {
	d := k.d
	size := m.mem.bestPageSize(mkeyPageSizes, iova)
	if size == 0 {
		return fmt.Errorf("no page size fits: %w", syscall.EINVAL)
	}
	m.entry, m.cached = nil, false
	if d.p.MKeyCache == NoKeyAgain || m.mem.length >= maxUMRLength {
		return m.createMKey(k, size, iova, access)
	}
	n := m.mem.numBlocks(size)
	_, err := k.umrs()
	if err != nil {
		return err
	}
	if m.mkey, m.entry, err = k.takeKey(n, access); err != nil {
		return err
	}
	m.shape, _ = d.cachedShape(n, access)
	if err := m.loadKey(k, size); err != nil {
		m.giveBack(k)
		return err
	}
	m.cached = true
	return nil
}

// maxUMRLength is from how many bytes on a device whose UMR has no extended translation offset
// cannot load a region (mlx5r_umr_can_load_pas: MLX5_MAX_UMR_PAGES pages).
const maxUMRLength = 1 << 16 * mem.PageSize

// giveBack destroys a key that got no region.
func (m *mr) giveBack(k *call) {
	in := prm.NewIn(prm.OpDestroyMKey, 0)
	prm.DestroyMKeyIn(in).SetMKeyIndex(m.mkey >> 8)
	k.mustDestroy(in)
}

// fillEntries are the translations of a region in pages of a size.
func (m *mr) fillEntries(list prm.MTT, d *Device, size uint64) {
	var rights uint64
	if d.caps.pageAccess {
		rights = prm.MTTRead | prm.MTTWrite
	}
	for i := range m.mem.numBlocks(size) {
		list.Set(i, m.mem.block(i, size), rights)
	}
}

// createMKey is reg_create with a list of translations.
func (m *mr) createMKey(k *call, size, iova uint64, access verbs.AccessFlags) error {
	d := k.d
	n := m.mem.numBlocks(size)
	octs := (n + 1) / 2 // two translations in 16 bytes
	in, out := prm.NewIn(prm.OpCreateMKey, 16*octs), prm.NewOut(prm.OpCreateMKey, 0)
	req := prm.CreateMKeyIn(in)
	req.SetPGAccess(d.caps.pageAccess)
	req.SetTranslationsOctwordActualSize(uint32(octs))
	m.fillEntries(prm.MTT(req.Entries()), d, size)
	d.mkeys++
	m.fillMKC(req.MKC(), d, iova, access, d.mkeys)
	req.MKC().SetTranslationsOctwordSize(uint32(octs))
	req.MKC().SetLogPageSize(uint32(bits.TrailingZeros64(size)))
	if err := k.exec(in, out); err != nil {
		return err
	}
	m.mkey, m.pageSize = prm.MKeyOf(prm.CreateMKeyOut(out).MKeyIndex(), uint32(d.mkeys)), size
	return nil
}

// MRTranslation returns the page size with which the device translates a region, in bytes, and the
// number of entries; zeros for device memory and for an unknown region.
func (u *Ucontext) MRTranslation(h Handle) (pageSize uint64, entries int) {
	m, err := lookup[*mr](&u.objs, h, "MR")
	switch {
	case err != nil || m.dm != nil:
		return 0, 0
	case m.odp != nil:
		return m.pageSize, m.numTranslations()
	}
	return m.pageSize, m.mem.numBlocks(m.pageSize)
}

// fillRights is mlx5r_umr_set_access_flags with the PD.
func (m *mr) fillRights(c prm.MKC, d *Device, a verbs.AccessFlags) {
	c.SetA(a&verbs.AccessRemoteAtomic != 0)
	c.SetRW(a&verbs.AccessRemoteWrite != 0)
	c.SetRR(a&verbs.AccessRemoteRead != 0 || d.breaks(rule.RemoteReadIsAskedFor))
	c.SetLW(a&verbs.AccessLocalWrite != 0)
	c.SetLR(true)
	c.SetRelaxedOrderingWrite(a&verbs.AccessRelaxedOrdering != 0 && d.caps.roWrite)
	c.SetRelaxedOrderingRead(a&verbs.AccessRelaxedOrdering != 0 && d.caps.roRead)
	c.SetPD(m.pd.pdn)
	c.SetQPN(prm.MKeyQPNAny)
}

func (m *mr) fillMKC(c prm.MKC, d *Device, iova uint64, a verbs.AccessFlags, variant uint8) {
	m.fillRights(c, d, a)
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetUMREn(true)
	c.SetMKey70(uint32(variant))
	c.SetStartAddr(iova)
	if m.odp != nil {
		m.fillPaged(c)
		return
	}
	c.SetLen(m.mem.length)
}

// DeregMR is DEREG_MR. When it returns no access by the key reaches the memory.
func (u *Ucontext) DeregMR(c Caller, h Handle) error { return destroyByHandle[*mr](u, c, h, "MR") }

func (m *mr) length() uint64 {
	switch {
	case m.dm != nil:
		return m.dmLength
	case m.odp != nil:
		return m.odp.length
	}
	return m.mem.length
}

// destroyMKey gives the key back, to the cache or to the device (mlx5r_handle_mkey_cleanup).
// EINVAL while memory windows are bound to it.
func (m *mr) destroyMKey(k *call) error {
	// Where destroyed keys are not gone, the driver destroys them, so that it shows.
	if m.cached && !k.d.breaks(rule.DestroyedKeyIsGone) && m.revokeKey(k) == nil {
		k.giveKey(m.mkey, m.entry, m.shape)
		return nil
	}
	in := prm.NewIn(prm.OpDestroyMKey, 0)
	prm.DestroyMKeyIn(in).SetMKeyIndex(m.mkey >> 8)
	return k.destroy(in)
}

func (m *mr) destroy(k *call) error {
	if err := m.destroyMKey(k); err != nil {
		return err
	}
	k.unpin(m.mem)
	m.unpage(k)
	m.pd.refs--
	if m.dm != nil {
		m.dm.refer(-1)
	}
	m.u.dev.res.MR--
	return nil
}
