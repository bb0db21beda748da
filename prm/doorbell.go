package prm

// DBRecSize is the length of a doorbell record in bytes.
const DBRecSize = 8

// QPDBRec is the doorbell record of a QP: how many receive WQEs and how many send
// basic blocks software has posted since reset, modulo 2^16.
type QPDBRec []byte

func (d QPDBRec) Recv() uint16     { return uint16(be32(d, 0)) }
func (d QPDBRec) SetRecv(v uint16) { putBE32(d, 0, uint32(v)) }
func (d QPDBRec) Send() uint16     { return uint16(be32(d, 4)) }
func (d QPDBRec) SetSend(v uint16) { putBE32(d, 4, uint32(v)) }

// SRQDBRec is the doorbell record of an SRQ: how many WQEs were posted, modulo 2^16.
type SRQDBRec []byte

func (d SRQDBRec) Count() uint16     { return uint16(be32(d, 0)) }
func (d SRQDBRec) SetCount(v uint16) { putBE32(d, 0, uint32(v)) }

// CQDBRec is the doorbell record of a CQ: the consumer index modulo 2^24 and the arm word.
type CQDBRec []byte

func (d CQDBRec) CI() uint32       { return be32(d, 0) & 0xffffff }
func (d CQDBRec) SetCI(v uint32)   { putBE32(d, 0, v&0xffffff) }
func (d CQDBRec) Arm() ArmWord     { return ArmWord(be32(d, 4)) }
func (d CQDBRec) SetArm(w ArmWord) { putBE32(d, 4, uint32(w)) }

// ArmWord asks for a completion event: sequence number, solicited only or any, and
// the consumer index.
type ArmWord uint32

// ArmSolicited in an ArmWord asks for solicited or error completions only.
const ArmSolicited ArmWord = 1 << 24

// MakeArmWord packs an arm word.
func MakeArmWord(sn uint32, solicited bool, ci uint32) ArmWord {
	w := ArmWord(sn&3<<28 | ci&0xffffff)
	if solicited {
		w |= ArmSolicited
	}
	return w
}

func (w ArmWord) SN() uint32      { return uint32(w) >> 28 & 3 }
func (w ArmWord) Solicited() bool { return w&ArmSolicited != 0 }
func (w ArmWord) CI() uint32      { return uint32(w) & 0xffffff }

// CQArmDoorbell is the 8 bytes written to UARCQArm of a UAR page: the arm word, then the CQN.
type CQArmDoorbell []byte

// CQArmDoorbellSize is its length in bytes.
const CQArmDoorbellSize = 8

func (d CQArmDoorbell) Arm() ArmWord { return ArmWord(be32(d, 0)) }
func (d CQArmDoorbell) CQN() uint32  { return be32(d, 4) & 0xffffff }

// Set writes both words.
func (d CQArmDoorbell) Set(w ArmWord, cqn uint32) {
	putBE32(d, 0, uint32(w))
	putBE32(d, 4, cqn&0xffffff)
}

// EQDoorbell is the 4 bytes written to UAREQArm or UAREQUpdate of a UAR page.
type EQDoorbell []byte

// EQDoorbellSize is its length in bytes.
const EQDoorbellSize = 4

func (d EQDoorbell) EQN() uint8 { return d[0] }
func (d EQDoorbell) CI() uint32 { return be32(d, 0) & 0xffffff }

// Set writes both fields.
func (d EQDoorbell) Set(eqn uint8, ci uint32) { putBE32(d, 0, uint32(eqn)<<24|ci&0xffffff) }
