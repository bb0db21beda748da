package uapi

import (
	"bytes"
	"math"
	"syscall"
)

// maxCall is the largest argument of the ioctl: a page.
const maxCall = 4096

// Call is a decoded call. Its methods copy from and to the memory of the program, and
// touch only what its attributes name.
type Call struct {
	Method *Method

	mem    Mem
	addr   uint64 // of the header
	buf    []byte // header and attributes, as they were when the call came
	places []int  // by index of Method.Attrs: where in buf the attribute is; 0: not given
}

// Decode reads the call at addr. EFAULT: the header cannot be read. EPROTONOSUPPORT:
// reserved fields in use, an unknown method, or an unknown attribute that is marked
// mandatory; libibverbs then tries another way. EINVAL: a wrong length, another
// driver, an attribute that is missing, given twice or of a wrong length. EOPNOTSUPP:
// a structure that is longer than ours and not zero there.
func Decode(m Mem, addr uint64) (*Call, error) {
	var head [HeaderSize]byte
	if err := m.Read(addr, head[:]); err != nil {
		return nil, errorf(syscall.EFAULT, "header at %#x: %v", addr, err)
	}
	h := Header(head[:])
	if h.Length() > maxCall || int(h.Length()) != HeaderSize+AttrSize*int(h.NumAttrs()) {
		return nil, errorf(syscall.EINVAL, "length %d with %d attributes", h.Length(), h.NumAttrs())
	}
	if h.Reserved1() != 0 || h.Reserved2() != 0 {
		return nil, errorf(syscall.EPROTONOSUPPORT, "reserved fields %#x, %#x", h.Reserved1(), h.Reserved2())
	}
	if h.DriverID() != DriverMLX5 {
		return nil, errorf(syscall.EINVAL, "driver %d", h.DriverID())
	}
	method := find(h.ObjectID(), h.MethodID())
	if method == nil {
		return nil, errorf(syscall.EPROTONOSUPPORT, "method %#x of object %#x", h.MethodID(), h.ObjectID())
	}
	c := &Call{Method: method, mem: m, addr: addr, buf: make([]byte, h.Length()), places: make([]int, len(method.Attrs))}
	copy(c.buf, head[:])
	if n := len(c.buf) - HeaderSize; n > 0 {
		if err := m.Read(addr+HeaderSize, c.buf[HeaderSize:]); err != nil {
			return nil, errorf(syscall.EFAULT, "%d attributes at %#x: %v", h.NumAttrs(), addr+HeaderSize, err)
		}
	}
	for at := HeaderSize; at < len(c.buf); at += AttrSize {
		if err := c.take(at); err != nil {
			return nil, err
		}
	}
	for i := range method.Attrs {
		if method.Attrs[i].Mandatory && c.places[i] == 0 {
			return nil, errorf(syscall.EINVAL, "%s without attribute %#x", method.Name, method.Attrs[i].ID)
		}
	}
	return c, nil
}

// take checks the attribute at an offset of buf (uverbs_set_attr, uverbs_process_attr).
func (c *Call) take(at int) error {
	a := Attr(c.buf[at:])
	i := c.Method.spec(a.ID())
	if i < 0 {
		if a.Flags()&AttrMandatory != 0 {
			return errorf(syscall.EPROTONOSUPPORT, "%s: unknown attribute %#x", c.Method.Name, a.ID())
		}
		return nil
	}
	if c.places[i] != 0 {
		return errorf(syscall.EINVAL, "%s: attribute %#x twice", c.Method.Name, a.ID())
	}
	s := &c.Method.Attrs[i]
	switch s.Kind {
	case PtrIn, PtrOut:
		if s.Kind == PtrIn && s.Trailing && a.Len() > s.Max {
			zero, err := c.zeroFrom(a, int(s.Max))
			if err != nil {
				return err
			}
			if !zero {
				return errorf(syscall.EOPNOTSUPP, "%s: attribute %#x has more than we know", c.Method.Name, a.ID())
			}
		}
		if a.Len() < s.Min || !s.Trailing && a.Len() > s.Max {
			return errorf(syscall.EINVAL, "%s: attribute %#x of %d bytes", c.Method.Name, a.ID(), a.Len())
		}
	default:
		if a.Len() != 0 {
			return errorf(syscall.EINVAL, "%s: object %#x with %d bytes", c.Method.Name, a.ID(), a.Len())
		}
	}
	if a.Elem() != 0 {
		return errorf(syscall.EINVAL, "%s: attribute %#x: reserved field %#x", c.Method.Name, a.ID(), a.Elem())
	}
	c.places[i] = at
	return nil
}

// zeroFrom reports whether an input is zero from byte n on.
func (c *Call) zeroFrom(a Attr, n int) (bool, error) {
	b := make([]byte, int(a.Len()))
	if err := c.copyIn(a, b); err != nil {
		return false, err
	}
	return zero(b[n:]), nil
}

func zero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// copyIn reads the first len(b) bytes of an input: values of up to 8 bytes lie in the
// attribute itself.
func (c *Call) copyIn(a Attr, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if a.Len() <= 8 {
		copy(b, a[8:AttrSize])
		return nil
	}
	if err := c.mem.Read(a.Data(), b); err != nil {
		return errorf(syscall.EFAULT, "%s: attribute %#x: %d bytes at %#x: %v", c.Method.Name, a.ID(), len(b), a.Data(), err)
	}
	return nil
}

