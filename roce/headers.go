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
	SACKETHSize      = 4
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

// Opcode returns the opcode: byte 0.
func (h BTH) Opcode() Opcode { return Opcode(h[0]) }

// Solicited reports whether the packet asks for a solicited event: bit 7 of byte 1.
func (h BTH) Solicited() bool { return h[1]&0x80 != 0 }

// MigReq reports the MigReq bit, which is set in path state MIGRATED: bit 6 of byte 1.
func (h BTH) MigReq() bool { return h[1]&0x40 != 0 }

// PadCount returns the number of pad bytes behind the payload: bits 5:4 of byte 1.
func (h BTH) PadCount() int { return int(h[1] >> 4 & 3) }

// Version returns the transport header version (TVer): bits 3:0 of byte 1.
func (h BTH) Version() uint8 { return h[1] & 0xF }

// PKey returns the partition key: 16 bits at byte 2.
func (h BTH) PKey() uint16 { return be.Uint16(h[2:4]) }

// FECN reports the forward congestion notification: bit 7 of byte 4.
func (h BTH) FECN() bool { return h[4]&0x80 != 0 }

// BECN reports the backward congestion notification: bit 6 of byte 4.
func (h BTH) BECN() bool { return h[4]&0x40 != 0 }

// Reserved6 returns the reserved bits 5:0 of byte 4.
func (h BTH) Reserved6() uint8 { return h[4] & 0x3F }

// DestQP returns the destination QPN: 24 bits at byte 5.
func (h BTH) DestQP() uint32 { return be.Uint32(h[4:8]) & 0xFFFFFF }

// AckReq reports whether the sender asks for an acknowledgement: bit 7 of byte 8.
func (h BTH) AckReq() bool { return h[8]&0x80 != 0 }

// Reserved7 returns the reserved bits 6:0 of byte 8.
func (h BTH) Reserved7() uint8 { return h[8] & 0x7F }

// PSN returns the packet sequence number: 24 bits at byte 9.
func (h BTH) PSN() uint32 { return be.Uint32(h[8:12]) & PSNMask }

// SetOpcode sets the opcode.
func (h BTH) SetOpcode(v Opcode) { h[0] = byte(v) }

// SetSolicited sets or clears the solicited event bit.
func (h BTH) SetSolicited(v bool) { setBit(&h[1], 0x80, v) }

// SetMigReq sets or clears the MigReq bit.
func (h BTH) SetMigReq(v bool) { setBit(&h[1], 0x40, v) }

// SetPadCount sets the number of pad bytes, 0 to 3.
func (h BTH) SetPadCount(v int) { h[1] = h[1]&^0x30 | byte(v&3)<<4 }

// SetVersion sets the transport header version.
func (h BTH) SetVersion(v uint8) { h[1] = h[1]&^0xF | v&0xF }

// SetPKey sets the partition key.
func (h BTH) SetPKey(v uint16) { be.PutUint16(h[2:4], v) }

// SetFECN sets or clears the FECN bit.
func (h BTH) SetFECN(v bool) { setBit(&h[4], 0x80, v) }

// SetBECN sets or clears the BECN bit.
func (h BTH) SetBECN(v bool) { setBit(&h[4], 0x40, v) }

// SetReserved6 sets the reserved bits 5:0 of byte 4.
func (h BTH) SetReserved6(v uint8) { h[4] = h[4]&^0x3F | v&0x3F }

// SetDestQP sets the destination QPN.
func (h BTH) SetDestQP(v uint32) { put24(h[5:8], v) }

// SetAckReq sets or clears the AckReq bit.
func (h BTH) SetAckReq(v bool) { setBit(&h[8], 0x80, v) }

// SetReserved7 sets the reserved bits 6:0 of byte 8.
func (h BTH) SetReserved7(v uint8) { h[8] = h[8]&^0x7F | v&0x7F }

// SetPSN sets the packet sequence number to the low 24 bits of v.
func (h BTH) SetPSN(v uint32) { put24(h[9:12], v) }

func setBit(b *byte, mask byte, v bool) {
	if v {
		*b |= mask
	} else {
		*b &^= mask
	}
}

