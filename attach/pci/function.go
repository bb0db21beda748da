//go:build linux && amd64

package pci

import (
	"github.com/rdmasim/rdmasim/attach/pci/vfiouser"
	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/uapi"
)

// function is one PCI function with what its guest has given it (vfiouser.Device).
type function struct {
	m      *machine
	name   string
	hca    *hca.Device
	link   *pcie.Link
	mem    *mem.Memory // of the guest; empty while none is connected
	space  configSpace
	bar    bar
	queue  *commandQueue
	posted uint64 // writes that were given to the link
	// combine puts BlueFlame pushes together; nil: the device offers no BlueFlame.
	combine *combiner
	irqs    *vfiouser.Interrupts
	mapped  map[*vfiouser.Window]bool
	life    life
	lives   int
}

// life is what one connection has done.
type life struct {
	commands, failed uint64
	refusals         map[refusal]uint64
	brokenEntries    uint64
	resets           uint64
}

func newFunction(m *machine, name string, k int) *function {
	p := m.prof
	f := &function{m: m, name: name, mem: mem.New(0), mapped: map[*vfiouser.Window]bool{}}
	f.bar.function = f
	f.link = pcie.NewLink(m.eng, f.mem, p.PCIe)
	params := p.HCA
	if m.blueFlame == 0 {
		params.BFRegSize = 0 // a push arrives in pieces of at most 8 bytes, which is none
	}
	f.hca = hca.New(m.eng, name, f.link, params, m.identity(k))
	if m.blueFlame > 0 {
		f.combine = newCombiner(f)
	}
	f.queue = newCommandQueue(m.eng, f.link, f.hca, f.commandDone)
	f.link.Attach(&f.bar, f.interrupt)
	f.space = *newConfigSpace(identity{
		device: p.Kernel.PCIDevice, revision: p.Kernel.PCIRevision, ib: p.Link.InfiniBand,
		bar: f.bar.BAR0Size(), vectors: f.vectors(), payload: p.PCIe.MPS, link: LinkOf(p.PCIe.Bandwidth),
	})
	f.life.refusals = map[refusal]uint64{}
	return f
}

func (f *function) vectors() int { return min(f.hca.Params().Vectors, maxVectors) }

func (f *function) layout() *vfiouser.Layout {
	l := &vfiouser.Layout{Vectors: f.vectors(), Logf: f.logf}
	l.Regions[uapi.VFIORegionBAR0], l.Regions[uapi.VFIORegionConfig] = f.bar.BAR0Size(), configSize
	return l
}

func (f *function) logf(format string, args ...any) {
	f.m.logf(f.name+": "+format, args...)
}

// interrupt is MSI-X: the entry that it announces is visible.
func (f *function) interrupt(vector int) {
	if f.irqs != nil && f.space.busMaster() {
		f.irqs.Raise(vector)
	}
}

// Connected implements vfiouser.Device.
func (f *function) Connected(irqs *vfiouser.Interrupts) {
	sharedmem.SurviveFaults() // the goroutine of the connection runs the device
	defer f.m.enter()()
	f.lives++
	f.irqs, f.life = irqs, life{refusals: map[refusal]uint64{}}
	f.logf("a guest has connected (life %d of the device)", f.lives)
}

// Disconnected implements vfiouser.Device.
func (f *function) Disconnected() {
	defer f.m.enter()()
	f.powerOn()
	f.irqs = nil
	f.logf("the guest has gone: %s", f.life.describe())
}

// Reset implements vfiouser.Device.
func (f *function) Reset() {
	defer f.m.enter()()
	f.life.resets++
	f.powerOn()
}

// powerOn puts the function into the state after power-on. What it had under way reaches memory
// before, and nothing does afterwards.
func (f *function) powerOn() {
	f.hca.Reset()
	f.m.net.Forget(f.hca)
	f.queue.reset()
	if f.combine != nil {
		f.combine.drop()
	}
	f.link.Drain()
	f.space.b = f.space.reset
}

// ReadRegion implements vfiouser.Device.
func (f *function) ReadRegion(region int, off uint64, p []byte) {
	defer f.m.enter()()
	if region == uapi.VFIORegionConfig {
		copy(p, f.space.b[off:])
		return
	}
	f.arrive()
	for len(p) > 0 {
		n := piece(off, len(p))
		f.link.ReadNow(off, p[:n])
		off, p = off+uint64(n), p[n:]
	}
}

// WriteRegion implements vfiouser.Device.
func (f *function) WriteRegion(region int, off uint64, p []byte) {
	defer f.m.enter()()
	if region == uapi.VFIORegionConfig {
		if f.space.write(off, p) {
			f.life.resets++
			f.powerOn()
		}
		return
	}
	if f.combine == nil || !f.combine.write(off, p) {
		f.post(off, p)
	}
}

// post gives the link a write to BAR 0.
func (f *function) post(off uint64, p []byte) {
	for len(p) > 0 {
		n := piece(off, len(p))
		f.posted++
		f.link.PostNow(off, p[:n])
		off, p = off+uint64(n), p[n:]
	}
}

// piece is how many of n bytes at off one TLP carries: those up to the end of a line.
func piece(off uint64, n int) int {
	const line = 64
	return min(n, line-int(off%line))
}

// arrive has everything arrive that was written: a read does not overtake it.
func (f *function) arrive() {
	if f.combine != nil {
		f.combine.flush()
	}
	for f.bar.arrived < f.posted && f.m.clock.Advance(1, true) {
	}
}
