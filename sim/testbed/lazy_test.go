package testbed

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// Memory that is mapped lazily is memory: for the program, for a region that pins it, and after
// other memory came in its place.
func TestLazyMemory(t *testing.T) {
	run(t, config(t), func(x *rig) {
		a, b, do := x.pair(true, 12288)
		buf, err := x.t.Process().Map(x.t, 1<<39, verbs.MapOptions{Lazy: true})
		x.ok("map", err)
		data := bytes.Repeat([]byte{0x5a}, 10000)
		x.write(x.t, buf, data, 1<<38)
		if got := x.read(x.t, buf, 1<<38, len(data)); !bytes.Equal(got, data) {
			x.Error("other bytes than were written")
		}
		if got := x.read(x.t, buf, 1<<37, 100); !bytes.Equal(got, make([]byte, 100)) {
			x.Error("untouched memory is not zero")
		}
		mr, err := a.pd.RegMR(x.t, buf.Addr()+1<<38, 12288, everything)
		x.ok("reg_mr", err)
		do(func(t verbs.Thread) { x.write(t, b.buf, bytes.Repeat([]byte{7}, 5000), 0) })
		sge := []verbs.SGE{{Addr: buf.Addr() + 1<<38 + 100, Length: 5000, LKey: mr.LKey()}}
		x.post(a, verbs.SendWR{Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, SGEs: sge, RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
		x.wait(x.t, a)
		use, err := x.t.Process().(verbs.MemoryUser).MemoryUse(x.t)
		if x.ok("memory use", err); use.Pinned < 3*4096 || use.Resident < use.Pinned {
			x.Errorf("%+v", use)
		}
		copy(data[100:], bytes.Repeat([]byte{7}, 5000))
		if got := x.read(x.t, buf, 1<<38, len(data)); !bytes.Equal(got, data) {
			x.Error("what the device wrote is not in the program's memory")
		}
		x.ok("dereg", mr.Dereg(x.t))
		x.ok("remap", buf.(verbs.Remapper).Remap(x.t))
		if got := x.read(x.t, buf, 1<<38, len(data)); !bytes.Equal(got, make([]byte, len(data))) {
			x.Error("memory that was mapped anew is not zero")
		}
		x.ok("unmap", buf.Unmap(x.t))
	})
}

// A forked child has the parent's memory until one of the two writes.
func TestLazyMemoryForks(t *testing.T) {
	b := run(t, config(t), func(x *rig) {
		buf, err := x.t.Process().Map(x.t, 3*4096, verbs.MapOptions{Lazy: true})
		x.ok("map", err)
		old := bytes.Repeat([]byte{0x11}, 3*4096)
		x.write(x.t, buf, old, 0)
		end, err := x.t.Process().(verbs.Forker).Fork(x.t, buf, 0xee)
		x.ok("fork", err)
		if got := x.read(x.t, buf, 0, len(old)); !bytes.Equal(got, old) {
			x.Error("the child's writes are in the parent's memory")
		}
		x.ok("end", end(x.t))
		x.ok("unmap", buf.Unmap(x.t))
	})
	for _, h := range b.hosts {
		if n := h.mem.Resident(); n != 0 {
			t.Errorf("%s: %d bytes are left", h.name, n)
		}
	}
}
