package prm

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// writeSession is what a device writes for completions cs of one session, title last.
func writeSession(at func(i uint32) CQE64, pi, n, format uint32, cs []CQE64) {
	count := uint32(len(cs))
	for i := uint32(0); i < count; i++ {
		MiniCQE(at(pi + MiniCQEPlace(i))[i%MiniCQEArray*MiniCQESize:]).Set(cs[i], format)
	}
	t := at(pi)
	copy(t, cs[0])
	t.SetByteCnt(count)
	t.SetOpOwn(cs[0].Opcode(), CQEFormatCompressed, cs[0].SE(), CQEOwner(pi, n))
}

// Completions that may join a session come out of it as they went in, but for the time
// stamp, and each is software's at its place, also behind the end of the ring.
func TestSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 64
		ring := make([]byte, n*CQE64Size)
		at := func(i uint32) CQE64 { return ring[i%n*CQE64Size:][:CQE64Size] }
		for i := range uint32(n) {
			at(i)[63] = CQEOpOwnInit
		}
		format := rapid.SampledFrom([]uint32{MiniCQEHash, MiniCQECsum, MiniCQECsumStrideIndex}).Draw(t, "format")
		op := CQEOpcode(rapid.IntRange(0, 4).Draw(t, "opcode"))
		pi := rapid.Uint32Range(0, 3*n).Draw(t, "pi")
		first := CQE64(rapid.SliceOfN(rapid.Byte(), CQE64Size, CQE64Size).Draw(t, "title"))
		first.SetOpOwn(op, CQEFormatPlain, rapid.Bool().Draw(t, "se"), 0)
		cs := []CQE64{first}
		for i := range uint32(rapid.IntRange(1, n-1).Draw(t, "count")) {
			c := CQE64(bytes.Clone(first))
			c.SetByteCnt(rapid.Uint32().Draw(t, "byte_cnt"))
			c.SetWQECounter(first.WQECounter() + uint16(i+1))
			if op == CQEReq {
				c.SetSOp(WQEOpcode(rapid.Byte().Draw(t, "sop")))
			}
			if op == CQEReq || format == MiniCQECsumStrideIndex {
				c.SetWQECounter(rapid.Uint16().Draw(t, "counter"))
			}
			if !c.Joins(first, i+1, format) {
				t.Fatalf("completion %d does not join: % x, title % x", i+1, c, first)
			}
			cs = append(cs, c)
		}
		writeSession(at, pi, n, format, cs)
		if e := at(pi); !e.Ready(pi, n) || e.Format() != CQEFormatCompressed {
			t.Fatalf("the title is % x", e)
		}
		count, ok := ExpandCQEs(at, pi, n, format)
		if !ok || int(count) != len(cs) {
			t.Fatalf("%d of %d, %v", count, len(cs), ok)
		}
		for i, want := range cs {
			got := at(pi + uint32(i))
			if !got.Ready(pi+uint32(i), n) {
				t.Fatalf("completion %d is not software's", i)
			}
			want.SetOpOwn(want.Opcode(), want.Format(), want.SE(), got.Owner())
			want.SetTimestamp(got.Timestamp())
			if !bytes.Equal(got, want) {
				t.Fatalf("completion %d is\n% x, was\n% x", i, got, want)
			}
		}
	})
}

// What a mini CQE does not carry keeps a completion out.
func TestJoins(t *testing.T) {
	first := CQE64(make([]byte, CQE64Size))
	first.SetOpOwn(CQERespSend, CQEFormatPlain, false, 0)
	first.SetWQECounter(0xffff)
	for name, change := range map[string]func(c CQE64){
		"opcode":    func(c CQE64) { c.SetOpOwn(CQERespSendImm, CQEFormatPlain, false, 0) },
		"solicited": func(c CQE64) { c.SetOpOwn(CQERespSend, CQEFormatPlain, true, 0) },
		"data":      func(c CQE64) { c.SetOpOwn(CQERespSend, CQEFormatInline32, false, 0) },
		"error":     func(c CQE64) { c.SetOpOwn(CQERespErr, CQEFormatPlain, false, 0) },
		"immediate": func(c CQE64) { c.SetImmInvalPKey(1) },
		"QP":        func(c CQE64) { c.SetQPN(1) },
		"source":    func(c CQE64) { c.SetRQPN(1) },
		"user":      func(c CQE64) { c.SetSRQNUIdx(1) },
		"counter":   func(c CQE64) { c.SetWQECounter(1) },
		"":          func(c CQE64) { c.SetTimestamp(1); c.SetByteCnt(1) },
	} {
		c := CQE64(bytes.Clone(first))
		c.SetWQECounter(0)
		change(c)
		if got := c.Joins(first, 1, MiniCQECsum); got != (name == "") {
			t.Errorf("another %q: joins %v", name, got)
		}
	}
}

// FuzzExpandCQEs takes a ring of arbitrary bytes apart: a session is within the ring and
// leaves plain entries that are software's, or the ring stays as it was.
func FuzzExpandCQEs(f *testing.F) {
	f.Add(make([]byte, 8*CQE64Size), uint32(0), uint8(0))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 3}, 8*CQE64Size/4), uint32(6), uint8(1))
	f.Fuzz(func(t *testing.T, ring []byte, ci uint32, format uint8) {
		const n = 8
		if len(ring) < n*CQE64Size {
			return
		}
		at := func(i uint32) CQE64 { return ring[i%n*CQE64Size:][:CQE64Size] }
		before := string(ring)
		op := at(ci).Opcode()
		count, ok := ExpandCQEs(at, ci, n, uint32(format%4))
		if !ok {
			if string(ring) != before {
				t.Fatal("a title that is none changed the ring")
			}
			return
		}
		if count < 2 || count > n {
			t.Fatalf("%d completions in a ring of %d", count, n)
		}
		for i := ci; i != ci+count; i++ {
			if c := at(i); c.Opcode() != op || c.Format() != CQEFormatPlain || c.Owner() != CQEOwner(i, n) {
				t.Fatalf("entry %d is % x", i, c)
			}
		}
	})
}
