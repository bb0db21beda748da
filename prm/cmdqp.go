package prm

// CreateQPIn is the in mailbox of CREATE_QP (0x500).
type CreateQPIn []byte

func (m CreateQPIn) QPCExt() bool             { return bit(m, 0x08, 31) }
func (m CreateQPIn) SetQPCExt(v bool)         { putBit(m, 0x08, 31, v) }
func (m CreateQPIn) InputQPN() uint32         { return bits(m, 0x08, 23, 0) }
func (m CreateQPIn) SetInputQPN(v uint32)     { put(m, 0x08, 23, 0, v) }
func (m CreateQPIn) OptParamMask() uint32     { return be32(m, 0x10) }
func (m CreateQPIn) SetOptParamMask(v uint32) { putBE32(m, 0x10, v) }
func (m CreateQPIn) ECE() uint32              { return be32(m, 0x14) }
func (m CreateQPIn) SetECE(v uint32)          { putBE32(m, 0x14, v) }
func (m CreateQPIn) QPC() QPC                 { return QPC(m[0x18:0x100:0x100]) }
func (m CreateQPIn) WQUmemOffset() uint64     { return be64(m, 0x100) }
func (m CreateQPIn) SetWQUmemOffset(v uint64) { putBE64(m, 0x100, v) }
func (m CreateQPIn) WQUmemID() uint32         { return be32(m, 0x108) }
func (m CreateQPIn) SetWQUmemID(v uint32)     { putBE32(m, 0x108, v) }
func (m CreateQPIn) WQUmemValid() bool        { return bit(m, 0x10c, 31) }
func (m CreateQPIn) SetWQUmemValid(v bool)    { putBit(m, 0x10c, 31, v) }
func (m CreateQPIn) PAS() PAS                 { return PAS(m[0x110:]) }

// CreateQPOut is the out mailbox of CREATE_QP.
type CreateQPOut []byte

func (m CreateQPOut) QPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m CreateQPOut) SetQPN(v uint32) { put(m, 0x08, 23, 0, v) }
func (m CreateQPOut) ECE() uint32     { return be32(m, 0x0c) }
func (m CreateQPOut) SetECE(v uint32) { putBE32(m, 0x0c, v) }

// Lengths in bytes, lists not included.
const (
	CreateQPInSize  = 0x110
	CreateQPOutSize = 0x10
)

// DestroyQPIn is the in mailbox of DESTROY_QP (0x501).
type DestroyQPIn []byte

func (m DestroyQPIn) QPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m DestroyQPIn) SetQPN(v uint32) { put(m, 0x08, 23, 0, v) }

// DestroyQPOut is the out mailbox of DESTROY_QP.
type DestroyQPOut []byte

// Lengths in bytes, lists not included.
const (
	DestroyQPInSize  = 0x10
	DestroyQPOutSize = 0x10
)

// ModifyQPIn is the in mailbox of every QP transition that carries a context:
// RST2INIT, INIT2INIT, INIT2RTR, RTR2RTS, RTS2RTS, SQERR2RTS, SQD_RTS.
type ModifyQPIn []byte

func (m ModifyQPIn) QPN() uint32              { return bits(m, 0x08, 23, 0) }
func (m ModifyQPIn) SetQPN(v uint32)          { put(m, 0x08, 23, 0, v) }
func (m ModifyQPIn) OptParamMask() uint32     { return be32(m, 0x10) }
func (m ModifyQPIn) SetOptParamMask(v uint32) { putBE32(m, 0x10, v) }
func (m ModifyQPIn) ECE() uint32              { return be32(m, 0x14) }
func (m ModifyQPIn) SetECE(v uint32)          { putBE32(m, 0x14, v) }
func (m ModifyQPIn) QPC() QPC                 { return QPC(m[0x18:0x100:0x100]) }

// ModifyQPOut is the out mailbox of a transition.
type ModifyQPOut []byte

func (m ModifyQPOut) ECE() uint32     { return be32(m, 0x0c) }
func (m ModifyQPOut) SetECE(v uint32) { putBE32(m, 0x0c, v) }

// Lengths in bytes, lists not included.
const (
	ModifyQPInSize  = 0x110
	ModifyQPOutSize = 0x10
)

// Cmd2ErrQPIn is the in mailbox of 2ERR_QP (0x507).
type Cmd2ErrQPIn []byte

func (m Cmd2ErrQPIn) QPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m Cmd2ErrQPIn) SetQPN(v uint32) { put(m, 0x08, 23, 0, v) }

// Cmd2ErrQPOut is the out mailbox of 2ERR_QP.
type Cmd2ErrQPOut []byte

// Lengths in bytes, lists not included.
const (
	Cmd2ErrQPInSize  = 0x10
	Cmd2ErrQPOutSize = 0x10
)

// Cmd2RstQPIn is the in mailbox of 2RST_QP (0x50a).
type Cmd2RstQPIn []byte

func (m Cmd2RstQPIn) QPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m Cmd2RstQPIn) SetQPN(v uint32) { put(m, 0x08, 23, 0, v) }

// Cmd2RstQPOut is the out mailbox of 2RST_QP.
type Cmd2RstQPOut []byte

// Lengths in bytes, lists not included.
const (
	Cmd2RstQPInSize  = 0x10
	Cmd2RstQPOutSize = 0x10
)

// QueryQPIn is the in mailbox of QUERY_QP (0x50b).
type QueryQPIn []byte

func (m QueryQPIn) QPCExt() bool     { return bit(m, 0x08, 31) }
func (m QueryQPIn) SetQPCExt(v bool) { putBit(m, 0x08, 31, v) }
func (m QueryQPIn) QPN() uint32      { return bits(m, 0x08, 23, 0) }
func (m QueryQPIn) SetQPN(v uint32)  { put(m, 0x08, 23, 0, v) }

// QueryQPOut is the out mailbox of QUERY_QP.
type QueryQPOut []byte

func (m QueryQPOut) OptParamMask() uint32     { return be32(m, 0x10) }
func (m QueryQPOut) SetOptParamMask(v uint32) { putBE32(m, 0x10, v) }
func (m QueryQPOut) ECE() uint32              { return be32(m, 0x14) }
func (m QueryQPOut) SetECE(v uint32)          { putBE32(m, 0x14, v) }
func (m QueryQPOut) QPC() QPC                 { return QPC(m[0x18:0x100:0x100]) }

// Lengths in bytes, lists not included.
const (
	QueryQPInSize  = 0x10
	QueryQPOutSize = 0x1d0
)
