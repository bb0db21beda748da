package prm

import (
	"testing"

	"pgregory.net/rapid"
)

func TestCQEGolden(t *testing.T) {
	c := CQE64(make([]byte, CQE64Size))
	c.SetRQPN(0x000111)
	c.SetSRQNUIdx(0x00abcd)
	c.SetImmInvalPKey(0xdeadbeef)
	c.SetByteCnt(1024)
	c.SetTimestamp(0x0102030405060708)
	c.SetSOp(WQEOpSendImm)
	c.SetQPN(0x000222)
	c.SetWQECounter(0x1234)
	c.SetOpOwn(CQERespSendImm, CQEFormatPlain, true, 1)
	want := unhex(t, `
		00000000000000000000000000000000 0000000000000000 00000111 00000000
		0000abcd deadbeef 00000000 00000400 0102030405060708 0b000222 1234 00 33`)
	if string(c) != string(want) {
		t.Errorf("got  % x\nwant % x", []byte(c), want)
	}
	e := CQE64(make([]byte, CQE64Size))
	e.SetVendorErrSynd(0x88)
	e.SetSyndrome(SyndromeRemoteAccess)
	e.SetOpOwn(CQEReqErr, 0, false, 0)
	if e[54] != 0x88 || e[55] != 0x13 || e[63] != 0xd0 || e.Opcode() != CQEReqErr {
		t.Errorf("error CQE % x", []byte(e))
	}
}

// A ring of n entries over several passes: software sees exactly the entries that
// the device has written.
func TestOwnership(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := uint32(1) << rapid.IntRange(0, 6).Draw(t, "log")
		cq := make([]byte, n*CQE64Size)
		eq := make([]byte, n*EQESize)
		for i := range n {
			cq[i*64+63] = CQEOpOwnInit
			eq[i*64+63] = EQEOwnerInit
		}
		pi, ci := uint32(0), uint32(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if pi-ci < n && rapid.Bool().Draw(t, "produce") {
				at := pi % n * 64
				CQE64(cq[at:]).SetOpOwn(CQEReq, 0, false, CQEOwner(pi, n))
				EQE(eq[at:]).SetOwner(EQEOwner(pi, n))
				pi++
			}
			at := ci % n * 64
			want := pi != ci
			if got := CQE64(cq[at:]).Ready(ci, n); got != want {
				t.Fatalf("CQ of %d: entry %d ready %v with producer %d", n, ci, got, pi)
			}
			if got := EQE(eq[at:]).Ready(ci, n); got != want {
				t.Fatalf("EQ of %d: entry %d ready %v with producer %d", n, ci, got, pi)
			}
			if want && rapid.Bool().Draw(t, "consume") {
				ci++
			}
		}
	})
}

// The table of mlx5_handle_error_cqe with the values of ibv_wc_status.
func TestSyndromes(t *testing.T) {
	want := map[Syndrome]uint32{1: 1, 2: 2, 4: 4, 5: 5, 6: 6, 0x10: 7, 0x11: 8, 0x12: 9, 0x13: 10, 0x14: 11, 0x15: 12, 0x16: 13, 0x22: 16}
	for s := range 256 {
		w, ok := want[Syndrome(s)]
		if !ok {
			w = 21
		}
		if got := Syndrome(s).WCStatus(); got != w {
			t.Errorf("%v: %d, want %d", Syndrome(s), got, w)
		}
	}
}

func TestEQEGolden(t *testing.T) {
	e := EQE(make([]byte, EQESize))
	e.SetType(EventCQError)
	e.SetCQErrCQN(0x55)
	e.SetCQErrSyndrome(CQErrOverrun)
	e.SetOwner(1)
	if e[1] != 4 || be32(e, 0x20) != 0x55 || e[0x2b] != 1 || e[63] != 1 || len(e.Data()) != 0x1c {
		t.Errorf("% x", []byte(e))
	}
}

