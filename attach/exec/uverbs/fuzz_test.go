//go:build linux

package uverbs

import (
	"os"
	"testing"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// source takes numbers from fuzz input; 0 when it is used up.
type source struct{ b []byte }

func (s *source) n(limit int) int {
	if len(s.b) == 0 {
		return 0
	}
	v := int(s.b[0])
	s.b = s.b[1:]
	return v % limit
}

// fill copies input into b.
func (s *source) fill(b []byte) { s.b = s.b[copy(b, s.b):] }

// FuzzIoctl makes calls whose attributes have hostile values, in any order, on one device
// that is never replaced. Nothing panics, and closing the file leaves nothing behind.
func FuzzIoctl(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 0, 1, 0, 40, 0, 2, 1, 3, 1, 1, 1, 5, 2, 2, 2, 7, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	// Objects and then commands on them: the lists of methods and commands in their order.
	for i, method := range uapi.Methods() {
		f.Add(append([]byte{byte(i % 2), 4, 1, 0, 40, 0, 2, 1, byte(i), byte(len(method.Attrs))}, make([]byte, 40)...))
	}
	for i := range uapi.Commands() {
		f.Add(append([]byte{0, 0, byte(i), 2, 1, 3, 3, 3, 0, 0, byte(i), 2, 1, 1, 1, 1}, make([]byte, 80)...))
	}
	m := newMachine(f) // one for all runs: making it takes longer than they do
	f.Fuzz(func(t *testing.T, in []byte) {
		x := &rig{T: t, machine: m, proc: &process{fds: map[int]*os.File{}},
			pages: newPages()}
		space, err := mem.NewForeignSpace(m.mem, x.proc)
		if err != nil {
			t.Fatal(err)
		}
		x.proc.kern = &kernel.Process{Name: "fuzz", Space: space, IPCLock: true}
		x.file = Open(m.kern, x.proc.kern, x.pages)
		s := &source{in}
		x.file.DynamicUARs = s.n(2) == 1
		x.open()
		methods := uapi.Methods()
		for len(s.b) > 0 {
			x.hostile(s, &methods[s.n(len(methods))])
			x.file.Mmap(uint64(s.n(256))<<4 | uint64(s.n(16)))
		}
		m.settle(t)
		x.file.Close()
		for fd := range x.proc.fds {
			x.proc.Retract(fd)
		}
		if r := m.kern.Resources(); r != (kernel.Resources{}) || x.pages.left() != "" {
			t.Errorf("left behind: %+v, %s", r, x.pages.left())
		}
		space.Release()
	})
}

// hostile makes a call of a method with values out of the input.
func (x *rig) hostile(s *source, m *uapi.Method) {
	c := client.New(x.proc, m.Object, m.ID)
	addr, room := x.proc.Alloc(2 * 4096)
	req := 0
	for _, a := range m.Attrs {
		n := int(a.Min)
		if m.Object == uapi.ObjectDevice && m.ID == uapi.DeviceInvokeWrite && a.ID == uapi.InvokeWriteCmd {
			all := uapi.Commands()
			k := all[s.n(len(all))]
			c.Value(a.ID, n, uint64(k.Cmd))
			req = k.Req
			continue
		}
		switch {
		case a.ID == uapi.AttrUHWIn:
			n = []int{0, 8, 32, 56}[s.n(4)]
		case req != 0 && a.ID == uapi.InvokeWriteCoreIn:
			n = req
		case a.Max > a.Min && a.Kind != uapi.PtrIn:
			n = 64 + s.n(256)
		case a.Max > a.Min:
			n = []int{int(a.Min), 4, 8, 40, 112}[s.n(5)]
		}
		switch a.Kind {
		case uapi.PtrOut:
			c.Value(a.ID, n, addr+uint64(s.n(256)))
		case uapi.PtrIn:
			b := make([]byte, n)
			s.fill(b[:min(n, s.n(64))])
			if len(b) >= 16 && s.n(2) == 0 { // queues that can be
				put(b, addr)
			}
			c.In(a.ID, b)
		default:
			c.Object(a.ID, uint64(s.n(12)))
		}
	}
	clear(room)
	x.file.Ioctl(x.proc, c.Addr())
}

// put makes the two addresses at the start of driver data those of memory.
func put(b []byte, addr uint64) {
	d := uapi.MLX5CreateCQ(append(b[:16:16], make([]byte, uapi.MLX5CreateCQSize)...))
	d.SetBufAddr(addr)
	d.SetDBAddr(addr + 4096)
	copy(b, d[:16])
}
