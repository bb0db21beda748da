package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// command is a row of the command table. The mailboxes have at least their fixed
// lengths, out is cleared. On any status but OK nothing has changed.
type command struct {
	run  func(d *Device, in, out []byte) prm.Status
	from phase // earliest
	to   phase // latest
}

// commands is the command table.
var commands = map[prm.Opcode]command{
	prm.OpEnableHCA:    {cmdEnable, phaseReset, phaseReset},
	prm.OpDisableHCA:   {cmdDisable, phaseEnabled, phaseEnabled},
	prm.OpQueryISSI:    {cmdQueryISSI, phaseEnabled, phaseRunning},
	prm.OpSetISSI:      {cmdSetISSI, phaseEnabled, phaseEnabled},
	prm.OpQueryPages:   {cmdNothing, phaseEnabled, phaseRunning},
	prm.OpManagePages:  {cmdNothing, phaseEnabled, phaseRunning},
	prm.OpQueryHCACap:  {cmdQueryHCACap, phaseEnabled, phaseRunning},
	prm.OpSetHCACap:    {cmdSetHCACap, phaseEnabled, phaseEnabled},
	prm.OpQueryAdapter: {cmdQueryAdapter, phaseEnabled, phaseRunning},
	prm.OpInitHCA:      {cmdInitHCA, phaseEnabled, phaseEnabled},
	prm.OpTeardownHCA:  {cmdTeardown, phaseRunning, phaseRunning},
	prm.OpNOP:          {cmdNothing, phaseEnabled, phaseRunning},
	prm.OpAccessReg:    {cmdAccessReg, phaseEnabled, phaseRunning},

	prm.OpAllocUAR:               {cmdAllocUAR, phaseEnabled, phaseRunning},
	prm.OpDeallocUAR:             {cmdDeallocUAR, phaseEnabled, phaseRunning},
	prm.OpAllocPD:                {cmdAllocPD, phaseRunning, phaseRunning},
	prm.OpDeallocPD:              {cmdDeallocPD, phaseRunning, phaseRunning},
	prm.OpAllocXRCD:              {cmdAllocXRCD, phaseRunning, phaseRunning},
	prm.OpDeallocXRCD:            {cmdDeallocXRCD, phaseRunning, phaseRunning},
	prm.OpAllocTransportDomain:   {cmdAllocTD, phaseRunning, phaseRunning},
	prm.OpDeallocTransportDomain: {cmdDeallocTD, phaseRunning, phaseRunning},
	prm.OpCreateMKey:             {cmdCreateMKey, phaseRunning, phaseRunning},
	prm.OpCreateUmem:             {cmdCreateUmem, phaseRunning, phaseRunning},
	prm.OpDestroyUmem:            {cmdDestroyUmem, phaseRunning, phaseRunning},
	prm.OpQueryMKey:              {cmdQueryMKey, phaseRunning, phaseRunning},
	prm.OpDestroyMKey:            {cmdDestroyMKey, phaseRunning, phaseRunning},
	prm.OpCreateGeneralObject:    {cmdCreateGeneralObject, phaseRunning, phaseRunning},
	prm.OpDestroyGeneralObject:   {cmdDestroyGeneralObject, phaseRunning, phaseRunning},
	prm.OpAllocMemic:             {cmdAllocMemic, phaseRunning, phaseRunning},
	prm.OpDeallocMemic:           {cmdDeallocMemic, phaseRunning, phaseRunning},
	prm.OpModifyMemic:            {cmdModifyMemic, phaseRunning, phaseRunning},
	prm.OpQuerySpecialContexts:   {cmdSpecialContexts, phaseRunning, phaseRunning},

	prm.OpPageFaultResume: {cmdPageFaultResume, phaseRunning, phaseRunning},

	prm.OpCreateEQ:  {cmdCreateEQ, phaseRunning, phaseRunning},
	prm.OpDestroyEQ: {cmdDestroyEQ, phaseRunning, phaseRunning},
	prm.OpQueryEQ:   {cmdQueryEQ, phaseRunning, phaseRunning},
	prm.OpCreateCQ:  {cmdCreateCQ, phaseRunning, phaseRunning},
	prm.OpDestroyCQ: {cmdDestroyCQ, phaseRunning, phaseRunning},
	prm.OpQueryCQ:   {cmdQueryCQ, phaseRunning, phaseRunning},
	prm.OpModifyCQ:  {cmdModifyCQ, phaseRunning, phaseRunning},

	prm.OpCreateQP:    {cmdCreateQP, phaseRunning, phaseRunning},
	prm.OpDestroyQP:   {cmdDestroyQP, phaseRunning, phaseRunning},
	prm.OpQueryQP:     {cmdQueryQP, phaseRunning, phaseRunning},
	prm.OpRst2InitQP:  {cmdRst2Init, phaseRunning, phaseRunning},
	prm.OpInit2InitQP: {cmdInit2Init, phaseRunning, phaseRunning},
	prm.OpInit2RTRQP:  {cmdInit2RTR, phaseRunning, phaseRunning},
	prm.OpRTR2RTSQP:   {cmdRTR2RTS, phaseRunning, phaseRunning},
	prm.OpRTS2RTSQP:   {cmdRTS2RTS, phaseRunning, phaseRunning},
	prm.OpSQErr2RTSQP: {cmdSQErr2RTS, phaseRunning, phaseRunning},
	prm.OpSQDRTSQP:    {cmdSQDRTS, phaseRunning, phaseRunning},
	prm.OpRTS2SQDQP:   {cmdRTS2SQD, phaseRunning, phaseRunning},
	prm.OpSQD2SQDQP:   {cmdSQD2SQD, phaseRunning, phaseRunning},
	prm.Op2ErrQP:      {cmd2Err, phaseRunning, phaseRunning},
	prm.Op2RstQP:      {cmd2Rst, phaseRunning, phaseRunning},

	prm.OpCreateRMP:  {cmdCreateRMP, phaseRunning, phaseRunning},
	prm.OpModifyRMP:  {cmdModifyRMP, phaseRunning, phaseRunning},
	prm.OpDestroyRMP: {cmdDestroyRMP, phaseRunning, phaseRunning},
	prm.OpQueryRMP:   {cmdQueryRMP, phaseRunning, phaseRunning},

	prm.OpCreateXRCSRQ:  {cmdCreateXRCSRQ, phaseRunning, phaseRunning},
	prm.OpDestroyXRCSRQ: {cmdDestroyXRCSRQ, phaseRunning, phaseRunning},
	prm.OpQueryXRCSRQ:   {cmdQueryXRCSRQ, phaseRunning, phaseRunning},
	prm.OpArmXRCSRQ:     {cmdArmXRCSRQ, phaseRunning, phaseRunning},

	prm.OpCreateDCT:  {cmdCreateDCT, phaseRunning, phaseRunning},
	prm.OpDestroyDCT: {cmdDestroyDCT, phaseRunning, phaseRunning},
	prm.OpDrainDCT:   {cmdDrainDCT, phaseRunning, phaseRunning},
	prm.OpQueryDCT:   {cmdQueryDCT, phaseRunning, phaseRunning},

	prm.OpAttachToMCG:   {cmdAttachMCG, phaseRunning, phaseRunning},
	prm.OpDetachFromMCG: {cmdDetachMCG, phaseRunning, phaseRunning},

	prm.OpQueryVportState:       {cmdVportState, phaseRunning, phaseRunning},
	prm.OpQueryNICVportContext:  {cmdQueryVport, phaseRunning, phaseRunning},
	prm.OpModifyNICVportContext: {cmdModifyVport, phaseRunning, phaseRunning},
	prm.OpQueryRoCEAddress:      {cmdQueryAddress, phaseRunning, phaseRunning},
	prm.OpSetRoCEAddress:        {cmdSetAddress, phaseRunning, phaseRunning},
	prm.OpMADIFC:                {cmdMADIFC, phaseRunning, phaseRunning},
	prm.OpQueryHCAVportContext:  {cmdQueryHCAVport, phaseRunning, phaseRunning},
	prm.OpModifyHCAVportContext: {cmdModifyHCAVport, phaseRunning, phaseRunning},
	prm.OpQueryHCAVportGID:      {cmdQueryHCAVportGID, phaseRunning, phaseRunning},
	prm.OpQueryHCAVportPKey:     {cmdQueryHCAVportPKey, phaseRunning, phaseRunning},
	prm.OpQueryVportCounter:     {cmdVportCounter, phaseRunning, phaseRunning},
	prm.OpAllocQCounter:         {cmdAllocQCounter, phaseRunning, phaseRunning},
	prm.OpDeallocQCounter:       {cmdDeallocQCounter, phaseRunning, phaseRunning},
	prm.OpQueryQCounter:         {cmdQueryQCounter, phaseRunning, phaseRunning},
}

