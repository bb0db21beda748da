package provider

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// qpnBlock is an object of the device that reserves QP numbers, and which of them the program holds
// (mlx5.c, reserved_qpn_blk).
type qpnBlock struct {
	object kernel.Handle
	first  uint32
	held   []bool
	next   int // number that is given next: none is given twice
}

// ReserveQPN is mlx5dv_reserved_qpn_alloc: the next number of the latest object, or the first of a
// new one.
func (c *Context) ReserveQPN(vt verbs.Thread) (_ uint32, err error) {
	const call = "reserved_qpn_alloc"
	t := c.enter(vt)
	defer t.answers(&err)
	if err := c.noDirect(call); err != nil {
		return 0, err
	}
	general, err := c.u.Capability(t.caller, prm.CapGeneral, prm.CapModeCurrent)
	if err != nil || prm.HCACap(general).GeneralObjTypes()>>prm.ObjTypeReservedQPN&1 == 0 {
		return 0, fmt.Errorf("%s: the device has no such objects: %w", call, syscall.EOPNOTSUPP)
	}
	if n := len(c.qpnBlocks); n == 0 || c.qpnBlocks[n-1].next >= len(c.qpnBlocks[n-1].held) {
		b, err := c.newQPNBlock(t)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", call, err)
		}
		c.qpnBlocks = append(c.qpnBlocks, b)
	}
	b := c.qpnBlocks[len(c.qpnBlocks)-1]
	b.held[b.next] = true
	b.next++
	return b.first + uint32(b.next-1), nil
}

func (c *Context) newQPNBlock(t *Thread) (*qpnBlock, error) {
	second, err := c.u.Capability(t.caller, prm.CapGeneral2, prm.CapModeCurrent)
	if err != nil {
		return nil, err
	}
	log := prm.HCACap2Page(second).LogReservedQPNGranularity()
	in, out := prm.NewIn(prm.OpCreateGeneralObject, 0), prm.NewOut(prm.OpCreateGeneralObject, 0)
	m := prm.CreateGeneralObjectIn(in)
	m.SetObjType(prm.ObjTypeReservedQPN)
	m.SetLogObjRange(log)
	h, err := c.u.CreateObjectCommand(t.caller, in, out)
	if err != nil {
		if said := prm.CmdOut(out).Err(prm.OpCreateGeneralObject); said != nil {
			err = said
		}
		return nil, err
	}
	return &qpnBlock{object: h, first: prm.CreateGeneralObjectOut(out).ObjID(), held: make([]bool, 1<<log)}, nil
}

// ReleaseQPN is mlx5dv_reserved_qpn_dealloc. An object goes when all of its numbers were given and
// returned. EINVAL: a number that the program does not hold.
func (c *Context) ReleaseQPN(vt verbs.Thread, qpn uint32) (err error) {
	const call = "reserved_qpn_dealloc"
	t := c.enter(vt)
	defer t.answers(&err)
	if err := c.noDirect(call); err != nil {
		return err
	}
	i := slices.IndexFunc(c.qpnBlocks, func(b *qpnBlock) bool { return qpn >= b.first && qpn < b.first+uint32(len(b.held)) })
	if i < 0 || !c.qpnBlocks[i].held[qpn-c.qpnBlocks[i].first] {
		return fmt.Errorf("%s of %#x: %w", call, qpn, syscall.EINVAL)
	}
	b := c.qpnBlocks[i]
	b.held[qpn-b.first] = false
	if b.next < len(b.held) || slices.Contains(b.held, true) {
		return nil
	}
	c.qpnBlocks = slices.Delete(c.qpnBlocks, i, i+1)
	if err := c.u.DestroyObject(t.caller, b.object); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	return nil
}
