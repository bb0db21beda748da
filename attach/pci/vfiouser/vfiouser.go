//go:build linux && amd64

// Package vfiouser is the server's side of the vfio-user protocol, by which a virtual machine
// monitor such as QEMU (10.1 or later) gives its guest a PCI device that lives in another process
// (docs/interop/vfio-user.rst of QEMU). It knows nothing of what the device is: that stands behind
// the interface Device.
//
// A connection is one life of the device. The client sends requests and waits for each reply; the
// server sends none. What a guest or a client sends can never do more than fail its own requests or
// end its own connection.
package vfiouser

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/rdmasim/rdmasim/uapi"
)

// Device is what stands behind a connection. The methods are called one at a time, by the goroutine
// of the connection.
type Device interface {
	// Connected is called when a client has agreed on the version of the protocol, before any of
	// the others.
	Connected(irqs *Interrupts)
	// ReadRegion fills p from a region, and WriteRegion stores p there. The range lies inside the
	// region.
	ReadRegion(region int, off uint64, p []byte)
	WriteRegion(region int, off uint64, p []byte)
	// Map gives the device memory of the guest. It overlaps no window that is mapped.
	Map(w *Window)
	// Unmap takes a window back: when it returns nothing touches its memory any more.
	Unmap(w *Window)
	// Reset puts the device into the state after power-on; windows stay.
	Reset()
	// Disconnected ends the life of the device, like Reset. Windows are taken back by Unmap
	// afterwards.
	Disconnected()
}

// Layout says what the device consists of.
type Layout struct {
	Regions [uapi.VFIORegions]uint64 // sizes in bytes; 0: there is no such region
	Vectors int                      // of MSI-X
	// Logf, when not nil, is told of what a user can do something about.
	Logf func(format string, args ...any)
}

func (l *Layout) logf(format string, args ...any) {
	if l.Logf != nil {
		l.Logf(format, args...)
	}
}

// ErrProtocol is wrapped when a client breaks the protocol so that its connection has to end.
var ErrProtocol = errors.New("the client breaks the vfio-user protocol")

// connection is a client that is connected.
type connection struct {
	c      *net.UnixConn
	d      Device
	l      *Layout
	agreed bool // on the version
	irqs   *Interrupts
	dma    windows
	head   [uapi.VFIOUserHeaderSize]byte
	out    []byte // the reply that is being sent
	in     []byte // the body that was received
	oob    []byte
}

// serve answers a client until it goes, which is no error. It closes the connection.
func serve(c *net.UnixConn, d Device, l *Layout) (err error) {
	x := &connection{c: c, d: d, l: l, irqs: newInterrupts(l.Vectors), oob: make([]byte, oobSize)}
	defer func() {
		err = errors.Join(err, x.end())
	}()
	for {
		m, err := x.receive()
		if err == nil {
			err = x.answer(&m)
		}
		m.closeFiles()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
			return nil
		case err != nil:
			return err
		}
	}
}

