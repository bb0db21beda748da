package prm

// Units of work queues.
const (
	WQEBBSize   = 64 // send WQE basic block; WQE indexes and SQ sizes count these
	DSSize      = 16 // unit of a WQE's DS count
	MaxDS       = 63 // what the DS field of a control segment can say
	MaxWQEBytes = 16 * WQEBBSize
)

// WQEOpcode is the opcode of a send WQE.
type WQEOpcode uint8

// Send WQE opcodes (qp.h and device.h, MLX5_OPCODE_*).
const (
	WQEOpNOP            WQEOpcode = 0x00
	WQEOpSendInv        WQEOpcode = 0x01
	WQEOpRDMAWrite      WQEOpcode = 0x08
	WQEOpRDMAWriteImm   WQEOpcode = 0x09
	WQEOpSend           WQEOpcode = 0x0a
	WQEOpSendImm        WQEOpcode = 0x0b
	WQEOpTSO            WQEOpcode = 0x0e
	WQEOpRDMARead       WQEOpcode = 0x10
	WQEOpAtomicCS       WQEOpcode = 0x11
	WQEOpAtomicFA       WQEOpcode = 0x12
	WQEOpAtomicMaskedCS WQEOpcode = 0x14
	WQEOpAtomicMaskedFA WQEOpcode = 0x15
	WQEOpFMR            WQEOpcode = 0x19
	WQEOpLocalInval     WQEOpcode = 0x1b
	WQEOpConfigCmd      WQEOpcode = 0x1f
	WQEOpSetPSV         WQEOpcode = 0x20
	WQEOpUMR            WQEOpcode = 0x25
	WQEOpTagMatching    WQEOpcode = 0x28
	WQEOpFlowTblAccess  WQEOpcode = 0x2c
	WQEOpMMO            WQEOpcode = 0x2f
	// WQEOpAtomicWrite is a number of our own: mlx5 has none.
	WQEOpAtomicWrite WQEOpcode = 0x7e
)

// Bits of CtrlSegment.FMCESE (qp.h, MLX5_WQE_CTRL_*).
const (
	CtrlSolicited     = 0x02
	CtrlCQUpdate      = 0x08 // a CQE on success too
	CtrlCQUpdateEQE   = 0x0c // a CQE and an EQE
	CtrlCEMask        = 0x0c
	CtrlSmallFence    = 0x20 // initiator small fence
	CtrlFence         = 0x40
	CtrlStrongOrder   = 0x60
	CtrlSmallAndFence = 0x80 // what libmlx5 writes for IBV_SEND_FENCE
	CtrlFenceMask     = 0xe0
)

// CtrlSegment is the first 16 bytes of a send WQE. Its first 8 bytes are also the
// doorbell that is written to a bfreg: opcode, index, QPN and DS may be read there.
type CtrlSegment []byte

// Lengths of a control segment and of a doorbell.
const (
	CtrlSegmentSize = 16
	DoorbellSize    = 8
)

func (c CtrlSegment) OpMod() uint8     { return c[0] }
func (c CtrlSegment) SetOpMod(v uint8) { c[0] = v }

// WQEIndex is the index of the WQE's first basic block since the QP's reset, modulo 2^16.
func (c CtrlSegment) WQEIndex() uint16      { return be16(c, 1) }
func (c CtrlSegment) SetWQEIndex(v uint16)  { putBE16(c, 1, v) }
func (c CtrlSegment) Opcode() WQEOpcode     { return WQEOpcode(c[3]) }
func (c CtrlSegment) SetOpcode(v WQEOpcode) { c[3] = byte(v) }
func (c CtrlSegment) QPN() uint32           { return be32(c, 4) >> 8 }
func (c CtrlSegment) SetQPN(v uint32)       { put(c, 4, 31, 8, v) }

// DS is the length of the WQE in units of DSSize, this segment included.
func (c CtrlSegment) DS() int              { return int(c[7] & 0x3f) }
func (c CtrlSegment) SetDS(n int)          { c[7] = c[7]&^0x3f | byte(n)&0x3f }
func (c CtrlSegment) Signature() uint8     { return c[8] }
func (c CtrlSegment) SetSignature(v uint8) { c[8] = v }
func (c CtrlSegment) FMCESE() uint8        { return c[11] }
func (c CtrlSegment) SetFMCESE(v uint8)    { c[11] = v }

// Imm is the immediate data, the rkey to invalidate, or the mkey of a UMR.
func (c CtrlSegment) Imm() uint32     { return be32(c, 12) }
func (c CtrlSegment) SetImm(v uint32) { putBE32(c, 12, v) }

