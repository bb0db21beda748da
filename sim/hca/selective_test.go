package hca

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// lossy loses packets the n-th time that they are sent, counted from 1, and keeps the PSNs
// of all.
type lossy struct {
	w     Wire
	lose  map[uint32]int
	times map[uint32]int
	psns  []uint32
}

func (l *lossy) Send(f *roce.Frame) {
	psn := f.BTH().PSN()
	l.psns = append(l.psns, psn)
	if l.times == nil {
		l.times = map[uint32]int{}
	}
	if l.times[psn]++; l.times[psn] <= l.lose[psn] {
		f.Release()
		return
	}
	l.w.Send(f)
}

// TestSelectiveRepeat: of a message with gaps exactly the lost packets are sent again, and
// what is received is what go-back-N gives.
func TestSelectiveRepeat(t *testing.T) {
	for _, c := range []struct {
		lose []uint32 // packets of the message
		want []uint32 // those sent again
	}{
		{[]uint32{2}, []uint32{2}},
		{[]uint32{2, 6, 7}, []uint32{2, 6, 7}},
		{[]uint32{0, 1}, []uint32{0, 1}},
		{[]uint32{39}, []uint32{39}}, // by the timer
	} {
		p := testParams()
		p.SelectiveRepeat, p.PUPacket, p.AckReqPackets = true, 200*sim.Nanosecond, 1
		o := defaults()
		o.timeout = 6
		ha, hb, a, b, ab, _ := twoHosts(t, p, 1, o)
		la, lb := ha.newMR(64<<10, rightsAll), hb.newMR(64<<10, rightsAll)
		la.fill(pattern)
		l := &lossy{w: ab, lose: map[uint32]int{}}
		for _, n := range c.lose {
			l.lose[roce.AddPSN(a.psn, int32(n))] = 1
		}
		ha.d.SetWire(l)
		b.recv(lb.sge(0, 64<<10))
		a.post(wr{op: prm.WQEOpSend, sges: []sge{la.sge(0, 40<<10)}})
		run(t, ha.e, 2*ms)
		a.scq.expect(prm.CQEReq)
		b.rcq.expect(prm.CQERespSend)
		if !bytes.Equal(la.bytes(0, 40<<10), lb.bytes(0, 40<<10)) {
			t.Errorf("lost %v: memory differs", c.lose)
		}
		seen, again := map[uint32]bool{}, []uint32(nil)
		for _, psn := range l.psns {
			if seen[psn] {
				again = append(again, (psn-a.psn)&roce.PSNMask)
			}
			seen[psn] = true
		}
		if len(seen) != 40 || !slices.Equal(again, c.want) {
			t.Errorf("lost %v: %d PSNs, sent again %v, want %v", c.lose, len(seen), again, c.want)
		}
		if live := ha.d.frames.Live + hb.d.frames.Live; live != 0 {
			t.Errorf("lost %v: %d frames leaked", c.lose, live)
		}
	}
}

// TestRepairBeforeFailure: a WQE that fails by itself does not keep a lost packet of an
// earlier one from being sent again.
func TestRepairBeforeFailure(t *testing.T) {
	for _, selective := range []bool{false, true} {
		p := testParams()
		p.SelectiveRepeat = selective
		o := defaults()
		o.timeout = 5
		ha, hb, a, _, ab, _ := twoHosts(t, p, 1, o)
		r := hb.newMR(4096, rightsAll)
		ha.d.SetWire(&lossy{w: ab, lose: map[uint32]int{a.psn: 1}})
		w := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("x")}
		bad := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, sges: []sge{{key: 0x1234, va: 1, n: 8}}}
		a.post(w, bad)
		run(t, ha.e, 2*ms)
		a.scq.expect(prm.CQEReq)
		a.scq.expectError(prm.CQEReqErr, prm.SyndromeLocalProt)
	}
}

// tardy loses packets, or holds them back, the first time that they are sent, and counts how often
// each is sent.
type tardy struct {
	w     *badWire
	lose  map[uint32]bool
	hold  map[uint32]sim.Time
	times map[uint32]int
}

func (l *tardy) Send(f *roce.Frame) {
	psn := f.BTH().PSN()
	l.times[psn]++
	switch first := l.times[psn] == 1; {
	case first && l.lose[psn]:
		f.Release()
	case first && l.hold[psn] > 0:
		l.w.at(l.hold[psn], f)
	default:
		l.w.Send(f)
	}
}

// TestSelectiveRepeatOfManyGaps: what is lost or late is sent again at most once, nothing else is,
// and no timer is needed, also where a NAK comes while the requester still takes its time for the
// one before, or before it has gone back to where it was.
func TestSelectiveRepeatOfManyGaps(t *testing.T) {
	const messages, packets = 40, 8
	for seed := range uint64(100) {
		p := testParams()
		p.SelectiveRepeat, p.PUPacket, p.RepeatWindow = true, 100*sim.Nanosecond, 512
		o := defaults()
		o.timeout = 8
		ha, hb, a, _, ab, _ := twoHosts(t, p, 1, o)
		la, lb := ha.newMR(64<<10, rightsAll), hb.newMR(64<<10, rightsAll)
		la.fill(pattern)
		l, r := &tardy{ab, map[uint32]bool{}, map[uint32]sim.Time{}, map[uint32]int{}}, rand.New(rand.NewPCG(seed, 1))
		for n := range int32(messages*packets - 40) { // something must come behind a gap, or the timer is due
			switch psn := roce.AddPSN(a.psn, n); r.IntN(20) {
			case 0:
				l.lose[psn] = true
			case 1:
				l.hold[psn] = sim.Time(1500+r.IntN(4000)) * sim.Nanosecond
			}
		}
		ha.d.SetWire(l)
		w := wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, packets<<10)}}
		for range messages {
			a.post(w)
		}
		run(t, ha.e, 4*ms)
		for range messages {
			a.scq.expect(prm.CQEReq)
		}
		for psn, n := range l.times {
			if most := 1 + btoi(l.lose[psn] || l.hold[psn] > 0); n > most {
				t.Errorf("seed %d: packet %d is sent %d times, at most %d are due", seed, (psn-a.psn)&roce.PSNMask, n, most)
			}
		}
		if n := ha.counter(prm.QCLocalAckTimeoutErr); n != 0 || len(l.times) != messages*packets {
			t.Errorf("seed %d: %d PSNs are sent, with %d timeouts", seed, len(l.times), n)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
