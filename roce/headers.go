package roce

// Sizes of the transport headers in bytes.
const (
	BTHSize          = 12
	RDETHSize        = 4
	DETHSize         = 8
	XRCETHSize       = 4
	DCETHSize        = 16
	RETHSize         = 16
	AtomicETHSize    = 28
	AETHSize         = 4
	AtomicAckETHSize = 8
	ImmDtSize        = 4
	IETHSize         = 4
	FETHSize         = 4
	CNPReservedSize  = 16
	ICRCSize         = 4
	VCRCSize         = 2
)

// QPNs with a meaning of their own.
const (
	SMIQPN       = 0
	GSIQPN       = 1
	MulticastQPN = 0xFFFFFF
)

// BTH is the base transport header, 12 bytes (ib_hdrs.h, struct ib_other_headers;
// rxe_hdr.h).
type BTH []byte

func (h BTH) Opcode() Opcode   { return Opcode(h[0]) }
func (h BTH) Solicited() bool  { return h[1]&0x80 != 0 }
func (h BTH) MigReq() bool     { return h[1]&0x40 != 0 }
func (h BTH) PadCount() int    { return int(h[1] >> 4 & 3) }
func (h BTH) Version() uint8   { return h[1] & 0xF }
func (h BTH) PKey() uint16     { return be.Uint16(h[2:4]) }
func (h BTH) FECN() bool       { return h[4]&0x80 != 0 }
func (h BTH) BECN() bool       { return h[4]&0x40 != 0 }
func (h BTH) Reserved6() uint8 { return h[4] & 0x3F }
func (h BTH) DestQP() uint32   { return be.Uint32(h[4:8]) & 0xFFFFFF }
func (h BTH) AckReq() bool     { return h[8]&0x80 != 0 }
func (h BTH) Reserved7() uint8 { return h[8] & 0x7F }
func (h BTH) PSN() uint32      { return be.Uint32(h[8:12]) & PSNMask }

func (h BTH) SetOpcode(v Opcode)   { h[0] = byte(v) }
func (h BTH) SetSolicited(v bool)  { setBit(&h[1], 0x80, v) }
func (h BTH) SetMigReq(v bool)     { setBit(&h[1], 0x40, v) }
func (h BTH) SetPadCount(v int)    { h[1] = h[1]&^0x30 | byte(v&3)<<4 }
func (h BTH) SetVersion(v uint8)   { h[1] = h[1]&^0xF | v&0xF }
func (h BTH) SetPKey(v uint16)     { be.PutUint16(h[2:4], v) }
func (h BTH) SetFECN(v bool)       { setBit(&h[4], 0x80, v) }
func (h BTH) SetBECN(v bool)       { setBit(&h[4], 0x40, v) }
func (h BTH) SetReserved6(v uint8) { h[4] = h[4]&^0x3F | v&0x3F }
func (h BTH) SetDestQP(v uint32)   { put24(h[5:8], v) }
func (h BTH) SetAckReq(v bool)     { setBit(&h[8], 0x80, v) }
func (h BTH) SetReserved7(v uint8) { h[8] = h[8]&^0x7F | v&0x7F }
func (h BTH) SetPSN(v uint32)      { put24(h[9:12], v) }

func setBit(b *byte, mask byte, v bool) {
	if v {
		*b |= mask
	} else {
		*b &^= mask
	}
}

// RDETH is the reliable datagram header, 4 bytes (obsolete; decoded only).
type RDETH []byte

func (h RDETH) EEContext() uint32     { return get24(h[1:4]) }
func (h RDETH) SetEEContext(v uint32) { put24(h[1:4], v) }

// DETH is the datagram header, 8 bytes.
type DETH []byte

func (h DETH) QKey() uint32      { return be.Uint32(h[0:4]) }
func (h DETH) SrcQP() uint32     { return get24(h[5:8]) }
func (h DETH) SetQKey(v uint32)  { be.PutUint32(h[0:4], v) }
func (h DETH) SetSrcQP(v uint32) { put24(h[5:8], v) }

// XRCETH is the header of every XRC request packet, 4 bytes.
type XRCETH []byte

func (h XRCETH) SRQN() uint32     { return get24(h[1:4]) }
func (h XRCETH) SetSRQN(v uint32) { put24(h[1:4], v) }

