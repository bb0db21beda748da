package prm

// QueryVportStateIn is the in mailbox of QUERY_VPORT_STATE (0x750).
type QueryVportStateIn []byte

func (m QueryVportStateIn) OtherVport() bool        { return bit(m, 0x08, 31) }
func (m QueryVportStateIn) SetOtherVport(v bool)    { putBit(m, 0x08, 31, v) }
func (m QueryVportStateIn) VportNumber() uint32     { return bits(m, 0x08, 15, 0) }
func (m QueryVportStateIn) SetVportNumber(v uint32) { put(m, 0x08, 15, 0, v) }

// QueryVportStateOut is the out mailbox of QUERY_VPORT_STATE.
type QueryVportStateOut []byte

func (m QueryVportStateOut) AdminState() uint32     { return bits(m, 0x0c, 7, 4) }
func (m QueryVportStateOut) SetAdminState(v uint32) { put(m, 0x0c, 7, 4, v) }
func (m QueryVportStateOut) State() uint32          { return bits(m, 0x0c, 3, 0) }
func (m QueryVportStateOut) SetState(v uint32)      { put(m, 0x0c, 3, 0, v) }

// Lengths in bytes, lists not included.
const (
	QueryVportStateInSize  = 0x10
	QueryVportStateOutSize = 0x10
)

// QueryNICVportContextIn is the in mailbox of QUERY_NIC_VPORT_CONTEXT (0x754).
type QueryNICVportContextIn []byte

func (m QueryNICVportContextIn) OtherVport() bool            { return bit(m, 0x08, 31) }
func (m QueryNICVportContextIn) SetOtherVport(v bool)        { putBit(m, 0x08, 31, v) }
func (m QueryNICVportContextIn) VportNumber() uint32         { return bits(m, 0x08, 15, 0) }
func (m QueryNICVportContextIn) SetVportNumber(v uint32)     { put(m, 0x08, 15, 0, v) }
func (m QueryNICVportContextIn) AllowedListType() uint32     { return bits(m, 0x0c, 26, 24) }
func (m QueryNICVportContextIn) SetAllowedListType(v uint32) { put(m, 0x0c, 26, 24, v) }

// QueryNICVportContextOut is the out mailbox of QUERY_NIC_VPORT_CONTEXT.
type QueryNICVportContextOut []byte

func (m QueryNICVportContextOut) Context() NICVportContext {
	return NICVportContext(m[0x10:0x110:0x110])
}

// Lengths in bytes, lists not included.
const (
	QueryNICVportContextInSize  = 0x10
	QueryNICVportContextOutSize = 0x110
)

// ModifyNICVportContextIn is the in mailbox of MODIFY_NIC_VPORT_CONTEXT (0x755).
type ModifyNICVportContextIn []byte

func (m ModifyNICVportContextIn) OtherVport() bool        { return bit(m, 0x08, 31) }
func (m ModifyNICVportContextIn) SetOtherVport(v bool)    { putBit(m, 0x08, 31, v) }
func (m ModifyNICVportContextIn) VportNumber() uint32     { return bits(m, 0x08, 15, 0) }
func (m ModifyNICVportContextIn) SetVportNumber(v uint32) { put(m, 0x08, 15, 0, v) }
func (m ModifyNICVportContextIn) FieldSelect() uint32     { return be32(m, 0x0c) }
func (m ModifyNICVportContextIn) SetFieldSelect(v uint32) { putBE32(m, 0x0c, v) }
func (m ModifyNICVportContextIn) Context() NICVportContext {
	return NICVportContext(m[0x100:0x200:0x200])
}

// ModifyNICVportContextOut is the out mailbox of MODIFY_NIC_VPORT_CONTEXT.
type ModifyNICVportContextOut []byte

// Lengths in bytes, lists not included.
const (
	ModifyNICVportContextInSize  = 0x200
	ModifyNICVportContextOutSize = 0x10
)

// QueryRoCEAddressIn is the in mailbox of QUERY_ROCE_ADDRESS (0x760).
type QueryRoCEAddressIn []byte

func (m QueryRoCEAddressIn) RoCEAddressIndex() uint32     { return bits(m, 0x08, 31, 16) }
func (m QueryRoCEAddressIn) SetRoCEAddressIndex(v uint32) { put(m, 0x08, 31, 16, v) }
func (m QueryRoCEAddressIn) VHCAPortNum() uint32          { return bits(m, 0x08, 3, 0) }
func (m QueryRoCEAddressIn) SetVHCAPortNum(v uint32)      { put(m, 0x08, 3, 0, v) }

// QueryRoCEAddressOut is the out mailbox of QUERY_ROCE_ADDRESS.
type QueryRoCEAddressOut []byte

func (m QueryRoCEAddressOut) Addr() RoCEAddr { return RoCEAddr(m[0x10:0x30:0x30]) }

// Lengths in bytes, lists not included.
const (
	QueryRoCEAddressInSize  = 0x10
	QueryRoCEAddressOutSize = 0x30
)