// RDETH is the reliable datagram header, 4 bytes (obsolete; decoded only).
type RDETH []byte

// EEContext returns the number of the end-to-end context: 24 bits at byte 1.
func (h RDETH) EEContext() uint32 { return get24(h[1:4]) }

// SetEEContext sets the number of the end-to-end context.
func (h RDETH) SetEEContext(v uint32) { put24(h[1:4], v) }

// DETH is the datagram header, 8 bytes.
type DETH []byte

// QKey returns the Q_Key: 32 bits at byte 0.
func (h DETH) QKey() uint32 { return be.Uint32(h[0:4]) }

// SrcQP returns the source QPN: 24 bits at byte 5.
func (h DETH) SrcQP() uint32 { return get24(h[5:8]) }

// SetQKey sets the Q_Key.
func (h DETH) SetQKey(v uint32) { be.PutUint32(h[0:4], v) }

// SetSrcQP sets the source QPN.
func (h DETH) SetSrcQP(v uint32) { put24(h[5:8], v) }

// XRCETH is the header of every XRC request packet, 4 bytes.
type XRCETH []byte

// SRQN returns the number of the SRQ that receives: 24 bits at byte 1.
func (h XRCETH) SRQN() uint32 { return get24(h[1:4]) }

// SetSRQN sets the number of the SRQ that receives.
func (h XRCETH) SetSRQN(v uint32) { put24(h[1:4], v) }

// DCETH is the header of every DC request packet, 16 bytes. Its layout is this project's assumption
// (see DC): it holds what a target must know about the initiator.
type DCETH []byte

// AccessKey returns the DC access key: 64 bits at byte 0.
func (h DCETH) AccessKey() uint64 { return be.Uint64(h[0:8]) }

// SrcQP returns the source QPN: 24 bits at byte 9.
func (h DCETH) SrcQP() uint32 { return get24(h[9:12]) }

// Connection returns the connection number: 32 bits at byte 12. It tells a connection from earlier
// ones of the same DCI.
func (h DCETH) Connection() uint32 { return be.Uint32(h[12:16]) }

// SetAccessKey sets the DC access key.
func (h DCETH) SetAccessKey(v uint64) { be.PutUint64(h[0:8], v) }

// SetSrcQP sets the source QPN.
func (h DCETH) SetSrcQP(v uint32) { put24(h[9:12], v) }

// SetConnection sets the connection number.
func (h DCETH) SetConnection(v uint32) { be.PutUint32(h[12:16], v) }

// RETH is the RDMA extended header, 16 bytes.
type RETH []byte

// VA returns the virtual address: 64 bits at byte 0.
func (h RETH) VA() uint64 { return be.Uint64(h[0:8]) }

// RKey returns the remote key: 32 bits at byte 8.
func (h RETH) RKey() uint32 { return be.Uint32(h[8:12]) }

// Length returns the length of the whole message in bytes: 32 bits at byte 12.
func (h RETH) Length() uint32 { return be.Uint32(h[12:16]) }

// SetVA sets the virtual address.
func (h RETH) SetVA(v uint64) { be.PutUint64(h[0:8], v) }

// SetRKey sets the remote key.
func (h RETH) SetRKey(v uint32) { be.PutUint32(h[8:12], v) }

// SetLength sets the length of the whole message in bytes.
func (h RETH) SetLength(v uint32) { be.PutUint32(h[12:16], v) }

// AtomicETH is the header of an atomic request, 28 bytes.
type AtomicETH []byte

// VA returns the virtual address: 64 bits at byte 0.
func (h AtomicETH) VA() uint64 { return be.Uint64(h[0:8]) }

// RKey returns the remote key: 32 bits at byte 8.
func (h AtomicETH) RKey() uint32 { return be.Uint32(h[8:12]) }

// SwapAdd returns the swap data of CmpSwap or the addend of FetchAdd: 64 bits at byte 12.
func (h AtomicETH) SwapAdd() uint64 { return be.Uint64(h[12:20]) }

