package testbed

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/sim"
)

// Each side of a generated program has an arena of blocks, each a mapping of its own. The middle
// one crosses a border of 1 GiB.
const (
	arenaBlocks = 3
	blockPages  = 2
	pageWords   = 512
	blockWords  = blockPages * pageWords
	arenaWords  = arenaBlocks * blockWords
	arenaBytes  = arenaWords * 8
)

// postKind is what the requester of a program does.
type postKind int

const (
	postSend postKind = iota
	postWrite
	postRead
	postAtomic
	postReset // the QP, with what it has out
	postError
	postDestroy
	postDrop // has the wire lose frames
)

var postNames = [...]string{"SEND", "WRITE", "READ", "FETCH_ADD", "reset the QP", "QP to ERR", "destroy the QP", "the wire loses frames"}

// span is a range of words of an arena.
type span struct{ at, n int }

func (s span) pages() (first, last int) { return s.at / pageWords, (s.at + s.n - 1) / pageWords }

// pagingPost is a step of the requester.
type pagingPost struct {
	kind   postKind
	after  int // microseconds since the step before
	own    span
	peers  span
	split  int  // words in the first of two segments; 0: there is one
	looked bool // what has landed is compared at the completion
	frames int  // that the wire loses
}

// upsetKind is what happens to memory beside the requests.
type upsetKind int

const (
	upsetWrite upsetKind = iota
	upsetRead
	upsetDiscard
	upsetPageOut
	upsetMap // something else in its place
	upsetUnmap
	upsetReadOnly
	upsetNoAccess
	upsetMove
	upsetFork
	upsetPressure
	upsetPrefetch
	upsetRereg
	upsetDereg
	upsetTruncate
	upsetAnchor
	upsetKinds int = iota
)

var upsetNames = [...]string{"write", "read", "madvise(DONTNEED)", "madvise(PAGEOUT)", "mmap in place", "munmap", "mprotect(READ)", "mprotect(NONE)",
	"mremap", "fork", "memory pressure", "prefetch", "rereg", "dereg", "ftruncate", "empty the children's other pages"}

// upsetWeights are how often each is drawn.
var upsetWeights = [...]int{16, 4, 14, 10, 14, 3, 2, 2, 3, 5, 5, 12, 1, 1, 2, 1}

// backing is what a block is made of.
type backing int

const (
	backAnonymous backing = iota
	backShared
	backFile
	backPrivate
	backKept // as it is
)

var backingNames = [...]string{"anonymous", "shared", "file", "private", "as it was"}

// upset is something that happens on a side at a time, in microseconds since the step before.
type upset struct {
	kind   upsetKind
	after  int
	block  int
	page   int // of the block, -1: all
	words  span
	hold   int // microseconds until it is undone
	how    backing
	filled bool // what is mapped has bytes already
	advice int
	flush  bool
}

// pagingProgram is what one seed means.
type pagingProgram struct {
	seed      uint64
	shared    bool    // receives are those of an SRQ
	implicit  [2]bool // the sides use the region of the whole address space
	start     [2][arenaBlocks]upset
	posts     []pagingPost
	upsets    [2][]upset
	settle    int // microseconds before the last look
	bothKeys  bool
	otherKeys bool // for the last writes
}

// wholeSpaces says whether the processes of a program have regions of the whole address space too:
// their children are dear to make.
func wholeSpaces(seed uint64) bool { return seed/programsOfABed/2%4 == 0 }

// newPagingProgram draws the program of a seed.
func newPagingProgram(seed uint64) *pagingProgram {
	r := sim.NewRand(seed, "paging program")
	whole := wholeSpaces(seed)
	p := &pagingProgram{seed: seed, shared: r.Intn(2) == 0, settle: r.Intn(3) * 100, bothKeys: whole && r.Intn(4) == 0, otherKeys: whole && r.Intn(2) == 0}
	for s := range p.implicit {
		p.implicit[s] = whole && r.Intn(3) != 0
		for b := range p.start[s] {
			p.start[s][b] = upset{kind: upsetMap, block: b, how: backing(r.Intn(5)), filled: r.Intn(2) == 0}
			if r.Intn(2) == 0 {
				p.start[s][b].how = backAnonymous
			}
		}
	}
	p.drawPosts(r)
	for s := range p.upsets {
		for n := r.Intn(4); n > 0; n-- {
			p.upsets[s] = append(p.upsets[s], drawUpset(r))
		}
	}
	if r.Intn(16) == 0 {
		p.stream(r)
	}
	return p
}

