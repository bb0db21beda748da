// Package client makes calls of the uverbs ioctl the way a library does, attribute by
// attribute. It is the other end of package uapi: programs and tests use it that speak
// to a uverbs file without libibverbs.
package client

import (
	"fmt"

	"github.com/rdmasim/rdmasim/uapi"
)

// Arena gives memory of the program: n zeroed bytes at an address that the kernel
// reaches. They stay where they are.
type Arena interface {
	Alloc(n int) (addr uint64, b []byte)
}

// Call is a call that is being put together.
type Call struct {
	a     Arena
	addr  uint64
	buf   []byte
	n     int
	where map[uint16]int
}

// maxAttrs is room for the attributes of any call.
const maxAttrs = 32

// New begins a call of a method.
func New(a Arena, object, method uint16) *Call {
	c := &Call{a: a, where: map[uint16]int{}}
	c.addr, c.buf = a.Alloc(uapi.HeaderSize + maxAttrs*uapi.AttrSize)
	h := uapi.Header(c.buf)
	h.SetObjectID(object)
	h.SetMethodID(method)
	h.SetDriverID(uapi.DriverMLX5)
	h.SetLength(uapi.HeaderSize)
	return c
}

// NewWrite begins a command that INVOKE_WRITE carries, with its request.
func NewWrite(a Arena, cmd uint32, req []byte) *Call {
	return New(a, uapi.ObjectDevice, uapi.DeviceInvokeWrite).Value(uapi.InvokeWriteCmd, 8, uint64(cmd)).In(uapi.InvokeWriteCoreIn, req)
}

func (c *Call) attr(id uint16, length int) uapi.Attr {
	if c.n == maxAttrs {
		panic(fmt.Sprintf("client: more than %d attributes", maxAttrs))
	}
	at := uapi.HeaderSize + c.n*uapi.AttrSize
	c.n++
	h := uapi.Header(c.buf)
	h.SetNumAttrs(uint16(c.n))
	h.SetLength(uint16(uapi.HeaderSize + c.n*uapi.AttrSize))
	c.where[id] = at
	a := uapi.Attr(c.buf[at:])
	a.SetID(id)
	a.SetLen(uint16(length))
	a.SetFlags(uapi.AttrMandatory)
	return a
}

// In gives an input: up to 8 bytes in the attribute itself.
func (c *Call) In(id uint16, b []byte) *Call {
	a := c.attr(id, len(b))
	if len(b) <= 8 {
		copy(a[8:], b)
		return c
	}
	addr, mem := c.a.Alloc(len(b))
	copy(mem, b)
	a.SetData(addr)
	return c
}

// Value gives a number of 1 to 8 bytes.
func (c *Call) Value(id uint16, size int, v uint64) *Call {
	c.attr(id, size).SetData(v)
	return c
}

// Out gives room for an answer and returns it.
func (c *Call) Out(id uint16, n int) []byte {
	addr, mem := c.a.Alloc(n)
	c.attr(id, n).SetData(addr)
	return mem
}

// Object gives the handle of an object, or a file descriptor.
func (c *Call) Object(id uint16, v uint64) *Call {
	c.attr(id, 0).SetData(v)
	return c
}

// New asks for an object or a file: Result gives its handle or descriptor.
func (c *Call) New(id uint16) *Call { return c.Object(id, 0) }

// Addr is the argument of the ioctl.
func (c *Call) Addr() uint64 { return c.addr }

// Result is what the data of an attribute is now.
func (c *Call) Result(id uint16) uint64 { return uapi.Attr(c.buf[c.where[id]:]).Data() }

// Filled reports whether the kernel has answered in the room of an attribute.
func (c *Call) Filled(id uint16) bool {
	return uapi.Attr(c.buf[c.where[id]:]).Flags()&uapi.AttrValidOutput != 0
}

// Attr is an attribute as it lies in memory, for what a library does not do.
func (c *Call) Attr(id uint16) uapi.Attr { return uapi.Attr(c.buf[c.where[id]:][:uapi.AttrSize]) }

// Header is the header as it lies in memory.
func (c *Call) Header() uapi.Header { return uapi.Header(c.buf[:uapi.HeaderSize]) }
