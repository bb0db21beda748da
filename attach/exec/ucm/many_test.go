//go:build linux

package ucm

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// processorTime is what the process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestEndOfManyIDs ends a program with many ids, each with an event that it has not taken. All
// others wait meanwhile.
func TestEndOfManyIDs(t *testing.T) {
	m := newMachine(t)
	f := m.cm.Open(noCaller, &kernel.Process{Name: "test"})
	const n = 12_000
	began := processorTime(t)
	for range n {
		id, err := f.CreateID(noCaller, 7, verbs.PortSpaceIB, verbs.QPTRC)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.ResolveAddr(noCaller, id, netip.AddrPort{}, netip.AddrPortFrom(m.ip, 7174), 10*millisecond) // ports run out
	}
	made := processorTime(t)
	if err := m.eng.Run(m.eng.Now() + 100*millisecond); err != nil {
		t.Fatal(err)
	}
	closing := processorTime(t)
	f.Close(noCaller)
	closed := processorTime(t)
	t.Logf("made in %v, closed in %v", made-began, closed-closing)
	if d := closed - closing; d > 250*time.Millisecond {
		t.Errorf("the end of %d ids took %v of processor time", n, d)
	}
}

// TestEventsOfAChannelThatNobodyReads has one id fail to find an address without end. So many
// events are kept, and no more.
func TestEventsOfAChannelThatNobodyReads(t *testing.T) {
	m := newMachine(t)
	m.kern.SetNeighbours(func(uint16, netip.Addr) (kernel.MAC, bool) { return kernel.MAC{}, false })
	f := m.cm.Open(noCaller, &kernel.Process{Name: "test"})
	defer f.Close(noCaller)
	id, err := f.CreateID(noCaller, 7, verbs.PortSpaceTCP, verbs.QPTRC)
	if err != nil {
		t.Fatal(err)
	}
	const most = 1 << 16
	for range most + 10 {
		if err := f.ResolveAddr(noCaller, id, netip.AddrPort{}, netip.AddrPortFrom(m.ip.Next(), 7174), 0); err != nil {
			t.Fatal(err)
		}
		if err := m.eng.Run(m.eng.Now() + millisecond/1000); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for ; f.Readable(); got++ {
		if e, err := f.GetEvent(noCaller, 0); err != nil || e.Type != verbs.CMAddrError {
			t.Fatalf("event %d: %v, %v", got, e.Type, err)
		}
	}
	if got != most {
		t.Errorf("%d events were kept, want %d", got, most)
	}
}