// attr is an attribute that was given, or nil.
func (c *Call) attr(id uint16) Attr {
	i := c.Method.spec(id)
	if i < 0 || c.places[i] == 0 {
		return nil
	}
	return Attr(c.buf[c.places[i]:][:AttrSize])
}

// Has reports whether an attribute was given.
func (c *Call) Has(id uint16) bool { return c.attr(id) != nil }

// Len is the length of an attribute, 0 when it was not given.
func (c *Call) Len(id uint16) int {
	if a := c.attr(id); a != nil {
		return int(a.Len())
	}
	return 0
}

// In reads n bytes of an input; what it does not have is zero.
func (c *Call) In(id uint16, n int) ([]byte, error) {
	b := make([]byte, n)
	if a := c.attr(id); a != nil {
		if err := c.copyIn(a, b[:min(n, int(a.Len()))]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// InExact is In of a structure that grows: EOPNOTSUPP when it is longer than n and not
// zero there, EINVAL when it is shorter than least.
func (c *Call) InExact(id uint16, least, n int) ([]byte, error) {
	have := c.Len(id)
	if have < least {
		return nil, errorf(syscall.EINVAL, "%s: attribute %#x of %d bytes, at least %d", c.Method.Name, id, have, least)
	}
	b, err := c.In(id, max(n, have))
	if err != nil {
		return nil, err
	}
	if !zero(b[n:]) {
		return nil, errorf(syscall.EOPNOTSUPP, "%s: attribute %#x has more than we know", c.Method.Name, id)
	}
	return b[:n], nil
}

// Value is an input of up to 8 bytes as a number, 0 when it was not given.
func (c *Call) Value(id uint16) uint64 {
	var b [8]byte
	if a := c.attr(id); a != nil && a.Len() <= 8 {
		copy(b[:], a[8:8+a.Len()])
	}
	return le.Uint64(b[:])
}

// Flags32 is an input of flags (uverbs_get_flags32): EINVAL for others than allowed.
func (c *Call) Flags32(id uint16, allowed uint32) (uint32, error) {
	a := c.attr(id)
	if a == nil {
		return 0, nil
	}
	v := c.Value(id)
	if a.Len() != 4 && a.Len() != 8 || v&^uint64(allowed) != 0 {
		return 0, errorf(syscall.EINVAL, "%s: flags %#x of %d bytes", c.Method.Name, v, a.Len())
	}
	return uint32(v), nil
}

// Handle is the handle of an object; ok is false when none was given.
func (c *Call) Handle(id uint16) (h uint32, ok bool) {
	a := c.attr(id)
	if a == nil {
		return 0, false
	}
	if a.Data() > math.MaxUint32 {
		return math.MaxUint32, true // no such object
	}
	return uint32(a.Data()), true
}

// FD is a file descriptor; ok is false when none was given.
func (c *Call) FD(id uint16) (fd int, ok bool) {
	a := c.attr(id)
	if a == nil {
		return -1, false
	}
	v := int64(a.Data())
	if v < 0 || v > math.MaxInt32 {
		return -1, true // no such file
	}
	return int(v), true
}

// Out fills the room of an answer with as much of b as fits (uverbs_copy_to). An
// answer that was not asked for is no error.
func (c *Call) Out(id uint16, b []byte) error { return c.out(id, b, false) }

// OutStruct is Out and zeroes what is left (uverbs_copy_to_struct_or_zero).
func (c *Call) OutStruct(id uint16, b []byte) error { return c.out(id, b, true) }

func (c *Call) out(id uint16, b []byte, fill bool) error {
	a := c.attr(id)
	if a == nil {
		return nil
	}
	room := int(a.Len())
	p := b[:min(len(b), room)]
	if fill && room > len(b) {
		p = make([]byte, room)
		copy(p, b)
	}
	if len(p) > 0 {
		if err := c.mem.Write(a.Data(), p); err != nil {
			return errorf(syscall.EFAULT, "%s: answer %#x: %d bytes at %#x: %v", c.Method.Name, id, len(p), a.Data(), err)
		}
	}
	return c.filled(a)
}

// Out32 answers with a number.
func (c *Call) Out32(id uint16, v uint32) error { return c.Out(id, le.AppendUint32(nil, v)) }

// Out16 writes an answer of 2 bytes.
func (c *Call) Out16(id uint16, v uint16) error { return c.Out(id, le.AppendUint16(nil, v)) }

// Out64 answers with a number.
func (c *Call) Out64(id uint16, v uint64) error { return c.Out(id, le.AppendUint64(nil, v)) }

// filled sets the flag that says so.
func (c *Call) filled(a Attr) error {
	a.SetFlags(a.Flags() | AttrValidOutput)
	return c.put(a, 4, 2)
}

// SetNew answers an ObjectNew or FDNew with its handle or descriptor.
func (c *Call) SetNew(id uint16, v uint64) error {
	a := c.attr(id)
	if a == nil {
		return nil
	}
	a.SetData(v)
	return c.put(a, 8, 8)
}

// put writes n bytes at off of an attribute back to where the program has it.
func (c *Call) put(a Attr, off, n int) error {
	at := c.addr + uint64(c.places[c.Method.spec(a.ID())]+off)
	if err := c.mem.Write(at, a[off:off+n]); err != nil {
		return errorf(syscall.EFAULT, "%s: attribute %#x: %v", c.Method.Name, a.ID(), err)
	}
	return nil
}
