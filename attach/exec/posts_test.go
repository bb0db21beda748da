//go:build linux && amd64

package exec

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/verbs"
)

// The memory of a program of posts, as testdata/posts.c has it.
const (
	postQueues  = 16
	postDomains = 8
	postArea    = 4096
	postSlots   = 32
	postSlot    = 256
	postLong    = 1000 // at most in a request
	postSlab    = 3*postArea + postSlots*postSlot
	postMemory  = postQueues * postSlab
	postDst     = postArea
	postRemote  = 2 * postArea
	postRecv    = 3 * postArea
)

// draws are the pseudo-random numbers of a program of posts (splitmix64).
type draws uint64

func (d *draws) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *draws) n(n int) int { return int(d.next() % uint64(n)) }

func (d *draws) of(v ...int) int { return v[d.n(len(v))] }

// postProgram writes a random program of posts.
type postProgram struct {
	draws
	strings.Builder
	td, qp [postQueues]bool
	user   [postQueues]int // thread domain of a QP, -1: none
	max    [postQueues]int // entries of send lists
	inline [postQueues]int
	// dst is what is used of the area that reads and atomics write to. Nothing of it is
	// used twice before it is polled: short results get there then.
	dst [postQueues]int
}

// newPostProgram is program number i: its words, for both interpreters.
func newPostProgram(i int) string {
	p := &postProgram{draws: draws(i)}
	p.line("program", i)
	if !p.environment() {
		p.line("open")
		return p.String()
	}
	p.line("open")
	for range p.n(5) {
		p.newTD()
	}
	for range 1 + p.n(9) {
		p.newQPs()
	}
	for range 4 + p.n(12) {
		switch p.n(12) {
		case 0:
			p.drain()
			p.free()
		case 1:
			p.newTD()
		case 2:
			p.newQPs()
		case 3, 4:
			p.drain()
		default:
			p.post()
		}
	}
	p.drain()
	p.line("close")
	return p.String()
}

func (p *postProgram) drain() {
	p.line("drain")
	clear(p.dst[:])
}

func (p *postProgram) line(words ...any) { fmt.Fprintln(p, words...) }

// environment chooses the variables of the library. It is false when the device cannot
// be opened with them.
func (p *postProgram) environment() bool {
	for _, v := range []string{"SHUT_UP_BF", "SINGLE_THREADED"} {
		if p.n(6) == 0 {
			p.line("env", "MLX5_"+v, 1)
		}
	}
	for _, v := range []string{"POST_SEND_PREFER_BF", "SCATTER_TO_CQE"} {
		if p.n(5) == 0 {
			p.line("env", "MLX5_"+v, 0)
		}
	}
	if p.n(6) == 0 {
		// Data in 128-byte CQEs is copied from another place by libmlx5 than by sim/provider.
		p.line("env", "MLX5_CQE_SIZE", 128)
		p.line("env", "MLX5_SCATTER_TO_CQE", 0)
	}
	total, low := 16, 4
	if p.n(2) == 0 {
		total = p.of(0, 1, 2, 3, 4, 7, 8, 12, 14, 16, 17, 24, 32, 64, 512, 513)
		p.line("env", "MLX5_TOTAL_UUARS", total)
	}
	if p.n(3) == 0 {
		low = p.of(-1, 0, 1, 2, 3, 4, 6, 11, 15, 16)
		p.line("env", "MLX5_NUM_LOW_LAT_UUARS", low)
	}
	opens := total > 0 && total <= 512 && low >= 0
	total = max(total+total%2, 2)
	return opens && max(low, total-12) < total
}

func (p *postProgram) newTD() {
	i := p.n(postDomains)
	if !p.td[i] {
		p.td[i] = true
		p.line("td", i)
	}
}

