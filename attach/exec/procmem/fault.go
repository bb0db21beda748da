//go:build linux && amd64

package procmem

import (
	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// load fills b from shared memory at addr, and reports false where that is not shared, or is gone.
func (p *Process) load(addr mem.VA, b []byte) bool {
	w := p.window(addr, len(b))
	return w != nil && (sharedmem.Copy(b, w) || p.unshareGone(addr))
}

// store copies b to shared memory at addr, and reports false as load does.
func (p *Process) store(addr mem.VA, b []byte) bool {
	w := p.window(addr, len(b))
	return w != nil && (sharedmem.Store(w, b) || p.unshareGone(addr))
}

// unshareGone ends the sharing of memory that is gone: the kernel knows what to say of it.
func (p *Process) unshareGone(addr mem.VA) bool {
	p.Unshare(p.regions[p.search(addr)].start)
	return false
}