// DCETH is the header of every DC request packet, 16 bytes. It is an assumption, see DC: what a target must learn of
// who asks, in a form of this project's own.
type DCETH []byte

func (h DCETH) AccessKey() uint64     { return be.Uint64(h[0:8]) }
func (h DCETH) SrcQP() uint32         { return get24(h[9:12]) }
func (h DCETH) Connection() uint32    { return be.Uint32(h[12:16]) }
func (h DCETH) SetAccessKey(v uint64) { be.PutUint64(h[0:8], v) }
func (h DCETH) SetSrcQP(v uint32)     { put24(h[9:12], v) }

// SetConnection sets the number that tells a connection from those of the same DCI before it.
func (h DCETH) SetConnection(v uint32) { be.PutUint32(h[12:16], v) }

// RETH is the RDMA header, 16 bytes. Length is that of the whole message.
type RETH []byte

func (h RETH) VA() uint64         { return be.Uint64(h[0:8]) }
func (h RETH) RKey() uint32       { return be.Uint32(h[8:12]) }
func (h RETH) Length() uint32     { return be.Uint32(h[12:16]) }
func (h RETH) SetVA(v uint64)     { be.PutUint64(h[0:8], v) }
func (h RETH) SetRKey(v uint32)   { be.PutUint32(h[8:12], v) }
func (h RETH) SetLength(v uint32) { be.PutUint32(h[12:16], v) }

// AtomicETH is the header of an atomic request, 28 bytes. SwapAdd is the swap
// data of CmpSwap and the addend of FetchAdd.
type AtomicETH []byte

func (h AtomicETH) VA() uint64          { return be.Uint64(h[0:8]) }
func (h AtomicETH) RKey() uint32        { return be.Uint32(h[8:12]) }
func (h AtomicETH) SwapAdd() uint64     { return be.Uint64(h[12:20]) }
func (h AtomicETH) Compare() uint64     { return be.Uint64(h[20:28]) }
func (h AtomicETH) SetVA(v uint64)      { be.PutUint64(h[0:8], v) }
func (h AtomicETH) SetRKey(v uint32)    { be.PutUint32(h[8:12], v) }
func (h AtomicETH) SetSwapAdd(v uint64) { be.PutUint64(h[12:20], v) }
func (h AtomicETH) SetCompare(v uint64) { be.PutUint64(h[20:28], v) }

// AETH is the acknowledge header, 4 bytes.
type AETH []byte

func (h AETH) Syndrome() Syndrome     { return Syndrome(h[0]) }
func (h AETH) MSN() uint32            { return get24(h[1:4]) }
func (h AETH) SetSyndrome(v Syndrome) { h[0] = byte(v) }
func (h AETH) SetMSN(v uint32)        { put24(h[1:4], v) }

// AtomicAckETH carries the value before an atomic operation, 8 bytes.
type AtomicAckETH []byte

func (h AtomicAckETH) Original() uint64     { return be.Uint64(h[0:8]) }
func (h AtomicAckETH) SetOriginal(v uint64) { be.PutUint64(h[0:8], v) }

// ImmDt is immediate data, 4 opaque bytes. Value reads them as a big-endian
// number, which is ntohl of the verbs' imm_data.
type ImmDt []byte

func (h ImmDt) Value() uint32     { return be.Uint32(h[0:4]) }
func (h ImmDt) SetValue(v uint32) { be.PutUint32(h[0:4], v) }

// IETH is the key that a SEND with invalidate invalidates, 4 bytes.
type IETH []byte

func (h IETH) RKey() uint32     { return be.Uint32(h[0:4]) }
func (h IETH) SetRKey(v uint32) { be.PutUint32(h[0:4], v) }

// FETH is the header of FLUSH, 4 bytes.
type FETH []byte

func (h FETH) Selectivity() uint8     { return h[3] >> 4 & 3 }
func (h FETH) Placement() uint8       { return h[3] & 0xF }
func (h FETH) SetSelectivity(v uint8) { h[3] = h[3]&^0x30 | v&3<<4 }
func (h FETH) SetPlacement(v uint8)   { h[3] = h[3]&^0xF | v&0xF }
