package random

import (
	"slices"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/verbs"
)

// Places of a region's addresses.
const (
	PlaceOwn  = iota // those of its memory
	PlaceZero        // in the first page
	PlaceWord        // about 2^32, if the region has more than a page
	PlaceSign        // about 2^63
	PlaceTop         // close below 2^64
	places
)

// iova is the first address of a region of memory at addr; a region keeps the offset in its page.
func iova(place int, addr, page uint64) uint64 {
	off := addr % page
	switch place {
	case PlaceZero:
		return off
	case PlaceWord:
		return 1<<32 - page + off
	case PlaceSign:
		return 1<<63 - page + off
	case PlaceTop:
		return -(64 * page) + off
	}
	return addr
}

// page is what the host's page size may be.
func (r *run) page() uint64 {
	if r.c.Has("4k page") {
		return kit.Page
	}
	return 1 << 16
}

// big is how much memory precedes that of a region that is larger than 32 bits.
const big = 1 << 32

// tail is the end of a mapping, from byte off on.
type tail struct {
	verbs.PagedBuffer
	off uint64
}

func (t *tail) Addr() uint64 { return t.PagedBuffer.Addr() + t.off }
func (t *tail) Len() uint64  { return t.PagedBuffer.Len() - t.off }

func (t *tail) ReadAt(th verbs.Thread, p []byte, off int64) (int, error) {
	return t.PagedBuffer.ReadAt(th, p, off+int64(t.off))
}

func (t *tail) WriteAt(th verbs.Thread, p []byte, off int64) (int, error) {
	return t.PagedBuffer.WriteAt(th, p, off+int64(t.off))
}

func (t *tail) Advise(th verbs.Thread, off, n uint64, advice verbs.Advice) error {
	return t.PagedBuffer.Advise(th, off+t.off, n, advice)
}

// addRegion registers a region of the program.
func (r *run) addRegion(i int) {
	m := &r.p.Regions[i]
	b := r.all[i]
	if m.Paged {
		before := 0
		if m.Big {
			before = big
		}
		b = &tail{kit.MapLazily(r.c, before+memorySize).(verbs.PagedBuffer), uint64(before)}
	}
	mm := &model.Memory{Name: "m" + string(rune('0'+i)), Bytes: r.model[i]}
	r.mem, r.mm = append(r.mem, b), append(r.mm, mm)
	r.rm = append(r.rm, &model.MR{World: r.world, Mem: mm, Off: m.Off, Len: m.Size, Access: m.Access, Paged: m.Paged})
	if m.Big {
		r.rm[i].Off, r.rm[i].Len = -big, big+m.Off+m.Size
	}
	r.mrs, r.keys, r.base = append(r.mrs, nil), append(r.keys, [2]uint32{}), append(r.base, b.Addr())
	r.register(-1, i, m.Place)
}

// register registers a region as its model says.
func (r *run) register(step, i, place int) {
	m, at := r.rm[i], r.mem[i].Addr()+uint64(r.rm[i].Off)
	access := m.Access
	if m.Paged {
		access |= verbs.AccessOnDemand
	}
	var mr verbs.MR
	var err error
	if r.base[i] = r.mem[i].Addr(); place == PlaceOwn {
		mr, err = r.env.PD.RegMR(r.c.T, at, uint64(m.Len), access)
	} else {
		first := iova(place, at, r.page())
		r.base[i] += first - at
		mr, err = r.env.PD.RegMRIova(r.c.T, at, uint64(m.Len), first, access)
	}
	r.call("register m%d: %s", i, errnoName(err))
	if r.judge(step, "ibv_reg_mr of "+m.Mem.Name, m.Register(err)); err == nil {
		r.mrs[i], r.keys[i] = mr, [2]uint32{mr.LKey(), mr.RKey()}
	}
}

// addr is the address of a piece by its key.
func (r *run) addr(x Piece) uint64 { return r.base[x.Region] + uint64(x.Off) }

// writable reports whether pieces may be local targets: a library that takes data from the
// completion copies it to the addresses of the pieces, which have to be those of the memory then
// (p:mlx5/cq.c).
func (r *run) writable(l []Piece) bool {
	return !slices.ContainsFunc(l, func(x Piece) bool { return r.base[x.Region] != r.mem[x.Region].Addr() })
}

