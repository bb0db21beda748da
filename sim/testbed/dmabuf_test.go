package testbed

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// opened is memory of a kind, and a buffer of n bytes there.
func (x *rig) opened(kind verbs.MemoryKind, n uint64) (verbs.Memory, verbs.Buffer) {
	m, err := x.t.Process().(verbs.MemoryOpener).OpenMemory(x.t, kind, verbs.MemoryOptions{})
	x.ok("open memory", err)
	b, err := m.Alloc(x.t, n, 0)
	x.ok("allocate", err)
	return m, b
}

// exported registers all of a buffer by a DMA-BUF, whose descriptor is closed at once.
func (x *rig) exported(pd verbs.PD, m verbs.Memory, b verbs.Buffer) verbs.MR {
	d, err := m.Export(x.t, b, 0, b.Len())
	x.ok("export", err)
	mr, err := pd.RegDmabufMR(x.t, d.Offset, b.Len(), b.Addr(), d.FD, everything)
	x.ok("reg_dmabuf_mr", err)
	x.ok("close", x.t.Process().(verbs.MemoryOpener).CloseFD(x.t, d.FD))
	return mr
}

// Memory of a GPU and of the host go over the wire in all directions, also after the GPU's memory
// has moved.
func TestGPUMemoryOverTheWire(t *testing.T) {
	run(t, config(t), func(x *rig) {
		const n = 100_000
		a, b, do := x.pair(true, n)
		m, buf := x.opened(verbs.MemoryGPU, n)
		mr := x.exported(a.pd, m, buf)
		send := func(op verbs.WROpcode) {
			x.post(a, verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey(),
				SGEs: []verbs.SGE{{Addr: buf.Addr(), Length: n, LKey: mr.LKey()}}})
			x.wait(x.t, a)
		}
		for i := range byte(3) {
			data := bytes.Repeat([]byte{i + 1, 2, 3, 5, 7}, n/5)
			x.write(x.t, buf, data, 0)
			send(verbs.WRRDMAWrite)
			do(func(t verbs.Thread) {
				if !bytes.Equal(x.read(t, b.buf, 0, n), data) {
					x.Error("what was written from the GPU is not there")
				}
				x.write(t, b.buf, bytes.Repeat([]byte{9, i}, n/2), 0)
			})
			x.ok("migrate", buf.(verbs.Migrator).Migrate(x.t))
			if !bytes.Equal(x.read(x.t, buf, 0, n), data) {
				x.Error("memory that moved has other bytes")
			}
			send(verbs.WRRDMARead)
			if !bytes.Equal(x.read(x.t, buf, 0, n), bytes.Repeat([]byte{9, i}, n/2)) {
				x.Error("what was read into the GPU is not there")
			}
			x.ok("migrate", buf.(verbs.Migrator).Migrate(x.t))
		}
		x.ok("free", buf.Unmap(x.t))
		if g := x.bed.hosts[0].gpus[0]; g.Used() == 0 {
			x.Error("memory that a region holds is free")
		}
		x.ok("dereg", mr.Dereg(x.t))
		if g := x.bed.hosts[0].gpus[0]; g.Used() != 0 || g.Mapped() != 0 {
			x.Errorf("left: %d B of the GPU, %d of BAR 1", g.Used(), g.Mapped())
		}
	})
}

