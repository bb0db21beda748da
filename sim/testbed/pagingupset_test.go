package testbed

import (
	"math"
	"time"

	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

const forever = time.Duration(math.MaxInt64)

// happenings carries out what a program does to a side's memory.
func (s *pagingSide) happenings(t verbs.Thread, all []upset) {
	for _, u := range all {
		t.Sleep(time.Duration(u.after) * time.Microsecond)
		s.happen(t, u)
	}
}

// part is what an upset is about: bytes of its block, and words of the arena.
func (u *upset) part() (off, n uint64, words span) {
	if u.page < 0 {
		return 0, blockPages * 4096, span{u.block * blockWords, blockWords}
	}
	return uint64(u.page) * 4096, 4096, span{u.block*blockWords + u.page*pageWords, pageWords}
}

// without is a time in which pages are out of the device's reach: from take to give.
func (s *pagingSide) without(t verbs.Thread, words span, explicit bool, hold int, take, give func()) {
	provider.Of(t).P.Sync()
	first, last := words.pages()
	s.gaps = append(s.gaps, gap{first, last, explicit, t.Now(), forever})
	i := len(s.gaps) - 1
	take()
	if hold > 0 {
		t.Sleep(time.Duration(hold) * time.Microsecond)
	}
	give()
	provider.Of(t).P.Sync()
	s.gaps[i].to = t.Now()
}

func (s *pagingSide) happen(t verbs.Thread, u upset) {
	b, must := &s.blocks[u.block], s.w.must
	off, n, words := u.part()
	protect := func(p verbs.Prot) func() { return func() { must("mprotect", b.Protect(t, off, n, p)) } }
	whole := span{u.block * blockWords, blockWords}
	switch u.kind {
	case upsetFork, upsetPressure, upsetAnchor: // the device loses pages outside the arena too
		s.anchored = false
	}
	switch u.kind {
	case upsetWrite:
		s.write(t, u.words)
	case upsetRead:
		_, err := b.ReadAt(t, make8(u.words.n), int64(u.words.at%blockWords*8))
		must("read memory", err)
	case upsetDiscard:
		s.discard(t, b, off, n, words)
	case upsetPageOut:
		must("madvise", b.Advise(t, off, n, verbs.AdvicePageOut))
	case upsetMap:
		s.mapBlock(t, u)
	case upsetUnmap:
		s.without(t, whole, false, u.hold, func() { must("munmap", b.UnmapPart(t, off, n)) }, func() { s.mapBlock(t, u) })
	case upsetReadOnly:
		s.without(t, words, false, u.hold, protect(verbs.ProtRead), protect(verbs.ProtRead|verbs.ProtWrite))
	case upsetNoAccess:
		s.without(t, words, false, u.hold, protect(0), protect(verbs.ProtRead|verbs.ProtWrite))
	case upsetMove:
		s.move(t, b, u)
	case upsetFork:
		if b.how == backShared || b.how == backFile {
			return // the child's bytes are the parent's too
		}
		end, err := s.proc.(verbs.Forker).Fork(t, b.PagedBuffer, 0xee)
		must("fork", err)
		t.Sleep(time.Duration(u.hold) * time.Microsecond)
		must("the child", end(t))
	case upsetPressure:
		s.press(t)
	case upsetTruncate:
		s.truncate(t, b, whole)
	case upsetAnchor:
		for _, a := range s.anchors {
			must("madvise", a.Advise(t, 0, 4096, verbs.AdviceDontNeed))
		}
	default:
		s.advise(t, u, words)
	}
}

// advise does what programs do by the verbs.
func (s *pagingSide) advise(t verbs.Thread, u upset, words span) {
	whole := span{0, arenaWords}
	switch u.kind {
	case upsetPrefetch:
		flags := verbs.AdviseMRFlags(0)
		if u.flush {
			flags = verbs.AdviseFlush
		}
		all := []verbs.MR{s.explicit}
		if s.w.whole {
			all = append(all, s.implicit)
		}
		for _, m := range all {
			sge := verbs.SGE{Addr: uint64(arenaAddr + words.at*8), Length: uint32(words.n * 8), LKey: m.LKey()}
			s.w.must("prefetch", s.pd.AdviseMR(t, verbs.AdviseMRAdvice(u.advice), flags, []verbs.SGE{sge}))
		}
	case upsetRereg:
		s.without(t, whole, true, 0, func() {
			s.w.must("rereg", s.explicit.Rereg(t, verbs.ReregTranslation|verbs.ReregAccess, nil, arenaAddr, arenaBytes, everything|verbs.AccessOnDemand))
		}, func() {})
	case upsetDereg:
		s.without(t, whole, true, u.hold, func() { s.w.must("dereg", s.explicit.Dereg(t)) }, func() { s.register(t) })
	}
}

// discard gives pages back: anonymous memory is empty then, private memory has its file's bytes,
// what is shared has its own.
func (s *pagingSide) discard(t verbs.Thread, b *pagingBlock, off, n uint64, words span) {
	switch b.how {
	case backAnonymous:
		s.note(t, words, 0)
	case backPrivate:
		s.note(t, words, b.base)
	}
	s.w.must("madvise", b.Advise(t, off, n, verbs.AdviceDontNeed))
}

// move takes a block to another address and back. Where it is not one mapping any more nothing
// happens.
func (s *pagingSide) move(t verbs.Thread, b *pagingBlock, u upset) {
	home := b.Addr()
	s.without(t, span{u.block * blockWords, blockWords}, false, u.hold, func() { s.w.must("mremap", b.Move(t, 0)) },
		func() { s.w.must("mremap", b.Move(t, home)) })
}

// truncate empties the object of a block.
func (s *pagingSide) truncate(t verbs.Thread, b *pagingBlock, words span) {
	if b.object == nil {
		return
	}
	s.without(t, words, false, 0, func() {
		s.note(t, words, 0)
		b.base = 0
		s.w.must("truncate", b.object.Truncate(t, 0))
	}, func() { s.w.must("truncate", b.object.Truncate(t, blockWords*8)) })
}
