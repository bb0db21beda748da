package prm

// HCAVportContext is hca_vport_context of mlx5_ifc: an InfiniBand port.
type HCAVportContext []byte

// HCAVportContextSize is its length in bytes.
const HCAVportContextSize = 0x200

func (c HCAVportContext) GRHRequired() bool                { return bit(c, 0x20, 28) }
func (c HCAVportContext) SetGRHRequired(v bool)            { putBit(c, 0x20, 28, v) }
func (c HCAVportContext) PortPhysicalState() uint32        { return bits(c, 0x20, 15, 12) }
func (c HCAVportContext) SetPortPhysicalState(v uint32)    { put(c, 0x20, 15, 12, v) }
func (c HCAVportContext) PortState() uint32                { return bits(c, 0x20, 7, 4) }
func (c HCAVportContext) SetPortState(v uint32)            { put(c, 0x20, 7, 4, v) }
func (c HCAVportContext) VportState() uint32               { return bits(c, 0x20, 3, 0) }
func (c HCAVportContext) SetVportState(v uint32)           { put(c, 0x20, 3, 0, v) }
func (c HCAVportContext) SystemImageGUID() uint64          { return be64(c, 0x28) }
func (c HCAVportContext) SetSystemImageGUID(v uint64)      { putBE64(c, 0x28, v) }
func (c HCAVportContext) PortGUID() uint64                 { return be64(c, 0x30) }
func (c HCAVportContext) SetPortGUID(v uint64)             { putBE64(c, 0x30, v) }
func (c HCAVportContext) NodeGUID() uint64                 { return be64(c, 0x38) }
func (c HCAVportContext) SetNodeGUID(v uint64)             { putBE64(c, 0x38, v) }
func (c HCAVportContext) CapMask1() uint32                 { return be32(c, 0x40) }
func (c HCAVportContext) SetCapMask1(v uint32)             { putBE32(c, 0x40, v) }
func (c HCAVportContext) CapMask2() uint32                 { return be32(c, 0x48) }
func (c HCAVportContext) SetCapMask2(v uint32)             { putBE32(c, 0x48, v) }
func (c HCAVportContext) LID() uint32                      { return bits(c, 0x60, 31, 16) }
func (c HCAVportContext) SetLID(v uint32)                  { put(c, 0x60, 31, 16, v) }
func (c HCAVportContext) InitTypeReply() uint32            { return bits(c, 0x60, 11, 8) }
func (c HCAVportContext) SetInitTypeReply(v uint32)        { put(c, 0x60, 11, 8, v) }
func (c HCAVportContext) LMC() uint32                      { return bits(c, 0x60, 7, 5) }
func (c HCAVportContext) SetLMC(v uint32)                  { put(c, 0x60, 7, 5, v) }
func (c HCAVportContext) SubnetTimeout() uint32            { return bits(c, 0x60, 4, 0) }
func (c HCAVportContext) SetSubnetTimeout(v uint32)        { put(c, 0x60, 4, 0, v) }
func (c HCAVportContext) SMLID() uint32                    { return bits(c, 0x64, 31, 16) }
func (c HCAVportContext) SetSMLID(v uint32)                { put(c, 0x64, 31, 16, v) }
func (c HCAVportContext) SMSL() uint32                     { return bits(c, 0x64, 15, 12) }
func (c HCAVportContext) SetSMSL(v uint32)                 { put(c, 0x64, 15, 12, v) }
func (c HCAVportContext) QKeyViolationCounter() uint32     { return bits(c, 0x68, 31, 16) }
func (c HCAVportContext) SetQKeyViolationCounter(v uint32) { put(c, 0x68, 31, 16, v) }
func (c HCAVportContext) PKeyViolationCounter() uint32     { return bits(c, 0x68, 15, 0) }
func (c HCAVportContext) SetPKeyViolationCounter(v uint32) { put(c, 0x68, 15, 0, v) }

// QueryHCAVportContextIn is the in mailbox of QUERY_HCA_VPORT_CONTEXT (0x762).
type QueryHCAVportContextIn []byte

func (m QueryHCAVportContextIn) OtherVport() bool        { return bit(m, 0x08, 31) }
func (m QueryHCAVportContextIn) SetOtherVport(v bool)    { putBit(m, 0x08, 31, v) }
func (m QueryHCAVportContextIn) PortNum() uint32         { return bits(m, 0x08, 19, 16) }
func (m QueryHCAVportContextIn) SetPortNum(v uint32)     { put(m, 0x08, 19, 16, v) }
func (m QueryHCAVportContextIn) VportNumber() uint32     { return bits(m, 0x08, 15, 0) }
func (m QueryHCAVportContextIn) SetVportNumber(v uint32) { put(m, 0x08, 15, 0, v) }