// SetRoCEAddressIn is the in mailbox of SET_ROCE_ADDRESS (0x761).
type SetRoCEAddressIn []byte

func (m SetRoCEAddressIn) RoCEAddressIndex() uint32     { return bits(m, 0x08, 31, 16) }
func (m SetRoCEAddressIn) SetRoCEAddressIndex(v uint32) { put(m, 0x08, 31, 16, v) }
func (m SetRoCEAddressIn) VHCAPortNum() uint32          { return bits(m, 0x08, 3, 0) }
func (m SetRoCEAddressIn) SetVHCAPortNum(v uint32)      { put(m, 0x08, 3, 0, v) }
func (m SetRoCEAddressIn) Addr() RoCEAddr               { return RoCEAddr(m[0x10:0x30:0x30]) }

// SetRoCEAddressOut is the out mailbox of SET_ROCE_ADDRESS.
type SetRoCEAddressOut []byte

// Lengths in bytes, lists not included.
const (
	SetRoCEAddressInSize  = 0x30
	SetRoCEAddressOutSize = 0x10
)

// QueryVportCounterIn is the in mailbox of QUERY_VPORT_COUNTER (0x770).
type QueryVportCounterIn []byte

func (m QueryVportCounterIn) OtherVport() bool        { return bit(m, 0x08, 31) }
func (m QueryVportCounterIn) SetOtherVport(v bool)    { putBit(m, 0x08, 31, v) }
func (m QueryVportCounterIn) PortNum() uint32         { return bits(m, 0x08, 19, 16) }
func (m QueryVportCounterIn) SetPortNum(v uint32)     { put(m, 0x08, 19, 16, v) }
func (m QueryVportCounterIn) VportNumber() uint32     { return bits(m, 0x08, 15, 0) }
func (m QueryVportCounterIn) SetVportNumber(v uint32) { put(m, 0x08, 15, 0, v) }
func (m QueryVportCounterIn) Clear() bool             { return bit(m, 0x18, 31) }
func (m QueryVportCounterIn) SetClear(v bool)         { putBit(m, 0x18, 31, v) }

// QueryVportCounterOut is the out mailbox of QUERY_VPORT_COUNTER.
type QueryVportCounterOut []byte

// Lengths in bytes, lists not included.
const (
	QueryVportCounterInSize  = 0x20
	QueryVportCounterOutSize = 0x210
)

// AllocQCounterIn is the in mailbox of ALLOC_Q_COUNTER (0x771).
type AllocQCounterIn []byte

// AllocQCounterOut is the out mailbox of ALLOC_Q_COUNTER.
type AllocQCounterOut []byte

func (m AllocQCounterOut) CounterSetID() uint32     { return bits(m, 0x08, 7, 0) }
func (m AllocQCounterOut) SetCounterSetID(v uint32) { put(m, 0x08, 7, 0, v) }

// Lengths in bytes, lists not included.
const (
	AllocQCounterInSize  = 0x10
	AllocQCounterOutSize = 0x10
)

// DeallocQCounterIn is the in mailbox of DEALLOC_Q_COUNTER (0x772).
type DeallocQCounterIn []byte

func (m DeallocQCounterIn) CounterSetID() uint32     { return bits(m, 0x08, 7, 0) }
func (m DeallocQCounterIn) SetCounterSetID(v uint32) { put(m, 0x08, 7, 0, v) }

// DeallocQCounterOut is the out mailbox of DEALLOC_Q_COUNTER.
type DeallocQCounterOut []byte

// Lengths in bytes, lists not included.
const (
	DeallocQCounterInSize  = 0x10
	DeallocQCounterOutSize = 0x10
)

// QueryQCounterIn is the in mailbox of QUERY_Q_COUNTER (0x773).
type QueryQCounterIn []byte

func (m QueryQCounterIn) OtherVport() bool         { return bit(m, 0x08, 31) }
func (m QueryQCounterIn) SetOtherVport(v bool)     { putBit(m, 0x08, 31, v) }
func (m QueryQCounterIn) VportNumber() uint32      { return bits(m, 0x08, 15, 0) }
func (m QueryQCounterIn) SetVportNumber(v uint32)  { put(m, 0x08, 15, 0, v) }
func (m QueryQCounterIn) Clear() bool              { return bit(m, 0x18, 31) }
func (m QueryQCounterIn) SetClear(v bool)          { putBit(m, 0x18, 31, v) }
func (m QueryQCounterIn) Aggregate() bool          { return bit(m, 0x18, 30) }
func (m QueryQCounterIn) SetAggregate(v bool)      { putBit(m, 0x18, 30, v) }
func (m QueryQCounterIn) CounterSetID() uint32     { return bits(m, 0x1c, 7, 0) }
func (m QueryQCounterIn) SetCounterSetID(v uint32) { put(m, 0x1c, 7, 0, v) }

// QueryQCounterOut is the out mailbox of QUERY_Q_COUNTER.
type QueryQCounterOut []byte

// Lengths in bytes, lists not included.
const (
	QueryQCounterInSize  = 0x20
	QueryQCounterOutSize = 0x100
)
