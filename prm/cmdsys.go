package prm

// QueryHCACapIn is the in mailbox of QUERY_HCA_CAP (0x100).
type QueryHCACapIn []byte

func (m QueryHCACapIn) OtherFunction() bool     { return bit(m, 0x08, 31) }
func (m QueryHCACapIn) SetOtherFunction(v bool) { putBit(m, 0x08, 31, v) }
func (m QueryHCACapIn) ECVfFunction() bool      { return bit(m, 0x08, 30) }
func (m QueryHCACapIn) SetECVfFunction(v bool)  { putBit(m, 0x08, 30, v) }
func (m QueryHCACapIn) FunctionID() uint32      { return bits(m, 0x08, 15, 0) }
func (m QueryHCACapIn) SetFunctionID(v uint32)  { put(m, 0x08, 15, 0, v) }

// QueryHCACapOut is the out mailbox of QUERY_HCA_CAP.
type QueryHCACapOut []byte

func (m QueryHCACapOut) Capability() []byte { return m[0x10:0x1010:0x1010] }

// Lengths in bytes, lists not included.
const (
	QueryHCACapInSize  = 0x10
	QueryHCACapOutSize = 0x1010
)

// QueryAdapterIn is the in mailbox of QUERY_ADAPTER (0x101).
type QueryAdapterIn []byte

// QueryAdapterOut is the out mailbox of QUERY_ADAPTER.
type QueryAdapterOut []byte

func (m QueryAdapterOut) Adapter() []byte { return m[0x10:0x110:0x110] }

// Lengths in bytes, lists not included.
const (
	QueryAdapterInSize  = 0x10
	QueryAdapterOutSize = 0x110
)

// InitHCAIn is the in mailbox of INIT_HCA (0x102).
type InitHCAIn []byte

func (m InitHCAIn) SWVHCAID() uint32     { return bits(m, 0x0c, 29, 16) }
func (m InitHCAIn) SetSWVHCAID(v uint32) { put(m, 0x0c, 29, 16, v) }
func (m InitHCAIn) SWOwnerID() []byte    { return m[0x10:0x20:0x20] }

// InitHCAOut is the out mailbox of INIT_HCA.
type InitHCAOut []byte

// Lengths in bytes, lists not included.
const (
	InitHCAInSize  = 0x20
	InitHCAOutSize = 0x10
)

// TeardownHCAIn is the in mailbox of TEARDOWN_HCA (0x103).
type TeardownHCAIn []byte

func (m TeardownHCAIn) Profile() uint32     { return bits(m, 0x08, 15, 0) }
func (m TeardownHCAIn) SetProfile(v uint32) { put(m, 0x08, 15, 0, v) }

// TeardownHCAOut is the out mailbox of TEARDOWN_HCA.
type TeardownHCAOut []byte

func (m TeardownHCAOut) State() bool     { return bit(m, 0x0c, 0) }
func (m TeardownHCAOut) SetState(v bool) { putBit(m, 0x0c, 0, v) }

// Lengths in bytes, lists not included.
const (
	TeardownHCAInSize  = 0x10
	TeardownHCAOutSize = 0x10
)

// EnableHCAIn is the in mailbox of ENABLE_HCA (0x104).
type EnableHCAIn []byte

func (m EnableHCAIn) EmbeddedCPUFunction() bool     { return bit(m, 0x08, 31) }
func (m EnableHCAIn) SetEmbeddedCPUFunction(v bool) { putBit(m, 0x08, 31, v) }
func (m EnableHCAIn) FunctionID() uint32            { return bits(m, 0x08, 15, 0) }
func (m EnableHCAIn) SetFunctionID(v uint32)        { put(m, 0x08, 15, 0, v) }

// EnableHCAOut is the out mailbox of ENABLE_HCA.
type EnableHCAOut []byte

// Lengths in bytes, lists not included.
const (
	EnableHCAInSize  = 0x10
	EnableHCAOutSize = 0xc
)

// DisableHCAIn is the in mailbox of DISABLE_HCA (0x105).
type DisableHCAIn []byte

func (m DisableHCAIn) EmbeddedCPUFunction() bool     { return bit(m, 0x08, 31) }
func (m DisableHCAIn) SetEmbeddedCPUFunction(v bool) { putBit(m, 0x08, 31, v) }
func (m DisableHCAIn) FunctionID() uint32            { return bits(m, 0x08, 15, 0) }
func (m DisableHCAIn) SetFunctionID(v uint32)        { put(m, 0x08, 15, 0, v) }

// DisableHCAOut is the out mailbox of DISABLE_HCA.
type DisableHCAOut []byte

// Lengths in bytes, lists not included.
const (
	DisableHCAInSize  = 0x10
	DisableHCAOutSize = 0xc
)

// QueryPagesIn is the in mailbox of QUERY_PAGES (0x107).
type QueryPagesIn []byte

