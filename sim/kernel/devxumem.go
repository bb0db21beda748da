package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// devxUmem is memory that a program shows to the device by MLX5_IB_METHOD_DEVX_UMEM_REG.
type devxUmem struct {
	id  uint32
	mem *umem
}

func (m *devxUmem) destroy(k *call) error {
	in := prm.NewIn(prm.OpDestroyUmem, 0)
	prm.DestroyUmemIn(in).SetUmemID(m.id)
	if err := k.destroy(in); err != nil {
		return err
	}
	k.unpin(m.mem)
	return nil
}

// RegUmem is MLX5_IB_METHOD_DEVX_UMEM_REG. EINVAL: the context has no DEVX; EFAULT, ENOMEM: as for
// RegMR.
func (u *Ucontext) RegUmem(c Caller, addr, length uint64, access verbs.AccessFlags) (h Handle, id uint32, err error) {
	err = u.do(c, func(k *call) error {
		if !u.devx {
			return fmt.Errorf("memory for commands of a context without DEVX: %w", syscall.EINVAL)
		}
		m := &devxUmem{}
		if m.mem, err = k.pin(u.proc, addr, length, access); err != nil {
			return fmt.Errorf("memory for commands: %w", err)
		}
		n := len(m.mem.pages)
		in, out := prm.NewIn(prm.OpCreateUmem, 8*n), prm.NewOut(prm.OpCreateUmem, 0)
		r := prm.CreateUmemIn(in)
		r.SetPageOffset(uint32(addr & pageMask))
		r.SetEntries(uint64(n))
		rights := uint64(prm.MTTRead)
		if m.mem.writable {
			rights |= prm.MTTWrite
		}
		for i, pa := range m.mem.pages {
			r.MTT().Set(i, uint64(pa), rights)
		}
		if err := k.exec(in, out); err != nil {
			k.unpin(m.mem)
			return err
		}
		m.id = prm.CreateUmemOut(out).UmemID()
		h, id = u.objs.add(m), m.id
		return nil
	})
	return h, id, err
}

// DeregUmem is MLX5_IB_METHOD_DEVX_UMEM_DEREG.
func (u *Ucontext) DeregUmem(c Caller, h Handle) error {
	return destroyByHandle[*devxUmem](u, c, h, "memory for commands")
}

// UmemAddress returns the program's address of registered memory for commands, by its number; 0:
// there is none.
func (u *Ucontext) UmemAddress(id uint32) (addr uint64) {
	u.objs.any(func(x object) bool {
		m, ok := x.(*devxUmem)
		if ok = ok && m.id == id; ok {
			addr = m.mem.addr
		}
		return ok
	})
	return addr
}
