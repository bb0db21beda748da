package dv

import (
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// registerCreation adds the cases of queries and of creation.
func registerCreation(s *spec.Suite) {
	s.Case("DV-001", otherProvider)
	s.Case("DV-002", queryMasks)
	s.Case("DV-004", bothScatterFlags)
	s.Case("DV-005", undefinedAttributes)
	s.Case("DV-007", driverTypeAlone)
	s.Case("DV-014", outOfOrder)
}

// create tries a QP with direct attributes, and destroys it at once.
func create(c *spec.C, e *kit.Env, typ verbs.QPType, d *verbs.DirectQPAttr) error {
	cq := e.CreateCQ(c, 16)
	q, err := e.PD.CreateQP(c.T, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq, Direct: d,
		Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}})
	if err == nil {
		kit.Must(c, "destroy_qp", q.Destroy(c.T))
	}
	return err
}

func otherProvider(c *spec.C) {
	e := kit.Open(c)
	d := direct(c, e)
	c.Equal("is_supported", d.DirectSupported(), false)
	refused := func(call string, err error) { c.Errno(call, err, syscall.EOPNOTSUPP) }
	_, err := d.QueryDirect(c.T, verbs.DirectContextKnownMask)
	refused("query_device", err)
	_, err = d.ClockInfo(c.T)
	refused("get_clock_info", err)
	_, err = d.ReserveQPN(c.T)
	refused("reserved_qpn_alloc", err)
	refused("reserved_qpn_dealloc", d.ReleaseQPN(c.T, 0x1234))
	_, err = d.AllocVAR(c.T, 0)
	refused("alloc_var", err)
	_, err = d.AllocDirectDM(c.T, verbs.DMAttr{Length: 64}, verbs.DirectDMAttr{})
	refused("alloc_dm", err)
	_, err = d.CreateMkey(c.T, e.PD, verbs.MkeyIndirect, 1)
	refused("create_mkey", err)
	_, err = e.Ctx.AllocUAR(c.T, verbs.UARBlueFlame)
	refused("devx_alloc_uar", err)
	refused("create_qp", create(c, e, verbs.QPTRC, &verbs.DirectQPAttr{}))
	refused("create_qp with creation flags", create(c, e, verbs.QPTRC,
		&verbs.DirectQPAttr{CompMask: verbs.DirectQPCreateFlags, CreateFlags: verbs.DirectQPCreateDisableScatterToCQE}))
	q := directQP(c, e.CreateQP(c, kit.Default()))
	refused("modify_qp_udp_sport", q.ModifyUDPSport(c.T, 0xc000))
	_, _, err = q.QueryLagPort(c.T)
	refused("query_qp_lag_port", err)
	refused("modify_qp_lag_port", q.ModifyLagPort(c.T, 1))
	refused("dci_stream_id_reset", q.ResetDCIStream(c.T, 1))
	refused("init_obj", q.RecvQueue(c.T, 0, make([]byte, 16)))
}

// parts are the fields of the answer by the bit that asks for them.
func parts(a verbs.DirectAttr) map[uint64]bool {
	return map[uint64]bool{
		verbs.DirectCQECompression:  a.CQEComp != verbs.CQECompCaps{},
		verbs.DirectDynBFRegs:       a.MaxDynamicBFRegs != 0,
		verbs.DirectClockInfoUpdate: a.MaxClockInfoUpdate != 0,
		verbs.DirectDCODPCaps:       a.DCODPCaps != 0,
		verbs.DirectNumLagPorts:     a.NumLagPorts != 0,
		verbs.DirectSignature:       a.SigBlockProt != 0,
		verbs.DirectDCIStreams:      a.DCIStreams != verbs.DCIStreams{},
		verbs.DirectWRMemcpyLength:  a.MaxWRMemcpyLength != 0,
		verbs.DirectMaxDCRDAtom:     a.MaxDCRDAtom != 0 || a.MaxDCInitRDAtom != 0,
		verbs.DirectOOORecvWRs:      a.OOORecvWRsRC != 0,
	}
}

