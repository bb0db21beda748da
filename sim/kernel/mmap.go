package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
)

// Commands of MmapUAR (Linux include/uapi/rdma/mlx5-abi.h and uar_mmap in
// drivers/infiniband/hw/mlx5/main.c).
const (
	MmapRegular = 0 // static UAR, write-combining
	MmapWC      = 2 // static UAR, write-combining or EPERM
	MmapNC      = 3 // static UAR, uncached
	MmapClock   = 5 // the page of the free-running clock
	MmapAllocWC = 6 // dynamic UAR of an index, write-combining
)

// MmapUAR is mmap of command cmd with its argument. EINVAL: a library of the dynamic
// generation, an index outside the table, a dynamic page that is mapped already, an
// unknown command. EPERM: write-combining asked for and not available. ENOSYS for the
// contiguous pages of old libraries (command 1).
func (u *Ucontext) MmapUAR(c Caller, cmd, arg uint32) (m *cpu.Mapping, err error) {
	err = u.do(c, func(k *call) error {
		m, err = u.mmapUAR(k, cmd, arg)
		if err != nil {
			return fmt.Errorf("mmap of UAR, command %d, index %d: %w", cmd, arg, err)
		}
		u.maps = append(u.maps, m)
		return nil
	})
	return m, err
}

func (u *Ucontext) mmapUAR(k *call, cmd, arg uint32) (*cpu.Mapping, error) {
	kind := cpu.WriteCombining
	switch cmd {
	case MmapWC, MmapAllocWC:
		if u.dev.caps.bfRegSize == 0 {
			return nil, fmt.Errorf("no write-combining: %w", syscall.EPERM)
		}
	case MmapRegular:
	case MmapNC, MmapClock:
		kind = cpu.Uncached
	case 1:
		return nil, syscall.ENOSYS
	default:
		return nil, fmt.Errorf("unknown command: %w", syscall.EINVAL)
	}
	if cmd == MmapClock {
		if arg != 0 {
			return nil, fmt.Errorf("the clock has one page: %w", syscall.EINVAL)
		}
		return &cpu.Mapping{Dev: u.dev.link, Off: prm.InitSegTimer, Kind: cpu.Uncached}, nil
	}
	if u.dynUAR {
		return nil, fmt.Errorf("the context has no bfreg table: %w", syscall.EINVAL)
	}
	if cmd == MmapAllocWC {
		return u.mmapDynamic(k, arg)
	}
	if arg >= u.bfregs.StaticSysPages {
		return nil, fmt.Errorf("%d static pages: %w", u.bfregs.StaticSysPages, syscall.EINVAL)
	}
	return u.dev.mapUAR(u.bfregs.Page(arg), kind), nil
}

// mmapDynamic allocates the UAR of a dynamic slot and maps it.
func (u *Ucontext) mmapDynamic(k *call, index uint32) (*cpu.Mapping, error) {
	slot, err := u.bfregs.ReserveDynPage(index)
	if err != nil {
		return nil, err
	}
	uar, err := k.allocUAR()
	if err != nil {
		u.bfregs.ReleaseDynPage(slot)
		return nil, err
	}
	u.bfregs.SetPage(slot, uar)
	u.dev.res.UAR++
	return u.dev.mapUAR(uar, cpu.WriteCombining), nil
}
