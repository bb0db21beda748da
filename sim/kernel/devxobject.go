package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// A program with a user context of the firmware makes objects by commands of its own, of which the driver keeps no more than how to destroy
// them (hw/mlx5/devx.c). Firmware checks by the context's number that a command names nothing of others; here the driver does.

// devxKind is a kind of objects that programs can make: the command that destroys one, and those that change and query one.
type devxKind struct {
	destroy       prm.Opcode
	modify, query []prm.Opcode
	// names are the objects that a command names; ok is false for one that no program may send.
	names func(in []byte) (names []devxName, ok bool)
}

// devxName is a number that a command names, of an object that another command makes.
type devxName struct {
	made prm.Opcode
	num  uint32
}

// devxKinds are the kinds by the command that makes one. Commands have the number of an object where answers have that of the one made.
var devxKinds = map[prm.Opcode]devxKind{
	prm.OpCreateCQ: {prm.OpDestroyCQ, nil, []prm.Opcode{prm.OpQueryCQ}, func(in []byte) ([]devxName, bool) {
		m := prm.CreateCQIn(in)
		c := m.CQC()
		// Bus addresses are not a program's to know.
		return []devxName{{prm.OpCreateUmem, m.CQUmemID()}, {prm.OpCreateUmem, c.DBRUmemID()}}, m.CQUmemValid() && c.DBRUmemValid()
	}},
	prm.OpCreateQP: {prm.OpDestroyQP, qpChanges[:], []prm.Opcode{prm.OpQueryQP}, func(in []byte) ([]devxName, bool) {
		m := prm.CreateQPIn(in)
		c := m.QPC()
		transport := c.ST() == prm.STRC || c.ST() == prm.STUC || c.ST() == prm.STUD
		return []devxName{
			{prm.OpAllocPD, c.PD()}, {prm.OpCreateCQ, c.CQNSnd()}, {prm.OpCreateCQ, c.CQNRcv()}, {prm.OpCreateUmem, m.WQUmemID()}, {prm.OpCreateUmem, c.DBRUmemID()},
		}, m.WQUmemValid() && c.DBRUmemValid() && transport && c.RQType() != prm.RQTypeSRQ
	}},
	prm.OpAllocPD:             {prm.OpDeallocPD, nil, nil, namesNothing},
	prm.OpCreateGeneralObject: {prm.OpDestroyGeneralObject, nil, nil, namesNothing},
}

func namesNothing([]byte) ([]devxName, bool) { return nil, true }

// qpChanges are the commands that change a QP (devx_is_obj_modify_cmd).
var qpChanges = [...]prm.Opcode{
	prm.OpRst2InitQP, prm.OpInit2InitQP, prm.OpInit2RTRQP, prm.OpRTR2RTSQP, prm.OpRTS2RTSQP, prm.OpSQErr2RTSQP, prm.Op2ErrQP, prm.Op2RstQP,
}

// devxObject is an object that a program has made by a command of its own.
type devxObject struct {
	made prm.Opcode
	num  uint32
	typ  uint32 // of a general object
}

func (o *devxObject) destroy(k *call) error {
	op := devxKinds[o.made].destroy
	in := prm.NewIn(op, 0)
	m := prm.DestroyGeneralObjectIn(in) // the number is where all have it
	m.SetObjType(o.typ)
	m.SetObjID(o.num)
	return k.exec(in, prm.NewOut(op, 0)) // refused while something that the program has made of it is there
}

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

// owns says whether the context has made an object, by a call or by a command.
func (u *Ucontext) owns(n devxName) bool {
	return u.objs.any(func(x object) bool {
		switch x := x.(type) {
		case *devxObject:
			return x.made == n.made && x.num == n.num
		case *devxUmem:
			return n.made == prm.OpCreateUmem && x.id == n.num
		case *pd:
			return n.made == prm.OpAllocPD && x.pdn == n.num
		case *cq:
			return n.made == prm.OpCreateCQ && x.cqn == n.num
		}
		return false
	})
}