// newQPs makes a queue pair that is its own peer, or two.
func (p *postProgram) newQPs() {
	a, b := p.n(postQueues), p.n(postQueues)
	if p.qp[a] || p.qp[b] {
		return
	}
	p.newQP(a)
	if b != a {
		p.newQP(b)
	}
	p.line("connect", a, b)
}

func (p *postProgram) newQP(id int) {
	td := p.n(2*postDomains) - postDomains
	if td < 0 || !p.td[td] {
		td = -1
	}
	p.qp[id], p.user[id] = true, td
	p.max[id], p.inline[id] = 1+p.n(6), p.of(0, 0, 1, 12, 28, 60, 64, 92, 188, 204, 220, 400)
	wrs := p.of(1, 2, 3, 4, 5, 8, 16, 31, 64)
	p.line("qp", id, td, p.n(4)/3, wrs, p.of(1, 4, 16, 60), p.max[id], 1+p.n(4), p.inline[id])
}

// free destroys a queue pair, and its thread domain if no other queue pair uses it.
func (p *postProgram) free() {
	id := p.n(postQueues)
	if !p.qp[id] {
		return
	}
	p.line("qpfree", id)
	p.qp[id] = false
	td := p.user[id]
	for i := range p.qp {
		if p.qp[i] && p.user[i] == td {
			return
		}
	}
	if td >= 0 && p.n(2) == 0 {
		p.line("tdfree", td)
		p.td[td] = false
	}
}

// post posts a list.
func (p *postProgram) post() {
	id := p.n(postQueues)
	for !p.qp[id] {
		if id = (id + 1) % postQueues; p.n(50) == 0 {
			return
		}
	}
	n := p.of(1, 1, 1, 1, 2, 3, 5, 9)
	p.line("post", id, n)
	for range n {
		p.request(id, n == 1)
	}
}

// request writes a request. One alone may have more inline data than fits; in a list that
// makes libmlx5 ring with the bytes that the ring had there before, and what was posted
// stays until the next post.
func (p *postProgram) request(id int, alone bool) {
	op := verbs.WROpcode(p.n(int(verbs.WRAtomicFetchAdd) + 1))
	if p.dst[id] > postArea-postLong {
		op = verbs.WRRDMAWrite
	}
	flags := verbs.SendFlags(p.of(0, 0, 0, 1)) * verbs.SendFence
	flags |= verbs.SendFlags(p.of(0, 1, 1)) * verbs.SendSignaled
	flags |= verbs.SendFlags(p.of(0, 0, 0, 1)) * verbs.SendSolicited
	var sges []any
	switch op {
	case verbs.WRAtomicCmpSwp, verbs.WRAtomicFetchAdd:
		sges = []any{p.dst[id], 8}
		p.dst[id] += 8
	case verbs.WRRDMARead:
		sges = p.sges(id, postLong)
		for i := 0; i < len(sges); i += 2 {
			sges[i] = p.dst[id]
			p.dst[id] += (sges[i+1].(int) + 7) &^ 7
		}
	default:
		limit := postLong
		if receives(op) {
			limit = postSlot
		}
		if p.inline[id] > 0 && p.n(2) == 0 {
			flags |= verbs.SendInline
			over := p.of(0, 0, 0, 64)
			if !alone {
				over = 0
			}
			limit = min(limit, p.inline[id]+over)
		}
		sges = p.sges(id, limit)
	}
	p.line("wr", op, flags, 8*p.n((postArea-postLong)/8), p.next()>>32, p.n(4), p.next(), len(sges)/2)
	p.line(sges...)
}

// sges is a list of entries, sometimes one more than there may be, of at most limit
// bytes in all.
func (p *postProgram) sges(id, limit int) (l []any) {
	n := p.n(p.max[id] + 1)
	if p.n(40) == 0 {
		n = p.max[id] + 1
	}
	for range n {
		size := min(limit, p.of(0, 1, 7, 16, 44, 64, 100, limit))
		limit -= size
		l = append(l, p.n(postArea-postLong), size)
	}
	return l
}
