package pcie

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// TestReadNowTakesNoTime: a read from outside virtual time takes none, is counted, and shows memory
// as the device left it.
func TestReadNowTakesNoTime(t *testing.T) {
	r := newRig(kalia())
	pa, err := r.m.Alloc(mem.PageSize, mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	r.l.WriteDMA(pa, []byte{7})
	b := make([]byte, 4)
	r.l.ReadNow(0x10, b)
	var seen [1]byte
	r.m.Read(pa, seen[:])
	if !bytes.Equal(b, []byte{0x10, 0x11, 0x12, 0x13}) || seen[0] != 7 || r.e.Now() != 0 || r.l.Counters().MMIOReads != 1 {
		t.Errorf("%x, memory %d, at %v, %+v", b, seen[0], r.e.Now(), r.l.Counters())
	}
	for _, off := range []uint64{1<<20 - 2, 1 << 20, 1<<64 - 2} {
		r.l.ReadNow(off, b)
		if !bytes.Equal(b, []byte{0xff, 0xff, 0xff, 0xff}) {
			t.Errorf("%#x: %x", off, b)
		}
	}
	long := make([]byte, mmioLine+1)
	r.l.ReadNow(0, long)
	if long[0] != 0xff || r.l.Counters().Unsupported != 3 {
		t.Errorf("%x, %d", long[:8], r.l.Counters().Unsupported)
	}
	r.run(t)
}

// TestPeekOutsideMemory: what firmware reads where no memory is are ones, as for every read.
func TestPeekOutsideMemory(t *testing.T) {
	r := newRig(kalia())
	b := []byte{1, 2}
	r.l.PeekDMA(1<<40, b)
	if b[0] != 0xff || b[1] != 0xff || r.l.Counters().Unsupported != 1 || r.e.Now() != sim.Time(0) {
		t.Errorf("%x, %+v", b, r.l.Counters())
	}
}
