package hca

import (
	"bytes"
	"os"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

func memicHost(t *testing.T) *host {
	p := testParams()
	p.MemicSize = 4 * pageBytes
	return newHost(t, sim.New(sim.Options{}), p, 1)
}

func (h *host) memicIn(page int, size uint32) []byte {
	in := prm.NewIn(prm.OpAllocMemic, 0)
	m := prm.AllocMemicIn(in)
	m.SetRangeStartAddr(h.d.memory.start + uint64(page)*pageBytes)
	m.SetRangeSize((size + pageBytes - 1) &^ (pageBytes - 1))
	m.SetMemicSize(size)
	return in
}

func memicOut(addr uint64, size uint32) []byte {
	in := prm.NewIn(prm.OpDeallocMemic, 0)
	prm.DeallocMemicIn(in).SetMemicStartAddr(addr)
	prm.DeallocMemicIn(in).SetMemicSize(size)
	return in
}

func TestMemicCommands(t *testing.T) {
	h := memicHost(t)
	start := h.d.memory.start
	h.status(h.memicIn(0, 0), prm.StatusBadParam)
	h.status(h.memicIn(0, 100), prm.StatusBadParam) // no multiple of 64
	h.status(h.memicIn(-1, 64), prm.StatusBadParam)
	h.status(h.memicIn(3, 2*pageBytes), prm.StatusBadParam)
	first := h.memicIn(1, pageBytes+64)
	prm.AllocMemicIn(first).SetLogMemicAddrAlignment(7)
	h.status(first, prm.StatusBadParam)
	prm.AllocMemicIn(first).SetLogMemicAddrAlignment(6)
	if a := prm.AllocMemicOut(h.cmd(first)).MemicStartAddr(); a != start+pageBytes {
		t.Errorf("memory at %#x of a BAR where it begins at %#x", a, start)
	}
	h.status(h.memicIn(2, 64), prm.StatusResBusy)
	h.status(h.memicIn(0, 64), prm.StatusOK)
	h.status(memicOut(start+2*pageBytes, 64), prm.StatusBadParam)
	h.status(memicOut(start+pageBytes, 64), prm.StatusBadParam)
	for _, c := range []struct {
		off, n uint64
		want   bool
	}{{pageBytes, pageBytes + 64, true}, {2 * pageBytes, 64, true}, {2 * pageBytes, 65, false}, {0, 64, true}, {0, 65, false}, {3 * pageBytes, 1, false}, {1 << 40, 1, false}} {
		if got := h.d.memory.holds(start+c.off, c.n); got != c.want {
			t.Errorf("[%#x, +%d) lies in an allocation: %v", c.off, c.n, got)
		}
	}
	h.status(memicOut(start+pageBytes, pageBytes+64), prm.StatusOK)
	h.status(h.memicIn(2, 64), prm.StatusOK)
}

// What is stored through the BAR is there, over the edge of pages; what is not allocated
// takes nothing and reads as zeros; other bytes behind a page begin with what it held.
func TestMemicBytes(t *testing.T) {
	h := memicHost(t)
	at := h.d.memory.start
	h.cmd(h.memicIn(0, 2*pageBytes))
	want := []byte("sixteen bytes...")
	h.d.MMIOWrite(at+pageBytes-5, want)
	h.d.MMIOWrite(at+3*pageBytes, want)
	got := make([]byte, len(want))
	h.d.MMIORead(at+pageBytes-5, got)
	if !bytes.Equal(got, want) {
		t.Errorf("read %q", got)
	}
	h.d.MMIORead(at+3*pageBytes, got)
	if !bytes.Equal(got, make([]byte, len(got))) {
		t.Errorf("read %q where nothing is allocated", got)
	}
	other := make([]byte, pageBytes)
	if !h.d.BackMemory(at+pageBytes, other) || h.d.BackMemory(at+3*pageBytes, other) {
		t.Error("bytes behind pages")
	}
	if !bytes.Equal(other[:11], want[5:]) {
		t.Errorf("the page held %q", other[:11])
	}
	other[0] = 'X'
	h.d.MMIORead(at+pageBytes, got[:1])
	if got[0] != 'X' {
		t.Errorf("read %q", got[:1])
	}
}

// The memory behind a page may go away. Here the file that it maps ends.
func TestMemoryBehindAPageIsGone(t *testing.T) {
	h := memicHost(t)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	f, err := os.CreateTemp(t.TempDir(), "")
	if err == nil {
		err = f.Truncate(pageBytes)
	}
	var page []byte
	if err == nil {
		page, err = syscall.Mmap(int(f.Fd()), 0, pageBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer func() { _ = syscall.Munmap(page) }()
	at := h.d.memory.start
	h.cmd(h.memicIn(0, pageBytes))
	if !h.d.BackMemory(at, page) {
		t.Fatal("no memory is allocated")
	}
	h.d.MMIOWrite(at, []byte("kept"))
	if string(page[:4]) != "kept" {
		t.Errorf("the page holds %q", page[:4])
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	got := []byte("????")
	h.d.MMIORead(at, got) // what was there is lost
	h.d.MMIOWrite(at, []byte("more"))
	h.d.MMIORead(at, got)
	if string(got) != "more" {
		t.Errorf("after the loss: %q", got)
	}
	if h.d.BackMemory(at, page) {
		t.Error("memory that is gone is put behind a page")
	}
}
