package kernel

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// fakePaging is what a fake device has of on-demand paging: the translations of its keys, as UMRs
// wrote them.
type fakePaging struct {
	keys    map[uint32]*fakeKey // by index
	resumed [][]byte
	windows map[uint32][]fakeSlot // what memory windows lead to
	done    func()                // completes a UMR
}

type fakeKey struct {
	mode  uint32
	pages map[uint64]uint64
	slots map[uint64]fakeSlot
	len   uint64
	whole bool
}

type fakeSlot struct {
	key    uint32
	va     uint64
	length uint32
}

const fakeNullKey = 0xfffe00

// takeUMR enters the translations that a UMR writes.
func (f *fakePaging) takeUMR(m *mem.Memory, w *prm.SendWQE) {
	defer f.done()
	k := f.keys[w.Ctrl.Imm()>>8]
	if w.UMR.MKeyMask()&prm.MKeyMaskLen != 0 {
		k.len, k.whole = w.MKC.Len(), w.MKC.Length64()
	}
	sge, _, ok := w.Data(0)
	if !ok || w.UMR.Flags()&prm.UMRInline != 0 {
		return
	}
	list, at := make([]byte, sge.Len), uint64(0)
	m.Read(mem.PA(sge.Addr), list)
	if w.UMR.Flags()&prm.UMRTranslationOffset != 0 {
		at = w.UMR.XLTOffset() * 16
	}
	if k.mode == prm.MKeyModeKSM {
		for i := range len(list) / prm.KLMSize {
			e := prm.KLM(list[i*prm.KLMSize : (i+1)*prm.KLMSize])
			k.slots[at/prm.KLMSize+uint64(i)] = fakeSlot{e.MKey(), e.VA(), e.ByteCount()}
		}
		return
	}
	for i := range prm.MTT(list).Count() {
		j := at/8 + uint64(i)
		if e := prm.MTT(list).Addr(i) | prm.MTT(list).Rights(i); e != 0 {
			k.pages[j] = e
		} else {
			delete(k.pages, j)
		}
	}
}

func (f *fakePaging) answer(op prm.Opcode, in, out []byte) bool {
	switch op {
	case prm.OpPageFaultResume:
		f.resumed = append(f.resumed, in)
	case prm.OpQuerySpecialContexts:
		prm.QuerySpecialContextsOut(out).SetNullMKey(fakeNullKey)
	case prm.OpQueryMKey:
		for i, w := range f.windows[prm.QueryMKeyIn(in).MKeyIndex()] {
			e := prm.QueryMKeyOut(out).KLM(i)
			e.SetByteCount(w.length)
			e.SetMKey(w.key)
			e.SetVA(w.va)
		}
		return false
	default:
		return false
	}
	return true
}

// pagingSetup is a setup of a device with on-demand paging, and a process whose limit lets it pin
// nothing.
func pagingSetup(t *testing.T, p Params, change ...func(*fakeFunction)) *setup {
	t.Helper()
	s := newSetupOf(t, p, func(f *fakeFunction) {
		f.fakePaging = &fakePaging{keys: map[uint32]*fakeKey{}, windows: map[uint32][]fakeSlot{}, done: func() {}}
		f.pages()
		for _, c := range change {
			c(f)
		}
	})
	s.f.done = func() {
		s.e.After(2*sim.Microsecond, func(n uint64) { s.d.umr.finish(s.d, n) }, s.d.umrPosted()+1)
	}
	return s
}

// umrPosted is how many UMRs the driver has posted.
func (d *Device) umrPosted() uint64 {
	if d.umr == nil {
		return 0
	}
	return d.umr.posted
}

// paged registers memory of the process on demand.
func (s *setup) paged(u *Ucontext, pd Handle, addr, n uint64, a verbs.AccessFlags) (Handle, uint32) {
	s.t.Helper()
	h, key, _, err := u.RegMR(Caller{}, pd, addr, n, addr, a|verbs.AccessOnDemand)
	if err != nil {
		s.t.Fatal(err)
	}
	return h, key
}

// lazy maps memory that comes with its first touch.
func (s *setup) lazy(pages uint64) uint64 {
	s.t.Helper()
	va, err := s.proc.Space.MapWith(pages*mem.PageSize, mem.MapOptions{Prot: mem.Read | mem.Write, Lazy: true})
	if err != nil {
		s.t.Fatal(err)
	}
	return uint64(va)
}

func (s *setup) touch(va uint64) {
	s.t.Helper()
	if err := s.proc.Space.WriteAt([]byte{1}, mem.VA(va)); err != nil {
		s.t.Fatal(err)
	}
}

// deviceHas are the pages that a key has on the device.
func (s *setup) deviceHas(key uint32) int { return len(s.f.keys[key>>8].pages) }

// raiseFault puts an event into the queue of page faults, and interrupts. pi is its place.
func (s *setup) raiseFault(pi uint32, sub uint8, fill func(data []byte)) {
	last := len(s.f.eqPAs) - 1
	e := make([]byte, prm.EQESize)
	n := uint32(1) << s.f.eqLogs[last]
	prm.EQE(e).SetType(prm.EventPageFault)
	prm.EQE(e).SetSubType(sub)
	fill(prm.EQE(e).Data())
	prm.EQE(e).SetOwner(prm.EQEOwner(pi, n))
	s.m.Write(mem.PA(s.f.eqPAs[last])+mem.PA(pi&(n-1))*prm.EQESize, e)
	s.d.Interrupt(0)
}

// rdmaFault is a fault of a remote operation of known length.
func rdmaFault(key uint32, va uint64, n, token uint32) func([]byte) {
	return func(b []byte) {
		f := prm.PageFaultRDMA(b)
		f.SetRKey(key)
		f.SetRDMAVA(va)
		f.SetRDMAOpLen(n)
		f.SetToken(token)
		f.SetFaultType(prm.FaultRDMA | prm.FaultWrite)
	}
}

func (s *setup) run() {
	s.t.Helper()
	if err := s.e.Run(sim.Never); err != nil {
		s.t.Fatal(err)
	}
}

// counters are those of a region by name.
func (s *setup) counters(u *Ucontext, h Handle) map[string]uint64 {
	s.t.Helper()
	all, err := u.MRCounters(Caller{}, h)
	if err != nil {
		s.t.Fatal(err)
	}
	m := map[string]uint64{}
	for _, c := range all {
		m[c.Name] = c.Value
	}
	return m
}
