package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// dmExport is device memory as others get it (struct ib_uverbs_dmabuf_file): the pages of BAR 0 in
// which it lies.
type dmExport struct {
	dm  *DM
	buf *DMABuf
	// revoked: the memory was freed.
	revoked bool
}

// ExportDM is DMABUF_ALLOC for device memory (core/uverbs_std_types_dmabuf.c). EOPNOTSUPP: the
// kernel does not have the call.
func (u *Ucontext) ExportDM(c Caller, h Handle) (b *DMABuf, err error) {
	err = u.do(c, func(k *call) error {
		if !k.d.p.DmabufExport {
			return fmt.Errorf("export device memory: the kernel has no such object: %w", syscall.EOPNOTSUPP)
		}
		m, err := lookup[*DM](&u.objs, h, "device memory")
		if err != nil {
			return err
		}
		x := &dmExport{dm: m}
		x.buf = NewDMABuf(x)
		m.exports = append(m.exports, x)
		b = x.buf
		return nil
	})
	return b, err
}

// Name is the exporter's, as the kernel shows it.
func (x *dmExport) Name() string { return "ib_uverbs" }

// Size is that of the pages.
func (x *dmExport) Size() uint64 { return uint64(x.dm.Pages()) * prm.PageSize }

// Map is uverbs_dmabuf_map: ENODEV when the memory was freed.
func (x *dmExport) Map() (Pages, error) {
	if x.revoked && !x.dm.u.dev.breaks(rule.FreedDMIsRevoked) {
		return Pages{}, fmt.Errorf("the device memory was freed: %w", syscall.ENODEV)
	}
	return Pages{Start: pcie.OwnBAR0 + pcie.BusAddress(x.dm.BAR())}, nil
}

// Unmap ends a Map.
func (x *dmExport) Unmap() {}

// Pin is uverbs_dmabuf_pin: the memory can be freed at any time.
func (x *dmExport) Pin() error {
	return fmt.Errorf("device memory can be freed at any time: %w", syscall.EOPNOTSUPP)
}

// Unpin ends a Pin.
func (x *dmExport) Unpin() {}

// Release is the end of the last descriptor and region: freed memory goes back to the device with
// it.
func (x *dmExport) Release() {
	m := x.dm
	m.exports = slices.DeleteFunc(m.exports, func(y *dmExport) bool { return y == x })
	if !m.u.dev.removed {
		_ = m.letGo(&call{d: m.u.dev}) // which no program waits for
	}
}

// revoke takes the memory away from whoever has it (rdma_user_mmap_entry_remove). The pages stay
// with the device until the last descriptor is gone; with the context they go at once, for its
// objects do.
func (m *DM) revoke(k *call) {
	for _, x := range slices.Clone(m.exports) {
		x.revoked = true
		if !k.d.breaks(rule.FreedDMIsRevoked) {
			x.buf.MoveNotify()
		}
	}
	if k.closes {
		m.exports = nil
	}
}

// exporterOf is the device whose memory is behind a DMA-BUF; nil: another driver's.
func exporterOf(b *DMABuf) *Device {
	if x, ok := b.exp.(*dmExport); ok {
		return x.dm.u.dev
	}
	return nil
}
