package hca

import "github.com/rdmasim/rdmasim/prm"

// nicCommands are the commands of a function whose port can be a network interface. Other functions
// do not know them. All are of a function that runs.
var nicCommands = map[prm.Opcode]func(d *Device, in, out []byte) prm.Status{
	prm.OpModifyVportState: cmdModifyVportState,

	prm.OpCreateTIR:  cmdCreateTIR,
	prm.OpModifyTIR:  cmdModifyTIR,
	prm.OpDestroyTIR: cmdDestroyTIR,
	prm.OpQueryTIR:   cmdQueryTIR,
	prm.OpCreateTIS:  cmdCreateTIS,
	prm.OpModifyTIS:  cmdModifyTIS,
	prm.OpDestroyTIS: cmdDestroyTIS,
	prm.OpQueryTIS:   cmdQueryTIS,
	prm.OpCreateRQT:  cmdCreateRQT,
	prm.OpModifyRQT:  cmdModifyRQT,
	prm.OpDestroyRQT: cmdDestroyRQT,
	prm.OpQueryRQT:   cmdQueryRQT,

	prm.OpCreateSQ:  cmdCreateSQ,
	prm.OpModifySQ:  cmdModifySQ,
	prm.OpDestroySQ: cmdDestroySQ,
	prm.OpQuerySQ:   cmdQuerySQ,
	prm.OpCreateRQ:  cmdCreateRQ,
	prm.OpModifyRQ:  cmdModifyRQ,
	prm.OpDestroyRQ: cmdDestroyRQ,
	prm.OpQueryRQ:   cmdQueryRQ,

	prm.OpSetFlowTableRoot:   cmdSetFlowTableRoot,
	prm.OpCreateFlowTable:    cmdCreateFlowTable,
	prm.OpQueryFlowTable:     cmdQueryFlowTable,
	prm.OpModifyFlowTable:    cmdModifyFlowTable,
	prm.OpDestroyFlowTable:   cmdDestroyFlowTable,
	prm.OpCreateFlowGroup:    cmdCreateFlowGroup,
	prm.OpDestroyFlowGroup:   cmdDestroyFlowGroup,
	prm.OpSetFlowEntry:       cmdSetFlowEntry,
	prm.OpDeleteFlowEntry:    cmdDeleteFlowEntry,
	prm.OpAllocFlowCounter:   cmdAllocFlowCounter,
	prm.OpDeallocFlowCounter: cmdDeallocFlowCounter,
	prm.OpQueryFlowCounter:   cmdQueryFlowCounter,

	prm.OpAllocModifyHeader:     cmdAllocModifyHeader,
	prm.OpDeallocModifyHeader:   cmdDeallocModifyHeader,
	prm.OpAllocPacketReformat:   cmdAllocPacketReformat,
	prm.OpDeallocPacketReformat: cmdDeallocPacketReformat,
	prm.OpQueryGeneralObject:    cmdQueryGeneralObject,
	prm.OpSyncSteering:          cmdSyncSteering,
}

// cmdModifyVportState takes what the driver wants of the state of its port's function. The state
// itself follows the link.
func cmdModifyVportState(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyVportStateIn(in)
	switch mod := prm.CmdIn(in).OpMod(); {
	case mod != prm.VportStateOfVNIC && mod != prm.VportStateOfUplink:
		return prm.StatusBadOp
	case m.OtherVport() || m.AdminState() > prm.VportStateFollow:
		return prm.StatusBadParam
	case mod == prm.VportStateOfVNIC:
		d.regs.vportAdmin = uint8(m.AdminState())
	}
	return prm.StatusOK
}

func cmdCreateTIS(d *Device, in, out []byte) prm.Status {
	c := prm.CreateTISIn(in).Context()
	if !counted(d.tds, c.TransportDomain()) || c.TLSEn() || c.UnderlayQPN() != 0 {
		return prm.StatusBadParam
	}
	n, ok := d.nic.tisNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	t := new(tis)
	copy(t.ctx[:], c)
	d.nic.tiss = put(d.nic.tiss, n, t)
	d.tds[c.TransportDomain()]++
	prm.CreateTISOut(out).SetTISN(n)
	return prm.StatusOK
}

func cmdModifyTIS(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyTISIn(in)
	t := numbered(d.nic.tiss, m.TISN())
	if t == nil {
		return prm.StatusBadResState
	}
	if m.SelectPrio() {
		prm.TISC(t.ctx[:]).SetPrio(m.Context().Prio())
	}
	return prm.StatusOK
}

func cmdDestroyTIS(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyTISIn(in).TISN()
	t := numbered(d.nic.tiss, n)
	if t == nil {
		return prm.StatusBadResState
	}
	st := destroyed(d.nic.tiss, n, t.users, &d.nic.tisNums)
	if st == prm.StatusOK {
		d.tds[prm.TISC(t.ctx[:]).TransportDomain()]--
	}
	return st
}

func cmdQueryTIS(d *Device, in, out []byte) prm.Status {
	t := numbered(d.nic.tiss, prm.QueryTISIn(in).TISN())
	if t == nil {
		return prm.StatusBadResState
	}
	copy(prm.QueryTISOut(out).Context(), t.ctx[:])
	return prm.StatusOK
}
