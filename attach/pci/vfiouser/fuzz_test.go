//go:build linux && amd64

package vfiouser

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/pci/vfiouser/client"
	"github.com/rdmasim/rdmasim/uapi"
)

// strict is a device that fails the test when a request reaches it that should have been refused.
type strict struct {
	t       *testing.T
	l       *Layout
	windows map[*Window]bool
	alive   bool
}

func (d *strict) Connected(*Interrupts) { d.alive = true }

func (d *strict) check(region int, off uint64, p []byte) {
	if size := d.l.Regions[region]; !d.alive || len(p) == 0 || off+uint64(len(p)) > size || off+uint64(len(p)) < off {
		d.t.Errorf("%d bytes at %#x of region %d, which has %#x", len(p), off, region, size)
	}
}

func (d *strict) ReadRegion(region int, off uint64, p []byte)  { d.check(region, off, p) }
func (d *strict) WriteRegion(region int, off uint64, p []byte) { d.check(region, off, p) }
func (d *strict) Reset()                                       {}
func (d *strict) Disconnected()                                { d.alive = false }

func (d *strict) Map(w *Window) {
	for o := range d.windows {
		if o.Address <= w.end()-1 && w.Address <= o.end()-1 {
			d.t.Errorf("window %+v over %+v", w, o)
		}
	}
	if w.Mem != nil && uint64(len(w.Mem)) != w.Size || w.Size == 0 || w.end()-1 < w.Address {
		d.t.Errorf("window %+v", w)
	}
	d.windows[w] = true
}

func (d *strict) Unmap(w *Window) {
	if !d.windows[w] {
		d.t.Errorf("window %+v was not mapped", w)
	}
	delete(d.windows, w)
}

// talk has a client send what send says to a device, and checks that nothing is left of it.
func talk(t *testing.T, send func(c *client.Client)) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		ends[i] = c.(*net.UnixConn)
	}
	l := &Layout{Vectors: 4}
	l.Regions[0], l.Regions[7] = 8192, 256
	d := &strict{t: t, l: l, windows: map[*Window]bool{}}
	served := make(chan error)
	go func() { served <- serve(ends[0], d, l) }()
	drained := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, ends[1]); close(drained) }()
	send(client.New(ends[1]))
	_ = ends[1].CloseWrite()
	if err := <-served; err != nil && !errors.Is(err, ErrProtocol) {
		t.Error(err)
	}
	<-drained
	_ = ends[1].Close()
	if d.alive || len(d.windows) != 0 {
		t.Errorf("the device is alive: %v; windows %v", d.alive, d.windows)
	}
}

func versionBody() []byte {
	return append(append(make([]byte, uapi.VFIOUserVersionSize), client.Capabilities...), 0)
}

// FuzzMessage sends any bytes, before and after an agreement on the version.
func FuzzMessage(f *testing.F) {
	c := &client.Client{}
	f.Add(c.Message(uapi.VFIOUserVersionCmd, 0, versionBody()), false)
	f.Add(c.Message(uapi.VFIOUserDMAMapCmd, 0, make([]byte, 32)), true)
	f.Add(c.Message(uapi.VFIOUserRegionReadCmd, 0, []byte{0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0}), true)
	f.Add(c.Message(uapi.VFIOUserSetIRQsCmd, 0, []byte{20, 0, 0, 0, 0x21, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), true)
	f.Add([]byte{1, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, agreed bool) {
		talk(t, func(c *client.Client) {
			if agreed {
				_ = c.Send(c.Message(uapi.VFIOUserVersionCmd, 0, versionBody()))
			}
			_ = c.Send(b)
		})
	})
}

// FuzzSession sends a sequence of requests that are nearly right: each has a form of its own and
// few values.
func FuzzSession(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19})
	f.Add([]byte{0, 1, 1, 3, 1, 0, 1, 1, 3, 1, 1, 1, 1, 3, 1, 2, 1, 1, 0})
	f.Add([]byte{5, 0, 0x24, 2, 0, 1, 1, 5, 0, 0x21, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.Ftruncate(fd, 8*pageSize); err != nil {
			t.Fatal(err)
		}
		event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(event)
		next := func() uint64 {
			if len(script) == 0 {
				return 0
			}
			b := script[0]
			script = script[1:]
			return uint64(b)
		}
		// far is a small number, or one near the end of the range.
		far := func(unit uint64) uint64 {
			b := next()
			if b >= 0xf0 {
				return (b - 0x100) * unit
			}
			return b % 16 * unit
		}
		talk(t, func(c *client.Client) {
			_ = c.Send(c.Message(uapi.VFIOUserVersionCmd, 0, versionBody()))
			for len(script) > 0 {
				sendOne(c, fd, event, next, far)
			}
		})
	})
}

func sendOne(c *client.Client, fd, event int, next func() uint64, far func(unit uint64) uint64) {
	var files []int
	switch kind := next() % 6; kind {
	case 0, 1:
		m := make(uapi.VFIOUserDMAMap, uapi.VFIOUserDMAMapSize)
		m.SetArgsz(uapi.VFIOUserDMAMapSize)
		m.SetAddress(far(pageSize))
		m.SetLength(far(pageSize))
		m.SetFlags(uint32(next() % 5))
		m.SetOffset(far(pageSize))
		for range next() % 3 {
			files = append(files, fd)
		}
		_ = c.Send(c.Message(uapi.VFIOUserDMAMapCmd, 0, m), files...)
	case 2:
		m := make(uapi.VFIOUserDMAUnmap, uapi.VFIOUserDMAUnmapSize)
		m.SetArgsz(uapi.VFIOUserDMAUnmapSize)
		m.SetAddress(far(pageSize))
		m.SetLength(far(pageSize))
		m.SetFlags(uint32(next() % 3))
		_ = c.Send(c.Message(uapi.VFIOUserDMAUnmapCmd, 0, m))
	case 3, 4:
		a := make(uapi.VFIOUserRegionAccess, uapi.VFIOUserRegionAccessSize)
		a.SetOffset(far(512))
		a.SetRegion(uint32(next() % 10))
		a.SetCount(uint32(far(1)))
		if kind == 3 {
			_ = c.Send(c.Message(uapi.VFIOUserRegionReadCmd, 0, a))
			return
		}
		_ = c.Send(c.Message(uapi.VFIOUserRegionWriteCmd, 0, append(a, make([]byte, a.Count()&0xff)...)))
	default:
		s := make(uapi.VFIOIRQSet, uapi.VFIOIRQSetSize)
		s.SetArgsz(uapi.VFIOIRQSetSize)
		s.SetFlags(uint32(next()))
		s.SetIndex(uint32(next() % 6))
		s.SetStart(uint32(far(1)))
		s.SetCount(uint32(far(1)))
		for range next() % 5 {
			files = append(files, event)
		}
		_ = c.Send(c.Message(uapi.VFIOUserSetIRQsCmd, 0, append(s, make([]byte, next()%5)...)), files...)
	}
}
