package roce

// MAC control frames that pause a port (IEEE 802.3 annex 31D, from 802.1Qbb): destination,
// source, EtherType, opcode, a bit for each of eight classes, a time for each in quanta of
// 512 bits, and zeros up to 60 bytes. A time of 0 lets the class go on.
const (
	EtherTypeMACControl = 0x8808
	PFCOpcode           = 0x0101
	PFCFrameSize        = 60
	// PFCQuantumBits is the unit of times.
	PFCQuantumBits = 512
	// Classes of traffic.
	Classes = 8

	pfcOpcodeAt  = EthernetSize
	pfcClassesAt = EthernetSize + 2
	pfcTimesAt   = EthernetSize + 4
)

// PFCAddress is the destination of pause frames: the MAC at the other end of the cable.
var PFCAddress = MAC{0x01, 0x80, 0xC2, 0x00, 0x00, 0x01}

// PFC is a whole frame of priority-based flow control, which pauses classes.
type PFC []byte

// NewPFC returns a frame from the pool that pauses one class for quanta of 512 bit times, or
// resumes it with 0.
func NewPFC(pool *Pool, src MAC, class uint8, quanta uint16) *Frame {
	f := pool.Get(PFCFrameSize)
	f.ICRC = ICRCValid // there is none
	clear(f.B)
	eth := Ethernet(f.B)
	eth.SetDst(PFCAddress)
	eth.SetSrc(src)
	eth.SetType(EtherTypeMACControl)
	be.PutUint16(f.B[pfcOpcodeAt:], PFCOpcode)
	be.PutUint16(f.B[pfcClassesAt:], 1<<class)
	be.PutUint16(f.B[pfcTimesAt+2*int(class):], quanta)
	return f
}

// ParsePFC returns a view of a frame and true if the frame is a PFC frame.
func ParsePFC(frame []byte) (PFC, bool) {
	if len(frame) < pfcTimesAt+2*Classes || Ethernet(frame).Type() != EtherTypeMACControl || be.Uint16(frame[pfcOpcodeAt:]) != PFCOpcode {
		return nil, false
	}
	return PFC(frame), true
}

// Time returns how long the frame pauses a class, in quanta; ok is false if the frame does not name
// the class.
func (p PFC) Time(class int) (quanta uint16, ok bool) {
	return be.Uint16(p[pfcTimesAt+2*class:]), be.Uint16(p[pfcClassesAt:])>>class&1 != 0
}

// ClassOf returns the traffic class of an Ethernet frame: the priority of its tag, else the upper
// three bits of the DSCP, else 0.
func ClassOf(frame []byte) uint8 {
	if len(frame) < EthernetSize+VLANSize {
		return 0
	}
	body := frame[EthernetSize:]
	switch Ethernet(frame).Type() {
	case EtherTypeVLAN:
		return uint8(VLAN(body).TCI() >> 13)
	case EtherTypeIPv4:
		return body[1] >> 5
	case EtherTypeIPv6, EtherTypeRoCE:
		return body[0] & 0xF >> 1
	}
	return 0
}
