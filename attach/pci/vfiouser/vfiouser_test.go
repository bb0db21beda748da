//go:build linux && amd64

package vfiouser_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/pci/vfiouser"
	"github.com/rdmasim/rdmasim/attach/pci/vfiouser/client"
	"github.com/rdmasim/rdmasim/uapi"
)

// toy is a device of one page of registers that records what it is told. A test holds mu while it
// looks: that a reply has come is no order of memory for the race detector.
type toy struct {
	mu      sync.Mutex
	regs    [4096]byte
	windows map[uint64]*vfiouser.Window
	irqs    *vfiouser.Interrupts
	lives   int
	resets  int
	ended   int
}

func newToy() *toy { return &toy{windows: map[uint64]*vfiouser.Window{}} }

// see lets a test look.
func (d *toy) see(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *toy) Connected(q *vfiouser.Interrupts) { d.see(func() { d.irqs, d.lives = q, d.lives+1 }) }
func (d *toy) ReadRegion(_ int, off uint64, p []byte) {
	d.see(func() { copy(p, d.regs[off:]) })
}
func (d *toy) WriteRegion(_ int, off uint64, p []byte) {
	d.see(func() { copy(d.regs[off:], p) })
}
func (d *toy) Map(w *vfiouser.Window)   { d.see(func() { d.windows[w.Address] = w }) }
func (d *toy) Unmap(w *vfiouser.Window) { d.see(func() { delete(d.windows, w.Address) }) }
func (d *toy) Reset()                   { d.see(func() { d.resets++ }) }
func (d *toy) Disconnected()            { d.see(func() { d.ended++ }) }

// rig is a toy that listens.
type rig struct {
	t    *testing.T
	d    *toy
	l    *vfiouser.Listener
	path string
	mu   sync.Mutex
	log  []string
	done chan struct{}
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, d: newToy(), path: filepath.Join(t.TempDir(), "s"), done: make(chan struct{})}
	lay := &vfiouser.Layout{Vectors: 4, Logf: func(f string, a ...any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log = append(r.log, fmt.Sprintf(f, a...))
	}}
	lay.Regions[uapi.VFIORegionBAR0], lay.Regions[uapi.VFIORegionConfig] = 4096, 256
	var err error
	if r.l, err = vfiouser.Listen(r.path); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(r.done); r.l.Serve(r.d, lay) }()
	t.Cleanup(func() { _ = r.l.Close(); <-r.done })
	return r
}

func (r *rig) said(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(strings.Join(r.log, "\n"), what)
}

