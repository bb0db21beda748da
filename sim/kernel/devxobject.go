package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// A program with a user context of the firmware makes objects by commands of its own, of which the
// driver keeps no more than how to destroy them (hw/mlx5/devx.c). Firmware checks by the context's
// number that a command names nothing of others; here the driver does.

// devxKind is a kind of objects that programs can make: the command that destroys one, and those
// that change and query one.
type devxKind struct {
	destroy       prm.Opcode
	modify, query []prm.Opcode
	// names are the objects that a command names; ok is false for one that no program may send.
	names func(in []byte) (names []devxName, ok bool)
	steer bool // only programs with CAP_NET_RAW may make it, of a device whose tables are theirs
}

// devxName is a number that a command names, of an object that another command makes.
type devxName struct {
	made prm.Opcode
	num  uint32
}

// devxKinds are the kinds by the command that makes one. Commands have the number of an object
// where answers have that of the one made.
var devxKinds = map[prm.Opcode]devxKind{
	prm.OpCreateCQ: {destroy: prm.OpDestroyCQ, query: []prm.Opcode{prm.OpQueryCQ}, names: func(in []byte) ([]devxName, bool) {
		m := prm.CreateCQIn(in)
		return []devxName{{prm.OpCreateUmem, m.CQUmemID()}, {prm.OpCreateUmem, m.CQC().DBRUmemID()}}, true
	}},
	prm.OpCreateQP: {destroy: prm.OpDestroyQP, modify: qpChanges[:], query: []prm.Opcode{prm.OpQueryQP}, names: func(in []byte) ([]devxName, bool) {
		m := prm.CreateQPIn(in)
		c := m.QPC()
		transport := c.ST() == prm.STRC || c.ST() == prm.STUC || c.ST() == prm.STUD
		return []devxName{
			{prm.OpAllocPD, c.PD()}, {prm.OpCreateCQ, c.CQNSnd()}, {prm.OpCreateCQ, c.CQNRcv()}, {prm.OpCreateUmem, m.WQUmemID()}, {prm.OpCreateUmem, c.DBRUmemID()},
		}, transport && c.RQType() != prm.RQTypeSRQ
	}},
	prm.OpAllocPD:             {destroy: prm.OpDeallocPD, names: namesNothing},
	prm.OpCreateGeneralObject: {destroy: prm.OpDestroyGeneralObject, query: []prm.Opcode{prm.OpQueryGeneralObject}, names: namesOfGeneral},

	prm.OpCreateTIR: {destroy: prm.OpDestroyTIR, modify: []prm.Opcode{prm.OpModifyTIR}, query: []prm.Opcode{prm.OpQueryTIR}, steer: true, names: func(in []byte) ([]devxName, bool) {
		c := prm.CreateTIRIn(in).Context()
		if c.DispType() == prm.TIRDirect {
			return []devxName{{prm.OpCreateRQ, c.InlineRQN()}, {prm.OpAllocTransportDomain, c.TransportDomain()}}, true
		}
		return []devxName{{prm.OpCreateRQT, c.IndirectTable()}, {prm.OpAllocTransportDomain, c.TransportDomain()}}, true
	}},
	prm.OpCreateFlowTable: {destroy: prm.OpDestroyFlowTable, modify: []prm.Opcode{prm.OpModifyFlowTable}, query: []prm.Opcode{prm.OpQueryFlowTable}, steer: true,
		names: func(in []byte) ([]devxName, bool) {
			return missOf(prm.CreateFlowTableIn(in).Context()), true
		}},
	prm.OpCreateFlowGroup: {destroy: prm.OpDestroyFlowGroup, steer: true, names: func(in []byte) ([]devxName, bool) {
		return []devxName{{prm.OpCreateFlowTable, prm.CreateFlowGroupIn(in).TableID()}}, true
	}},
	prm.OpSetFlowEntry:        {destroy: prm.OpDeleteFlowEntry, steer: true, names: namesOfEntry},
	prm.OpAllocFlowCounter:    {destroy: prm.OpDeallocFlowCounter, query: []prm.Opcode{prm.OpQueryFlowCounter}, steer: true, names: namesNothing},
	prm.OpAllocModifyHeader:   {destroy: prm.OpDeallocModifyHeader, steer: true, names: namesNothing},
	prm.OpAllocPacketReformat: {destroy: prm.OpDeallocPacketReformat, steer: true, names: namesNothing},
}

