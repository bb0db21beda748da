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

// DoorbellSize is the length of a doorbell.
const DoorbellSize = 8

// DS is the length of the WQE in units of DSSize, this segment included.
func (c CtrlSegment) DS() int { return int(c[7] & 0x3f) }

// SetDS sets the length of the WQE in units of 16 bytes.
func (c CtrlSegment) SetDS(n int) { c[7] = c[7]&^0x3f | byte(n)&0x3f }

// Set writes the whole segment.
func (c CtrlSegment) Set(op WQEOpcode, opMod uint8, index uint16, qpn uint32, ds int, fmCESE uint8, imm uint32) {
	putBE64(c, 0, uint64(opMod)<<56|uint64(index)<<40|uint64(op)<<32|uint64(qpn<<8|uint32(ds)&0x3f))
	putBE64(c, 8, uint64(fmCESE)<<32|uint64(imm))
}

// Set writes the whole segment.
func (r RaddrSegment) Set(addr uint64, rkey uint32) {
	putBE64(r, 0, addr)
	putBE64(r, 8, uint64(rkey)<<32)
}

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

// Len returns the length of the inline data in bytes.
func (s InlineSegment) Len() int { return int(be32(s, 0) &^ InlineFlag) }

// SetLen sets the length of the inline data in bytes.
func (s InlineSegment) SetLen(n int) { putBE32(s, 0, InlineFlag|uint32(n)) }

// Data returns the inline data.
func (s InlineSegment) Data() []byte { return s[4 : 4+s.Len()] }

// WQESignature is the signature byte of a WQE whose signature field is zero.
func WQESignature(wqe []byte) uint8 {
	var x byte
	for _, b := range wqe {
		x ^= b
	}
	return ^x
}

// AVBaseSegmentSize is the length of the short form of an address vector, which is used when
// Extended is not set.
const AVBaseSegmentSize = 16

// DCKey is the access key of the DCT in the address vector of a DCI's WQE, in the place of the
// Q_Key.
func DCKey(a AVSegment) uint64 { return be64(a, 0) }

// SetDCKey sets the access key that DCKey returns.
func SetDCKey(a AVSegment, v uint64) { putBE64(a, 0, v) }