// Set writes the whole segment.
func (c CtrlSegment) Set(op WQEOpcode, opMod uint8, index uint16, qpn uint32, ds int, fmCESE uint8, imm uint32) {
	putBE32(c, 0, uint32(opMod)<<24|uint32(index)<<8|uint32(op))
	putBE32(c, 4, qpn<<8|uint32(ds)&0x3f)
	putBE32(c, 8, uint32(fmCESE))
	putBE32(c, 12, imm)
}

// RaddrSegment names remote memory.
type RaddrSegment []byte

// RaddrSegmentSize is its length in bytes.
const RaddrSegmentSize = 16

func (r RaddrSegment) Addr() uint64     { return be64(r, 0) }
func (r RaddrSegment) SetAddr(v uint64) { putBE64(r, 0, v) }
func (r RaddrSegment) RKey() uint32     { return be32(r, 8) }
func (r RaddrSegment) SetRKey(v uint32) { putBE32(r, 8, v) }

// Set writes the whole segment.
func (r RaddrSegment) Set(addr uint64, rkey uint32) {
	putBE64(r, 0, addr)
	putBE64(r, 8, uint64(rkey)<<32)
}

// AtomicSegment holds the operands of ATOMIC_CS and ATOMIC_FA. A fetch-and-add
// has no compare operand: libmlx5 leaves what the ring held.
type AtomicSegment []byte

// AtomicSegmentSize is its length in bytes.
const AtomicSegmentSize = 16

func (a AtomicSegment) SwapAdd() uint64     { return be64(a, 0) }
func (a AtomicSegment) SetSwapAdd(v uint64) { putBE64(a, 0, v) }
func (a AtomicSegment) Compare() uint64     { return be64(a, 8) }
func (a AtomicSegment) SetCompare(v uint64) { putBE64(a, 8, v) }

// XRCSegment names the SRQ of an XRC target.
type XRCSegment []byte

// XRCSegmentSize is its length in bytes.
const XRCSegmentSize = 16

func (x XRCSegment) SRQN() uint32     { return be32(x, 0) & 0xffffff }
func (x XRCSegment) SetSRQN(v uint32) { putBE32(x, 0, v&0xffffff) }

// DataSegment is a scatter or gather entry.
type DataSegment []byte

// DataSegmentSize is its length in bytes.
const DataSegmentSize = 16

func (d DataSegment) ByteCount() uint32     { return be32(d, 0) }
func (d DataSegment) SetByteCount(v uint32) { putBE32(d, 0, v) }
func (d DataSegment) LKey() uint32          { return be32(d, 4) }
func (d DataSegment) SetLKey(v uint32)      { putBE32(d, 4, v) }
func (d DataSegment) Addr() uint64          { return be64(d, 8) }
func (d DataSegment) SetAddr(v uint64)      { putBE64(d, 8, v) }

// Set writes the whole segment.
func (d DataSegment) Set(n, lkey uint32, addr uint64) {
	putBE32(d, 0, n)
	putBE32(d, 4, lkey)
	putBE64(d, 8, addr)
}

// InvalidLKey ends a receive WQE's scatter list before its full length (a data
// segment of byte count 0, this key, address 0).
const InvalidLKey = 0x100

// InlineFlag marks the byte count of inline data.
const InlineFlag = 1 << 31

// InlineSegment is a byte count with InlineFlag, then the bytes; padded to DSSize.
type InlineSegment []byte

// InlineHeaderSize is the length of the byte count.
const InlineHeaderSize = 4

// InlineSize is what n inline bytes take in a WQE, in bytes.
func InlineSize(n int) int { return (InlineHeaderSize + n + DSSize - 1) &^ (DSSize - 1) }

// Inline reports whether the flag is set: a data segment's byte count has it clear.
func (s InlineSegment) Inline() bool { return be32(s, 0)&InlineFlag != 0 }

func (s InlineSegment) Len() int     { return int(be32(s, 0) &^ InlineFlag) }
func (s InlineSegment) SetLen(n int) { putBE32(s, 0, InlineFlag|uint32(n)) }
func (s InlineSegment) Data() []byte { return s[4 : 4+s.Len()] }

// SRQNextSegment begins every WQE of a shared receive queue.
type SRQNextSegment []byte

// SRQNextSegmentSize is its length in bytes.
const SRQNextSegmentSize = 16

func (s SRQNextSegment) NextWQEIndex() uint16     { return be16(s, 2) }
func (s SRQNextSegment) SetNextWQEIndex(v uint16) { putBE16(s, 2, v) }
func (s SRQNextSegment) Signature() uint8         { return s[4] }
func (s SRQNextSegment) SetSignature(v uint8)     { s[4] = v }

// WQESignature is the signature byte of a WQE whose signature field is zero.
func WQESignature(wqe []byte) uint8 {
	var x byte
	for _, b := range wqe {
		x ^= b
	}
	return ^x
}