func namesNothing([]byte) ([]devxName, bool) { return nil, true }

// missOf is the table that the misses of another one go to.
func missOf(c prm.FlowTableContext) []devxName {
	if c.MissAction() == prm.FlowMissForward {
		return []devxName{{prm.OpCreateFlowTable, c.MissID()}}
	}
	return nil
}

// namesOfGeneral is what general objects name. The driver has those of memory to itself: a program
// could take another's.
func namesOfGeneral(in []byte) ([]devxName, bool) {
	m := prm.CreateGeneralObjectIn(in)
	switch m.ObjType() {
	case prm.ObjTypeSWICM:
		return nil, false
	case prm.ObjTypeFlowSampler:
		if len(m.Object()) < prm.FlowSamplerSize {
			return nil, false
		}
		x := prm.FlowSampler(m.Object()[:prm.FlowSamplerSize])
		return []devxName{{prm.OpCreateFlowTable, x.SampleTableID()}, {prm.OpCreateFlowTable, x.DefaultTableID()}}, true
	}
	return nil, true
}

// namesOfEntry is what a flow table entry names.
func namesOfEntry(in []byte) (names []devxName, ok bool) {
	m := prm.SetFlowEntryIn(in)
	c, l := m.Context(), m.List()
	names = append(names, devxName{prm.OpCreateFlowTable, m.TableID()}, devxName{prm.OpCreateFlowGroup, c.GroupID()})
	to, counters := int(c.Destinations()), int(c.Counters())
	if c.ExtendedDestination() || to > l.Count() || counters > l.Count()-to || prm.CmdIn(in).OpMod() != prm.FlowEntrySet {
		return nil, false
	}
	for i := range to {
		made := prm.OpCreateTIR
		if l.At(i).Type() == prm.FlowToTable {
			made = prm.OpCreateFlowTable
		}
		names = append(names, devxName{made, l.At(i).ID()})
	}
	for i := range counters {
		names = append(names, devxName{prm.OpAllocFlowCounter, l.Counter(to + i)})
	}
	if c.Action()&prm.FlowActionModifyHeader != 0 {
		names = append(names, devxName{prm.OpAllocModifyHeader, c.ModifyHeaderID()})
	}
	if c.Action()&prm.FlowActionReformat != 0 {
		names = append(names, devxName{prm.OpAllocPacketReformat, c.ReformatID()})
	}
	return names, true
}

// qpChanges are the commands that change a QP (devx_is_obj_modify_cmd).
var qpChanges = [...]prm.Opcode{
	prm.OpRst2InitQP, prm.OpInit2InitQP, prm.OpInit2RTRQP, prm.OpRTR2RTSQP, prm.OpRTS2RTSQP, prm.OpSQErr2RTSQP, prm.Op2ErrQP, prm.Op2RstQP,
}

// devxObject is an object that a program has made by a command of its own.
type devxObject struct {
	made  prm.Opcode
	num   uint32
	typ   uint32 // of a general object
	table uint32 // of a flow group, or an entry, which has the number of its index
	kind  uint32 // of a flow table and what is in one
}

// number is the number of an object that an answer says was made (devx_get_created_obj_id).
func createdNumber(op prm.Opcode, answer []byte) uint32 {
	n := prm.CreateGeneralObjectOut(answer).ObjID()
	switch op {
	case prm.OpCreateTIR, prm.OpCreateFlowTable: // a part of an address is in front of it
		return n & numberBits
	}
	return n
}

const numberBits = 1<<24 - 1