// QueryHCAVportContextOut is the out mailbox of QUERY_HCA_VPORT_CONTEXT.
type QueryHCAVportContextOut []byte

func (m QueryHCAVportContextOut) Context() HCAVportContext {
	return HCAVportContext(m[0x10:0x210:0x210])
}

// Lengths in bytes, lists not included.
const (
	QueryHCAVportContextInSize  = 0x10
	QueryHCAVportContextOutSize = 0x210
)

// QueryHCAVportGIDIn is the in mailbox of QUERY_HCA_VPORT_GID (0x764).
type QueryHCAVportGIDIn []byte

// AllVportEntries as an index asks for a whole table.
const AllVportEntries = 0xffff

func (m QueryHCAVportGIDIn) OtherVport() bool        { return bit(m, 0x08, 31) }
func (m QueryHCAVportGIDIn) SetOtherVport(v bool)    { putBit(m, 0x08, 31, v) }
func (m QueryHCAVportGIDIn) PortNum() uint32         { return bits(m, 0x08, 19, 16) }
func (m QueryHCAVportGIDIn) SetPortNum(v uint32)     { put(m, 0x08, 19, 16, v) }
func (m QueryHCAVportGIDIn) VportNumber() uint32     { return bits(m, 0x08, 15, 0) }
func (m QueryHCAVportGIDIn) SetVportNumber(v uint32) { put(m, 0x08, 15, 0, v) }
func (m QueryHCAVportGIDIn) GIDIndex() uint32        { return bits(m, 0x0c, 15, 0) }
func (m QueryHCAVportGIDIn) SetGIDIndex(v uint32)    { put(m, 0x0c, 15, 0, v) }

// QueryHCAVportGIDOut is the out mailbox of QUERY_HCA_VPORT_GID, and its list.
type QueryHCAVportGIDOut []byte

func (m QueryHCAVportGIDOut) GIDsNum() uint32     { return bits(m, 0x0c, 31, 16) }
func (m QueryHCAVportGIDOut) SetGIDsNum(v uint32) { put(m, 0x0c, 31, 16, v) }

// Room is how many entries the mailbox holds.
func (m QueryHCAVportGIDOut) Room() int { return (len(m) - QueryHCAVportGIDOutSize) / 16 }

// GID is entry i of the answer, 16 bytes of the view.
func (m QueryHCAVportGIDOut) GID(i int) []byte { return m[0x10+16*i : 0x20+16*i : 0x20+16*i] }

// Lengths in bytes, lists not included.
const (
	QueryHCAVportGIDInSize  = 0x10
	QueryHCAVportGIDOutSize = 0x10
)

// QueryHCAVportPKeyIn is the in mailbox of QUERY_HCA_VPORT_PKEY (0x765).
type QueryHCAVportPKeyIn []byte

func (m QueryHCAVportPKeyIn) OtherVport() bool        { return bit(m, 0x08, 31) }
func (m QueryHCAVportPKeyIn) SetOtherVport(v bool)    { putBit(m, 0x08, 31, v) }
func (m QueryHCAVportPKeyIn) PortNum() uint32         { return bits(m, 0x08, 19, 16) }
func (m QueryHCAVportPKeyIn) SetPortNum(v uint32)     { put(m, 0x08, 19, 16, v) }
func (m QueryHCAVportPKeyIn) VportNumber() uint32     { return bits(m, 0x08, 15, 0) }
func (m QueryHCAVportPKeyIn) SetVportNumber(v uint32) { put(m, 0x08, 15, 0, v) }
func (m QueryHCAVportPKeyIn) PKeyIndex() uint32       { return bits(m, 0x0c, 15, 0) }
func (m QueryHCAVportPKeyIn) SetPKeyIndex(v uint32)   { put(m, 0x0c, 15, 0, v) }

// QueryHCAVportPKeyOut is the out mailbox of QUERY_HCA_VPORT_PKEY: a word for each key.
type QueryHCAVportPKeyOut []byte

// Room is how many entries the mailbox holds.
func (m QueryHCAVportPKeyOut) Room() int { return (len(m) - QueryHCAVportPKeyOutSize) / 4 }

func (m QueryHCAVportPKeyOut) PKey(i int) uint16       { return uint16(bits(m, 0x10+4*i, 15, 0)) }
func (m QueryHCAVportPKeyOut) SetPKey(i int, v uint16) { put(m, 0x10+4*i, 15, 0, uint32(v)) }

// Lengths in bytes, lists not included.
const (
	QueryHCAVportPKeyInSize  = 0x10
	QueryHCAVportPKeyOutSize = 0x10
)
