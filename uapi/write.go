package uapi

import "syscall"

// Commands of INVOKE_WRITE (enum ib_uverbs_write_cmds). CmdExtended marks the
// extended form of one.
const (
	CmdQueryDevice       = 1
	CmdQueryPort         = 2
	CmdAllocPD           = 3
	CmdDeallocPD         = 4
	CmdCreateAH          = 5
	CmdDestroyAH         = 8
	CmdRegMR             = 9
	CmdReregMR           = 11
	CmdDeregMR           = 13
	CmdAllocMW           = 14
	CmdDeallocMW         = 16
	CmdCreateCompChannel = 17
	CmdCreateCQ          = 18
	CmdResizeCQ          = 19
	CmdCreateQP          = 24
	CmdQueryQP           = 25
	CmdModifyQP          = 26
	CmdAttachMcast       = 30
	CmdDetachMcast       = 31
	CmdCreateSRQ         = 32
	CmdModifySRQ         = 33
	CmdQuerySRQ          = 34
	CmdDestroySRQ        = 35
	CmdOpenXRCD          = 37
	CmdCloseXRCD         = 38
	CmdCreateXSRQ        = 39
	CmdOpenQP            = 40
	CmdCreateFlow        = 50
	CmdCreateWQ          = 52
	CmdModifyWQ          = 53
	CmdCreateRWQIndTbl   = 55
	CmdModifyCQ          = 57

	CmdExtended = 1 << 31
	cmdMask     = 0xff
)

// Command is a command that WriteCall knows, with the least lengths of its request
// and its answer.
type Command struct {
	Cmd       uint32
	Name      string
	Req, Resp int
}

// commands have the lengths of uverbs_def_write_intf. The request of a command that is
// not extended begins with an address for the answer, which is not used here.
var commands = [...]Command{
	{CmdQueryDevice, "QUERY_DEVICE", 8, QueryDeviceRespSize},
	{CmdQueryDevice | CmdExtended, "EX_QUERY_DEVICE", ExQueryDeviceSize, 184}, // up to response_length
	{CmdQueryPort, "QUERY_PORT", QueryPortSize, QueryPortRespSize},
	{CmdAllocPD, "ALLOC_PD", 8, AllocPDRespSize},
	{CmdDeallocPD, "DEALLOC_PD", 4, 0},
	{CmdRegMR, "REG_MR", RegMRSize, RegMRRespSize},
	{CmdDeregMR, "DEREG_MR", 4, 0},
	{CmdReregMR, "REREG_MR", ReregMRSize, ReregMRRespSize},
	{CmdAllocMW, "ALLOC_MW", AllocMWSize, AllocMWRespSize},
	{CmdDeallocMW, "DEALLOC_MW", 4, 0},
	{CmdCreateAH, "CREATE_AH", CreateAHSize, CreateAHRespSize},
	{CmdDestroyAH, "DESTROY_AH", 4, 0},
	{CmdCreateCompChannel, "CREATE_COMP_CHANNEL", 8, CreateCompChannelRespSize},
	{CmdResizeCQ, "RESIZE_CQ", ResizeCQSize, ResizeCQRespSize},
	{CmdModifyCQ | CmdExtended, "EX_MODIFY_CQ", ExModifyCQSize, 0},
	{CmdQueryQP, "QUERY_QP", QueryQPSize, QueryQPRespSize},
	{CmdModifyQP, "MODIFY_QP", ModifyQPSize, 0},
	{CmdModifyQP | CmdExtended, "EX_MODIFY_QP", ModifyQPSize, ExModifyQPRespSize},
	{CmdAttachMcast, "ATTACH_MCAST", AttachMcastSize, 0},
	{CmdDetachMcast, "DETACH_MCAST", AttachMcastSize, 0},
	{CmdCreateSRQ, "CREATE_SRQ", CreateSRQSize, CreateSRQRespSize},
	{CmdModifySRQ, "MODIFY_SRQ", ModifySRQSize, 0},
	{CmdQuerySRQ, "QUERY_SRQ", QuerySRQSize, QuerySRQRespSize},
	{CmdDestroySRQ, "DESTROY_SRQ", DestroySRQSize, DestroySRQRespSize},
	{CmdOpenXRCD, "OPEN_XRCD", OpenXRCDSize, OpenXRCDRespSize},
	{CmdCloseXRCD, "CLOSE_XRCD", 4, 0},
	{CmdCreateXSRQ, "CREATE_XSRQ", CreateXSRQSize, CreateSRQRespSize},
	{CmdCreateFlow | CmdExtended, "EX_CREATE_FLOW", CreateFlowSize, CreateFlowRespSize},
	{CmdModifyWQ | CmdExtended, "EX_MODIFY_WQ", ExModifyWQSize, 0},
	{CmdCreateRWQIndTbl | CmdExtended, "EX_CREATE_RWQ_IND_TBL", ExCreateRWQIndTblSize, ExCreateRWQIndTblRespSize},
	{CmdOpenQP, "OPEN_QP", OpenQPSize, CreateQPRespSize},
}

// Commands lists the commands that WriteCall knows.
func Commands() []Command { return append([]Command(nil), commands[:]...) }

// Write is a command carried by INVOKE_WRITE.
type Write struct {
	*Command
	c *Call
}

// WriteCall takes the command out of a call of INVOKE_WRITE. EINVAL: bits that mean
// nothing. EOPNOTSUPP: a command that the kernel does not have. ENOSPC: the request or the
// room for the answer is too short; with neither, that is the answer to libibverbs'
// question whether the method exists.
func (c *Call) WriteCall() (*Write, error) {
	v := c.Value(InvokeWriteCmd)
	if v&^(CmdExtended|cmdMask) != 0 {
		return nil, errorf(syscall.EINVAL, "command %#x", v)
	}
	for i := range commands {
		k := &commands[i]
		if uint64(k.Cmd) != v {
			continue
		}
		if c.Len(InvokeWriteCoreIn) < k.Req || c.Len(InvokeWriteCoreOut) < k.Resp {
			return nil, errorf(syscall.ENOSPC, "%s: request of %d bytes, room for %d", k.Name, c.Len(InvokeWriteCoreIn), c.Len(InvokeWriteCoreOut))
		}
		return &Write{k, c}, nil
	}
	return nil, errorf(syscall.EOPNOTSUPP, "command %#x", v)
}

// Request is the first n bytes of the request, zero where it is shorter; EOPNOTSUPP
// when it is longer and not zero there (uverbs_request).
func (w *Write) Request(n int) ([]byte, error) { return w.c.InExact(InvokeWriteCoreIn, 0, n) }

// Len is the length of the request.
func (w *Write) Len() int { return w.c.Len(InvokeWriteCoreIn) }

// Respond answers, cut to the room and with zeroes behind (uverbs_response).
func (w *Write) Respond(b []byte) error { return w.c.OutStruct(InvokeWriteCoreOut, b) }

// RespondDriver gives the driver's part of the answer, cut to the room for it.
func (w *Write) RespondDriver(b []byte) error { return w.c.Out(AttrUHWOut, b) }

// DriverRoom is the room for it.
func (w *Write) DriverRoom() int { return w.c.Len(AttrUHWOut) }

// Room is how much of an answer of n bytes arrives (uverbs_response_length).
func (w *Write) Room(n int) int { return min(n, w.c.Len(InvokeWriteCoreOut)) }

// Handle is the object of a destroy command: its request is the handle.
func (w *Write) Handle() (uint32, error) {
	b, err := w.Request(4)
	if err != nil {
		return 0, err
	}
	return le.Uint32(b), nil
}