// end gives back all that the client gave: nothing of it stays.
func (x *connection) end() error {
	x.irqs.close()
	if x.agreed {
		x.d.Disconnected()
	}
	x.dma.clear(x.d)
	if err := x.c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// answer carries a request out and replies. An error ends the connection.
func (x *connection) answer(m *message) error {
	if m.kind() != uapi.VFIOUserRequest {
		return fmt.Errorf("%w: a message of type %d, where a request is due", ErrProtocol, m.kind())
	}
	if m.head.Command() != uapi.VFIOUserVersionCmd && !x.agreed {
		_ = x.reply(m, nil, syscall.EINVAL)
		return fmt.Errorf("%w: the first message is command %d, not VERSION", ErrProtocol, m.head.Command())
	}
	body, err := x.run(m)
	if rerr := x.reply(m, body, err); rerr != nil {
		return rerr
	}
	if m.head.Command() == uapi.VFIOUserVersionCmd && err != nil {
		return fmt.Errorf("%w: no agreement on the version: %w", ErrProtocol, err)
	}
	return nil
}

// requests are what is understood: how long the body is at least, and whether files may come with
// it.
var requests = map[uapi.VFIOUserCommand]struct {
	body  int
	files bool
	run   func(x *connection, m *message) ([]byte, error)
}{
	uapi.VFIOUserVersionCmd:       {uapi.VFIOUserVersionSize, false, (*connection).version},
	uapi.VFIOUserDMAMapCmd:        {uapi.VFIOUserDMAMapSize, true, (*connection).mapDMA},
	uapi.VFIOUserDMAUnmapCmd:      {uapi.VFIOUserDMAUnmapSize, false, (*connection).unmapDMA},
	uapi.VFIOUserGetInfoCmd:       {uapi.VFIODeviceInfoSize, false, (*connection).deviceInfo},
	uapi.VFIOUserGetRegionInfoCmd: {uapi.VFIORegionInfoSize, false, (*connection).regionInfo},
	uapi.VFIOUserGetIRQInfoCmd:    {uapi.VFIOIRQInfoSize, false, (*connection).irqInfo},
	uapi.VFIOUserSetIRQsCmd:       {uapi.VFIOIRQSetSize, true, (*connection).setIRQs},
	uapi.VFIOUserRegionReadCmd:    {uapi.VFIOUserRegionAccessSize, false, (*connection).readRegion},
	uapi.VFIOUserRegionWriteCmd:   {uapi.VFIOUserRegionAccessSize, false, (*connection).writeRegion},
	uapi.VFIOUserResetCmd:         {0, false, (*connection).reset},
}

// run returns the body of the reply, or a syscall.Errno.
func (x *connection) run(m *message) ([]byte, error) {
	r, ok := requests[m.head.Command()]
	switch {
	case !ok:
		return nil, syscall.ENOTSUP
	case x.dma.refused && !r.files && m.head.Command() != uapi.VFIOUserDMAUnmapCmd:
		return nil, syscall.ENXIO
	case len(m.body) < r.body, m.truncated, len(m.files) > 0 && !r.files:
		return nil, syscall.EINVAL
	}
	return r.run(x, m)
}

func (x *connection) deviceInfo(m *message) ([]byte, error) {
	i := uapi.VFIODeviceInfo(m.body)
	if i.Argsz() < uapi.VFIODeviceInfoSize {
		return nil, syscall.EINVAL
	}
	i.SetArgsz(uapi.VFIODeviceInfoSize)
	i.SetFlags(uapi.VFIODeviceFlagReset | uapi.VFIODeviceFlagPCI)
	i.SetNumRegions(uapi.VFIORegions)
	i.SetNumIRQs(uapi.VFIOIRQs)
	return i[:uapi.VFIODeviceInfoSize], nil
}

func (x *connection) regionInfo(m *message) ([]byte, error) {
	i := uapi.VFIORegionInfo(m.body)
	if i.Argsz() < uapi.VFIORegionInfoSize || i.Index() >= uapi.VFIORegions {
		return nil, syscall.EINVAL
	}
	size := x.l.Regions[i.Index()]
	i.SetArgsz(uapi.VFIORegionInfoSize)
	i.SetFlags(0)
	if size > 0 {
		i.SetFlags(uapi.VFIORegionFlagRead | uapi.VFIORegionFlagWrite)
	}
	i.SetCapOffset(0)
	i.SetLength(size)
	i.SetOffset(0)
	return i[:uapi.VFIORegionInfoSize], nil
}

func (x *connection) irqInfo(m *message) ([]byte, error) {
	i := uapi.VFIOIRQInfo(m.body)
	if i.Argsz() < uapi.VFIOIRQInfoSize || i.Index() >= uapi.VFIOIRQs {
		return nil, syscall.EINVAL
	}
	if i.Index() == uapi.VFIOIRQErr { // as vfio-pci says of a function without one; of a count of 0 QEMU warns
		return nil, syscall.EINVAL
	}
	i.SetArgsz(uapi.VFIOIRQInfoSize)
	i.SetFlags(0)
	i.SetCount(0)
	if i.Index() == uapi.VFIOIRQMSIX {
		i.SetFlags(uapi.VFIOIRQFlagEventFD)
		i.SetCount(uint32(x.l.Vectors))
	}
	return i[:uapi.VFIOIRQInfoSize], nil
}

// access checks the range of an access to a region.
func (x *connection) access(a uapi.VFIOUserRegionAccess) error {
	if a.Region() >= uapi.VFIORegions || a.Count() == 0 || a.Count() > maxTransfer {
		return syscall.EINVAL
	}
	size, n := x.l.Regions[a.Region()], uint64(a.Count())
	if n > size || a.Offset() > size-n {
		return syscall.EINVAL
	}
	return nil
}

func (x *connection) readRegion(m *message) ([]byte, error) {
	a := uapi.VFIOUserRegionAccess(m.body)
	if err := x.access(a); err != nil || len(m.body) != uapi.VFIOUserRegionAccessSize {
		return nil, syscall.EINVAL
	}
	n := int(a.Count())
	x.in = grow(x.in, len(a)+n) // the body lies at its beginning
	x.d.ReadRegion(int(a.Region()), a.Offset(), x.in[len(a):])
	return x.in, nil
}

func (x *connection) writeRegion(m *message) ([]byte, error) {
	a, p := uapi.VFIOUserRegionAccess(m.body[:uapi.VFIOUserRegionAccessSize]), m.body[uapi.VFIOUserRegionAccessSize:]
	if err := x.access(a); err != nil || len(p) != int(a.Count()) {
		return nil, syscall.EINVAL
	}
	x.d.WriteRegion(int(a.Region()), a.Offset(), p)
	return a, nil
}

func (x *connection) reset(*message) ([]byte, error) {
	x.d.Reset()
	return nil, nil
}

// grow returns b with length n; its bytes are kept.
func grow(b []byte, n int) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	return append(b[:len(b):len(b)], make([]byte, n-len(b))...)
}
