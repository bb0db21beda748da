package kernel

import (
	"fmt"
	"math/bits"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Lists of translations that one UMR takes: a multiple of umrAlign bytes, of which the field for
// their length can say so many (MLX5_MAX_UMR_CHUNK).
const (
	maxList    = 1<<20 - umrAlign
	mttsOfList = maxList / 8
	ksmsOfList = maxList / prm.KLMSize
	mttAlign   = umrAlign / 8
	ksmAlign   = umrAlign / prm.KLMSize
)

// alwaysWritten is up to how many translations a new key gets all of them. Of a larger one the
// driver model leaves out the lists that hold nothing and change nothing.
const alwaysWritten = 1 << 18

// writePages has the device take translations [i, i+n) of a region as its list of pages has them
// (mlx5r_umr_update_xlt).
func (k *call) writePages(m *mr, i, n uint64) error {
	n += i % mttAlign
	i -= i % mttAlign
	n = min((n+mttAlign-1)&^(mttAlign-1), m.odp.count()-i)
	for at := uint64(0); at < n; at += mttsOfList {
		if err := k.postList(m, prm.UMRCheckNotFree, 0, 8*(i+at), m.odp.list(i+at, min(n-at, mttsOfList))); err != nil {
			return err
		}
	}
	return nil
}

// zapPages has the device forget translations [i, i+n), and with them those that lie in one piece
// of umrAlign bytes with the first or the last.
func (k *call) zapPages(m *mr, i, n uint64) error {
	n += i % mttAlign
	i -= i % mttAlign
	n = min((n+mttAlign-1)&^(mttAlign-1), m.odp.count()-i)
	for at := uint64(0); at < n; at += mttsOfList {
		if err := k.postList(m, prm.UMRCheckNotFree, 0, 8*(i+at), make(prm.MTT, listSize(8*min(n-at, mttsOfList)))); err != nil {
			return err
		}
	}
	return nil
}

// enable makes a free key the region's, with all its translations. clean: the key has none from an
// earlier use.
func (k *call) enable(m *mr, clean bool) error {
	n := m.odp.count()
	last := (n - 1) / mttsOfList * mttsOfList
	for at := uint64(0); at < last; at += mttsOfList {
		if _, any := m.odp.pages.next(at, at+mttsOfList); !any && clean && n > alwaysWritten {
			continue
		}
		if err := k.postList(m, prm.UMRCheckFree, 0, 8*at, m.odp.list(at, mttsOfList)); err != nil {
			return err
		}
	}
	return k.postList(m, prm.UMRCheckFree, k.d.enableMask(), 8*last, m.odp.list(last, n-last))
}

// enableMask is what of a free key becomes the region's.
func (d *Device) enableMask() uint64 {
	return d.rightsMask() | prm.MKeyMaskKey | prm.MKeyMaskFree | prm.MKeyMaskLen | prm.MKeyMaskStartAddr | prm.MKeyMaskPageSize
}

// listSize is n bytes in whole pieces.
func listSize(n uint64) uint64 { return (n + umrAlign - 1) &^ (umrAlign - 1) }

// list are pages [i, i+n) as the device takes them.
func (o *odpMem) list(i, n uint64) prm.MTT {
	l := make(prm.MTT, listSize(8*n))
	for j, ok := o.pages.next(i, i+n); ok; j, ok = o.pages.next(j+1, i+n) {
		e := o.pages.at(j)
		l.Set(int(j-i), e&^(prm.MTTRead|prm.MTTWrite), e&(prm.MTTRead|prm.MTTWrite))
	}
	return l
}

// postList has a UMR write a list from a byte of the key's translations on.
func (k *call) postList(m *mr, flags uint8, mask, offset uint64, list prm.MTT) error {
	k.lists = true
	err := k.post(&umrRequest{key: m.mkey, flags: flags | prm.UMRTranslationOffset, mask: mask, list: list, offset: offset / umrUnit,
		mkc: func(c prm.MKC) {
			m.fillMKC(c, k.d, m.iova, m.access, uint8(m.mkey))
			c.SetLogPageSize(uint32(bits.TrailingZeros64(m.pageSize)))
		}})
	if err != nil {
		return fmt.Errorf("translations by UMR: %w", err)
	}
	return nil
}

// umrUnit is the unit of offsets.
const umrUnit = 16

// settle waits for what was posted, and for at least the given time. What the call does then is at
// a later instant.
func (k *call) settle(least sim.Time) {
	if k.c.P == nil {
		return
	}
	start := k.c.P.Now()
	if k.numUMRs > 0 {
		k.awaitUMRs()
		k.numUMRs = 0
	}
	if took := k.c.P.Now() - start; took < least {
		k.c.P.Sleep(least - took)
	}
}

// updateTime is what a change of n translations takes at least.
func (d *Device) updateTime(n uint64) sim.Time {
	return d.p.PageUpdate + sim.Time(n)*d.p.PageUpdatePage
}

// systemPages is how many pages of the host n pages of the region are.
func (o *odpMem) systemPages(n uint64) uint64 { return n << (o.shift - mem.PageShift) }
