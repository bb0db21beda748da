package prm

import "fmt"

// Lengths of the headers. ENABLE_HCA and DISABLE_HCA answer in 0xc bytes, all
// other commands in at least CmdOutSize.
const (
	CmdInSize  = 0x10
	CmdOutSize = 0x10
)

// CmdIn is the header that every in mailbox begins with.
type CmdIn []byte

func (m CmdIn) Opcode() Opcode     { return Opcode(be16(m, 0)) }
func (m CmdIn) SetOpcode(v Opcode) { putBE16(m, 0, uint16(v)) }

// UID is the user context that owns the object: 0 the kernel, 0xffff shared.
func (m CmdIn) UID() uint16       { return be16(m, 2) }
func (m CmdIn) SetUID(v uint16)   { putBE16(m, 2, v) }
func (m CmdIn) OpMod() uint16     { return be16(m, 6) }
func (m CmdIn) SetOpMod(v uint16) { putBE16(m, 6, v) }

// UIDShared owns what all user contexts of a function share.
const UIDShared = 0xffff

// CmdOut is the header that every out mailbox begins with.
type CmdOut []byte

func (m CmdOut) Status() Status       { return Status(m[0]) }
func (m CmdOut) SetStatus(v Status)   { m[0] = byte(v) }
func (m CmdOut) Syndrome() uint32     { return be32(m, 4) }
func (m CmdOut) SetSyndrome(v uint32) { putBE32(m, 4, v) }

// Err is nil for status OK, else an error that names command, status and syndrome
// and wraps the errno.
func (m CmdOut) Err(op Opcode) error {
	s := m.Status()
	if s == StatusOK {
		return nil
	}
	return fmt.Errorf("%v: status %v (%#02x), syndrome %#x: %w", op, s, uint8(s), m.Syndrome(), s.Errno())
}

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

// CheckCommand is a device's first look at a command from a foreign hand: it says
// whether the opcode is known and both mailboxes have at least their fixed length
// (lists are for the command to check). After StatusOK the views of op may be laid
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

// PAS is a list of DMA addresses of pages.
type PAS []byte

// Count is how many whole addresses the list has room for.
func (l PAS) Count() int           { return len(l) / 8 }
func (l PAS) At(i int) uint64      { return be64(l, 8*i) }
func (l PAS) Set(i int, pa uint64) { putBE64(l, 8*i, pa) }

// MTT is a list of translation entries: page addresses with rights in their low bits.
type MTT []byte

// Rights in an MTT entry (device.h, MLX5_EN_RD, MLX5_EN_WR).
const (
	MTTRead  = 1
	MTTWrite = 2
)

// Count is how many whole entries there are.
func (l MTT) Count() int { return len(l) / 8 }

// Addr is the page address of entry i; 0 with no rights means not present.
func (l MTT) Addr(i int) uint64 { return be64(l, 8*i) &^ 0xff }

// Rights are MTTRead and MTTWrite of entry i.
func (l MTT) Rights(i int) uint64 { return be64(l, 8*i) & (MTTRead | MTTWrite) }

// Set writes entry i.
func (l MTT) Set(i int, addr, rights uint64) { putBE64(l, 8*i, addr|rights) }

// KLM is one entry of 16 bytes that leads to another mkey; a KSM has the same form
// with its size in the key's context.
type KLM []byte

// KLMSize is its length in bytes.
const KLMSize = 16

func (k KLM) ByteCount() uint32     { return be32(k, 0) }
func (k KLM) SetByteCount(v uint32) { putBE32(k, 0, v) }
func (k KLM) MKey() uint32          { return be32(k, 4) }
func (k KLM) SetMKey(v uint32)      { putBE32(k, 4, v) }
func (k KLM) VA() uint64            { return be64(k, 8) }
func (k KLM) SetVA(v uint64)        { putBE64(k, 8, v) }