// place notes where a flow group or an entry is.
func (o *devxObject) place(cmd []byte) {
	switch o.made {
	case prm.OpCreateFlowTable:
		o.kind = prm.CreateFlowTableIn(cmd).TableType()
	case prm.OpCreateFlowGroup:
		m := prm.CreateFlowGroupIn(cmd)
		o.kind, o.table = m.TableType(), m.TableID()
	case prm.OpSetFlowEntry:
		m := prm.SetFlowEntryIn(cmd)
		o.kind, o.table, o.num = m.TableType(), m.TableID(), m.FlowIndex()
	}
}

func (o *devxObject) destroy(k *call) error {
	op := devxKinds[o.made].destroy
	in := prm.NewIn(op, 0)
	switch o.made {
	case prm.OpCreateFlowTable:
		m := prm.DestroyFlowTableIn(in)
		m.SetTableType(o.kind)
		m.SetTableID(o.num)
	case prm.OpCreateFlowGroup:
		m := prm.DestroyFlowGroupIn(in)
		m.SetTableType(o.kind)
		m.SetTableID(o.table)
		m.SetGroupID(o.num)
	case prm.OpSetFlowEntry:
		m := prm.DeleteFlowEntryIn(in)
		m.SetTableType(o.kind)
		m.SetTableID(o.table)
		m.SetFlowIndex(o.num)
	default:
		m := prm.DestroyGeneralObjectIn(in) // the number is where all others have it
		m.SetObjType(o.typ)
		m.SetObjID(o.num)
	}
	return k.exec(in, prm.NewOut(op, 0)) // refused while something that the program has made of it is there
}

// objectOf is the number of the object that a command changes or queries (devx_get_obj_id).
func objectOf(op prm.Opcode, in []byte) uint32 {
	switch op {
	case prm.OpQueryFlowTable:
		return prm.QueryFlowTableIn(in).TableID()
	case prm.OpModifyFlowTable:
		return prm.ModifyFlowTableIn(in).TableID()
	case prm.OpQueryFlowCounter:
		return prm.QueryFlowCounterIn(in).ID()
	case prm.OpQueryGeneralObject:
		return prm.QueryGeneralObjectIn(in).ObjID()
	}
	return prm.DestroyGeneralObjectIn(in).ObjID() & numberBits
}

// owns says whether the context has made an object, by a call or by a command.
func (u *Ucontext) owns(n devxName) bool {
	if n.made == prm.OpAllocTransportDomain {
		return n.num == 0 || n.num == u.tdn
	}
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
		case *wq:
			return n.made == prm.OpCreateRQ && x.q.num == n.num
		case *wqTable:
			return n.made == prm.OpCreateRQT && x.rqtn == n.num
		case *qp:
			return x.packets != nil && (n.made == prm.OpCreateRQ && x.packets.hasRQ && x.packets.rq.num == n.num || n.made == prm.OpCreateTIR && x.packets.tirn == n.num)
		}
		return false
	})
}

// CreateObjectCommand is MLX5_IB_METHOD_DEVX_OBJ_CREATE with the bytes of a program's own command;
// out receives the answer. EINVAL: the context has no DEVX; EOPNOTSUPP: the object is not modelled;
// EREMOTEIO: the device refuses the command, and out says why.
func (u *Ucontext) CreateObjectCommand(c Caller, in, out []byte) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		op := prm.CmdIn(in).Opcode()
		kind, known := devxKinds[op]
		switch {
		case !u.devx:
			return fmt.Errorf("a command by a context without DEVX: %w", syscall.EINVAL)
		case !known || kind.steer && !u.dev.caps.steering.programs:
			return fmt.Errorf("%v is not modelled for programs: %w", op, syscall.EOPNOTSUPP)
		}
		cmd := prm.NewIn(op, 0)
		if len(in) > len(cmd) {
			cmd = append(cmd, make([]byte, len(in)-len(cmd))...)
		}
		copy(cmd, in)
		usesUmem(op, cmd)
		names, ok := kind.names(cmd)
		if !ok || kind.steer && !u.proc.NetRaw || slices.ContainsFunc(names, func(n devxName) bool { return !u.owns(n) }) {
			prm.CmdOut(out).SetStatus(prm.StatusBadParam)
			return fmt.Errorf("%v with an object that is not the context's: %w", op, syscall.EREMOTEIO)
		}
		answer := prm.NewOut(op, 0)
		err := k.exec(cmd, answer)
		copy(out, answer)
		if err != nil {
			return fmt.Errorf("%v: %w", err, syscall.EREMOTEIO)
		}
		o := &devxObject{made: op, num: createdNumber(op, answer)}
		o.place(cmd)
		if op == prm.OpCreateGeneralObject {
			o.typ = prm.CreateGeneralObjectIn(cmd).ObjType()
		}
		h = u.objs.add(o)
		return nil
	})
	return h, err
}

