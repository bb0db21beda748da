package prm

// WQ is the context of a work queue inside an RMP (mlx5_ifc wq). LogWQStride is in
// bytes, LogWQPgSz less 12, PageOffset in units of page/64.
type WQ []byte

// WQSize is its length in bytes, lists not included.
const WQSize = 0xc0

// Values of WQ.WQType.
const (
	WQTypeLinkedList = 0
	WQTypeCyclic     = 1
)

func (w WQ) WQType() uint32             { return bits(w, 0x00, 31, 28) }
func (w WQ) SetWQType(v uint32)         { put(w, 0x00, 31, 28, v) }
func (w WQ) WQSignature() bool          { return bit(w, 0x00, 27) }
func (w WQ) SetWQSignature(v bool)      { putBit(w, 0x00, 27, v) }
func (w WQ) EndPaddingMode() uint32     { return bits(w, 0x00, 26, 25) }
func (w WQ) SetEndPaddingMode(v uint32) { put(w, 0x00, 26, 25, v) }
func (w WQ) PageOffset() uint32         { return bits(w, 0x04, 20, 16) }
func (w WQ) SetPageOffset(v uint32)     { put(w, 0x04, 20, 16, v) }

// LWM is the limit below which the queue reports an event; 0: none.
func (w WQ) LWM() uint32             { return bits(w, 0x04, 15, 0) }
func (w WQ) SetLWM(v uint32)         { put(w, 0x04, 15, 0, v) }
func (w WQ) PD() uint32              { return bits(w, 0x08, 23, 0) }
func (w WQ) SetPD(v uint32)          { put(w, 0x08, 23, 0, v) }
func (w WQ) UARPage() uint32         { return bits(w, 0x0c, 23, 0) }
func (w WQ) SetUARPage(v uint32)     { put(w, 0x0c, 23, 0, v) }
func (w WQ) DBRAddr() uint64         { return be64(w, 0x10) }
func (w WQ) SetDBRAddr(v uint64)     { putBE64(w, 0x10, v) }
func (w WQ) HWCounter() uint32       { return be32(w, 0x18) }
func (w WQ) SetHWCounter(v uint32)   { putBE32(w, 0x18, v) }
func (w WQ) SWCounter() uint32       { return be32(w, 0x1c) }
func (w WQ) SetSWCounter(v uint32)   { putBE32(w, 0x1c, v) }
func (w WQ) LogWQStride() uint32     { return bits(w, 0x20, 19, 16) }
func (w WQ) SetLogWQStride(v uint32) { put(w, 0x20, 19, 16, v) }
func (w WQ) LogWQPgSz() uint32       { return bits(w, 0x20, 12, 8) }
func (w WQ) SetLogWQPgSz(v uint32)   { put(w, 0x20, 12, 8, v) }
func (w WQ) LogWQSz() uint32         { return bits(w, 0x20, 4, 0) }
func (w WQ) SetLogWQSz(v uint32)     { put(w, 0x20, 4, 0, v) }
func (w WQ) DBRUmemValid() bool      { return bit(w, 0x24, 31) }
func (w WQ) SetDBRUmemValid(v bool)  { putBit(w, 0x24, 31, v) }
func (w WQ) WQUmemValid() bool       { return bit(w, 0x24, 30) }
func (w WQ) SetWQUmemValid(v bool)   { putBit(w, 0x24, 30, v) }

// RMPC is the context of a receive memory pool (mlx5_ifc rmpc): what a driver makes
// for a basic SRQ.
type RMPC []byte

// RMPCSize is its length in bytes, lists not included.
const RMPCSize = 0xf0

// States of an RMP.
const (
	RMPStateReady = 1
	RMPStateErr   = 3
)

func (c RMPC) State() uint32               { return bits(c, 0x00, 23, 20) }
func (c RMPC) SetState(v uint32)           { put(c, 0x00, 23, 20, v) }
func (c RMPC) BasicCyclicRcvWQE() bool     { return bit(c, 0x04, 31) }
func (c RMPC) SetBasicCyclicRcvWQE(v bool) { putBit(c, 0x04, 31, v) }
func (c RMPC) WQ() WQ                      { return WQ(c[0x30:0xf0:0xf0]) }

// CreateRMPIn is the in mailbox of CREATE_RMP (0x90c).
type CreateRMPIn []byte

func (m CreateRMPIn) RMPC() RMPC { return RMPC(m[0x20:0x110:0x110]) }
func (m CreateRMPIn) PAS() PAS   { return PAS(m[0x110:]) }

// CreateRMPOut is the out mailbox of CREATE_RMP.
type CreateRMPOut []byte

func (m CreateRMPOut) RMPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m CreateRMPOut) SetRMPN(v uint32) { put(m, 0x08, 23, 0, v) }

// Lengths in bytes, lists not included.
const (
	CreateRMPInSize  = 0x110
	CreateRMPOutSize = 0x10
)

// ModifyRMPIn is the in mailbox of MODIFY_RMP (0x90d).
type ModifyRMPIn []byte

func (m ModifyRMPIn) RMPState() uint32     { return bits(m, 0x08, 31, 28) }
func (m ModifyRMPIn) SetRMPState(v uint32) { put(m, 0x08, 31, 28, v) }
func (m ModifyRMPIn) RMPN() uint32         { return bits(m, 0x08, 23, 0) }
func (m ModifyRMPIn) SetRMPN(v uint32)     { put(m, 0x08, 23, 0, v) }

// SelectLWM says that the limit is to be taken over.
func (m ModifyRMPIn) SelectLWM() bool     { return bit(m, 0x14, 0) }
func (m ModifyRMPIn) SetSelectLWM(v bool) { putBit(m, 0x14, 0, v) }
func (m ModifyRMPIn) RMPC() RMPC          { return RMPC(m[0x20:0x110:0x110]) }

// ModifyRMPOut is the out mailbox of MODIFY_RMP.
type ModifyRMPOut []byte

// Lengths in bytes, lists not included.
const (
	ModifyRMPInSize  = 0x110
	ModifyRMPOutSize = 0x10
)

// DestroyRMPIn is the in mailbox of DESTROY_RMP (0x90e).
type DestroyRMPIn []byte

func (m DestroyRMPIn) RMPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m DestroyRMPIn) SetRMPN(v uint32) { put(m, 0x08, 23, 0, v) }

// DestroyRMPOut is the out mailbox of DESTROY_RMP.
type DestroyRMPOut []byte

// Lengths in bytes, lists not included.
const (
	DestroyRMPInSize  = 0x10
	DestroyRMPOutSize = 0x10
)

// QueryRMPIn is the in mailbox of QUERY_RMP (0x90f).
type QueryRMPIn []byte

func (m QueryRMPIn) RMPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m QueryRMPIn) SetRMPN(v uint32) { put(m, 0x08, 23, 0, v) }

// QueryRMPOut is the out mailbox of QUERY_RMP.
type QueryRMPOut []byte

func (m QueryRMPOut) RMPC() RMPC { return RMPC(m[0x20:0x110:0x110]) }

// Lengths in bytes, lists not included.
const (
	QueryRMPInSize  = 0x10
	QueryRMPOutSize = 0x110
)