func (m QueryPagesIn) EmbeddedCPUFunction() bool     { return bit(m, 0x08, 31) }
func (m QueryPagesIn) SetEmbeddedCPUFunction(v bool) { putBit(m, 0x08, 31, v) }
func (m QueryPagesIn) FunctionID() uint32            { return bits(m, 0x08, 15, 0) }
func (m QueryPagesIn) SetFunctionID(v uint32)        { put(m, 0x08, 15, 0, v) }

// QueryPagesOut is the out mailbox of QUERY_PAGES.
type QueryPagesOut []byte

func (m QueryPagesOut) EmbeddedCPUFunction() bool     { return bit(m, 0x08, 31) }
func (m QueryPagesOut) SetEmbeddedCPUFunction(v bool) { putBit(m, 0x08, 31, v) }
func (m QueryPagesOut) FunctionID() uint32            { return bits(m, 0x08, 15, 0) }
func (m QueryPagesOut) SetFunctionID(v uint32)        { put(m, 0x08, 15, 0, v) }
func (m QueryPagesOut) NumPages() uint32              { return be32(m, 0x0c) }
func (m QueryPagesOut) SetNumPages(v uint32)          { putBE32(m, 0x0c, v) }

// Lengths in bytes, lists not included.
const (
	QueryPagesInSize  = 0x10
	QueryPagesOutSize = 0x10
)

// ManagePagesIn is the in mailbox of MANAGE_PAGES (0x108).
type ManagePagesIn []byte

func (m ManagePagesIn) EmbeddedCPUFunction() bool     { return bit(m, 0x08, 31) }
func (m ManagePagesIn) SetEmbeddedCPUFunction(v bool) { putBit(m, 0x08, 31, v) }
func (m ManagePagesIn) FunctionID() uint32            { return bits(m, 0x08, 15, 0) }
func (m ManagePagesIn) SetFunctionID(v uint32)        { put(m, 0x08, 15, 0, v) }
func (m ManagePagesIn) InputNumEntries() uint32       { return be32(m, 0x0c) }
func (m ManagePagesIn) SetInputNumEntries(v uint32)   { putBE32(m, 0x0c, v) }
func (m ManagePagesIn) PAS() PAS                      { return PAS(m[0x10:]) }

// ManagePagesOut is the out mailbox of MANAGE_PAGES.
type ManagePagesOut []byte

func (m ManagePagesOut) OutputNumEntries() uint32     { return be32(m, 0x08) }
func (m ManagePagesOut) SetOutputNumEntries(v uint32) { putBE32(m, 0x08, v) }
func (m ManagePagesOut) PAS() PAS                     { return PAS(m[0x10:]) }

// Lengths in bytes, lists not included.
const (
	ManagePagesInSize  = 0x10
	ManagePagesOutSize = 0x10
)

// SetHCACapIn is the in mailbox of SET_HCA_CAP (0x109).
type SetHCACapIn []byte

func (m SetHCACapIn) OtherFunction() bool     { return bit(m, 0x08, 31) }
func (m SetHCACapIn) SetOtherFunction(v bool) { putBit(m, 0x08, 31, v) }
func (m SetHCACapIn) ECVfFunction() bool      { return bit(m, 0x08, 30) }
func (m SetHCACapIn) SetECVfFunction(v bool)  { putBit(m, 0x08, 30, v) }
func (m SetHCACapIn) FunctionID() uint32      { return bits(m, 0x08, 15, 0) }
func (m SetHCACapIn) SetFunctionID(v uint32)  { put(m, 0x08, 15, 0, v) }
func (m SetHCACapIn) Capability() []byte      { return m[0x10:0x1010:0x1010] }

// SetHCACapOut is the out mailbox of SET_HCA_CAP.
type SetHCACapOut []byte

// Lengths in bytes, lists not included.
const (
	SetHCACapInSize  = 0x1010
	SetHCACapOutSize = 0x10
)

// QueryISSIIn is the in mailbox of QUERY_ISSI (0x10a).
type QueryISSIIn []byte

// QueryISSIOut is the out mailbox of QUERY_ISSI.
type QueryISSIOut []byte

func (m QueryISSIOut) CurrentISSI() uint32          { return bits(m, 0x08, 15, 0) }
func (m QueryISSIOut) SetCurrentISSI(v uint32)      { put(m, 0x08, 15, 0, v) }
func (m QueryISSIOut) SupportedISSIDW0() uint32     { return be32(m, 0x6c) }
func (m QueryISSIOut) SetSupportedISSIDW0(v uint32) { putBE32(m, 0x6c, v) }

// Lengths in bytes, lists not included.
const (
	QueryISSIInSize  = 0x10
	QueryISSIOutSize = 0x70
)

// SetISSIIn is the in mailbox of SET_ISSI (0x10b).
type SetISSIIn []byte

func (m SetISSIIn) CurrentISSI() uint32     { return bits(m, 0x08, 15, 0) }
func (m SetISSIIn) SetCurrentISSI(v uint32) { put(m, 0x08, 15, 0, v) }

// SetISSIOut is the out mailbox of SET_ISSI.
type SetISSIOut []byte

// Lengths in bytes, lists not included.
const (
	SetISSIInSize  = 0x10
	SetISSIOutSize = 0x10
)

