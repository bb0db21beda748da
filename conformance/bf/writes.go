package bf

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// block is the unit of a BlueFlame push.
const block = 64

// inlinePair is a pair whose requester may send up to most bytes inline.
type inlinePair struct {
	*kit.Pair
	mem *kit.Buffer
	reg verbs.BFReg
}

func newInlinePair(c *spec.C, e *kit.Env, inline uint32) inlinePair {
	o := kit.Default()
	o.Cap.MaxInline = inline
	p := e.Pair(c, o)
	return inlinePair{p, e.Buffer(c, 4096, kit.AllAccess), kit.BFReg(c, p.A)}
}

// inline is an inline write of n bytes to offset 2048.
func (s inlinePair) inline(id uint64, n int) verbs.SendWR {
	wr := kit.Write(id, s.mem, 2048, s.mem.SGE(0, n))
	wr.Flags |= verbs.SendInline
	return wr
}

// blocks is how many blocks a WQE of an inline write of n bytes fills: control and
// remote address segments of 16 bytes each, and the data behind its 4-byte header.
func blocks(n int) int { return (16 + 16 + (4+n+15)/16*16 + block - 1) / block }

func wholeBlocks(c *spec.C) {
	s := newInlinePair(c, kit.Open(c), 188)
	c.True("a BlueFlame register", s.reg.Size >= 2*block, "its size is %d", s.reg.Size)
	for i, n := range []int{1, 2, 28, 29, 92, 93, 188} {
		ws := kit.WritesToBFReg(kit.RecordMMIO(c, func() {
			s.A.Post(c, s.inline(uint64(i), n))
			kit.ExpectSuccess(c, s.A.SendCQ, 1)
		}), s.reg)
		total := 0
		for _, w := range ws {
			c.Equal(fmt.Sprintf("%d bytes: kind of write", n), w.Kind, verbs.MMIOBlueFlame)
			c.Equal(fmt.Sprintf("%d bytes: whole blocks", n), w.Len%block, 0)
			total += w.Len
		}
		c.Equal(fmt.Sprintf("%d bytes: pushed", n), total, block*blocks(n))
	}
}

func oneDoorbellForTwo(c *spec.C) {
	s := newInlinePair(c, kit.Open(c), 64)
	ws := kit.WritesToBFReg(kit.RecordMMIO(c, func() {
		s.A.Post(c, s.inline(1, 8), s.inline(2, 16))
		kit.ExpectSuccess(c, s.A.SendCQ, 2)
	}), s.reg)
	c.Equal("writes to the register", len(ws), 1)
	c.Equal("kind", ws[0].Kind, verbs.MMIODoorbell)
	c.Equal("length", ws[0].Len, prm.DoorbellSize)
	c.Equal("it names the QP", ws[0].QPN == s.A.QPN(), true)
	last := make(prm.CtrlSegment, prm.CtrlSegmentSize)
	copy(last, ws[0].Data)
	c.Equal("index of the last of the two", ws[0].Index, last.WQEIndex())
	c.True("the last of the two", ws[0].Index > 0, "index %d", ws[0].Index)
}

// connectedToItself makes a process with the given environment whose one QP is connected to
// another of its own, and memory.
func connectedToItself(c *spec.C, env map[string]string) (*kit.OtherQP, *kit.OtherBuffer) {
	o := kit.OpenOtherProcess(c, 0, env)
	a := o.CreateQP(c, player.CreateQP, kit.Args{"inline": 64})
	kit.ConnectOtherQPs(c, a, o.CreateQP(c, player.CreateQP, nil), kit.Default())
	return a, o.Buffer(c, 4096, kit.AllAccess, 0)
}

// postWriteIn has a QP of another process write n bytes of its buffer to a remote one.
func postWriteIn(c *spec.C, q *kit.OtherQP, mem, to *kit.OtherBuffer, id uint64, n int, flags verbs.SendFlags) {
	q.Process.Do(c, player.PostSend, kit.Args{"qp": q.ID, "id": id, "opcode": uint64(verbs.WRRDMAWrite),
		"flags": uint64(flags | verbs.SendSignaled), "buf": mem.ID, "len": uint64(n), "remote": to.Addr + 2048,
		"rkey": uint64(to.RKey)}, nil)
	st := q.Process.AwaitStatuses(c, 1, kit.CompletionTimeout)
	if len(st) != 1 || st[0] != verbs.WCSuccess {
		c.Failf("write in the other process: completions %v", st)
	}
}

