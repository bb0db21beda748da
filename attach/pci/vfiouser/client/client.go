//go:build linux && amd64

// Package client is the other end of the vfio-user protocol, as tests need it: what a virtual
// machine monitor asks of a device, without a virtual machine.
package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/uapi"
)

// Client is a connection to a device.
type Client struct {
	c  *net.UnixConn
	id uint16
}

// Dial connects, and says nothing yet.
func Dial(path string) (*Client, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &Client{c: c}, nil
}

// New is a client on a connection that is there.
func New(c *net.UnixConn) *Client { return &Client{c: c} }

// Close ends the connection.
func (c *Client) Close() error { return c.c.Close() }

// Send sends bytes with files.
func (c *Client) Send(b []byte, files ...int) error {
	var oob []byte
	if len(files) > 0 {
		oob = unix.UnixRights(files...)
	}
	_, _, err := c.c.WriteMsgUnix(b, oob, nil)
	return err
}

// Message is a request with its header.
func (c *Client) Message(cmd uapi.VFIOUserCommand, flags uint32, body []byte) []byte {
	c.id++
	h := make(uapi.VFIOUserHeader, uapi.VFIOUserHeaderSize, uapi.VFIOUserHeaderSize+len(body))
	h.SetID(c.id)
	h.SetCommand(cmd)
	h.SetSize(uint32(cap(h)))
	h.SetFlags(flags)
	return append(h, body...)
}

// Do sends a request and waits for its reply. An error that the server reports is a syscall.Errno.
func (c *Client) Do(cmd uapi.VFIOUserCommand, body []byte, files ...int) ([]byte, error) {
	if err := c.Send(c.Message(cmd, uapi.VFIOUserRequest, body), files...); err != nil {
		return nil, err
	}
	h, body, err := c.Receive()
	switch {
	case err != nil:
		return nil, err
	case h.ID() != c.id || h.Command() != cmd || h.Flags()&uapi.VFIOUserTypeMask != uapi.VFIOUserReply:
		return nil, fmt.Errorf("the reply %x does not answer command %d, message %d", []byte(h), cmd, c.id)
	case h.Flags()&uapi.VFIOUserError != 0 && (len(body) != 0 || h.Error() == 0):
		return nil, fmt.Errorf("a malformed error reply %x", []byte(h))
	case h.Flags()&uapi.VFIOUserError != 0:
		return nil, syscall.Errno(h.Error())
	}
	return body, nil
}

// Receive takes a reply.
func (c *Client) Receive() (uapi.VFIOUserHeader, []byte, error) {
	h := make(uapi.VFIOUserHeader, uapi.VFIOUserHeaderSize)
	if _, err := io.ReadFull(c.c, h); err != nil {
		return nil, nil, err
	}
	if h.Size() < uapi.VFIOUserHeaderSize || h.Size() > 1<<24 {
		return nil, nil, fmt.Errorf("a reply of %d bytes", h.Size())
	}
	body := make([]byte, h.Size()-uapi.VFIOUserHeaderSize)
	_, err := io.ReadFull(c.c, body)
	return h, body, err
}

// Capabilities are those that QEMU 11.1 asks for.
const Capabilities = `{"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"pgsizes":4096,"max_dma_maps":65535,` +
	`"migration":{"pgsize":4096,"max_bitmap_size":33554432},"write_multiple":true}}`

// Version agrees on the version, and returns what the server can do.
func (c *Client) Version() (string, error) {
	v := make(uapi.VFIOUserVersion, uapi.VFIOUserVersionSize)
	out, err := c.Do(uapi.VFIOUserVersionCmd, append(append(v, Capabilities...), 0))
	if err != nil {
		return "", err
	}
	if len(out) < uapi.VFIOUserVersionSize+1 || out[len(out)-1] != 0 {
		return "", errors.New("a malformed version")
	}
	return string(out[uapi.VFIOUserVersionSize : len(out)-1]), nil
}

// Map maps n bytes of a file (-1: none) at a guest-physical address.
func (c *Client) Map(at, n uint64, flags uint32, file int, off uint64) error {
	m := make(uapi.VFIOUserDMAMap, uapi.VFIOUserDMAMapSize)
	m.SetArgsz(uapi.VFIOUserDMAMapSize)
	m.SetFlags(flags)
	m.SetOffset(off)
	m.SetAddress(at)
	m.SetLength(n)
	var files []int
	if file >= 0 {
		files = append(files, file)
	}
	_, err := c.Do(uapi.VFIOUserDMAMapCmd, m, files...)
	return err
}

// Unmap takes a window back.
func (c *Client) Unmap(at, n uint64, flags uint32) error {
	m := make(uapi.VFIOUserDMAUnmap, uapi.VFIOUserDMAUnmapSize)
	m.SetArgsz(uapi.VFIOUserDMAUnmapSize)
	m.SetFlags(flags)
	m.SetAddress(at)
	m.SetLength(n)
	_, err := c.Do(uapi.VFIOUserDMAUnmapCmd, m)
	return err
}

// Read reads from a region.
func (c *Client) Read(region uint32, off uint64, p []byte) error {
	a := access(region, off, len(p))
	out, err := c.Do(uapi.VFIOUserRegionReadCmd, a)
	if err == nil && (len(out) != len(a)+len(p) || string(out[:len(a)]) != string(a)) {
		err = fmt.Errorf("a read of %d bytes is answered by %x", len(p), out)
	}
	if err == nil {
		copy(p, out[len(a):])
	}
	return err
}

// Write writes to a region.
func (c *Client) Write(region uint32, off uint64, p []byte) error {
	a := access(region, off, len(p))
	out, err := c.Do(uapi.VFIOUserRegionWriteCmd, append(a, p...))
	if err == nil && string(out) != string(a) {
		err = fmt.Errorf("a write of %d bytes is answered by %x", len(p), out)
	}
	return err
}

func access(region uint32, off uint64, n int) uapi.VFIOUserRegionAccess {
	a := make(uapi.VFIOUserRegionAccess, uapi.VFIOUserRegionAccessSize)
	a.SetOffset(off)
	a.SetRegion(region)
	a.SetCount(uint32(n))
	return a
}

// SetIRQs is SET_IRQS.
func (c *Client) SetIRQs(index, flags, start, count uint32, data []byte, files ...int) error {
	s := make(uapi.VFIOIRQSet, uapi.VFIOIRQSetSize)
	s.SetArgsz(uapi.VFIOIRQSetSize)
	s.SetFlags(flags)
	s.SetIndex(index)
	s.SetStart(start)
	s.SetCount(count)
	_, err := c.Do(uapi.VFIOUserSetIRQsCmd, append(s, data...), files...)
	return err
}
