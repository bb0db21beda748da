package testbed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// transfer moves a whole arena or mirror each way, and waits. Each request ends with the status,
// but for a fault of a child of an implicit region that was about to go: then all is tried again.
func (w *pagingWorld) transfer(t verbs.Thread, q int, want verbs.WCStatus, all ...verbs.SendWR) {
	for i := range all {
		all[i].Flags = verbs.SendSignaled
	}
	for {
		lost := w.lostKeys()
		err := w.carry(t, q, want, all)
		if err == nil {
			break
		}
		if w.lostKeys() == lost {
			w.fail("when all is quiet %w", err)
		}
		w.connect(t, q, true)
	}
	t.Sleep(20 * time.Microsecond) // an acknowledgement may overtake the last bytes on their way into the peer's memory
}

// carry posts requests and waits for them. The error is of the first that ends with another status.
func (w *pagingWorld) carry(t verbs.Thread, q int, want verbs.WCStatus, all []verbs.SendWR) (wrong error) {
	_, err := w.sides[0].qps[q].PostSend(t, all)
	w.must("post", err)
	var wc [4]verbs.WC
	for n := len(all); n > 0; {
		k, err := w.sides[0].cq.PollWait(t, wc[:], bound)
		w.must("poll", err)
		if k == 0 {
			w.fail("at %v, when all is quiet, %d requests have not completed in %v", t.Now(), n, bound)
		}
		for _, c := range wc[:k] {
			if c.Status != want && wrong == nil {
				wrong = fmt.Errorf("a request ends with %v, vendor error %#x, not with %v", c.Status, c.VendorErr, want)
			}
		}
		n -= k
	}
	return wrong
}

// lostKeys counts the faults of keys that were no more. Only children of implicit regions may be,
// where faults name memory.
func (w *pagingWorld) lostKeys() uint64 {
	if !w.memory || !w.whole {
		return 0
	}
	return w.sides[0].kernel().UnknownKeys + w.sides[1].kernel().UnknownKeys
}

// look has the device read both arenas, and compares with what the processes see and may see.
func (w *pagingWorld) look(t verbs.Thread, p *pagingProgram, q int) {
	own, peers := w.sides[0], w.sides[1]
	keys := [][2]bool{p.implicit}
	if p.bothKeys {
		keys = append(keys, [2]bool{!p.implicit[0], !p.implicit[1]})
	}
	for _, k := range keys {
		w.transfer(t, q, verbs.WCSuccess,
			verbs.SendWR{Opcode: verbs.WRRDMARead, SGEs: own.mirrored(0), RemoteAddr: arenaAddr, RKey: peers.key(k[1]).RKey()},
			verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGEs: own.segments(span{0, arenaWords}, 0, k[0]), RemoteAddr: peers.mirror.Addr(), RKey: peers.pinned.RKey()})
		w.same(t, "reads", own.mirrorBytes(t), func(t verbs.Thread) []byte { return peers.mirrorBytes(t) })
	}
}

// same compares what the device has moved, in the mirrors, with what the processes see, and that
// with the histories.
func (w *pagingWorld) same(t verbs.Thread, what string, ofPeer []byte, mirror func(t verbs.Thread) []byte) {
	var peers, ofOwn []byte
	w.peer(t, func(t verbs.Thread) {
		peers, ofOwn = w.sides[1].contents(t), mirror(t)
	})
	for s, x := range [][2][]byte{{w.sides[0].contents(t), ofOwn}, {peers, ofPeer}} {
		w.must("when all is quiet", compare(w.histories(), s, w.out, x[0], 0, t.Now()))
		for i := 0; i < arenaBytes; i += 4096 {
			if !bytes.Equal(x[0][i:i+4096], x[1][i:i+4096]) {
				w.fail("when all is quiet, side %d: of page %d the process sees %#x..., the device %s %#x...", s, i/4096,
					binary.LittleEndian.Uint64(x[0][i:]), what, binary.LittleEndian.Uint64(x[1][i:]))
			}
		}
	}
}

func (s *pagingSide) mirrored(part int) []verbs.SGE {
	return []verbs.SGE{{Addr: s.mirror.Addr() + uint64(part*arenaBytes), Length: arenaBytes, LKey: s.pinned.LKey()}}
}

func (s *pagingSide) mirrorBytes(t verbs.Thread) []byte {
	b := make8(arenaWords)
	_, err := s.mirror.ReadAt(t, b, 0)
	s.w.must("read memory", err)
	return b
}

// renew has the device write to both arenas, and compares with what the processes see.
func (w *pagingWorld) renew(t verbs.Thread, p *pagingProgram, q int) {
	own, peers := w.sides[0], w.sides[1]
	implicit := p.implicit
	if p.otherKeys {
		implicit = [2]bool{!implicit[0], !implicit[1]}
	}
	var want [2][]byte
	for s, x := range w.sides {
		salt := w.salt()
		x.h = append(x.h[:0], change{t.Now(), span{0, arenaWords}, salt})
		want[s] = make8(arenaWords)
		fill(want[s], 0, salt)
	}
	w.out = w.out[:0]
	_, err := own.mirror.WriteAt(t, want[1], arenaBytes)
	w.must("write memory", err)
	w.peer(t, func(t verbs.Thread) {
		_, err := peers.mirror.WriteAt(t, want[0], arenaBytes)
		w.must("write memory", err)
	})
	w.transfer(t, q, verbs.WCSuccess,
		verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGEs: own.mirrored(1), RemoteAddr: arenaAddr, RKey: peers.key(implicit[1]).RKey()},
		verbs.SendWR{Opcode: verbs.WRRDMARead, SGEs: own.segments(span{0, arenaWords}, 0, implicit[0]), RemoteAddr: peers.mirror.Addr() + arenaBytes, RKey: peers.pinned.RKey()})
	w.same(t, "has written", want[1], func(verbs.Thread) []byte { return want[0] })
}

// holes has pages of each arena unmapped: what the device then wants of them fails.
func (w *pagingWorld) holes(t verbs.Thread) {
	own, peers := w.sides[0], w.sides[1]
	unmap := func(s *pagingSide) func(t verbs.Thread) {
		return func(t verbs.Thread) { w.must("munmap", s.blocks[arenaBlocks-1].Unmap(t)) }
	}
	w.peer(t, unmap(peers))
	w.transfer(t, 0, verbs.WCRemAccessErr, verbs.SendWR{Opcode: verbs.WRRDMARead, SGEs: own.mirrored(0), RemoteAddr: arenaAddr, RKey: peers.explicit.RKey()})
	w.connect(t, 0, true)
	unmap(own)(t)
	w.transfer(t, 0, verbs.WCLocProtErr,
		verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGEs: own.segments(span{0, arenaWords}, 0, false), RemoteAddr: peers.mirror.Addr(), RKey: peers.pinned.RKey()})
	w.connect(t, 0, true)
	for _, s := range w.sides {
		s.others.do(t, w.guarded(func(t verbs.Thread) { s.mapBlock(t, upset{block: arenaBlocks - 1}) }))
	}
	w.check()
}