// regAgain registers a region that has ended anew.
func (r *run) regAgain(i int, s *Step) {
	x := s.Pieces[0]
	n, before := x.Region, r.keys[x.Region]
	if r.mrs[n] != nil || r.rm[n].Alive || before == [2]uint32{} {
		return
	}
	if r.waits() && (s.N%places != PlaceOwn || !r.writable(s.Pieces)) { // what waits may have the key that the region gets, and other addresses
		return
	}
	old := r.rm[n]
	r.rm[n] = &model.MR{World: r.world, Mem: old.Mem, Off: x.Off, Len: x.Len, Access: s.Access, Paged: old.Paged}
	if r.register(i, n, s.N%places); r.mrs[n] == nil {
		r.rm[n] = old
		return
	}
	for k, key := range r.keys {
		if k != n && (key[0] == r.keys[n][0] || key[1] == r.keys[n][1]) { // what was posted with the key of another would be valid again
			kit.Must(r.c, "dereg_mr", r.mrs[n].Dereg(r.c.T))
			r.mrs[n], r.rm[n], r.keys[n] = nil, old, before
			return
		}
	}
	if r.keys[n][0] == before[0] || r.keys[n][1] == before[1] {
		*old, r.rm[n] = *r.rm[n], old
	}
}

// waits reports whether requests or receives wait.
func (r *run) waits() bool {
	return r.receives(0)+r.receives(1)+r.qm[0].Waiting()+r.qm[1].Waiting() > 0
}

// rereg is ibv_rereg_mr, if the provider has it.
func (r *run) rereg(i int, s *Step) {
	m, mm := r.mrs[s.Region], r.rm[s.Region]
	if m == nil || mm.Windows() > 0 || mm.Paged {
		return
	}
	var err, verdict error
	switch {
	case len(s.Pieces) > 0:
		x := s.Pieces[0]
		at := r.mem[s.Region].Addr() + uint64(x.Off)
		if r.waits() && !r.writable([]Piece{{Region: s.Region}}) {
			return
		}
		err = m.Rereg(r.c.T, verbs.ReregTranslation, nil, at, uint64(x.Len), 0)
		if verdict = mm.Move(x.Off, x.Len, err); err == nil {
			r.base[s.Region] = r.mem[s.Region].Addr()
		}
	case s.All || s.N > 0:
		pd := r.env.PD
		if !s.All {
			if r.other == nil {
				r.other = r.env.AllocPD(r.c)
			}
			pd = r.other
		}
		err = m.Rereg(r.c.T, verbs.ReregPD, pd, 0, 0, 0)
		verdict = mm.ChangePD(!s.All, err)
	default:
		err = m.Rereg(r.c.T, verbs.ReregAccess, nil, 0, 0, s.Access)
		verdict = mm.Rereg(s.Access, err)
	}
	r.call("step %d: rereg m%d: %s", i+1, s.Region, errnoName(err))
	r.judge(i, "ibv_rereg_mr", verdict)
	if keys := [2]uint32{m.LKey(), m.RKey()}; keys != r.keys[s.Region] { // what was posted with those before has none
		again := *mm
		mm.Alive = false
		r.rm[s.Region], r.keys[s.Region] = &again, keys
	}
}

// evict gives pages of a region on demand back, whose bytes are zero then.
func (r *run) evict(i int, s *Step) {
	for n, m := range r.rm {
		b, paged := r.mem[n].(verbs.PagedBuffer)
		if n != s.Region || !m.Paged || !paged {
			continue
		}
		from, size := 0, memorySize
		if page := (s.N - 1) * kit.Page; s.N > 0 && page < memorySize && r.c.Has("4k page") {
			from, size = page, kit.Page
		}
		err := b.Advise(r.c.T, uint64(from), uint64(size), verbs.AdviceDontNeed)
		kit.Must(r.c, "madvise", err)
		r.call("step %d: madvise of m%d", i+1, n)
		m.Evicted(from, from+size)
	}
}

// advise is ibv_advise_mr of a piece inside a region on demand.
func (r *run) advise(i int, s *Step) {
	x := s.Pieces[0]
	m := r.rm[x.Region]
	if r.mrs[x.Region] == nil || !m.Paged || x.Len == 0 || x.Off < m.Off || x.Off+x.Len > m.Off+m.Len || s.N > 0 && m.Access&verbs.AccessLocalWrite == 0 {
		return
	}
	err := r.env.PD.AdviseMR(r.c.T, []verbs.AdviseMRAdvice{verbs.AdvisePrefetch, verbs.AdvisePrefetchWrite}[min(s.N, 1)], verbs.AdviseFlush,
		[]verbs.SGE{{Addr: r.addr(x), Length: uint32(x.Len), LKey: r.keys[x.Region][0]}})
	r.call("step %d: advise m%d: %s", i+1, x.Region, errnoName(err))
	r.judge(i, "ibv_advise_mr", m.Advise(err))
}

// pagedMay reports whether side k of a program with regions on demand may post a request behind so
// many that take a receive: such a program waits for receives without end, and not every device has
// atomics on demand.
func (r *run) pagedMay(k int, x *Request, sends *int) bool {
	if x.atomic() && len(x.Local) > 0 && (r.p.Regions[x.Remote.Region].Paged || r.p.Regions[x.Local[0].Region].Paged) {
		return false
	}
	if !x.sends() {
		return true
	}
	*sends++
	return !r.qm[k].Drained() && r.qm[1-k].Posted() >= *sends
}
