//go:build linux && amd64

package pci

import (
	"errors"

	"github.com/rdmasim/rdmasim/attach/pci/vfiouser"
	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/sim/mem"
)

var (
	errGone   = errors.New("the memory of the guest is gone")
	errMaster = errors.New("the function is not a bus master")
)

// guestMemory is a window of a guest's memory as the device reaches it (mem.Foreign). As long as
// the guest has not made the function a bus master nothing is read or written.
type guestMemory struct {
	b     []byte
	space *configSpace
}

func (g *guestMemory) ReadAt(off mem.VA, p []byte) error {
	switch {
	case !g.space.busMaster():
		return errMaster
	case !sharedmem.Copy(p, g.b[off:][:len(p)]):
		return errGone
	}
	return nil
}

func (g *guestMemory) WriteAt(off mem.VA, p []byte) error {
	switch {
	case !g.space.busMaster():
		return errMaster
	case !sharedmem.Store(g.b[off:][:len(p)], p):
		return errGone
	}
	return nil
}

// Map implements vfiouser.Device.
func (f *function) Map(w *vfiouser.Window) {
	if w.Mem == nil {
		return
	}
	defer f.m.enter()()
	prot := mem.Read
	if w.Writable {
		prot |= mem.Write
	}
	if err := f.mem.MapForeign(mem.PA(w.Address), w.Size, prot, &guestMemory{w.Mem, &f.space}); err != nil {
		f.logf("the device cannot reach %#x bytes of the guest's memory at %#x: %v", w.Size, w.Address, err)
		return
	}
	f.mapped[w] = true
}

// Unmap implements vfiouser.Device. What is under way to the window still gets there.
func (f *function) Unmap(w *vfiouser.Window) {
	if !f.mapped[w] {
		return
	}
	defer f.m.enter()()
	delete(f.mapped, w)
	f.link.Drain()
	if err := f.mem.UnmapForeign(mem.PA(w.Address)); err != nil {
		panic(err) // it was mapped
	}
}
