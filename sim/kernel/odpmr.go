package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// odpRegion is what a region of on-demand paging has beside its memory.
type odpRegion struct {
	stats    PagingStats
	holds    holders
	parent   *mr            // of a child of an implicit region
	slot     uint64         // its place there
	children map[uint64]*mr // of an implicit region, by place
	dying    []*mr          // of one: have left their places, and are not destroyed yet
	nullKey  uint32         // where its empty places lead; an own key where faults name memory
}

// registerPaged is create_user_odp_mr. EOPNOTSUPP or, before 6.2, EINVAL: the device has no paging.
// EINVAL: more than a UMR loads, no pages, a page that is smaller than access asks for; a region of
// everything that the device cannot have, or that is not at address 0. EOVERFLOW, ENOMEM: as
// newODPMem.
func (m *mr) registerPaged(k *call, addr, length uint64) error {
	d := k.d
	if !d.caps.odp.support {
		return fmt.Errorf("the device has no on-demand paging: %w", d.p.Paging.refusal())
	}
	if !m.u.proc.Space.HasPageTables() {
		return fmt.Errorf("on-demand paging in a process whose pages the kernel cannot see: %w", d.p.Paging.refusal())
	}
	k.work += d.p.RegMRBase
	if _, err := k.umrs(); err != nil {
		return err
	}
	if err := k.pagingEQ(); err != nil {
		return err
	}
	if addr == 0 && length == wholeSpace {
		return m.registerImplicit(k)
	}
	if length > d.caps.odp.maxLength() {
		return fmt.Errorf("%d B, of which a UMR of the device loads %d: %w", length, d.caps.odp.maxLength(), syscall.EINVAL)
	}
	o, err := newODPMem(m.u.proc, addr, length, m.access)
	if err != nil {
		return err
	}
	m.odp = o
	if err := m.snapshot(k); err != nil {
		o.release()
		m.odp = nil
		return err
	}
	d.count.Paging.Regions++
	d.count.Paging.RegionPages += o.systemPages(o.count())
	return nil
}

// snapshot gives a new region a key with the pages that are there (mlx5_ib_init_odp_mr).
func (m *mr) snapshot(k *call) error {
	o := m.odp
	how := pagesSnapshot
	if k.d.breaks(rule.RegistrationTakesWhatIsThere) {
		how = 0
	}
	found, err := o.find(o.start, o.end-o.start, how)
	if err != nil {
		return err
	}
	return m.loadPages(k, found, 1<<o.shift, func() { o.unwatch = o.proc.Space.Notify(mem.VA(o.start), o.end-o.start, m.invalidate) })
}

// loadPages gives a new region a key with the pages that were found. watch is called before the
// device may use the key.
func (m *mr) loadPages(k *call, found []foundPage, pageSize uint64, watch func()) error {
	o := m.odp
	if err := m.takePagedKey(k, m.numTranslations()); err != nil {
		return err
	}
	for _, f := range found {
		o.pages.set(f.index, f.entry)
	}
	o.note(o.keeps())
	m.pageSize = pageSize
	watch()
	o.mr = m
	if err := k.enable(m, m.paging.fresh(k)); err != nil {
		m.giveBack(k)
		return err
	}
	m.cached = true
	k.d.odp.keys[m.mkey>>8] = &odpKey{kind: keyOfRegion, key: m.mkey, mr: m}
	k.work += sim.Time(len(found)) * k.d.p.PageFaultPage
	return nil
}

// takePagedKey takes a key with room for n translations from the cache, or makes one.
func (m *mr) takePagedKey(k *call, n int) (err error) {
	k.d.keys.newest = 0
	if m.mkey, m.entry, err = k.takeKey(n, m.access); err == nil {
		m.shape, _ = k.d.cachedShape(n, m.access)
	}
	return err
}

// fresh says whether the key that was just taken has never had translations.
func (*odpRegion) fresh(k *call) bool { return k.d.keys.newest != 0 }

// numTranslations is how many the key has room for (ib_umem_num_dma_blocks).
func (m *mr) numTranslations() int {
	if m.odp.implicit {
		return implicitSlots
	}
	size := uint64(1) << m.odp.shift
	return int(((m.iova+m.odp.length+size-1)&^(size-1) - m.iova&^(size-1)) / size)
}

// fillPaged is the range of a key of on-demand paging: everything, where the region has no length.
func (m *mr) fillPaged(c prm.MKC) {
	if m.odp.implicit {
		c.SetAccessMode(prm.MKeyModeKSM)
	}
	if m.odp.implicit || m.paging.parent != nil || m.odp.length == 0 {
		c.SetLength64(true)
		return
	}
	c.SetLen(m.odp.length)
}

// unpage gives back what only a region of on-demand paging has, when its key is gone: from now on
// no fault finds it.
func (m *mr) unpage(k *call) {
	if m.odp == nil {
		return
	}
	m.forget(k)
	if m.paging.parent == nil && m.odp.buf == nil {
		k.d.count.Paging.Regions--
		k.d.count.Paging.RegionPages -= m.odp.systemPages(m.odp.pagesOfRegion())
	}
	m.odp.release()
	m.freeImplicit(k)
	k.leaveTo(&m.paging.holds)
}

// forget takes the region's key out of the table of faults.
func (m *mr) forget(k *call) {
	if x := k.d.odp.keys[m.mkey>>8]; x != nil && x.mr == m {
		delete(k.d.odp.keys, m.mkey>>8)
	}
	m.odp.mr = nil
}

// pagesOfRegion is count, and 0 of an implicit region.
func (o *odpMem) pagesOfRegion() uint64 {
	if o.implicit {
		return 0
	}
	return o.count()
}

// odpKeyKind is what a key of the table of faults belongs to.
type odpKeyKind uint8

const (
	keyOfRegion odpKeyKind = iota
	keyOfWindow
	keyOfChild // of an implicit region, where faults name memory
	keyOfNull  // the private null key of one
)

// odpKey is a key that faults may name (struct mlx5_ib_mkey in odp_mkeys).
type odpKey struct {
	kind    odpKeyKind
	key     uint32 // as the kernel knows it
	mr      *mr
	entries int // of a window
}

// odpTable is what the driver has for on-demand paging.
type odpTable struct {
	keys  map[uint32]*odpKey // by index
	eq    *eq                // of page faults; nil until the first region
	full  bool               // events wait there until a handler is free
	busy  int                // events that handlers have
	work  workPool           // of handlers
	later workPool           // of prefetches and of the removal of children (system_unbound_wq)
}
