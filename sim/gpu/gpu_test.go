package gpu

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

func params() Params {
	return Params{Memory: 1 << 20, BAR1: 256 << 10, Page: 64 << 10, SwitchWrite: 100e9, SwitchRead: 90e9, RootWrite: 50e9, RootRead: 40e9, SocketWrite: 10e9, SocketRead: 5e9,
		SwitchLatency: 1, RootLatency: 2, SocketLatency: 3, IOMMULatency: 10, CopyRate: 8e9, CopyLatency: 7}
}

// The way is that of the path; ACS takes one through a switch up to the root complex, and only
// there the IOMMU is.
func TestACSLeadsThroughRootComplex(t *testing.T) {
	for _, c := range []struct {
		path       Path
		acs, iommu bool
		want       Way
	}{
		{Switch, false, false, Way{100e9, 90e9, 1}}, {Switch, false, true, Way{100e9, 90e9, 1}}, {Switch, true, false, Way{50e9, 40e9, 2}},
		{Switch, true, true, Way{50e9, 40e9, 12}}, {Root, false, true, Way{50e9, 40e9, 12}}, {Socket, true, false, Way{10e9, 5e9, 3}},
	} {
		p := params()
		p.Path, p.ACS, p.IOMMU = c.path, c.acs, c.iommu
		if got := p.Way(); got != c.want {
			t.Errorf("%s, ACS %v, IOMMU %v: %+v, want %+v", []string{"switch", "root", "socket"}[c.path], c.acs, c.iommu, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	p := params()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*Params){
		"Page": func(p *Params) { p.Page = 3000 }, "Memory": func(p *Params) { p.Memory = 4096 }, "BAR1": func(p *Params) { p.BAR1 = 2 << 20 },
		"Path": func(p *Params) { p.Path = 3 }, "latency": func(p *Params) { p.RootLatency = -1 }, "SocketRead": func(p *Params) { p.SocketRead = 0 },
		"WriteBuffer": func(p *Params) { p.WriteBuffer = 2 << 30 },
	} {
		p := params()
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if got := p.CopyTime(1000); got != 7+1000*sim.Nanosecond {
		t.Errorf("1,000 B at 1 GB/s take %v", got)
	}
}

// Whatever is allocated, exported, mapped, pinned, moved, freed and released: bytes stay, BAR 1 and
// the memory come back.
func TestLifeOfMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := params()
		g, err := New(mem.New(8<<20), &p)
		if err != nil {
			t.Fatal(err)
		}
		type one struct {
			a     *Allocation
			x     *Export
			maps  int
			fill  byte
			freed bool
		}
		var all []*one
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			if len(all) == 0 || rapid.IntRange(0, 3).Draw(t, "new") == 0 {
				if a, err := g.Alloc(rapid.Uint64Range(1, 200<<10).Draw(t, "bytes")); err == nil {
					o := &one{a: a, fill: byte(i + 1)}
					if o.x, err = a.Export(0, a.Len()); err != nil {
						t.Fatal(err)
					}
					a.Write(0, bytes.Repeat([]byte{o.fill}, int(a.Len())))
					all = append(all, o)
				} else if !errors.Is(err, syscall.ENOMEM) {
					t.Fatal(err)
				}
				continue
			}
			o := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if _, err := o.x.Map(); err == nil {
					o.maps++
				} else if !errors.Is(err, syscall.ENOMEM) || g.Mapped()+o.a.Len() <= p.BAR1 {
					t.Fatalf("%d B of BAR 1 in use: %v", g.Mapped(), err)
				}
			case 1:
				if o.maps > 0 {
					o.x.Unmap()
					o.maps--
				}
			case 2:
				o.x.Pin()
				if err := o.a.Move(); !errors.Is(err, syscall.EBUSY) {
					t.Fatalf("pinned memory moves: %v", err)
				}
				o.x.Unpin()
				if err := o.a.Move(); err != nil && !errors.Is(err, syscall.ENOMEM) {
					t.Fatal(err)
				}
			case 3:
				if !o.freed {
					o.freed = true
					o.a.Free()
				}
			}
			b := make([]byte, o.a.Len())
			if o.a.Read(0, b); !bytes.Equal(b, bytes.Repeat([]byte{o.fill}, len(b))) {
				t.Fatal("memory has other bytes than were written")
			}
			if g.Mapped() > p.BAR1 {
				t.Fatalf("%d B of a BAR 1 of %d are in use", g.Mapped(), p.BAR1)
			}
		}
		for _, o := range all {
			for ; o.maps > 0; o.maps-- {
				o.x.Unmap()
			}
			if !o.freed {
				o.a.Free()
			}
			o.x.Release()
		}
		if g.Mapped() != 0 || g.Used() != 0 {
			t.Errorf("left: %d B of BAR 1, %d of the memory", g.Mapped(), g.Used())
		}
	})
}