// Compare returns the compare data of CmpSwap: 64 bits at byte 20.
func (h AtomicETH) Compare() uint64 { return be.Uint64(h[20:28]) }

// SetVA sets the virtual address.
func (h AtomicETH) SetVA(v uint64) { be.PutUint64(h[0:8], v) }

// SetRKey sets the remote key.
func (h AtomicETH) SetRKey(v uint32) { be.PutUint32(h[8:12], v) }

// SetSwapAdd sets the swap data of CmpSwap or the addend of FetchAdd.
func (h AtomicETH) SetSwapAdd(v uint64) { be.PutUint64(h[12:20], v) }

// SetCompare sets the compare data of CmpSwap.
func (h AtomicETH) SetCompare(v uint64) { be.PutUint64(h[20:28], v) }

// AETH is the acknowledge header, 4 bytes.
type AETH []byte

// Syndrome returns the kind of acknowledgement and its value: byte 0.
func (h AETH) Syndrome() Syndrome { return Syndrome(h[0]) }

// MSN returns the message sequence number: 24 bits at byte 1.
func (h AETH) MSN() uint32 { return get24(h[1:4]) }

// SetSyndrome sets the kind of acknowledgement and its value.
func (h AETH) SetSyndrome(v Syndrome) { h[0] = byte(v) }

// SetMSN sets the message sequence number.
func (h AETH) SetMSN(v uint32) { put24(h[1:4], v) }

// SACKETH follows the AETH of a NAK with SACK, 4 bytes: a reserved byte and the PSN whose arrival
// behind a gap drew the NAK, as NAKs of IRN carry it (Mittal et al., SIGCOMM 2018;
// github.com/NetSys/irn-vivado-hls, struct AckInfo). Neither the specification nor a public
// description of mlx5 has such a header: its form and its opcode, one of those that are reserved,
// are an assumption of this project, and what prints them says so.
type SACKETH []byte

// PSN returns the PSN that has arrived: 24 bits at byte 1.
func (h SACKETH) PSN() uint32 { return get24(h[1:4]) }

// SetPSN sets the PSN that has arrived.
func (h SACKETH) SetPSN(v uint32) { put24(h[1:4], v) }

// AtomicAckETH is the header of an atomic acknowledgement, 8 bytes.
type AtomicAckETH []byte

// Original returns the value of the word before the operation: 64 bits at byte 0.
func (h AtomicAckETH) Original() uint64 { return be.Uint64(h[0:8]) }

// SetOriginal sets the value of the word before the operation.
func (h AtomicAckETH) SetOriginal(v uint64) { be.PutUint64(h[0:8], v) }

// ImmDt is the immediate data header, 4 opaque bytes.
type ImmDt []byte

// Value returns the immediate data as a big-endian number, which is ntohl of the verbs' imm_data.
func (h ImmDt) Value() uint32 { return be.Uint32(h[0:4]) }

// SetValue stores the immediate data as a big-endian number.
func (h ImmDt) SetValue(v uint32) { be.PutUint32(h[0:4], v) }

// IETH is the header of SEND with invalidate, 4 bytes.
type IETH []byte

// RKey returns the key to invalidate: 32 bits at byte 0.
func (h IETH) RKey() uint32 { return be.Uint32(h[0:4]) }

// SetRKey sets the key to invalidate.
func (h IETH) SetRKey(v uint32) { be.PutUint32(h[0:4], v) }

// FETH is the header of FLUSH, 4 bytes.
type FETH []byte

// Selectivity returns what is flushed, a range or a region: bits 5:4 of byte 3.
func (h FETH) Selectivity() uint8 { return h[3] >> 4 & 3 }

// Placement returns how far it is flushed (visibility, persistence): bits 3:0 of byte 3.
func (h FETH) Placement() uint8 { return h[3] & 0xF }

// SetSelectivity sets what is flushed, a range or a region.
func (h FETH) SetSelectivity(v uint8) { h[3] = h[3]&^0x30 | v&3<<4 }

// SetPlacement sets how far it is flushed.
func (h FETH) SetPlacement(v uint8) { h[3] = h[3]&^0xF | v&0xF }