// An address of a GPU can be registered only where nvidia-peermem is.
func TestPeermem(t *testing.T) {
	for _, on := range []bool{false, true} {
		cfg := config(t)
		cfg.Profile = cfg.Profile.Clone()
		cfg.Profile.GPU.Peermem = on
		run(t, cfg, func(x *rig) {
			a, b, do := x.pair(true, 4096)
			_, buf := x.opened(verbs.MemoryGPU, 200_000)
			mr, err := a.pd.RegMR(x.t, buf.Addr()+100, 150_000, everything)
			if !on {
				if !errors.Is(err, syscall.EFAULT) {
					x.Errorf("without peermem: %v", err)
				}
				return
			}
			x.ok("reg_mr", err)
			x.write(x.t, buf, []byte("from the GPU"), 100_000)
			x.post(a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey(),
				SGEs: []verbs.SGE{{Addr: buf.Addr() + 100_000, Length: 12, LKey: mr.LKey()}}})
			x.wait(x.t, a)
			do(func(t verbs.Thread) {
				if got := x.read(t, b.buf, 0, 12); string(got) != "from the GPU" {
					x.Errorf("%q", got)
				}
			})
			if err := buf.(verbs.Migrator).Migrate(x.t); !errors.Is(err, syscall.EBUSY) {
				x.Errorf("pinned memory moves: %v", err)
			}
			x.ok("dereg", mr.Dereg(x.t))
			x.ok("migrate", buf.(verbs.Migrator).Migrate(x.t))
			if g := x.bed.hosts[0].gpus[0]; g.Mapped() != 0 {
				x.Errorf("%d B of BAR 1 left", g.Mapped())
			}
		})
	}
}

// BAR 1 is a limit of what is registered at a time, whatever memory there is.
func TestBAR1IsALimit(t *testing.T) {
	cfg := config(t)
	cfg.Profile = cfg.Profile.Clone()
	cfg.Profile.GPU.BAR1 = 1 << 20
	run(t, cfg, func(x *rig) {
		a, _, _ := x.pair(true, 4096)
		m, first := x.opened(verbs.MemoryGPU, 1<<20)
		mr := x.exported(a.pd, m, first)
		_, second := x.opened(verbs.MemoryGPU, 1<<16)
		d, err := m.Export(x.t, second, 0, 1<<16)
		x.ok("export", err)
		if _, err := a.pd.RegDmabufMR(x.t, 0, 1<<16, 0, d.FD, everything); !errors.Is(err, syscall.ENOMEM) {
			x.Errorf("more than BAR 1 has room for: %v", err)
		}
		x.ok("dereg", mr.Dereg(x.t))
		mr, err = a.pd.RegDmabufMR(x.t, 0, 1<<16, 0, d.FD, everything)
		x.ok("reg_dmabuf_mr", err)
		x.ok("dereg", mr.Dereg(x.t))
	})
}

// What a GPU cannot give is refused with what is wrong.
func TestGPURefusals(t *testing.T) {
	run(t, config(t), func(x *rig) {
		p := x.t.Process().(verbs.MemoryOpener)
		for _, c := range []struct {
			kind verbs.MemoryKind
			o    verbs.MemoryOptions
			want syscall.Errno
		}{{verbs.MemoryGPU, verbs.MemoryOptions{GPU: 7}, syscall.ENODEV}, {verbs.MemoryGPU, verbs.MemoryOptions{BusID: "0000:99:00.0"}, syscall.ENODEV},
			{verbs.MemoryGPUHost, verbs.MemoryOptions{}, syscall.EOPNOTSUPP}, {99, verbs.MemoryOptions{}, syscall.EOPNOTSUPP}} {
			if _, err := p.OpenMemory(x.t, c.kind, c.o); !errors.Is(err, c.want) {
				x.Errorf("%v %+v: %v, want %v", c.kind, c.o, err, c.want)
			}
		}
		m, buf := x.opened(verbs.MemoryGPU, 10)
		if _, err := m.Export(x.t, buf, 0, 11); !errors.Is(err, syscall.EINVAL) {
			x.Errorf("more than the buffer: %v", err)
		}
		var cuda *verbs.MemoryError
		if _, err := m.Alloc(x.t, 1<<40, 0); !errors.As(err, &cuda) || cuda.Code != 2 || !errors.Is(err, syscall.ENOMEM) {
			x.Errorf("more than the GPU has: %v", err)
		}
		if _, err := p.DmabufInfo(x.t, 99); !errors.Is(err, syscall.EBADF) {
			x.Errorf("no descriptor: %v", err)
		}
		x.ok("free", buf.Unmap(x.t))
		if err := buf.Unmap(x.t); !errors.Is(err, syscall.EINVAL) {
			x.Errorf("freed twice: %v", err)
		}
	})
}
