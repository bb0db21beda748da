package prm

// CreateEQIn is the in mailbox of CREATE_EQ (0x301).
type CreateEQIn []byte

func (m CreateEQIn) EQC() EQC                        { return EQC(m[0x10:0x50:0x50]) }
func (m CreateEQIn) EventBitmask(i int) uint64       { return be64(m, 0x58+8*i) }
func (m CreateEQIn) SetEventBitmask(i int, v uint64) { putBE64(m, 0x58+8*i, v) }
func (m CreateEQIn) PAS() PAS                        { return PAS(m[0x110:]) }

// CreateEQOut is the out mailbox of CREATE_EQ.
type CreateEQOut []byte

func (m CreateEQOut) EQNumber() uint32     { return bits(m, 0x08, 7, 0) }
func (m CreateEQOut) SetEQNumber(v uint32) { put(m, 0x08, 7, 0, v) }

// Lengths in bytes, lists not included.
const (
	CreateEQInSize  = 0x110
	CreateEQOutSize = 0x10
)

// DestroyEQIn is the in mailbox of DESTROY_EQ (0x302).
type DestroyEQIn []byte

func (m DestroyEQIn) EQNumber() uint32     { return bits(m, 0x08, 7, 0) }
func (m DestroyEQIn) SetEQNumber(v uint32) { put(m, 0x08, 7, 0, v) }

// DestroyEQOut is the out mailbox of DESTROY_EQ.
type DestroyEQOut []byte

// Lengths in bytes, lists not included.
const (
	DestroyEQInSize  = 0x10
	DestroyEQOutSize = 0x10
)

// QueryEQIn is the in mailbox of QUERY_EQ (0x303).
type QueryEQIn []byte

func (m QueryEQIn) EQNumber() uint32     { return bits(m, 0x08, 7, 0) }
func (m QueryEQIn) SetEQNumber(v uint32) { put(m, 0x08, 7, 0, v) }

// QueryEQOut is the out mailbox of QUERY_EQ.
type QueryEQOut []byte

func (m QueryEQOut) EQC() EQC                        { return EQC(m[0x10:0x50:0x50]) }
func (m QueryEQOut) EventBitmask(i int) uint64       { return be64(m, 0x58+8*i) }
func (m QueryEQOut) SetEventBitmask(i int, v uint64) { putBE64(m, 0x58+8*i, v) }
func (m QueryEQOut) PAS() PAS                        { return PAS(m[0x110:]) }

// Lengths in bytes, lists not included.
const (
	QueryEQInSize  = 0x10
	QueryEQOutSize = 0x110
)

// CreateCQIn is the in mailbox of CREATE_CQ (0x400).
type CreateCQIn []byte

func (m CreateCQIn) CQC() CQC              { return CQC(m[0x10:0x50:0x50]) }
func (m CreateCQIn) CQUmemValid() bool     { return bit(m, 0x5c, 31) }
func (m CreateCQIn) SetCQUmemValid(v bool) { putBit(m, 0x5c, 31, v) }
func (m CreateCQIn) PAS() PAS              { return PAS(m[0x110:]) }

// CreateCQOut is the out mailbox of CREATE_CQ.
type CreateCQOut []byte

func (m CreateCQOut) CQN() uint32     { return bits(m, 0x08, 23, 0) }
func (m CreateCQOut) SetCQN(v uint32) { put(m, 0x08, 23, 0, v) }

// Lengths in bytes, lists not included.
const (
	CreateCQInSize  = 0x110
	CreateCQOutSize = 0x10
)

// DestroyCQIn is the in mailbox of DESTROY_CQ (0x401).
type DestroyCQIn []byte

func (m DestroyCQIn) CQN() uint32     { return bits(m, 0x08, 23, 0) }
func (m DestroyCQIn) SetCQN(v uint32) { put(m, 0x08, 23, 0, v) }

// DestroyCQOut is the out mailbox of DESTROY_CQ.
type DestroyCQOut []byte

// Lengths in bytes, lists not included.
const (
	DestroyCQInSize  = 0x10
	DestroyCQOutSize = 0x10
)

// QueryCQIn is the in mailbox of QUERY_CQ (0x402).
type QueryCQIn []byte

func (m QueryCQIn) CQN() uint32     { return bits(m, 0x08, 23, 0) }
func (m QueryCQIn) SetCQN(v uint32) { put(m, 0x08, 23, 0, v) }

// QueryCQOut is the out mailbox of QUERY_CQ.
type QueryCQOut []byte

func (m QueryCQOut) CQC() CQC { return CQC(m[0x10:0x50:0x50]) }
func (m QueryCQOut) PAS() PAS { return PAS(m[0x110:]) }

// Lengths in bytes, lists not included.
const (
	QueryCQInSize  = 0x10
	QueryCQOutSize = 0x110
)

// ModifyCQIn is the in mailbox of MODIFY_CQ (0x403).
type ModifyCQIn []byte

func (m ModifyCQIn) CQN() uint32             { return bits(m, 0x08, 23, 0) }
func (m ModifyCQIn) SetCQN(v uint32)         { put(m, 0x08, 23, 0, v) }
func (m ModifyCQIn) FieldSelect() uint32     { return be32(m, 0x0c) }
func (m ModifyCQIn) SetFieldSelect(v uint32) { putBE32(m, 0x0c, v) }
func (m ModifyCQIn) CQC() CQC                { return CQC(m[0x10:0x50:0x50]) }
func (m ModifyCQIn) CQUmemValid() bool       { return bit(m, 0x5c, 31) }
func (m ModifyCQIn) SetCQUmemValid(v bool)   { putBit(m, 0x5c, 31, v) }
func (m ModifyCQIn) PAS() PAS                { return PAS(m[0x110:]) }

// ModifyCQOut is the out mailbox of MODIFY_CQ.
type ModifyCQOut []byte

// Lengths in bytes, lists not included.
const (
	ModifyCQInSize  = 0x110
	ModifyCQOutSize = 0x10
)
