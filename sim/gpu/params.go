// Package gpu is a GPU as RDMA meets it: memory behind BAR 1, the way to it over the bus, and what
// its driver lets others do with it. It computes nothing.
//
// A device reaches the memory at addresses of the bus (mem.Bank). What is mapped for devices takes
// room in BAR 1, in pages of 64 KiB, until it is unmapped; the addresses are those of the memory,
// as on parts whose BAR 1 has all of it.
package gpu

import (
	"fmt"
	"math/bits"

	"github.com/rdmasim/rdmasim/sim"
)

// Path is the way between the RDMA device and the GPU.
type Path uint8

// Ways.
const (
	Switch Path = iota // both are below one PCIe switch
	Root               // through the root complex of one processor
	Socket             // between the root complexes of two processors
)

// Params of a GPU. Sizes in bytes, rates in bits per second.
type Params struct {
	Memory uint64 `unit:"size"` // of its own
	BAR1   uint64 `unit:"size"` // window onto it that devices and processors have
	Page   uint64 `unit:"size"` // of BAR 1: what is mapped is whole pages
	// Path is the way between it and the RDMA device. Below a switch, ACS sends requests up to the
	// root complex, so that the way is that.
	Path Path `words:"switch root socket"`
	ACS  bool
	// IOMMU: the root complex translates the addresses of requests between devices, which takes
	// IOMMULatency each.
	IOMMU        bool
	IOMMULatency sim.Time
	// What each way carries of data written to the GPU and read from it, and what it takes longer
	// in each direction than the way to the host's memory.
	SwitchWrite, SwitchRead uint64 `unit:"rate"`
	SwitchLatency           sim.Time
	RootWrite, RootRead     uint64 `unit:"rate"`
	RootLatency             sim.Time
	SocketWrite, SocketRead uint64 `unit:"rate"`
	SocketLatency           sim.Time
	// WriteBuffer is how much the RDMA device takes in of what arrives for the GPU while the way
	// there is busy.
	WriteBuffer uint64 `unit:"size"`
	// Peermem: the kernel has nvidia-peermem and an RDMA stack with its interface, so that
	// ibv_reg_mr takes an address of the GPU. Dmabuf: the GPU's driver exports memory.
	Peermem, Dmabuf bool
	// Pin: the RDMA device's driver pins what it attaches to, as drivers without page faults do.
	// Otherwise it attaches dynamically, and the exporter may move the memory.
	Pin bool
	// Integrated: the GPU shares the host's memory, and has no BAR.
	Integrated bool
	// CopyLatency and CopyRate are those of a copy between the host's memory and the GPU's
	// (cuMemcpy).
	CopyLatency sim.Time
	CopyRate    uint64 `unit:"rate"`
}

// Check says what is impossible in p.
func (p *Params) Check() error {
	switch {
	case p.Page < 4096 || bits.OnesCount64(p.Page) != 1 || p.Page > 2<<20:
		return fmt.Errorf("gpu: Page is %d: want a power of two from 4 KiB to 2 MiB", p.Page)
	case p.Memory < p.Page || p.Memory > 1<<44:
		return fmt.Errorf("gpu: Memory is %d: want a page of %d B at least, and at most 16 TiB", p.Memory, p.Page)
	case p.BAR1 < p.Page || p.BAR1 > p.Memory:
		return fmt.Errorf("gpu: BAR1 is %d: want a page of %d B at least, and at most the GPU's memory of %d B", p.BAR1, p.Page, p.Memory)
	case p.WriteBuffer > 1<<30:
		return fmt.Errorf("gpu: WriteBuffer is %d: want at most 1 GiB", p.WriteBuffer)
	case p.Path > Socket:
		return fmt.Errorf("gpu: Path is %d: want switch, root or socket", p.Path)
	case p.SwitchLatency < 0 || p.RootLatency < 0 || p.SocketLatency < 0 || p.IOMMULatency < 0 || p.CopyLatency < 0:
		return fmt.Errorf("gpu: a latency is negative")
	}
	if s := sim.TooLong(p, nil); s != "" {
		return fmt.Errorf("gpu: %s", s)
	}
	for _, r := range []struct {
		name string
		rate uint64
	}{{"SwitchWrite", p.SwitchWrite}, {"SwitchRead", p.SwitchRead}, {"RootWrite", p.RootWrite}, {"RootRead", p.RootRead},
		{"SocketWrite", p.SocketWrite}, {"SocketRead", p.SocketRead}, {"CopyRate", p.CopyRate}} {
		if r.rate < 1_000_000 || r.rate > 10_000_000_000_000 {
			return fmt.Errorf("gpu: %s is %d bit/s: want 1 Mb/s to 10 Tb/s", r.name, r.rate)
		}
	}
	return nil
}

// Way is what the requests of the RDMA device meet on the way to the GPU.
type Way struct {
	Write, Read uint64   // bits per second
	Latency     sim.Time // in each direction, beyond that to the host's memory
}

// Way is the way of p with what ACS and the IOMMU make of it.
func (p *Params) Way() Way {
	path := p.Path
	if path == Switch && p.ACS {
		path = Root
	}
	var w Way
	switch path {
	case Switch:
		return Way{p.SwitchWrite, p.SwitchRead, p.SwitchLatency} // the IOMMU does not see it
	case Root:
		w = Way{p.RootWrite, p.RootRead, p.RootLatency}
	default:
		w = Way{p.SocketWrite, p.SocketRead, p.SocketLatency}
	}
	if p.IOMMU {
		w.Latency += p.IOMMULatency
	}
	return w
}

// CopyTime is what a copy of n bytes takes.
func (p *Params) CopyTime(n uint64) sim.Time {
	t := sim.BytesTime(n, p.CopyRate)
	if t > sim.Never-p.CopyLatency {
		return sim.Never
	}
	return p.CopyLatency + t
}
