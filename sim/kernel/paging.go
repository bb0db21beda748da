package kernel

import (
	"math"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// PagingEra is a span of Linux releases with the same results and counters of on-demand paging. It
// is named after the first release.
type PagingEra uint8

// Eras.
const (
	Paging6_2  PagingEra = iota // a device without paging answers EOPNOTSUPP
	Paging6_14                  // counts operations beside pages
	Paging5_16                  // prefetch answers as it still does; a device without paging EINVAL
	Paging5_5                   // ENOENT or EINVAL for most keys that cannot be prefetched; counters of regions
	Paging5_0                   // the first prefetch
)

// refusal is the errno of a registration on a device without paging.
func (e PagingEra) refusal() syscall.Errno {
	if e == Paging6_2 || e == Paging6_14 {
		return syscall.EOPNOTSUPP
	}
	return syscall.EINVAL
}

// pagingCaps are what the device can do with absent pages (internal_fill_odp_caps).
type pagingCaps struct {
	support  bool
	implicit bool // regions of the whole address space
	memory   bool // faults name memory, and not queues
	extended bool // a UMR begins at any translation of a region
	indirect int  // windows in windows

	rc, ud, xrc uint32 // verbs.ODPSend and so on
}

// choosePaging is handle_hca_cap_odp: where the device can report faults by memory and names pages
// around them, it shall; else by queue, with everything that it has for SRQs and XRC.
func choosePaging(cur, most []byte) bool {
	c, m := prm.ODPCap(cur), prm.ODPCap(most)
	if m.MemPageFault() && m.Memory().PagePrefetch() {
		c.SetMemPageFault(true)
		return true
	}
	from, to := m.Transport(), c.Transport()
	const all = prm.ODPSend | prm.ODPReceive | prm.ODPWrite | prm.ODPRead | prm.ODPAtomic | prm.ODPSRQReceive
	changed := false
	for _, f := range [...]struct {
		bits uint32
		get  func(prm.ODPSchemeCap) uint32
		set  func(prm.ODPSchemeCap, uint32)
	}{
		{prm.ODPSRQReceive, prm.ODPSchemeCap.UD, prm.ODPSchemeCap.SetUD}, {prm.ODPSRQReceive, prm.ODPSchemeCap.RC, prm.ODPSchemeCap.SetRC},
		{all, prm.ODPSchemeCap.XRC, prm.ODPSchemeCap.SetXRC}, {all, prm.ODPSchemeCap.DC, prm.ODPSchemeCap.SetDC},
	} {
		if more := f.get(from) & f.bits &^ f.get(to); more != 0 {
			f.set(to, f.get(to)|more)
			changed = true
		}
	}
	return changed
}

// paging reads what the device does with absent pages. Translations are loaded by UMR, or there is
// no paging.
func (c *caps) paging(k *call, g prm.HCACap) error {
	if !g.PG() || g.UMRModifyEntitySizeDisabled() || k.d.p.MKeyCache == NoKeyAgain {
		return nil
	}
	page, err := k.queryCap(prm.CapODP, prm.CapModeCurrent)
	if err != nil {
		return err
	}
	p := prm.ODPCap(page)
	scheme := p.Transport()
	o := &c.odp
	if o.memory = p.MemPageFault(); o.memory {
		scheme = p.Memory()
	}
	o.support, o.extended, o.indirect = true, g.UMRExtendedTranslationOffset(), int(g.MaxIndirection())
	o.implicit = g.FixedBufferSize() && g.NullMKey() && o.extended && !g.UMRIndirectMKeyDisabled()
	o.rc = pagingOps(scheme.RC())
	o.xrc = pagingOps(scheme.XRC())
	o.ud = pagingOps(scheme.UD()) & (verbs.ODPSend | verbs.ODPSRQRecv)
	return nil
}

// pagingOps are the capabilities of a transport as programs see them.
func pagingOps(device uint32) (a uint32) {
	for _, x := range [...]struct{ device, program uint32 }{
		{prm.ODPSend, verbs.ODPSend}, {prm.ODPReceive, verbs.ODPRecv}, {prm.ODPWrite, verbs.ODPWrite},
		{prm.ODPRead, verbs.ODPRead}, {prm.ODPAtomic, verbs.ODPAtomic}, {prm.ODPSRQReceive, verbs.ODPSRQRecv},
	} {
		if device&x.device != 0 {
			a |= x.program
		}
	}
	return a
}

// general is ibv_odp_caps.general_caps.
func (o *pagingCaps) general() uint64 {
	if o.implicit {
		return verbs.ODPSupport | verbs.ODPSupportImplicit
	}
	return verbs.ODPSupport
}

// maxLength is how long a region may be: a UMR must be able to load all its translations
// (mlx5r_umr_can_load_pas).
func (o *pagingCaps) maxLength() uint64 {
	if o.extended {
		return math.MaxUint64
	}
	return 1<<16*mem.PageSize - 1
}