func (r *rig) dial() *client.Client {
	r.t.Helper()
	c, err := client.Dial(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *rig) connect() *client.Client {
	r.t.Helper()
	c := r.dial()
	if _, err := c.Version(); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// file is a memory file of n bytes.
func file(t *testing.T, n int64) int {
	t.Helper()
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Ftruncate(fd, n); err != nil {
		t.Fatal(err)
	}
	return fd
}

func eventfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// count takes what an eventfd has counted.
func count(fd int) int {
	var b [8]byte
	if _, err := unix.Read(fd, b[:]); err != nil {
		return 0
	}
	return int(b[0])
}

func want(t *testing.T, what string, got error, want syscall.Errno) {
	t.Helper()
	if want == 0 && got == nil || want != 0 && errors.Is(got, want) {
		return
	}
	t.Errorf("%s: %v, want %v", what, got, want)
}

const rw = uapi.VFIODMARead | uapi.VFIODMAWrite

func TestVersionAndInfo(t *testing.T) {
	r := newRig(t)
	c := r.dial()
	text, err := c.Version()
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Capabilities map[string]any `json:"capabilities"`
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil || v.Capabilities["pgsizes"] != 4096.0 || v.Capabilities["max_msg_fds"] != 16.0 || v.Capabilities["migration"] != nil {
		t.Errorf("%s: %v", text, err)
	}
	if _, err := c.Version(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a second VERSION: %v", err)
	}

	c = r.connect()
	in := make(uapi.VFIODeviceInfo, uapi.VFIODeviceInfoSize)
	in.SetArgsz(16)
	out, err := c.Do(uapi.VFIOUserGetInfoCmd, in)
	if i := uapi.VFIODeviceInfo(out); err != nil || len(out) != 16 || i.Flags() != 3 || i.NumRegions() != 9 || i.NumIRQs() != 5 {
		t.Errorf("GET_INFO: %x, %v", out, err)
	}
	for n, size := range map[uint32]uint64{0: 4096, 1: 0, 7: 256, 8: 0} {
		in := make(uapi.VFIORegionInfo, uapi.VFIORegionInfoSize)
		in.SetArgsz(32)
		in.SetIndex(n)
		out, err := c.Do(uapi.VFIOUserGetRegionInfoCmd, in)
		if i := uapi.VFIORegionInfo(out); err != nil || len(out) != 32 || i.Length() != size || i.Index() != n || (i.Flags() == 3) != (size > 0) {
			t.Errorf("GET_REGION_INFO %d: %x, %v", n, out, err)
		}
	}
	for n := range uint32(5) {
		in := make(uapi.VFIOIRQInfo, uapi.VFIOIRQInfoSize)
		in.SetArgsz(16)
		in.SetIndex(n)
		out, err := c.Do(uapi.VFIOUserGetIRQInfoCmd, in)
		if n == uapi.VFIOIRQErr { // there is none; of a count of 0 QEMU warns
			if !errors.Is(err, syscall.EINVAL) {
				t.Errorf("interrupt of errors: %v, %v", out, err)
			}
			continue
		}
		if i := uapi.VFIOIRQInfo(out); err != nil || len(out) != 16 || (i.Count() == 4) != (n == 2) || (i.Flags() == 1) != (n == 2) {
			t.Errorf("GET_IRQ_INFO %d: %x, %v", n, out, err)
		}
	}
}

func TestRegions(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	want(t, "write", c.Write(0, 8, []byte{1, 2, 3, 4}), 0)
	b := make([]byte, 8)
	want(t, "read", c.Read(0, 6, b), 0)
	if !bytes.Equal(b, []byte{0, 0, 1, 2, 3, 4, 0, 0}) {
		t.Errorf("%x", b)
	}
	want(t, "whole", c.Read(0, 0, make([]byte, 4096)), 0)
	for _, x := range []struct {
		region uint32
		off    uint64
		n      int
	}{{0, 4095, 2}, {0, 4096, 1}, {0, 1<<64 - 1, 4}, {0, 1<<64 - 4, 8}, {1, 0, 1}, {7, 255, 2}, {9, 0, 4}, {1<<32 - 1, 0, 4}, {0, 0, 0}, {0, 0, 4097}} {
		want(t, fmt.Sprintf("read of %+v", x), c.Read(x.region, x.off, make([]byte, x.n)), syscall.EINVAL)
		want(t, fmt.Sprintf("write of %+v", x), c.Write(x.region, x.off, make([]byte, x.n)), syscall.EINVAL)
	}
	a := make(uapi.VFIOUserRegionAccess, uapi.VFIOUserRegionAccessSize)
	a.SetCount(1 << 30)
	if _, err := c.Do(uapi.VFIOUserRegionReadCmd, a); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	a.SetCount(4)
	if _, err := c.Do(uapi.VFIOUserRegionWriteCmd, append(a, 1, 2)); !errors.Is(err, syscall.EINVAL) {
		t.Error("a write with less data than it says:", err)
	}
	_, err := c.Do(uapi.VFIOUserResetCmd, nil)
	r.d.see(func() {
		if err != nil || r.d.resets != 1 {
			t.Errorf("RESET: %v, %d", err, r.d.resets)
		}
	})
}

func TestUnknownAndMalformedRequests(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	for _, n := range []uapi.VFIOUserCommand{0, 6, 11, 12, 14, 15, 16, 17, 18, 99, 1<<16 - 1} {
		_, err := c.Do(n, make([]byte, 40))
		want(t, fmt.Sprintf("command %d", n), err, syscall.ENOTSUP)
	}
	fd := file(t, 4096)
	for n := uapi.VFIOUserCommand(2); n <= 10; n++ {
		if n == 6 {
			continue
		}
		_, err := c.Do(n, make([]byte, 7))
		want(t, fmt.Sprintf("a short command %d", n), err, syscall.EINVAL)
		_, err = c.Do(n, make([]byte, 40), fd, fd)
		want(t, fmt.Sprintf("command %d with two files", n), err, syscall.EINVAL)
	}
	_, err := c.Do(uapi.VFIOUserResetCmd, nil, fd)
	want(t, "a reset with a file", err, syscall.EINVAL)

	// Without a reply, and the next one has its own.
	if err := c.Send(c.Message(uapi.VFIOUserResetCmd, uapi.VFIOUserRequest|uapi.VFIOUserNoReply, nil)); err != nil {
		t.Fatal(err)
	}
	want(t, "after a request without reply", c.Read(0, 0, make([]byte, 4)), 0)
}

// TestConnectionsThatEnd are those whose client breaks the protocol.
func TestConnectionsThatEnd(t *testing.T) {
	r := newRig(t)
	for name, talk := range map[string]func(c *client.Client){
		"no version first": func(c *client.Client) { _ = c.Send(c.Message(uapi.VFIOUserGetInfoCmd, 0, make([]byte, 16))) },
		"version 1":        func(c *client.Client) { _ = c.Send(c.Message(uapi.VFIOUserVersionCmd, 0, []byte{1, 0, 0, 0, 0})) },
		"no JSON": func(c *client.Client) {
			_ = c.Send(c.Message(uapi.VFIOUserVersionCmd, 0, []byte("\x00\x00\x00\x00{\x00")))
		},
		"no end of text": func(c *client.Client) {
			_ = c.Send(c.Message(uapi.VFIOUserVersionCmd, 0, []byte("\x00\x00\x00\x00{}")))
		},
		"a reply": func(c *client.Client) { _, _ = c.Version(); _ = c.Send(c.Message(2, uapi.VFIOUserReply, nil)) },
		"too short": func(c *client.Client) {
			_, _ = c.Version()
			_ = c.Send([]byte{1, 0, 4, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
		},
		"too long": func(c *client.Client) {
			_, _ = c.Version()
			_ = c.Send([]byte{1, 0, 4, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0})
		},
		"ends in a header": func(c *client.Client) { _, _ = c.Version(); _ = c.Send([]byte{1, 0, 4}); _ = c.Close() },
		"ends in a body": func(c *client.Client) {
			_, _ = c.Version()
			_ = c.Send(c.Message(uapi.VFIOUserGetInfoCmd, 0, make([]byte, 16))[:20])
			_ = c.Close()
		},
	} {
		c := r.dial()
		talk(c)
		for {
			_, _, err := c.Receive()
			if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
		_ = c.Close()
	}
	r.connect()
}

func TestWindows(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	fd := file(t, 16*4096)
	// ROM may come without a file, and memory of the machine may not.
	want(t, "ROM", c.Map(0xfffc0000, 0x40000, uapi.VFIODMARead, -1, 0), 0)
	want(t, "memory without a file", c.Map(0, 4*4096, rw, -1, 0), syscall.EINVAL)
	want(t, "then there is no device", c.Read(0, 0, make([]byte, 4)), syscall.ENXIO)
	_ = c.Close()
	c = r.connect()
	if !r.said("memory-backend-memfd") || !r.said("share=on") {
		t.Errorf("the option is not named: %q", r.log)
	}
	want(t, "ROM", c.Map(0xfffc0000, 0x40000, uapi.VFIODMARead, -1, 0), 0)
	want(t, "map", c.Map(0, 4*4096, rw, fd, 4096), 0)
	want(t, "memory of a device of the guest", c.Map(1<<32, 4096, rw, -1, 0), 0)
	want(t, "read only", c.Map(0x10000, 4096, uapi.VFIODMARead, fd, 0), 0)
	want(t, "at the end", c.Map(1<<64-4096, 4096, rw, fd, 0), 0)
	r.d.see(func() {
		w := r.d.windows[0]
		w.Mem[5] = 77
		var b [1]byte
		if _, err := unix.Pread(fd, b[:], 4096+5); err != nil || b[0] != 77 {
			t.Errorf("%d, %v", b[0], err)
		}
		if !w.Writable || r.d.windows[0x10000].Writable || r.d.windows[1<<32].Mem != nil || len(r.d.windows) != 5 {
			t.Errorf("%+v", r.d.windows)
		}
	})
	small := file(t, 4096)
	for _, x := range []struct {
		name       string
		at, n, off uint64
		flags      uint32
		fd         int
		want       syscall.Errno
	}{
		{"over", 3 * 4096, 4096, 0, rw, fd, syscall.EEXIST},
		{"around", 0x10000 - 4096, 3 * 4096, 0, rw, fd, syscall.EEXIST},
		{"the same", 0, 4 * 4096, 0, rw, fd, syscall.EEXIST},
		{"nothing", 0x20000, 0, 0, rw, fd, syscall.EINVAL},
		{"no right", 0x20000, 4096, 0, 0, fd, syscall.EINVAL},
		{"another right", 0x20000, 4096, 0, 7, fd, syscall.EINVAL},
		{"across the end", 1<<64 - 4096, 2 * 4096, 0, rw, fd, syscall.EINVAL},
		{"everything", 0, 1<<64 - 4096, 0, rw, fd, syscall.EINVAL},
		{"no page", 0x20001, 4096, 0, rw, fd, syscall.EINVAL},
		{"no whole page", 0x20000, 4095, 0, rw, fd, syscall.EINVAL},
		{"offset inside a page", 0x20000, 4096, 1, rw, fd, syscall.EINVAL},
		{"behind the file", 0x20000, 4096, 4096, rw, small, syscall.EINVAL},
		{"longer than the file", 0x20000, 8192, 0, rw, small, syscall.EINVAL},
		{"a far offset", 0x20000, 4096, 1 << 63, rw, fd, syscall.EINVAL},
		{"no regular file", 0x20000, 4096, 0, rw, eventfd(t), syscall.EINVAL},
	} {
		want(t, x.name, c.Map(x.at, x.n, x.flags, x.fd, x.off), x.want)
	}
	for _, x := range []struct{ at, n uint64 }{{4096, 4096}, {0, 4096}, {0, 5 * 4096}, {0x20000, 4096}, {1 << 63, 4096}} {
		want(t, fmt.Sprintf("unmap %+v", x), c.Unmap(x.at, x.n, 0), syscall.ENOENT)
	}
	want(t, "unmap with a bitmap", c.Unmap(0, 4*4096, 1), syscall.EINVAL)
	want(t, "unmap", c.Unmap(0, 4*4096, 0), 0)
	want(t, "unmap again", c.Unmap(0, 4*4096, 0), syscall.ENOENT)
	want(t, "map again", c.Map(0, 4*4096, rw, fd, 0), 0)
	want(t, "unmap all of something", c.Unmap(0, 4*4096, uapi.VFIODMAUnmapAll), syscall.EINVAL)
	want(t, "unmap all", c.Unmap(0, 0, uapi.VFIODMAUnmapAll), 0)
	r.d.see(func() {
		if len(r.d.windows) != 0 {
			t.Errorf("%+v", r.d.windows)
		}
	})
}

func TestInterrupts(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	const set = uapi.VFIOIRQDataEventFD | uapi.VFIOIRQActionTrigger
	a, b := eventfd(t), eventfd(t)
	msix := uint32(uapi.VFIOIRQMSIX)
	want(t, "none", c.SetIRQs(msix, set, 0, 1, nil), 0)
	want(t, "one", c.SetIRQs(msix, set, 0, 1, nil, a), 0)
	want(t, "two more", c.SetIRQs(msix, set, 2, 2, nil, b, b), 0)
	var q *vfiouser.Interrupts
	r.d.see(func() { q = r.d.irqs })
	q.Raise(0)
	q.Raise(0)
	q.Raise(3)
	if count(a) != 2 || count(b) != 1 {
		t.Error("interrupts are lost")
	}
	q.Raise(1) // waits for its eventfd
	want(t, "vector 1", c.SetIRQs(msix, set, 1, 1, nil, a), 0)
	if count(a) != 1 {
		t.Error("what waited is lost")
	}
	want(t, "mask", c.SetIRQs(msix, uapi.VFIOIRQDataNone|uapi.VFIOIRQActionMask, 0, 2, nil), 0)
	q.Raise(0)
	if count(a) != 0 {
		t.Error("a masked vector is delivered")
	}
	want(t, "unmask", c.SetIRQs(msix, uapi.VFIOIRQDataBool|uapi.VFIOIRQActionUnmask, 0, 2, []byte{1, 0}), 0)
	if count(a) != 1 {
		t.Error("what was masked is lost")
	}
	want(t, "trigger", c.SetIRQs(msix, uapi.VFIOIRQDataBool|uapi.VFIOIRQActionTrigger, 2, 2, []byte{0, 1}), 0)
	if count(b) != 1 {
		t.Error("not triggered")
	}
	want(t, "off", c.SetIRQs(msix, set, 0, 1, nil), 0)
	q.Raise(0)
	want(t, "all off", c.SetIRQs(msix, uapi.VFIOIRQDataNone|uapi.VFIOIRQActionTrigger, 0, 0, nil), 0)
	q.Raise(3)
	want(t, "all off, INTx", c.SetIRQs(0, uapi.VFIOIRQDataNone|uapi.VFIOIRQActionTrigger, 0, 0, nil), 0)
	q.Raise(-1)
	q.Raise(4)
	if count(a) != 0 || count(b) != 0 {
		t.Error("interrupts of vectors that are off")
	}
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	for _, x := range []struct {
		name                       string
		index, flags, start, count uint32
		data                       []byte
		files                      []int
	}{
		{"another index", 5, set, 0, 1, nil, []int{a}},
		{"INTx", 0, set, 0, 1, nil, []int{a}},
		{"beyond", 2, set, 4, 1, nil, []int{a}},
		{"far beyond", 2, set, 1<<32 - 1, 2, nil, []int{a, a}},
		{"too many", 2, set, 3, 2, nil, []int{a, a}},
		{"fewer files", 2, set, 0, 3, nil, []int{a, a}},
		{"more files", 2, set, 0, 1, nil, []int{a, a}},
		{"no eventfd", 2, set, 0, 1, nil, []int{int(pipe.Fd())}},
		{"files to mask", 2, uapi.VFIOIRQDataEventFD | uapi.VFIOIRQActionMask, 0, 1, nil, []int{a}},
		{"files without data", 2, uapi.VFIOIRQDataNone | uapi.VFIOIRQActionTrigger, 0, 1, nil, []int{a}},
		{"short data", 2, uapi.VFIOIRQDataBool | uapi.VFIOIRQActionTrigger, 0, 3, []byte{1, 1}, nil},
		{"two actions", 2, uapi.VFIOIRQDataNone | uapi.VFIOIRQActionTrigger | uapi.VFIOIRQActionMask, 0, 1, nil, nil},
		{"two kinds of data", 2, 3 | uapi.VFIOIRQActionTrigger, 0, 1, nil, nil},
		{"no flags", 2, 0, 0, 1, nil, nil},
	} {
		want(t, x.name, c.SetIRQs(x.index, x.flags, x.start, x.count, x.data, x.files...), syscall.EINVAL)
	}
}

func TestSecondClientIsRefused(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	if _, err := r.dial().Version(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("%v", err)
	}
	want(t, "the first goes on", c.Write(0, 0, []byte{9}), 0)
	_ = c.Close()
	c = r.connect() // a new life
	want(t, "the next", c.Write(0, 0, []byte{9}), 0)
	r.d.see(func() {
		if r.d.lives != 2 || r.d.ended != 1 {
			t.Errorf("%d lives, %d ends", r.d.lives, r.d.ended)
		}
	})
}

func TestListen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	try := func(path, say string) *vfiouser.Listener {
		t.Helper()
		l, err := vfiouser.Listen(path)
		if (err == nil) != (say == "") || err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want %q", err, say)
		}
		return l
	}
	l := try(path, "")
	try(path, "another process listens")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket stays")
	}
	// A process that was killed leaves its socket.
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	_ = old.Close()
	l = try(path, "")
	// Another has taken the name meanwhile.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	try(path, "not a socket")
	try(filepath.Join(dir, "no", "s"), "no such file")
	try(filepath.Join(dir, strings.Repeat("x", 108)), "107")
	try("", "no such file")
}

// held counts what this process has open and mapped.
func held(t testing.TB) (files, maps int) {
	t.Helper()
	l, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(l), strings.Count(string(b), "memfd:guest")
}

// TestNothingIsLeft kills clients in every state.
func TestNothingIsLeft(t *testing.T) {
	r := newRig(t)
	fd, e := file(t, 64*4096), eventfd(t)
	before, _ := held(t)
	for n := range 50 {
		c := r.connect()
		for k := range uint64(n % 10) {
			want(t, "map", c.Map(k*0x10000, 4096, rw, fd, k*4096), 0)
			want(t, "vector", c.SetIRQs(2, uapi.VFIOIRQDataEventFD|uapi.VFIOIRQActionTrigger, 0, 4, nil, e, e, e, e), 0)
			want(t, "refused", c.Map(k*0x10000, 4096, rw, fd, 0), syscall.EEXIST)
		}
		if n%3 == 0 {
			// Killed with a request under way, whose files nobody takes.
			_ = c.Send(c.Message(uapi.VFIOUserDMAMapCmd, 0, make([]byte, 32))[:30], fd)
		}
		_ = c.Close()
	}
	_ = r.l.Close()
	<-r.done
	if after, maps := held(t); after >= before || maps != 0 {
		t.Errorf("%d files before and %d after, %d windows are still mapped", before, after, maps)
	}
	if r.d.lives != 50 || r.d.ended != 50 || len(r.d.windows) != 0 {
		t.Errorf("%d lives, %d ends, windows %v", r.d.lives, r.d.ended, r.d.windows)
	}
}