func preferBF(c *spec.C) {
	for _, tc := range []struct {
		env    map[string]string
		plain  verbs.MMIOKind // of a request that is not inline
		inline verbs.MMIOKind
	}{
		{nil, verbs.MMIOBlueFlame, verbs.MMIOBlueFlame},
		{map[string]string{"MLX5_POST_SEND_PREFER_BF": "1"}, verbs.MMIOBlueFlame, verbs.MMIOBlueFlame},
		{map[string]string{"MLX5_POST_SEND_PREFER_BF": "0"}, verbs.MMIODoorbell, verbs.MMIOBlueFlame},
	} {
		a, mem := connectedToItself(c, tc.env)
		reg := verbs.BFReg{UARPage: uint32(a.Values["bf_page"]), Offset: uint32(a.Values["bf_offset"]), Size: uint32(a.Values["bf_size"])}
		for _, k := range []struct {
			name  string
			flags verbs.SendFlags
			want  verbs.MMIOKind
		}{{"not inline", 0, tc.plain}, {"inline", verbs.SendInline, tc.inline}} {
			ws := kit.WritesToBFReg(kit.RecordMMIO(c, func() { postWriteIn(c, a, mem, mem, 1, 8, k.flags) }), reg)
			step := fmt.Sprintf("%s with %v", k.name, tc.env)
			c.Equal(step+": writes", len(ws), 1)
			c.Equal(step+": kind", ws[0].Kind, k.want)
		}
	}
}

func shutUpBlueFlame(c *spec.C) {
	var transcripts [][]string
	var memory [][]byte
	far := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	for _, env := range []map[string]string{nil, {"MLX5_SHUT_UP_BF": "1"}} {
		o := kit.OpenOtherProcess(c, 0, env)
		a, b := o.CreateQP(c, player.CreateQP, kit.Args{"inline": 64}), far.CreateQP(c, player.CreateQP, nil)
		kit.ConnectOtherQPs(c, a, b, kit.WithLongTimeout(c, kit.Default()))
		mem, to := o.Buffer(c, 4096, kit.AllAccess, 0), far.Buffer(c, 4096, kit.AllAccess, 0)
		mem.Set(c, 0, []byte("the same bytes with BlueFlame and without"))
		packets := kit.Tap(c, func() {
			for i, n := range []int{1, 8, 40, 64, 1000} {
				flags := verbs.SendFlags(0)
				if n <= 64 {
					flags = verbs.SendInline
				}
				postWriteIn(c, a, mem, to, uint64(i), n, flags)
			}
		})
		psn := kit.Default().PSN
		transcripts = append(transcripts, kit.Transcript(packets, []uint32{b.QPN}, []uint32{psn}))
		memory = append(memory, to.Get(c, 0, 4096))
		if env != nil && c.TB.Log() != nil {
			ws := kit.RecordMMIO(c, func() { postWriteIn(c, a, mem, to, 9, 8, verbs.SendInline) })
			for _, w := range ws {
				if w.Kind == verbs.MMIOBlueFlame { // no step of its own: a log of registers is no need of the case
					c.Failf("a BlueFlame push of %d bytes", w.Len)
				}
			}
		}
	}
	c.True("packets", len(transcripts[0]) > 0, "the tap saw none")
	c.Equal("packets without BlueFlame", transcripts[1], transcripts[0])
	c.Equal("memory", memory[1], memory[0])
}

func alternateHalves(c *spec.C) {
	s := newInlinePair(c, kit.Open(c), 64)
	ws := kit.WritesToBFReg(kit.RecordMMIO(c, func() {
		for i := range uint64(6) {
			wr := s.inline(i, 8)
			if i%2 == 1 { // doorbells take their turn too
				s.A.Post(c, wr, wr)
				kit.ExpectSuccess(c, s.A.SendCQ, 2)
			} else {
				s.A.Post(c, wr)
				kit.ExpectSuccess(c, s.A.SendCQ, 1)
			}
		}
	}), s.reg)
	c.Equal("writes", len(ws), 6)
	for i := range 5 {
		d := int64(ws[i+1].Offset) - int64(ws[i].Offset)
		c.True("offset toggles", d == int64(s.reg.Size) || d == -int64(s.reg.Size), "writes at %#x, then %#x; half is %#x",
			ws[i].Offset, ws[i+1].Offset, s.reg.Size)
	}
	c.Equal("back where it began", ws[2].Offset, ws[0].Offset)
}

