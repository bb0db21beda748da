//go:build linux

package uverbs

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// dmabufCall asks for a region of a page of a DMA-BUF.
func (x *rig) dmabufCall(pd uint32, fd int) *client.Call {
	c := client.New(x.proc, uapi.ObjectMR, uapi.MRRegDmabuf)
	c.New(uapi.RegDmabufHandle)
	c.Object(uapi.RegDmabufPD, uint64(pd)).Value(uapi.RegDmabufOffset, 8, 0).Value(uapi.RegDmabufLength, 8, 4096).Value(uapi.RegDmabufIova, 8, 0)
	c.Value(uapi.RegDmabufFD, 4, uint64(uint32(fd))).Value(uapi.RegDmabufAccess, 4, 1)
	c.Out(uapi.RegDmabufLKey, 4)
	c.Out(uapi.RegDmabufRKey, 4)
	return c
}

// exporter is a driver with two pages.
type exporter struct {
	at             mem.PA
	maps, releases int
}

func (e *exporter) Name() string { return "test" }
func (e *exporter) Size() uint64 { return 2 * mem.PageSize }
func (e *exporter) Map() (kernel.Pages, error) {
	e.maps++
	return kernel.Pages{Start: e.at}, nil
}
func (e *exporter) Unmap()     { e.maps-- }
func (e *exporter) Pin() error { return nil }
func (e *exporter) Unpin()     {}
func (e *exporter) Release()   { e.releases++ }

// TestRegionsOfDmabufs makes and ends some, and counts what the exporter is asked.
func TestRegionsOfDmabufs(t *testing.T) {
	m := newMachine(t)
	x := newRig(t, m)
	x.open()
	pd := x.pd()
	at, err := m.mem.Alloc(2*mem.PageSize, mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	exp := &exporter{at: at}
	x.proc.dmabufs = map[int]kernel.Exporter{70: exp}
	x.refuse("closed", x.dmabufCall(pd, 71), syscall.EBADF)
	x.refuse("-1", x.dmabufCall(pd, -1), syscall.EBADF)
	c := x.dmabufCall(pd, 70)
	c.Attr(uapi.RegDmabufIova).SetData(1)
	x.refuse("another place in a page", c, syscall.EINVAL)
	c = x.dmabufCall(pd, 70)
	c.Attr(uapi.RegDmabufAccess).SetData(1 << 4) // IB_ACCESS_MW_BIND
	x.refuse("a flag that is not taken", c, syscall.EINVAL)
	c = x.dmabufCall(pd, 70)
	c.Attr(uapi.RegDmabufLength).SetData(3 * mem.PageSize)
	x.refuse("beyond the end", c, syscall.EINVAL)
	if exp.releases != 1 || exp.maps != 0 {
		t.Errorf("%d releases and %d maps of a DMA-BUF on which is no region, want 1 and 0", exp.releases, exp.maps)
	}
	c = x.dmabufCall(pd, 70)
	x.do("register", c)
	if exp.releases != 1 || exp.maps != 1 {
		t.Errorf("%d releases and %d maps while a region is on it, want 1 and 1", exp.releases, exp.maps)
	}
	x.do("deregister", client.New(x.proc, uapi.ObjectMR, uapi.MRDestroy).Object(uapi.MRDestroyHandle, c.Attr(uapi.RegDmabufHandle).Data()))
	x.do("register again", x.dmabufCall(pd, 70))
	x.file.Close()
	if exp.releases != 3 || exp.maps != 0 {
		t.Errorf("%d releases and %d maps in the end, want 3 and 0", exp.releases, exp.maps)
	}
}
