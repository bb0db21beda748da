package prm

import "fmt"

// UIDShared owns what all user contexts of a function share.
const UIDShared = 0xffff

// Err is nil for status OK, else an error that names command, status and syndrome
// and wraps the errno.
func (c CmdOut) Err(op Opcode) error {
	s := c.Status()
	if s == StatusOK {
		return nil
	}
	return fmt.Errorf("%v: status %v (%#02x), syndrome %#x: %w", op, s, uint8(s), c.Syndrome(), s.Errno())
}

// String returns the text form.
func (op Opcode) String() string {
	if c := op.info(); c != nil {
		return c.name
	}
	return fmt.Sprintf("Opcode(%#x)", uint16(op))
}

func (op Opcode) info() *cmdInfo {
	for lo, hi := 0, len(commands); lo < hi; {
		mid := int(uint(lo+hi) / 2)
		switch c := &commands[mid]; {
		case c.op == op:
			return c
		case c.op < op:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return nil
}

// NewIn makes an in mailbox for op with its opcode set and room for a list of extra
// bytes. It panics for an opcode that this package does not know.
func NewIn(op Opcode, extra int) []byte {
	b := make([]byte, op.mustInfo().in+extra)
	CmdIn(b).SetOpcode(op)
	return b
}

// NewOut makes an out mailbox for op with room for a list of extra bytes. It panics
// for an opcode that this package does not know.
func NewOut(op Opcode, extra int) []byte { return make([]byte, op.mustInfo().out+extra) }

func (op Opcode) mustInfo() *cmdInfo {
	c := op.info()
	if c == nil {
		panic("prm: no layout for command " + op.String())
	}
	return c
}

// CheckCommand is a device's first check of a command that a driver made: whether
// the opcode is known and both mailboxes have at least their fixed length
// (the command itself checks lists). After StatusOK the views of op may be laid
// over in and out.
func CheckCommand(in, out []byte) (Opcode, Status) {
	if len(in) < 8 {
		return 0, StatusBadInpLen
	}
	op := CmdIn(in).Opcode()
	c := op.info()
	switch {
	case c == nil:
		return op, StatusBadOp
	case len(in) < c.in:
		return op, StatusBadInpLen
	case len(out) < c.out:
		return op, StatusBadOutpLen
	}
	return op, StatusOK
}

// Fail clears out and writes status and syndrome, as far as they fit.
func Fail(out []byte, s Status, syndrome uint32) {
	clear(out)
	if len(out) >= 1 {
		out[0] = byte(s)
	}
	if len(out) >= 8 {
		putBE32(out, 4, syndrome)
	}
}
