package prm

import "fmt"

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

// CQE64 is a completion queue entry. In a CQ of 128-byte entries it is the second half.
type CQE64 []byte

// CQE64Size is its length in bytes.
const CQE64Size = 64

// CQEOpOwnInit is the byte that software writes to the last byte of every entry before it
// creates the CQ: opcode CQEInvalid, owner 0.
const CQEOpOwnInit = 0xf0

// InlineData is the payload area of CQEFormatInline32.
func (c CQE64) InlineData() []byte { return c[0:32:32] }

func (c CQE64) MLPath() uint8     { return c[17] }
func (c CQE64) SetMLPath(v uint8) { c[17] = v }
func (c CQE64) SLID() uint16      { return be16(c, 22) }
func (c CQE64) SetSLID(v uint16)  { putBE16(c, 22, v) }

// GRH is not zero when a GRH was there (UD).
func (c CQE64) GRH() uint32     { return bits(c, 24, 29, 28) }
func (c CQE64) SetGRH(v uint32) { put(c, 24, 29, 28, v) }
func (c CQE64) SL() uint32      { return bits(c, 24, 27, 24) }
func (c CQE64) SetSL(v uint32)  { put(c, 24, 27, 24, v) }

// RQPN is the source QP number.
func (c CQE64) RQPN() uint32     { return bits(c, 24, 23, 0) }
func (c CQE64) SetRQPN(v uint32) { put(c, 24, 23, 0, v) }

// SRQNUIdx is the SRQ number (CQE version 0) or the user index (version 1).
func (c CQE64) SRQNUIdx() uint32     { return be32(c, 32) & 0xffffff }
func (c CQE64) SetSRQNUIdx(v uint32) { putBE32(c, 32, v&0xffffff) }

// ImmInvalPKey is the immediate data, the rkey that was invalidated, or the P_Key index.
func (c CQE64) ImmInvalPKey() uint32     { return be32(c, 36) }
func (c CQE64) SetImmInvalPKey(v uint32) { putBE32(c, 36, v) }
func (c CQE64) ByteCnt() uint32          { return be32(c, 44) }
func (c CQE64) SetByteCnt(v uint32)      { putBE32(c, 44, v) }
func (c CQE64) Timestamp() uint64        { return be64(c, 48) }
func (c CQE64) SetTimestamp(v uint64)    { putBE64(c, 48, v) }

// SOp is the opcode of the send WQE (requester entries).
func (c CQE64) SOp() WQEOpcode         { return WQEOpcode(c[56]) }
func (c CQE64) SetSOp(v WQEOpcode)     { c[56] = byte(v) }
func (c CQE64) QPN() uint32            { return bits(c, 56, 23, 0) }
func (c CQE64) SetQPN(v uint32)        { put(c, 56, 23, 0, v) }
func (c CQE64) WQECounter() uint16     { return be16(c, 60) }
func (c CQE64) SetWQECounter(v uint16) { putBE16(c, 60, v) }
func (c CQE64) Signature() uint8       { return c[62] }
func (c CQE64) SetSignature(v uint8)   { c[62] = v }

func (c CQE64) Opcode() CQEOpcode { return CQEOpcode(c[63] >> 4) }
func (c CQE64) Format() uint8     { return c[63] >> 2 & 3 }

// SE is the solicited event bit.
func (c CQE64) SE() bool     { return c[63]&2 != 0 }
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

// Error fields, in entries with opcode CQEReqErr or CQERespErr.

func (c CQE64) VendorErrSynd() uint8     { return c[54] }
func (c CQE64) SetVendorErrSynd(v uint8) { c[54] = v }
func (c CQE64) Syndrome() Syndrome       { return Syndrome(c[55]) }
func (c CQE64) SetSyndrome(v Syndrome)   { c[55] = byte(v) }

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

// WCStatus is the ibv_wc_status that a driver reports for the syndrome
// (mlx5_handle_error_cqe).
func (s Syndrome) WCStatus() uint32 {
	switch s {
	case SyndromeLocalLength:
		return WCLocLenErr
	case SyndromeLocalQPOp:
		return WCLocQPOpErr
	case SyndromeLocalProt:
		return WCLocProtErr
	case SyndromeWRFlush:
		return WCWRFlushErr
	case SyndromeMWBind:
		return WCMWBindErr
	case SyndromeBadResp:
		return WCBadRespErr
	case SyndromeLocalAccess:
		return WCLocAccessErr
	case SyndromeRemoteInvalReq:
		return WCRemInvReqErr
	case SyndromeRemoteAccess:
		return WCRemAccessErr
	case SyndromeRemoteOp:
		return WCRemOpErr
	case SyndromeTransportRetryExc:
		return WCRetryExcErr
	case SyndromeRNRRetryExc:
		return WCRNRRetryExcErr
	case SyndromeRemoteAborted:
		return WCRemAbortErr
	}
	return WCGeneralErr
}

func (s Syndrome) String() string { return fmt.Sprintf("syndrome %#02x", uint8(s)) }