func TestDoorbells(t *testing.T) {
	w := MakeArmWord(2, true, 0x1abcdef)
	if w != 0x21abcdef || w.SN() != 2 || !w.Solicited() || w.CI() != 0xabcdef {
		t.Errorf("arm word %#x", uint32(w))
	}
	d := CQArmDoorbell(make([]byte, 8))
	d.Set(w, 0x77)
	if be64(d, 0) != 0x21abcdef00000077 || d.Arm() != w || d.CQN() != 0x77 {
		t.Errorf("arm doorbell % x", []byte(d))
	}
	e := EQDoorbell(make([]byte, 4))
	e.Set(3, 0x1000005)
	if be32(e, 0) != 0x03000005 || e.EQN() != 3 || e.CI() != 5 {
		t.Errorf("EQ doorbell % x", []byte(e))
	}
	q := QPDBRec(make([]byte, 8))
	q.SetRecv(1)
	q.SetSend(0xffff)
	if be64(q, 0) != 0x000000010000ffff {
		t.Errorf("QP record % x", []byte(q))
	}
}

func TestUARMap(t *testing.T) {
	m := UARMap{LogBFRegSize: 9}
	for off, want := range map[uint64]UARAccess{
		0x20: {Kind: UARKindCQArm}, 0x40: {Kind: UARKindEQArm}, 0x48: {Kind: UARKindEQUpdate},
		0x5020: {Kind: UARKindCQArm}, 0x24: {}, 0: {}, 0x7f8: {},
		0x800: {UARKindBF, 0, 0, 0}, 0x900: {UARKindBF, 0, 1, 0}, 0xa00: {UARKindBF, 1, 0, 0}, 0xbf8: {UARKindBF, 1, 1, 0xf8},
		0xc00: {UARKindBF, 2, 0, 0}, 0xfff: {UARKindBF, 3, 1, 0xff},
	} {
		if got := m.Decode(off); got != want {
			t.Errorf("%#x: %+v, want %+v", off, got, want)
		}
	}
	small := UARMap{LogBFRegSize: 8}
	if got := small.Decode(0xc00); got.Kind != UARReserved {
		t.Errorf("beyond four bfregs of 256 bytes: %+v", got)
	}
	for k := range uint32(4) {
		for h := range uint32(2) {
			a := m.Decode(uint64(m.BFReg(k, h)) + 8)
			if a != (UARAccess{UARKindBF, uint8(k), uint8(h), 8}) {
				t.Errorf("bfreg %d half %d: %+v", k, h, a)
			}
		}
	}
}

func FuzzUARMap(f *testing.F) {
	f.Add(uint64(0x800), uint8(9))
	f.Fuzz(func(t *testing.T, off uint64, log uint8) {
		m := UARMap{LogBFRegSize: 6 + uint32(log%6)}
		if a := m.Decode(off); a.Kind == UARKindBF {
			back := m.BFReg(uint32(a.Reg), uint32(a.Half)) + a.Off
			if back != uint32(off&0xfff) || a.Off >= m.HalfSize() {
				t.Fatalf("%#x: %+v is %#x", off, a, back)
			}
		}
	})
}

func FuzzCQE(f *testing.F) {
	f.Add(make([]byte, 64), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, ci uint32) {
		if len(b) < CQE64Size {
			return
		}
		c := CQE64(b)
		if c.Ready(ci, 16) && (c.Opcode() == CQEInvalid || c.Owner() != CQEOwner(ci, 16)) {
			t.Fatalf("ready though %v, owner %d", c.Opcode(), c.Owner())
		}
		last := c[63]
		c.SetOpOwn(c.Opcode(), c.Format(), c.SE(), c.Owner())
		if c[63] != last {
			t.Fatalf("last byte %#x became %#x", last, c[63])
		}
		_ = c.Syndrome().WCStatus()
	})
}

func FuzzEQE(f *testing.F) {
	f.Add(make([]byte, 64), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, ci uint32) {
		if len(b) < EQESize {
			return
		}
		e := EQE(b)
		if e.Ready(ci, 8) != (e.Owner()&1 == EQEOwner(ci, 8)) {
			t.Fatalf("ready %v with owner %d at %d", e.Ready(ci, 8), e.Owner(), ci)
		}
		before := string(b)
		e.SetPort(e.Port())
		e.SetCompCQN(e.CompCQN())
		if string(b) != before {
			t.Fatal("writing back changes bytes")
		}
	})
}