func recordFirst(c *spec.C) {
	s := newInlinePair(c, kit.Open(c), 64)
	const n = 8
	log := kit.RecordMMIO(c, func() {
		for i := range uint64(n) {
			if i%2 == 0 {
				s.A.Post(c, s.inline(i, 8))
			} else {
				s.A.Post(c, kit.Write(i, s.mem, 2048, s.mem.SGE(0, 100)))
			}
			kit.ExpectSuccess(c, s.A.SendCQ, 1)
		}
	})
	_, send := kit.Mlx5(c, s.A).DoorbellRecord(c.T)
	last := kit.WritesToBFReg(log, s.reg)
	ring := last[len(last)-1] // two segments of 16 bytes and one data pointer: one block
	c.Equal("the record counts the blocks posted", uint16(send), ring.Index+1)
	var order []verbs.MMIOKind
	for _, w := range log {
		if w.Kind == verbs.MMIODoorbellRecord && w.QPN == s.A.QPN() {
			order = append(order, w.Kind)
		} else if len(kit.WritesToBFReg([]verbs.MMIOWrite{w}, s.reg)) == 1 {
			order = append(order, verbs.MMIODoorbell)
		}
	}
	c.Equal("records and rings", len(order), 2*n)
	for i, k := range order {
		want := verbs.MMIODoorbellRecord
		if i%2 == 1 {
			want = verbs.MMIODoorbell
		}
		c.True("the record comes first", k == want, "write %d: want kind %d, got %d", i, want, k)
	}
}

// recordAlone counts a request in the doorbell record, rings for none, and then for the next.
func recordAlone(c *spec.C) {
	s := newInlinePair(c, kit.Open(c), 0)
	m := kit.Mlx5(c, s.A)
	want := s.mem.FillRandom(c)
	kit.WriteRawWQE(c, s.A, 0, s.mem.SGE(0, 8), s.mem, 2048)
	c.NoErr("count one in the record", m.WriteDoorbellRecord(c.T, 1))
	c.Observe("sent before a ring", kit.AwaitData(c, s.mem, 2048, want[:8], kit.QuietPeriod))
	bell := kit.WriteRawWQE(c, s.A, 1, s.mem.SGE(8, 8), s.mem, 2056)
	c.NoErr("count another in the record", m.WriteDoorbellRecord(c.T, 2))
	c.NoErr("ring for it", m.RingDoorbell(c.T, bell))
	c.Observe("sent behind the ring: its request", kit.AwaitData(c, s.mem, 2056, want[8:16], kit.CompletionTimeout/10))
	c.Observe("sent behind the ring: the one before", kit.AwaitData(c, s.mem, 2048, want[:8], kit.QuietPeriod))
	c.Observe("state", s.A.QueryState(c).String())
	kit.ExpectNoCompletion(c, s.A.SendCQ, 0)
}

// sharedHalves has two QPs of one thread domain ring their register by turns.
func sharedHalves(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.PD, o.Cap.MaxInline = e.AllocTD(c).PD, 64
	p, q := e.Pair(c, o), e.Pair(c, o)
	reg := kit.BFReg(c, p.A)
	c.Equal("one register", reg.UARPage == kit.BFReg(c, q.A).UARPage && reg.Offset == kit.BFReg(c, q.A).Offset, true)
	s := inlinePair{p, e.Buffer(c, 4096, kit.AllAccess), reg}
	ws := kit.WritesToBFReg(kit.RecordMMIO(c, func() {
		for i := range uint64(6) {
			for _, x := range []*kit.Pair{p, q} {
				x.A.Post(c, s.inline(i, 8))
				kit.ExpectSuccess(c, x.A.SendCQ, 1)
			}
		}
	}), reg)
	c.Equal("writes", len(ws), 12)
	for i := range len(ws) - 1 {
		c.True("offset toggles", ws[i+1].Offset != ws[i].Offset, "two writes in succession at %#x, of two QPs: %t", ws[i].Offset, ws[i].QPN != ws[i+1].QPN)
	}
}
