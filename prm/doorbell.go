package prm

// DBRecSize is the length of a doorbell record in bytes.
const DBRecSize = 8

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

// SN returns the sequence number of the arm command.
func (w ArmWord) SN() uint32 { return uint32(w) >> 28 & 3 }

// Solicited reports whether only solicited completions raise the event.
func (w ArmWord) Solicited() bool { return w&ArmSolicited != 0 }

// CI returns the consumer index.
func (w ArmWord) CI() uint32 { return uint32(w) & 0xffffff }

// Set writes both words.
func (c CQArmDoorbell) Set(w ArmWord, cqn uint32) {
	putBE32(c, 0, uint32(w))
	putBE32(c, 4, cqn&0xffffff)
}

// Set writes both fields.
func (e EQDoorbell) Set(eqn uint8, ci uint32) { putBE32(e, 0, uint32(eqn)<<24|ci&0xffffff) }