// CreateObjectCommand is MLX5_IB_METHOD_DEVX_OBJ_CREATE with the bytes of a program's own command, of which out has the answer. EINVAL: the
// context has no DEVX; EOPNOTSUPP: a command for something of which nothing is modelled; EREMOTEIO: the device refuses it, and out says why.
func (u *Ucontext) CreateObjectCommand(c Caller, in, out []byte) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		op := prm.CmdIn(in).Opcode()
		kind, known := devxKinds[op]
		switch {
		case !u.devx:
			return fmt.Errorf("a command by a context without DEVX: %w", syscall.EINVAL)
		case !known:
			return fmt.Errorf("%v is not modelled for programs: %w", op, syscall.EOPNOTSUPP)
		}
		cmd := prm.NewIn(op, 0)
		copy(cmd, in)
		names, ok := kind.names(cmd)
		if !ok || slices.ContainsFunc(names, func(n devxName) bool { return !u.owns(n) }) {
			prm.CmdOut(out).SetStatus(prm.StatusBadParam)
			return fmt.Errorf("%v with an object that is not the context's: %w", op, syscall.EREMOTEIO)
		}
		answer := prm.NewOut(op, 0)
		err := k.exec(cmd, answer)
		copy(out, answer)
		if err != nil {
			return fmt.Errorf("%v: %w", err, syscall.EREMOTEIO)
		}
		o := &devxObject{made: op, num: prm.CreateGeneralObjectOut(answer).ObjID()}
		if op == prm.OpCreateGeneralObject {
			o.typ = prm.CreateGeneralObjectIn(cmd).ObjType()
		}
		h = u.objs.add(o)
		return nil
	})
	return h, err
}

// ObjectCommand is MLX5_IB_METHOD_DEVX_OBJ_MODIFY or _QUERY of an object, or of a QP of verbs: a command of the program's own that changes or
// queries it, of which out has the answer. EINVAL: the context has no DEVX, or the command is of another kind or of another object; EREMOTEIO: the
// device refuses it, and out says why.
func (u *Ucontext) ObjectCommand(c Caller, h Handle, query bool, in, out []byte) error {
	return u.do(c, func(k *call) error {
		made, num := prm.OpCreateQP, uint32(0)
		if o, ok := u.objs.tab[h].(*devxObject); ok {
			made, num = o.made, o.num
		} else {
			q, err := lookup[queuePair](&u.objs, h, "QP or object of a command")
			if err != nil {
				return err
			}
			num = q.queue().qpn
		}
		ops := devxKinds[made].modify
		if query {
			ops = devxKinds[made].query
		}
		op := prm.CmdIn(in).Opcode()
		const numbers = 1<<24 - 1
		if !u.devx || !slices.Contains(ops, op) || len(in) < prm.DestroyGeneralObjectInSize || prm.DestroyGeneralObjectIn(in).ObjID()&numbers != num {
			return fmt.Errorf("%v of another object, or by a context without DEVX: %w", op, syscall.EINVAL)
		}
		if err := k.exec(in, out); err != nil {
			return fmt.Errorf("%v: %w", err, syscall.EREMOTEIO)
		}
		return nil
	})
}

// DestroyObject is MLX5_IB_METHOD_DEVX_OBJ_DESTROY. EINVAL: something that the program has made of it is still there.
func (u *Ucontext) DestroyObject(c Caller, h Handle) error {
	if _, ok := u.objs.tab[h].(*mkeyObject); ok {
		return u.DestroyMKeyObject(c, h)
	}
	return destroyByHandle[*devxObject](u, c, h, "object of a command")
}

// RegUmem is MLX5_IB_METHOD_DEVX_UMEM_REG. EINVAL: the context has no DEVX; EFAULT, ENOMEM: as for RegMR.
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

// QueryEQN is MLX5_IB_METHOD_DEVX_QUERY_EQN: the number of the event queue that a completion vector is.
func (u *Ucontext) QueryEQN(c Caller, vector uint32) (eqn uint32, err error) {
	err = u.do(c, func(*call) error {
		if !u.devx || vector >= uint32(u.dev.NumCompVectors()) {
			return fmt.Errorf("event queue of vector %d: %w", vector, syscall.EINVAL)
		}
		eqn = uint32(u.dev.eqs[1+vector].eqn)
		return nil
	})
	return eqn, err
}
