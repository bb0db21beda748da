package kernel

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// pages gives a fake device on-demand paging, all of it.
func (f *fakeFunction) pages() {
	g := prm.HCACap(f.caps[prm.CapGeneral])
	g.SetPG(true)
	g.SetUMRExtendedTranslationOffset(true)
	g.SetFixedBufferSize(true)
	g.SetNullMKey(true)
	g.SetMaxIndirection(4)
	g.SetIMAICL(true)
	p := prm.ODPCap(make([]byte, 0x1000))
	p.Transport().SetRC(prm.ODPSend | prm.ODPReceive | prm.ODPWrite | prm.ODPRead | prm.ODPAtomic | prm.ODPSRQReceive)
	p.Transport().SetUD(prm.ODPSend | prm.ODPReceive)
	p.Transport().SetXRC(prm.ODPSend)
	f.caps[prm.CapODP] = p
}

func TestPagingCapsAreShown(t *testing.T) {
	s := newSetupOf(t, testParams(), (*fakeFunction).pages)
	a, err := s.open().QueryDevice(Caller{})
	if err != nil {
		t.Fatal(err)
	}
	const rc = verbs.ODPSend | verbs.ODPRecv | verbs.ODPWrite | verbs.ODPRead | verbs.ODPAtomic | verbs.ODPSRQRecv
	if a.ODPGeneralCaps != verbs.ODPSupport|verbs.ODPSupportImplicit || a.ODPRC != rc || a.ODPUD != verbs.ODPSend || a.ODPXRC != verbs.ODPSend || a.ODPUC != 0 {
		t.Errorf("caps %#x, RC %#x, UD %#x, XRC %#x, UC %#x", a.ODPGeneralCaps, a.ODPRC, a.ODPUD, a.ODPXRC, a.ODPUC)
	}
	for name, lack := range map[string]func(*fakeFunction){
		"no paging":      func(f *fakeFunction) { prm.HCACap(f.caps[prm.CapGeneral]).SetPG(false) },
		"no UMR of size": func(f *fakeFunction) { prm.HCACap(f.caps[prm.CapGeneral]).SetUMRModifyEntitySizeDisabled(true) },
	} {
		s := newSetupOf(t, testParams(), func(f *fakeFunction) { f.pages(); lack(f) })
		if a, err := s.open().QueryDevice(Caller{}); err != nil || a.ODPGeneralCaps != 0 || a.ODPRC != 0 {
			t.Errorf("%s: %v, caps %#x, RC %#x", name, err, a.ODPGeneralCaps, a.ODPRC)
		}
	}
	s = newSetupOf(t, testParams(), func(f *fakeFunction) { f.pages(); prm.HCACap(f.caps[prm.CapGeneral]).SetNullMKey(false) })
	if a, err := s.open().QueryDevice(Caller{}); err != nil || a.ODPGeneralCaps != verbs.ODPSupport {
		t.Errorf("no null key: %v, caps %#x", err, a.ODPGeneralCaps)
	}
}

// The driver raises what the device could do for SRQs and for XRC, and leaves the rest alone;
// memory faults it takes only from a device that names the pages around them.
func TestPagingIsChosen(t *testing.T) {
	page := func() prm.ODPCap { return make([]byte, 0x100) }
	cur, most := page(), page()
	most.Transport().SetRC(prm.ODPSend | prm.ODPSRQReceive)
	most.Transport().SetXRC(prm.ODPWrite | prm.ODPSRQReceive)
	most.SetMemPageFault(true)
	if !choosePaging(cur, most) || cur.Transport().RC() != prm.ODPSRQReceive || cur.Transport().XRC() != prm.ODPWrite|prm.ODPSRQReceive || cur.MemPageFault() {
		t.Errorf("by queue: RC %#x, XRC %#x, memory %v", cur.Transport().RC(), cur.Transport().XRC(), cur.MemPageFault())
	}
	if choosePaging(cur, most) {
		t.Error("what is set is set again")
	}
	most.Memory().SetPagePrefetch(true)
	if cur = page(); !choosePaging(cur, most) || !cur.MemPageFault() || cur.Transport().RC() != 0 {
		t.Errorf("by memory: %v, RC %#x", cur.MemPageFault(), cur.Transport().RC())
	}
}
