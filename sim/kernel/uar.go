package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
)

// Page offsets of objects that are mapped by an offset which the kernel hands out: commands 9 to
// 255, with arguments below 256 (MLX5_IB_MMAP_OFFSET_START and _END in
// drivers/infiniband/hw/mlx5/mlx5_ib.h).
const (
	mmapFirstEntry = 9 << 8
	mmapEndEntry   = 1 << 16
)

// mmapPages are the page offsets of a context's objects. The lowest free one is taken, as by
// rdma_user_mmap_entry_insert_range.
type mmapPages struct {
	used uint64   // so many from mmapFirstEntry on are taken or free
	free []uint64 // of them, rising
}

func (m *mmapPages) take() (uint64, error) {
	if len(m.free) > 0 {
		n := m.free[0]
		m.free = slices.Delete(m.free, 0, 1)
		return n, nil
	}
	n := mmapFirstEntry + m.used
	if n == mmapEndEntry {
		return 0, fmt.Errorf("no offset for another mmap: %w", syscall.ENOMEM)
	}
	m.used++
	return n, nil
}

func (m *mmapPages) give(n uint64) {
	i, _ := slices.BinarySearch(m.free, n)
	m.free = slices.Insert(m.free, i, n)
}

func (k *call) allocUAR() (uint32, error) {
	out, err := k.simple(prm.OpAllocUAR, 0)
	if err != nil {
		return 0, err
	}
	return prm.AllocUAROut(out).UAR(), nil
}

func (k *call) freeUAR(uar uint32) error {
	in := prm.NewIn(prm.OpDeallocUAR, 0)
	prm.DeallocUARIn(in).SetUAR(uar)
	return k.destroy(in)
}

// mapUAR is a mapping of a UAR page.
func (d *Device) mapUAR(uar uint32, kind cpu.MapKind) *cpu.Mapping {
	return &cpu.Mapping{Dev: d.link, Off: uint64(uar) * prm.UARPageSize, Kind: kind}
}
