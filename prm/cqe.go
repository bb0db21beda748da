package prm

import (
	"cmp"
	"fmt"
)

// CQEOpcode is the opcode of a completion queue entry.
type CQEOpcode uint8

// CQE opcodes (device.h, MLX5_CQE_*).
const (
	CQEReq         CQEOpcode = 0
	CQERespWrImm   CQEOpcode = 1
	CQERespSend    CQEOpcode = 2
	CQERespSendImm CQEOpcode = 3
	CQERespSendInv CQEOpcode = 4
	CQEResizeCQ    CQEOpcode = 5
	CQENoPacket    CQEOpcode = 6
	CQESigErr      CQEOpcode = 12
	CQEReqErr      CQEOpcode = 13
	CQERespErr     CQEOpcode = 14
	CQEInvalid     CQEOpcode = 15
)

// Responder reports whether an entry of the opcode is about a receive.
func (o CQEOpcode) Responder() bool {
	return o >= CQERespWrImm && o <= CQERespSendInv || o == CQERespErr
}

// CQE formats.
const (
	CQEFormatPlain      = 0
	CQEFormatInline32   = 1 // payload in the first 32 bytes of the CQE64
	CQEFormatInline64   = 2 // payload in the 64 bytes before the CQE64 of a 128-byte entry
	CQEFormatCompressed = 3
)

// CQEOpOwnInit is the byte that software writes to the last byte of every entry before it
// creates the CQ: opcode CQEInvalid, owner 0.
const CQEOpOwnInit = 0xf0

// Opcode returns the CQE opcode, the upper 4 bits of op_own.
func (c CQE64) Opcode() CQEOpcode { return CQEOpcode(c[63] >> 4) }

// Format returns the format of the CQE, bits 2 and 3 of op_own.
func (c CQE64) Format() uint8 { return c[63] >> 2 & 3 }

// SE is the solicited event bit.
func (c CQE64) SE() bool { return c[63]&2 != 0 }

// Owner returns the owner bit, which the device toggles at each pass of the ring.
func (c CQE64) Owner() uint8 { return c[63] & 1 }

// SetOpOwn writes opcode, format, solicited bit and owner, the last byte of the entry.
func (c CQE64) SetOpOwn(op CQEOpcode, format uint8, se bool, owner uint8) {
	v := byte(op)<<4 | format&3<<2 | owner&1
	if se {
		v |= 2
	}
	c[63] = v
}

// Ready reports whether software owns the entry: ci is the consumer index (not
// reduced) and n the number of entries, a power of two.
func (c CQE64) Ready(ci, n uint32) bool {
	return c[63]>>4 != byte(CQEInvalid) && (c[63]&1 != 0) == (ci&n != 0)
}

// CQEOwner is the owner bit that a device writes to its entry number pi (not
// reduced) of n: the parity of the pass.
func CQEOwner(pi, n uint32) uint8 {
	if pi&n != 0 {
		return 1
	}
	return 0
}

// Syndrome says what went wrong, in an error CQE.
type Syndrome uint8

// Syndromes (device.h, MLX5_CQE_SYNDROME_*).
const (
	SyndromeLocalLength       Syndrome = 0x01
	SyndromeLocalQPOp         Syndrome = 0x02
	SyndromeLocalProt         Syndrome = 0x04
	SyndromeWRFlush           Syndrome = 0x05
	SyndromeMWBind            Syndrome = 0x06
	SyndromeBadResp           Syndrome = 0x10
	SyndromeLocalAccess       Syndrome = 0x11
	SyndromeRemoteInvalReq    Syndrome = 0x12
	SyndromeRemoteAccess      Syndrome = 0x13
	SyndromeRemoteOp          Syndrome = 0x14
	SyndromeTransportRetryExc Syndrome = 0x15
	SyndromeRNRRetryExc       Syndrome = 0x16
	SyndromeRemoteAborted     Syndrome = 0x22
)

// VendorSyndODPFault with SyndromeRemoteAborted marks a receive WQE that met an absent page.
const VendorSyndODPFault = 0x93

// WC statuses, the values of enum ibv_wc_status.
const (
	WCSuccess        = 0
	WCLocLenErr      = 1
	WCLocQPOpErr     = 2
	WCLocProtErr     = 4
	WCWRFlushErr     = 5
	WCMWBindErr      = 6
	WCBadRespErr     = 7
	WCLocAccessErr   = 8
	WCRemInvReqErr   = 9
	WCRemAccessErr   = 10
	WCRemOpErr       = 11
	WCRetryExcErr    = 12
	WCRNRRetryExcErr = 13
	WCRemAbortErr    = 16
	WCGeneralErr     = 21
)

var wcStatuses = map[Syndrome]uint32{
	SyndromeLocalLength: WCLocLenErr, SyndromeLocalQPOp: WCLocQPOpErr, SyndromeLocalProt: WCLocProtErr, SyndromeWRFlush: WCWRFlushErr,
	SyndromeMWBind: WCMWBindErr, SyndromeBadResp: WCBadRespErr, SyndromeLocalAccess: WCLocAccessErr, SyndromeRemoteInvalReq: WCRemInvReqErr,
	SyndromeRemoteAccess: WCRemAccessErr, SyndromeRemoteOp: WCRemOpErr, SyndromeTransportRetryExc: WCRetryExcErr,
	SyndromeRNRRetryExc: WCRNRRetryExcErr, SyndromeRemoteAborted: WCRemAbortErr,
}

// WCStatus is the ibv_wc_status that a driver reports for the syndrome
// (mlx5_handle_error_cqe).
func (s Syndrome) WCStatus() uint32 { return cmp.Or(wcStatuses[s], WCGeneralErr) }

// String returns the text form.
func (s Syndrome) String() string { return fmt.Sprintf("syndrome %#02x", uint8(s)) }