// Command executes a command mailbox and returns the time that the firmware takes.
// Its effect is immediate; the caller waits for the time before it looks at out.
func (d *Device) Command(in, out []byte) sim.Time {
	d.settle() // what has arrived looked at contexts and keys as they were
	d.c.Commands++
	op, st := prm.CheckCommand(in, out)
	if st == prm.StatusOK {
		st = d.run(op, in, out)
	}
	if st != prm.StatusOK {
		d.c.CommandsFailed++
		prm.Fail(out, st, syndrome(op, st))
	}
	return d.commandTime(op, in)
}

func (d *Device) run(op prm.Opcode, in, out []byte) prm.Status {
	c, ok := commands[op]
	if !ok && d.nic != nil {
		c = command{nicCommands[op], phaseRunning, phaseRunning}
		ok = c.run != nil
	}
	switch {
	case !ok:
		return prm.StatusBadOp
	case d.fw.phase < c.from || d.fw.phase > c.to:
		return prm.StatusBadSysState
	}
	clear(out)
	return c.run(d, in, out)
}

// syndrome is the diagnostic word of a failure. Firmware has one for each line of
// its code; ours says command and status.
func syndrome(op prm.Opcode, st prm.Status) uint32 { return uint32(op)<<8 | uint32(st) }

func (d *Device) commandTime(op prm.Opcode, in []byte) sim.Time {
	t := &d.p.Commands
	switch op {
	case prm.OpCreateQP, prm.OpCreateDCT:
		return t.CreateQP
	case prm.OpDestroyQP, prm.OpDestroyDCT:
		return t.DestroyQP
	case prm.OpRst2InitQP, prm.OpInit2InitQP, prm.OpInit2RTRQP, prm.OpRTR2RTSQP, prm.OpRTS2RTSQP,
		prm.OpSQErr2RTSQP, prm.OpSQDRTSQP, prm.OpRTS2SQDQP, prm.OpSQD2SQDQP, prm.Op2ErrQP, prm.Op2RstQP:
		return t.ModifyQP
	case prm.OpCreateCQ, prm.OpCreateRMP, prm.OpCreateXRCSRQ: // no figure of its own: a context and a page list, too
		return t.CreateCQ
	case prm.OpCreateMKey:
		if len(in) < prm.CreateMKeyInSize {
			return t.Base
		}
		return t.CreateMkey + sim.Time(len(prm.CreateMKeyIn(in).Entries())/8)*t.CreateMkeyEntry
	case prm.OpDestroyMKey:
		return t.DestroyMkey
	}
	return t.Base
}

