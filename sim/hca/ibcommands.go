package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// Physical states of a port.
const (
	physPolling = 2
	physLinkUp  = 5
)

func cmdQueryHCAVport(d *Device, in, out []byte) prm.Status {
	m := prm.QueryHCAVportContextIn(in)
	if st := d.ibCommand(m.OtherVport(), m.PortNum()); st != prm.StatusOK {
		return st
	}
	b := d.ib
	c := prm.QueryHCAVportContextOut(out).Context()
	c.SetHasSMI(true)
	c.SetPortPhysicalState(physLinkUp)
	if b.info.State == roce.PortDown {
		c.SetPortPhysicalState(physPolling)
	}
	c.SetPortState(uint32(b.info.State))
	c.SetVportState(uint32(b.info.State))
	c.SetSystemImageGUID(d.id.GUID)
	c.SetPortGUID(d.id.GUID)
	c.SetNodeGUID(d.id.GUID)
	c.SetCapMask1(b.capMask)
	c.SetCapMask1FieldSelect(ibCapChangeable)
	c.SetCapMask2(b.capMask2)
	c.SetLID(uint32(b.info.LID))
	c.SetLMC(uint32(b.info.LMC))
	c.SetSubnetTimeout(uint32(b.info.SubnetTimeout))
	c.SetSMLID(uint32(b.info.SMLID))
	c.SetSMSL(uint32(b.info.SMSL))
	c.SetPKeyViolationCounter(uint32(b.badPKeys))
	c.SetQKeyViolationCounter(uint32(b.badQKeys))
	return prm.StatusOK
}

// cmdModifyHCAVport changes bits of the capability mask: ib_cm says by one of them that it is
// there. The GUIDs and the policy of the state are not the driver's here.
func cmdModifyHCAVport(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyHCAVportContextIn(in)
	if st := d.ibCommand(m.OtherVport(), m.PortNum()); st != prm.StatusOK {
		return st
	}
	c := m.Context()
	mask := c.CapMask1FieldSelect()
	if c.FieldSelect() != 0 || mask&^ibCapChangeable != 0 {
		return prm.StatusBadParam
	}
	d.ib.capMask = d.ib.capMask&^mask | c.CapMask1()&mask
	return prm.StatusOK
}

// ibCommand checks what the queries of an InfiniBand port have in common.
func (d *Device) ibCommand(other bool, port uint32) prm.Status {
	switch {
	case d.ib == nil:
		return prm.StatusBadOp
	case other || port > 1:
		return prm.StatusBadParam
	}
	return prm.StatusOK
}

func cmdQueryHCAVportGID(d *Device, in, out []byte) prm.Status {
	m, o := prm.QueryHCAVportGIDIn(in), prm.QueryHCAVportGIDOut(out)
	if st := d.ibCommand(m.OtherVport(), m.PortNum()); st != prm.StatusOK {
		return st
	}
	first, n := int(m.GIDIndex()), 1
	if first == prm.AllVportEntries {
		first, n = 0, len(d.gids)
	}
	switch {
	case first >= len(d.gids):
		return prm.StatusIX
	case o.Room() < n:
		return prm.StatusBadOutpLen
	}
	o.SetGIDsNum(uint32(n))
	for i := range n {
		copy(o.GID(i), d.gids[first+i].gid[:])
	}
	return prm.StatusOK
}

// cmdQueryHCAVportPKey answers on Ethernet too, where ib_core asks for the one P_Key of RoCE.
func cmdQueryHCAVportPKey(d *Device, in, out []byte) prm.Status {
	m, o := prm.QueryHCAVportPKeyIn(in), prm.QueryHCAVportPKeyOut(out)
	if m.OtherVport() || m.PortNum() > 1 {
		return prm.StatusBadParam
	}
	first, n, table := int(m.PKeyIndex()), 1, int(d.pkeyIndexes())
	if first == prm.AllVportEntries {
		first, n = 0, table
	}
	switch {
	case first >= table:
		return prm.StatusIX
	case o.Room() < n:
		return prm.StatusBadOutpLen
	}
	for i := range n {
		o.SetPKey(i, d.pkey(first+i))
	}
	return prm.StatusOK
}
