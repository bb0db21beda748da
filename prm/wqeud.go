package prm

// AVSegment is the datagram segment of a UD send WQE: an address vector.
type AVSegment []byte

// Lengths: whole, and the short base form that is used when Extended is not set.
const (
	AVSegmentSize     = 48
	AVBaseSegmentSize = 16
)

func (a AVSegment) QKey() uint32     { return be32(a, 0) }
func (a AVSegment) SetQKey(v uint32) { putBE32(a, 0, v) }

// DestQPN is the destination QP (or DCT) number; Extended says that the vector is whole.
func (a AVSegment) DestQPN() uint32     { return bits(a, 8, 23, 0) }
func (a AVSegment) SetDestQPN(v uint32) { put(a, 8, 23, 0, v) }
func (a AVSegment) Extended() bool      { return bit(a, 8, 31) }
func (a AVSegment) SetExtended(v bool)  { putBit(a, 8, 31, v) }

// StatRateSL is rate << 4 | SL; on Ethernet rate << 4 | (SL & 7) << 1.
func (a AVSegment) StatRateSL() uint8     { return a[12] }
func (a AVSegment) SetStatRateSL(v uint8) { a[12] = v }
func (a AVSegment) FLMLID() uint8         { return a[13] }
func (a AVSegment) SetFLMLID(v uint8)     { a[13] = v }

// RLID is the destination LID, or on RoCE v2 the UDP source port.
func (a AVSegment) RLID() uint16          { return be16(a, 14) }
func (a AVSegment) SetRLID(v uint16)      { putBE16(a, 14, v) }
func (a AVSegment) RMAC() []byte          { return a[20:26:26] }
func (a AVSegment) TClass() uint8         { return a[26] }
func (a AVSegment) SetTClass(v uint8)     { a[26] = v }
func (a AVSegment) HopLimit() uint8       { return a[27] }
func (a AVSegment) SetHopLimit(v uint8)   { a[27] = v }
func (a AVSegment) GRHPresent() bool      { return bit(a, 28, 30) }
func (a AVSegment) SetGRHPresent(v bool)  { putBit(a, 28, 30, v) }
func (a AVSegment) SGIDIndex() uint32     { return bits(a, 28, 27, 20) }
func (a AVSegment) SetSGIDIndex(v uint32) { put(a, 28, 27, 20, v) }
func (a AVSegment) FlowLabel() uint32     { return bits(a, 28, 19, 0) }
func (a AVSegment) SetFlowLabel(v uint32) { put(a, 28, 19, 0, v) }
func (a AVSegment) RGID() []byte          { return a[32:48:48] }

// Path is what two requests to QPs of the same port share: all but Q_Key and QPN. The
// vector must be whole.
func (a AVSegment) Path() []byte { return a[12:48:48] }
