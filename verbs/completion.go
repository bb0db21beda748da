package verbs

// WCStatus is IBV_WC_*.
type WCStatus uint32

// Work completion statuses.
const (
	WCSuccess WCStatus = iota
	WCLocLenErr
	WCLocQPOpErr
	WCLocEECOpErr
	WCLocProtErr
	WCWRFlushErr
	WCMWBindErr
	WCBadRespErr
	WCLocAccessErr
	WCRemInvReqErr
	WCRemAccessErr
	WCRemOpErr
	WCRetryExcErr
	WCRNRRetryExcErr
	WCLocRDDViolErr
	WCRemInvRDReqErr
	WCRemAbortErr
	WCInvEECNErr
	WCInvEECStateErr
	WCFatalErr
	WCRespTimeoutErr
	WCGeneralErr
	WCTMErr
	WCTMRndvIncomplete
)

var wcStatusNames = [...]string{"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR",
	"WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR",
	"REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR",
	"INV_EECN_ERR", "INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR", "TM_ERR",
	"TM_RNDV_INCOMPLETE"}

// String returns the name as the catalogue spells it: that of IBV_WC_* without the prefix.
func (s WCStatus) String() string { return nameOf(wcStatusNames[:], s, "WCStatus") }

// WCOpcode is IBV_WC_* of ibv_wc_opcode.
type WCOpcode uint32

// Work completion opcodes.
const (
	WCOpSend        WCOpcode = 0
	WCOpRDMAWrite   WCOpcode = 1
	WCOpRDMARead    WCOpcode = 2
	WCOpCompSwap    WCOpcode = 3
	WCOpFetchAdd    WCOpcode = 4
	WCOpBindMW      WCOpcode = 5
	WCOpLocalInv    WCOpcode = 6
	WCOpTSO         WCOpcode = 7
	WCOpAtomicWrite WCOpcode = 9
	WCOpRecv        WCOpcode = 128
	WCOpRecvRDMAImm WCOpcode = 129
	WCOpDriver1     WCOpcode = 135
	WCOpDriver2     WCOpcode = 136
	WCOpDriver3     WCOpcode = 137
)

// WCFlags are IBV_WC_GRH and the like.
type WCFlags uint32

// Work completion flags.
const (
	WCGRH      WCFlags = 1 << 0
	WCWithImm  WCFlags = 1 << 1
	WCIPCsumOK WCFlags = 1 << 2 // checksums of IPv4 and of what is in it are right
	WCWithInv  WCFlags = 1 << 3
)

// WC is ibv_wc. On an error only ID, Status, QPN and VendorErr are meaningful. ByteLen is in bytes;
// for a UD receive it includes GRHSize.
type WC struct {
	ID           uint64
	Status       WCStatus
	Opcode       WCOpcode
	VendorErr    uint32
	ByteLen      uint32
	Imm          uint32 // host order; or the invalidated key
	QPN          uint32
	SrcQP        uint32
	Flags        WCFlags
	PKeyIndex    uint16
	SLID         uint16
	SL           uint8
	DLIDPathBits uint8
}