func cmdNothing(*Device, []byte, []byte) prm.Status { return prm.StatusOK }

func cmdEnable(d *Device, _, _ []byte) prm.Status {
	d.fw.phase = phaseEnabled
	return prm.StatusOK
}

func cmdDisable(d *Device, _, _ []byte) prm.Status {
	d.fw.phase = phaseReset
	return prm.StatusOK
}

func cmdInitHCA(d *Device, _, _ []byte) prm.Status {
	d.fw.phase = phaseRunning
	return prm.StatusOK
}

// cmdTeardown ends everything that is still there without a word.
func cmdTeardown(d *Device, in, _ []byte) prm.Status {
	if prm.TeardownHCAIn(in).Profile() != 0 {
		return prm.StatusBadParam
	}
	d.teardown()
	d.fw.phase = phaseEnabled
	return prm.StatusOK
}

func (d *Device) teardown() {
	for _, q := range d.bySlot {
		if q != nil {
			q.stop()
		}
	}
	for n, g := range d.uars {
		if g != nil {
			d.returnAhead(uint32(n))
		}
	}
	d.pds, d.xrcds, d.tds, d.qsets = nil, nil, nil, nil
	d.reset()
}

func cmdQueryISSI(d *Device, _, out []byte) prm.Status {
	o := prm.QueryISSIOut(out)
	o.SetCurrentISSI(uint32(d.fw.issi))
	o.SetSupportedISSIDW0(1<<0 | 1<<1)
	return prm.StatusOK
}

func cmdSetISSI(d *Device, in, _ []byte) prm.Status {
	v := prm.SetISSIIn(in).CurrentISSI()
	if v > 1 {
		return prm.StatusBadParam
	}
	d.fw.issi = uint8(v)
	return prm.StatusOK
}
