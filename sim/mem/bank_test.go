package mem

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

func TestBankLiesBehindTheHostsMemory(t *testing.T) {
	m := New(64 << 20)
	b, err := m.AddBank(32 << 20)
	if err != nil {
		t.Fatal(err)
	}
	start, n := b.Range()
	if start < PA(m.Size()) || n != 32<<20 {
		t.Fatalf("the bank is %d B at %#x, behind %d B", n, uint64(start), m.Size())
	}
	pa, err := b.Alloc(100_000, 1<<16)
	if err != nil || pa < start || uint64(pa)&0xffff != 0 {
		t.Fatalf("allocation at %#x: %v", uint64(pa), err)
	}
	if m.Used() != 0 || b.Used() != 102_400 {
		t.Errorf("%d B of the host and %d B of the bank in use", m.Used(), b.Used())
	}
	want := bytes.Repeat([]byte{7}, 9000)
	got := make([]byte, len(want))
	if !m.DMAStore(pa+50, want) || !m.Read(pa+50, got) || !bytes.Equal(got, want) {
		t.Error("bytes of the bank are not what was written")
	}
	m.Free(pa, 100_000)
	if m.DMAStore(pa, want) {
		t.Error("memory that was given back can be written")
	}
	if b.Used() != 0 || len(b.free) != 1 {
		t.Errorf("%d B in use and %d extents when all is free", b.Used(), len(b.free))
	}
	if _, err := b.Alloc(33<<20, 0); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("more than the bank has: %v", err)
	}
	if _, err := m.AddBank(0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("an empty bank: %v", err)
	}
}

// Whatever is allocated and given back, of two banks and of the host, no two allocations overlap
// and all comes back.
func TestBanksAndHostShareNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(8 << 20)
		first, _ := m.AddBank(4 << 20)
		second, _ := m.AddBank(4 << 20)
		type piece struct {
			pa PA
			n  uint64
		}
		var all []piece
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(all) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				m.Free(all[i].pa, all[i].n)
				all = append(all[:i], all[i+1:]...)
				continue
			}
			n := rapid.Uint64Range(1, 1<<20).Draw(t, "bytes")
			alloc := []func(n, align uint64) (PA, error){m.Alloc, first.Alloc, second.Alloc}[rapid.IntRange(0, 2).Draw(t, "of")]
			pa, err := alloc(n, 1<<16)
			if err != nil {
				continue
			}
			for _, x := range all {
				if pa < x.pa+PA(x.n) && x.pa < pa+PA(n) {
					t.Fatalf("[%#x, +%#x) overlaps [%#x, +%#x)", uint64(pa), n, uint64(x.pa), x.n)
				}
			}
			all = append(all, piece{pa, n})
		}
		for _, x := range all {
			m.Free(x.pa, x.n)
		}
		if m.Used()+first.Used()+second.Used() != 0 || len(m.free)+len(first.free)+len(second.free) != 3 {
			t.Errorf("left: %d B of the host, %d and %d of the banks", m.Used(), first.Used(), second.Used())
		}
	})
}