// AllocPDIn is the in mailbox of ALLOC_PD (0x800).
type AllocPDIn []byte

// AllocPDOut is the out mailbox of ALLOC_PD.
type AllocPDOut []byte

func (m AllocPDOut) PD() uint32     { return bits(m, 0x08, 23, 0) }
func (m AllocPDOut) SetPD(v uint32) { put(m, 0x08, 23, 0, v) }

// Lengths in bytes, lists not included.
const (
	AllocPDInSize  = 0x10
	AllocPDOutSize = 0x10
)

// DeallocPDIn is the in mailbox of DEALLOC_PD (0x801).
type DeallocPDIn []byte

func (m DeallocPDIn) PD() uint32     { return bits(m, 0x08, 23, 0) }
func (m DeallocPDIn) SetPD(v uint32) { put(m, 0x08, 23, 0, v) }

// DeallocPDOut is the out mailbox of DEALLOC_PD.
type DeallocPDOut []byte

// Lengths in bytes, lists not included.
const (
	DeallocPDInSize  = 0x10
	DeallocPDOutSize = 0x10
)

// AllocUARIn is the in mailbox of ALLOC_UAR (0x802).
type AllocUARIn []byte

// AllocUAROut is the out mailbox of ALLOC_UAR.
type AllocUAROut []byte

func (m AllocUAROut) UAR() uint32     { return bits(m, 0x08, 23, 0) }
func (m AllocUAROut) SetUAR(v uint32) { put(m, 0x08, 23, 0, v) }

// Lengths in bytes, lists not included.
const (
	AllocUARInSize  = 0x10
	AllocUAROutSize = 0x10
)

// DeallocUARIn is the in mailbox of DEALLOC_UAR (0x803).
type DeallocUARIn []byte

func (m DeallocUARIn) UAR() uint32     { return bits(m, 0x08, 23, 0) }
func (m DeallocUARIn) SetUAR(v uint32) { put(m, 0x08, 23, 0, v) }

// DeallocUAROut is the out mailbox of DEALLOC_UAR.
type DeallocUAROut []byte

// Lengths in bytes, lists not included.
const (
	DeallocUARInSize  = 0x10
	DeallocUAROutSize = 0x10
)

// NOPIn is the in mailbox of NOP (0x80d).
type NOPIn []byte

// NOPOut is the out mailbox of NOP.
type NOPOut []byte

// Lengths in bytes, lists not included.
const (
	NOPInSize  = 0x10
	NOPOutSize = 0x10
)

// AllocXRCDIn is the in mailbox of ALLOC_XRCD (0x80e).
type AllocXRCDIn []byte

// AllocXRCDOut is the out mailbox of ALLOC_XRCD.
type AllocXRCDOut []byte

func (m AllocXRCDOut) XRCD() uint32     { return bits(m, 0x08, 23, 0) }
func (m AllocXRCDOut) SetXRCD(v uint32) { put(m, 0x08, 23, 0, v) }

// Lengths in bytes, lists not included.
const (
	AllocXRCDInSize  = 0x10
	AllocXRCDOutSize = 0x10
)

// DeallocXRCDIn is the in mailbox of DEALLOC_XRCD (0x80f).
type DeallocXRCDIn []byte

func (m DeallocXRCDIn) XRCD() uint32     { return bits(m, 0x08, 23, 0) }
func (m DeallocXRCDIn) SetXRCD(v uint32) { put(m, 0x08, 23, 0, v) }

// DeallocXRCDOut is the out mailbox of DEALLOC_XRCD.
type DeallocXRCDOut []byte

// Lengths in bytes, lists not included.
const (
	DeallocXRCDInSize  = 0x10
	DeallocXRCDOutSize = 0x10
)

// AllocTransportDomainIn is the in mailbox of ALLOC_TRANSPORT_DOMAIN (0x816).
type AllocTransportDomainIn []byte

// AllocTransportDomainOut is the out mailbox of ALLOC_TRANSPORT_DOMAIN.
type AllocTransportDomainOut []byte

func (m AllocTransportDomainOut) TransportDomain() uint32     { return bits(m, 0x08, 23, 0) }
func (m AllocTransportDomainOut) SetTransportDomain(v uint32) { put(m, 0x08, 23, 0, v) }

// Lengths in bytes, lists not included.
const (
	AllocTransportDomainInSize  = 0x10
	AllocTransportDomainOutSize = 0x10
)

// DeallocTransportDomainIn is the in mailbox of DEALLOC_TRANSPORT_DOMAIN (0x817).
type DeallocTransportDomainIn []byte

func (m DeallocTransportDomainIn) TransportDomain() uint32     { return bits(m, 0x08, 23, 0) }
func (m DeallocTransportDomainIn) SetTransportDomain(v uint32) { put(m, 0x08, 23, 0, v) }

// DeallocTransportDomainOut is the out mailbox of DEALLOC_TRANSPORT_DOMAIN.
type DeallocTransportDomainOut []byte

// Lengths in bytes, lists not included.
const (
	DeallocTransportDomainInSize  = 0x10
	DeallocTransportDomainOutSize = 0x10
)