// usesUmem has a command find its memory by umems, as the driver does whatever the program says
// (devx_set_umem_valid): bus addresses are not a program's to know.
func usesUmem(op prm.Opcode, cmd []byte) {
	switch op {
	case prm.OpCreateCQ:
		m := prm.CreateCQIn(cmd)
		m.SetCQUmemValid(true)
		m.CQC().SetDBRUmemValid(true)
	case prm.OpCreateQP:
		m := prm.CreateQPIn(cmd)
		m.SetWQUmemValid(true)
		m.QPC().SetDBRUmemValid(true)
	}
}

// ObjectCommand is MLX5_IB_METHOD_DEVX_OBJ_MODIFY or _QUERY: a command of the program's own that
// changes or queries an object, or a QP of verbs; out receives the answer. EINVAL: the context has
// no DEVX, or the command is of another kind or names another object; EREMOTEIO: the device refuses
// it, and out says why.
func (u *Ucontext) ObjectCommand(c Caller, h Handle, query bool, in, out []byte) error {
	return u.do(c, func(k *call) error {
		made, num, typ := prm.OpCreateQP, uint32(0), uint32(0)
		if o, ok := u.objs.tab[h].(*devxObject); ok {
			made, num, typ = o.made, o.num, o.typ
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
		if !u.devx || !slices.Contains(ops, op) {
			return fmt.Errorf("%v of another object, or by a context without DEVX: %w", op, syscall.EINVAL)
		}
		if _, st := prm.CheckCommand(in, out); st != prm.StatusOK {
			prm.CmdOut(out).SetStatus(st)
			return fmt.Errorf("%v: %v: %w", op, st, syscall.EREMOTEIO)
		}
		if objectOf(op, in) != num || op == prm.OpQueryGeneralObject && prm.QueryGeneralObjectIn(in).ObjType() != typ {
			return fmt.Errorf("%v of another object: %w", op, syscall.EINVAL)
		}
		if op == prm.OpModifyFlowTable && slices.ContainsFunc(missOf(prm.ModifyFlowTableIn(in).Context()), func(n devxName) bool { return !u.owns(n) }) {
			prm.CmdOut(out).SetStatus(prm.StatusBadParam)
			return fmt.Errorf("%v to a table that is not the context's: %w", op, syscall.EREMOTEIO)
		}
		if err := k.exec(in, out); err != nil {
			return fmt.Errorf("%v: %w", err, syscall.EREMOTEIO)
		}
		return nil
	})
}

// DestroyObject is MLX5_IB_METHOD_DEVX_OBJ_DESTROY. EINVAL: something that the program has created
// on the object still exists.
func (u *Ucontext) DestroyObject(c Caller, h Handle) error {
	if _, ok := u.objs.tab[h].(*mkeyObject); ok {
		return u.DestroyMKeyObject(c, h)
	}
	return destroyByHandle[*devxObject](u, c, h, "object of a command")
}

// QueryEQN is MLX5_IB_METHOD_DEVX_QUERY_EQN: it returns the number of a completion vector's event
// queue.
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