func queryMasks(c *spec.C) {
	d := direct(c, kit.Open(c))
	c.Equal("is_supported", d.DirectSupported(), true)
	// How many bits there are depends on the library: of all together one thing is recorded.
	query := func(mask uint64) verbs.DirectAttr {
		a, err := d.QueryDirect(c.T, mask)
		kit.Must(c, "query_device", err)
		if a.CompMask&^mask != 0 {
			c.Failf("%#x was asked for, and the answer has %#x", mask, a.CompMask)
		}
		for bit, filled := range parts(a) {
			if a.CompMask&bit == 0 && filled {
				c.Failf("asked for %#x, and what %#x stands for was filled in", mask, bit)
			}
		}
		return a
	}
	none, all := query(0), query(^uint64(0))
	c.Equal("version", none.Version, all.Version)
	c.True("flags, whatever is asked for", none.Flags == all.Flags, "%#x and %#x", none.Flags, all.Flags)
	c.Observe("known", bits.OnesCount64(all.CompMask) > 0)
	c.True("a bit that no library knows", all.CompMask&(1<<63) == 0, "comp_mask %#x", all.CompMask)
	right := true
	for rest := all.CompMask; rest != 0; rest &= rest - 1 {
		bit := rest & -rest
		one := query(bit)
		right = right && one.CompMask == bit && parts(one)[bit] == parts(all)[bit]
	}
	c.True("each bit alone", right, "of the bits of %#x", all.CompMask)
}

func bothScatterFlags(c *spec.C) {
	e := kit.Open(c)
	flags := func(f uint32) error {
		return create(c, e, verbs.QPTRC, &verbs.DirectQPAttr{CompMask: verbs.DirectQPCreateFlags, CreateFlags: f})
	}
	const off, on = verbs.DirectQPCreateDisableScatterToCQE, verbs.DirectQPCreateAllowScatterToCQE
	c.Errno("scatter to CQE disabled", flags(off), 0)
	c.Errno("scatter to CQE allowed", flags(on), 0)
	c.Errno("both", flags(off|on), syscall.EINVAL)
	c.Errno("both, in a mask that says that there are no flags",
		create(c, e, verbs.QPTRC, &verbs.DirectQPAttr{CreateFlags: off | on}), 0)
}

func undefinedAttributes(c *spec.C) {
	e := kit.Open(c)
	for _, bit := range []uint64{1 << 10, 1 << 31, 1 << 63} {
		c.Errno("an undefined bit of comp_mask", create(c, e, verbs.QPTRC, &verbs.DirectQPAttr{CompMask: bit}), syscall.EINVAL)
	}
	for _, flag := range []uint32{1 << 10, 1 << 20, 1 << 31} {
		c.Errno("an undefined creation flag",
			create(c, e, verbs.QPTRC, &verbs.DirectQPAttr{CompMask: verbs.DirectQPCreateFlags, CreateFlags: flag}), syscall.EINVAL)
		c.Errno("one in a mask that says that there are no flags", create(c, e, verbs.QPTRC, &verbs.DirectQPAttr{CreateFlags: flag}), 0)
	}
}

func driverTypeAlone(c *spec.C) {
	e := kit.Open(c)
	err := create(c, e, verbs.QPTDriver, nil)
	c.True("a QP of the driver's type by the plain call", err != nil, "it was created")
	c.Errno("a QP of the driver's type with empty direct attributes", create(c, e, verbs.QPTDriver, &verbs.DirectQPAttr{}), syscall.EINVAL)
}

func outOfOrder(c *spec.C) {
	e := kit.Open(c)
	ooo := &verbs.DirectQPAttr{CompMask: verbs.DirectQPCreateFlags, CreateFlags: verbs.DirectQPCreateOOODP}
	c.Errno("RC, which has it", create(c, e, verbs.QPTRC, ooo), 0)
	c.Errno("a raw packet QP, which never has", create(c, e, verbs.QPTRawPacket, ooo), syscall.EOPNOTSUPP)
}
