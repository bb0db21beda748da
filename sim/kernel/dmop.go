package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
)

// dmOp is the address of an operation on device memory.
type dmOp struct {
	addr uint64 // in BAR 0
	maps int    // of the program
}

// DMOp says where an operation address of device memory is mapped.
type DMOp struct {
	Map         *cpu.Mapping // from the first byte
	PageIndex   uint16       // argument of MmapDeviceMem
	StartOffset uint64       // of the first byte in its page
}

// MapDMOp is MLX5_IB_METHOD_DM_MAP_OP_ADDR and the mmap of its result. EOPNOTSUPP: the device does
// not offer the operation; ENOENT: the memory is gone.
func (u *Ucontext) MapDMOp(c Caller, h Handle, op uint8) (o DMOp, err error) {
	err = u.do(c, func(k *call) error {
		m, err := lookup[*DM](&u.objs, h, "device memory")
		if err != nil {
			return err
		}
		d := u.dev
		if op >= 32 || d.caps.memic.ops>>op&1 == 0 {
			return fmt.Errorf("operation %d on device memory: %w", op, syscall.EOPNOTSUPP)
		}
		x := m.ops[op]
		if x == nil {
			x = &dmOp{}
			if x.addr, err = k.modifyMemic(prm.MemicOpAlloc, m.addr, op); err != nil {
				return err
			}
			if m.ops == nil {
				m.ops = map[uint8]*dmOp{}
			}
			m.ops[op] = x
		}
		x.maps++
		// Operations have pages of the file behind those of the memory itself.
		o = DMOp{PageIndex: uint16((int(op)+1)*d.caps.memic.pages) + m.PageIndex, StartOffset: x.addr & pageMask,
			Map: &cpu.Mapping{Dev: d.link, Off: x.addr, Kind: cpu.WriteCombining}}
		u.maps = append(u.maps, o.Map)
		return nil
	})
	return o, err
}

// modifyMemic gives an operation an address on the device, or takes it away.
func (k *call) modifyMemic(mod uint16, addr uint64, op uint8) (uint64, error) {
	in, out := prm.NewIn(prm.OpModifyMemic, 0), prm.NewOut(prm.OpModifyMemic, 0)
	prm.CmdIn(in).SetOpMod(mod)
	prm.ModifyMemicIn(in).SetMemicOperationType(uint32(op))
	prm.ModifyMemicIn(in).SetMemicStartAddr(addr)
	if err := k.exec(in, out); err != nil {
		return 0, err
	}
	return prm.ModifyMemicOut(out).MemicOperationAddr(), nil
}

// UnmapDMOp is the munmap of an operation address; the last munmap after the memory was freed
// returns it to the device.
func (u *Ucontext) UnmapDMOp(c Caller, m *DM, op uint8) error {
	return u.do(c, func(k *call) error {
		x := m.ops[op]
		if x == nil || x.maps == 0 {
			return fmt.Errorf("operation %d is not mapped: %w", op, syscall.EINVAL)
		}
		x.maps--
		return m.letGo(k)
	})
}

// mapped reports whether the program has operation addresses mapped.
func (m *DM) mapped() bool {
	for op := range uint8(prm.MemicOps) {
		if x := m.ops[op]; x != nil && x.maps > 0 {
			return true
		}
	}
	return false
}

// releaseOps takes the addresses of operations away.
func (m *DM) releaseOps(k *call) error {
	for op := range uint8(prm.MemicOps) {
		if m.ops[op] == nil {
			continue
		}
		if _, err := k.modifyMemic(prm.MemicOpDealloc, m.addr, op); err != nil {
			return err
		}
		delete(m.ops, op)
	}
	return nil
}