// stream makes it a program that writes to pages that are there, of which some go just then.
func (p *pagingProgram) stream(r *sim.Rand) {
	p.posts, p.upsets = nil, [2][]upset{}
	for b := range arenaBlocks {
		words := span{b * blockWords, blockWords}
		x := pagingPost{kind: postWrite, own: words, peers: words}
		if b == 0 {
			x.after = 300
		}
		p.posts = append(p.posts, x)
		for s, how := range []backing{backAnonymous, backShared} {
			p.start[s][b] = upset{kind: upsetMap, block: b, how: how, filled: true}
			p.upsets[s] = append(p.upsets[s], upset{kind: upsetPrefetch, block: b, page: -1, words: words, advice: 1})
		}
	}
	p.upsets[1] = append(p.upsets[1], upset{kind: upsetMap, after: 300 + r.Intn(8), block: r.Intn(arenaBlocks), page: -1, how: backing(r.Intn(4))})
}

// drawPosts draws requests whose memory does not overlap, and what becomes of the QP.
func (p *pagingProgram) drawPosts(r *sim.Rand) {
	n := 1 + r.Intn(4)
	section := arenaWords / n
	shift := r.Intn(n) // which part of the peer's arena goes with which of the own
	for i := range n {
		x := pagingPost{kind: postKind(r.Intn(4)), looked: r.Intn(2) == 0}
		if i > 0 {
			x.after = []int{0, r.Intn(20), r.Intn(400)}[r.Intn(3)]
		}
		words := 1
		if x.kind != postAtomic {
			words = 1 + r.Intn([]int{4, pageWords, section}[r.Intn(3)])
		}
		words = min(words, section)
		x.own = span{i*section + r.Intn(section-words+1), words}
		x.peers = span{(i+shift)%n*section + r.Intn(section-words+1), words}
		if words > 1 && r.Intn(3) == 0 {
			x.split = 1 + r.Intn(words-1)
		}
		p.posts = append(p.posts, x)
	}
	switch r.Intn(40) {
	case 0, 1, 2:
		p.posts = append(p.posts, pagingPost{kind: postReset + postKind(r.Intn(3)), after: r.Intn(300)})
	case 3, 4:
		at := r.Intn(len(p.posts))
		p.posts = append(p.posts[:at+1], p.posts[at:]...)
		p.posts[at] = pagingPost{kind: postDrop, frames: 1 + r.Intn(3)}
	}
}

// drawUpset draws what happens: at any time, or about when the driver handles the fault of the
// first request.
func drawUpset(r *sim.Rand) upset {
	u := upset{after: r.Intn(400), block: r.Intn(arenaBlocks), page: r.Intn(blockPages+1) - 1, hold: r.Intn(200), how: backing(r.Intn(4)),
		filled: r.Intn(2) == 0, advice: r.Intn(3), flush: r.Intn(2) == 0}
	if r.Intn(2) == 0 {
		u.after = 120 + r.Intn(40)
	}
	total := 0
	for _, w := range upsetWeights {
		total += w
	}
	for x := r.Intn(total) - upsetWeights[0]; x >= 0; x -= upsetWeights[u.kind] {
		u.kind++
	}
	u.words.n = 1 + r.Intn([]int{4, blockWords}[r.Intn(2)])
	u.words.at = u.block*blockWords + r.Intn(blockWords-u.words.n+1)
	return u
}

// Text is the program for people.
func (p *pagingProgram) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: SRQ %v, regions of the whole address space: own %v, peer's %v\n", p.seed, p.shared, p.implicit[0], p.implicit[1])
	for s, name := range []string{"own", "peer's"} {
		for i, x := range p.start[s] {
			fmt.Fprintf(&b, "  %s block %d: %s, filled %v\n", name, i, backingNames[x.how], x.filled)
		}
	}
	for i, x := range p.posts {
		fmt.Fprintf(&b, "  request %d after %d us: %s, own words [%d, +%d), peer's [%d, +%d), split at %d, looked at %v, %d frames\n", i, x.after, postNames[x.kind],
			x.own.at, x.own.n, x.peers.at, x.peers.n, x.split, x.looked, x.frames)
	}
	for s, name := range []string{"own", "peer's"} {
		for _, u := range p.upsets[s] {
			fmt.Fprintf(&b, "  %s memory after %d us: %s, block %d, page %d, words [%d, +%d), held %d us, %s, filled %v, advice %d, flush %v\n", name, u.after,
				upsetNames[u.kind], u.block, u.page, u.words.at, u.words.n, u.hold, backingNames[u.how], u.filled, u.advice, u.flush)
		}
	}
	fmt.Fprintf(&b, "  settles for %d us; both keys %v, the other keys %v", p.settle, p.bothKeys, p.otherKeys)
	return b.String()
}
