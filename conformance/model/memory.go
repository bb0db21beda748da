package model

import (
	"bytes"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// Memory is the expected contents of a buffer of the program.
type Memory struct {
	Name    string
	Bytes   []byte
	unknown []span // what the specification does not fix
}

type span struct {
	from, to int
	owner    uint64 // the completion with which the bytes are fixed; 0: none does
}

// Reset sets the contents to p, which the program wrote.
func (m *Memory) Reset(p []byte) { copy(m.Bytes, p); m.unknown = m.unknown[:0] }

// write changes bytes for certain.
func (m *Memory) write(off int, p []byte) {
	copy(m.Bytes[min(off, len(m.Bytes)):], p)
	if len(m.unknown) > 0 && len(p) > 0 {
		m.sure(off, off+len(p))
	}
}

// sure takes bytes off those that are unknown.
func (m *Memory) sure(from, to int) {
	var l []span
	for _, s := range m.unknown {
		if before := (span{s.from, min(s.to, from), s.owner}); before.from < before.to {
			l = append(l, before)
		}
		if behind := (span{max(s.from, to), s.to, s.owner}); behind.from < behind.to {
			l = append(l, behind)
		}
	}
	m.unknown = l
}

// blur says that bytes may have changed.
func (m *Memory) blur(from, to int) { m.blurUntil(from, to, 0) }

// blurUntil says that bytes may have changed, until a completion fixes them.
func (m *Memory) blurUntil(from, to int, owner uint64) {
	if from, to = max(from, 0), min(to, len(m.Bytes)); from < to {
		m.unknown = append(m.unknown, span{from, to, owner})
	}
}

// Settled copies to got those bytes of like that the specification leaves open.
func (m *Memory) Settled(got, like []byte) {
	for _, s := range m.unknown {
		copy(got[s.from:s.to], like[s.from:s.to])
	}
}

// Check compares got, the bytes of the buffer, with the expected contents, and returns a *Violation
// if they differ. It takes over those bytes of got that the specification leaves open.
func (m *Memory) Check(got []byte) error {
	for _, s := range m.unknown {
		copy(m.Bytes[s.from:s.to], got[s.from:s.to])
	}
	m.unknown = m.unknown[:0]
	if bytes.Equal(m.Bytes, got) {
		return nil
	}
	at := 0
	for m.Bytes[at] == got[at] {
		at++
	}
	end := min(at+8, len(got))
	return &Violation{&ruleMemory, fmt.Sprintf("% x at byte %d of %s, not % x", m.Bytes[at:end], at, m.Name, got[at:end]), "other bytes"}
}

// Clear says that bytes are zero now: the pages that held them were given back.
func (m *Memory) Clear(from, to int) {
	clear(m.Bytes[from:to])
	m.sure(from, to)
}

// Evicted says that the pages of a region on demand, with the bytes from one to another, were given
// back.
func (m *MR) Evicted(from, to int) {
	m.World.Cover.add(m.state(), OpEvict)
	m.Mem.Clear(from, to)
	m.changed = true
}

// Advise judges ibv_advise_mr of a range inside a region on demand.
func (m *MR) Advise(err error) error {
	m.World.Cover.add(m.state(), OpAdvise)
	return errnoIn(&ruleAdvise, err, 0)
}

// MR is a memory region of the bytes from Off to Off+Len of its memory.
type MR struct {
	World    *World
	Mem      *Memory
	Off, Len int
	Access   verbs.AccessFlags
	Alive    bool
	Paged    bool // on demand
	Foreign  bool // in a PD that is not the queue pairs'
	changed  bool // by ibv_rereg_mr
	pinned   bool // for writing, when it was registered
	windows  int  // that are bound to it
}

// writable is the access for which pages are pinned for writing.
const writable = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic | verbs.AccessMWBind

// legalAccess reports whether a region may have the access.
func legalAccess(a verbs.AccessFlags) bool {
	return a&(verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic) == 0 || a&verbs.AccessLocalWrite != 0
}

// Register judges ibv_reg_mr.
func (m *MR) Register(err error) error {
	m.Alive, m.pinned = err == nil, m.Access&writable != 0
	if !legalAccess(m.Access) {
		return errnoIn(&ruleRegister, err, syscall.EINVAL)
	}
	return errnoIn(&ruleRegister, err, 0)
}

// Windows returns the number of windows that are bound to the region.
func (m *MR) Windows() int { return m.windows }

// Dereg judges ibv_dereg_mr.
func (m *MR) Dereg(err error) error {
	m.World.Cover.add(m.state(), OpDereg)
	if m.windows > 0 {
		return errnoIn(&ruleDereg, err, syscall.EBUSY, syscall.EINVAL)
	}
	m.Alive = m.Alive && err != nil
	return errnoIn(&ruleDereg, err, 0)
}

// Move judges ibv_rereg_mr of the translation, to n bytes from off on in the region's memory.
func (m *MR) Move(off, n int, err error) error {
	m.World.Cover.add(m.state(), OpRereg)
	switch got := verbs.ErrnoOf(err); {
	case got == syscall.EOPNOTSUPP || got == syscall.ENOSYS:
		return nil
	case n == 0:
		return errnoIn(&ruleMove, err, syscall.EINVAL) // lib:verbs.c
	case err == nil:
		m.Off, m.Len, m.changed, m.pinned = off, n, true, m.Access&writable != 0
	}
	return errnoIn(&ruleMove, err, 0)
}

// ChangePD judges ibv_rereg_mr of the PD.
func (m *MR) ChangePD(foreign bool, err error) error {
	m.World.Cover.add(m.state(), OpRereg)
	if got := verbs.ErrnoOf(err); got == syscall.EOPNOTSUPP || got == syscall.ENOSYS {
		return nil
	}
	if err == nil {
		m.Foreign, m.changed = foreign, true
	}
	return errnoIn(&ruleRereg, err, 0)
}

// Rereg judges ibv_rereg_mr of the access flags. After a refused call the region may be unchanged
// or lost (by the manual page that depends on the error), so the model then demands nothing of it.
func (m *MR) Rereg(access verbs.AccessFlags, err error) error {
	m.World.Cover.add(m.state(), OpRereg)
	switch got := verbs.ErrnoOf(err); {
	case got == syscall.EOPNOTSUPP || got == syscall.ENOSYS:
		return nil // a provider without it (rxe before Linux 6.9)
	case !legalAccess(access):
		m.World.Vague = m.World.Vague || err == nil
		return errnoIn(&ruleRereg, err, syscall.EINVAL)
	case err == nil:
		m.Access, m.changed = access, true
	case access&writable != 0 && !m.pinned: // of pages that were pinned for reading (k:core/umem.c ib_umem_check_rereg)
		return errnoIn(&ruleRereg, err, syscall.EACCES)
	}
	return errnoIn(&ruleRereg, err, 0)
}

// MW is a memory window. Type 2 is bound through a queue pair and serves it alone (IBTA memory
// windows, type 2B).
type MW struct {
	MR       *MR // nil: it is not bound
	Off, Len int
	Access   verbs.AccessFlags
	QP       *QP // of type 2
}

// Dealloc judges ibv_dealloc_mw.
func (m *MW) Dealloc(err error) error {
	m.unbind()
	return errnoIn(&ruleWindow, err, 0)
}

func (m *MW) unbind() {
	if m.MR != nil {
		m.MR.windows--
	}
	*m = MW{}
}

// Bind is the binding of a window that a request asks for.
type Bind struct {
	MW     *MW
	MR     *MR
	Off    int // in the region's memory
	Len    int // 0: the window is free (type 1 only)
	Access verbs.AccessFlags
	Type   verbs.MWType
}

// faulty reports whether a bind must fail (IBTA bind).
func (b *Bind) faulty() bool {
	return b.Type == verbs.MWType2 && b.MW.MR != nil || b.Len > 0 && (!b.MR.Alive || b.MR.Foreign ||
		b.Off < b.MR.Off || b.Off+b.Len > b.MR.Off+b.MR.Len || !legalAccess(b.Access|b.MR.Access&verbs.AccessLocalWrite))
}

// window carries out a request that binds or invalidates a window.
func (q *QP) window(r *Request) {
	done := entry{id: r.ID, seq: r.seq, opcode: verbs.WCOpBindMW, statuses: set(verbs.WCSuccess), quiet: !q.SigAll && r.Flags&verbs.SendSignaled == 0, rule: &ruleBind}
	b := *r.Bind
	failed := set(verbs.WCMWBindErr, verbs.WCLocProtErr, verbs.WCLocQPOpErr)
	switch {
	case r.Op == verbs.WRLocalInv:
		done.opcode = verbs.WCOpLocalInv
		b.MW.unbind()
	case b.faulty():
		done.quiet, done.statuses = false, failed
		q.sendDone.add(done)
		q.fail()
		return
	case b.Len > 0 && b.MR.Access&verbs.AccessMWBind == 0: // the keys of mlx5 have no such right
		done.statuses |= failed
		q.held = true
		done.decided = func(ok bool) {
			q.held = false
			if ok {
				b.bind(q)
				q.run()
			} else {
				q.fail()
			}
		}
	default:
		b.bind(q)
	}
	if !done.quiet {
		q.sendDone.add(done)
	}
}

func (b *Bind) bind(q *QP) {
	b.MW.unbind()
	if b.Len == 0 {
		return
	}
	*b.MW = MW{b.MR, b.Off, b.Len, b.Access, nil}
	b.MR.windows++
	if b.Type == verbs.MWType2 {
		b.MW.QP = q
	}
}

// Piece is a range of Mem with a key: a scatter/gather element, or the target of a remote
// operation. Off and Len are in bytes. The key is that of MW, of MR if there is no MW, or with
// WrongKey none of a region.
type Piece struct {
	Mem      *Memory
	Off, Len int
	MR       *MR
	WrongKey bool
	MW       *MW // whose key it has instead
}

// at is where the key is valid.
func (p *Piece) at() (from, to int) {
	if p.MW != nil {
		return p.MW.Off, p.MW.Off + p.MW.Len
	}
	return p.MR.Off, p.MR.Off + p.MR.Len
}

// valid reports whether the key is of a region that covers the piece and has all of the access.
func (p *Piece) valid(access verbs.AccessFlags) bool {
	from, to := p.at()
	return p.keyed(access) && p.Off >= from && p.Off+p.Len <= to
}

// keyed reports whether the key is of a region with the access.
func (p *Piece) keyed(access verbs.AccessFlags) bool {
	if p.MW != nil {
		return !p.WrongKey && p.MW.MR != nil && p.MW.Access&access == access && p.MW.MR.Mem == p.Mem
	}
	return !p.WrongKey && p.MR.Alive && !p.MR.Foreign && p.MR.Access&access == access && p.MR.Mem == p.Mem
}

// blur says that the piece may have been written, as far as its region goes.
func (p *Piece) blur(access verbs.AccessFlags) {
	if p.keyed(access) {
		from, to := p.at()
		p.Mem.blur(max(p.Off, from), min(p.Off+p.Len, to))
	}
}

func total(l []Piece) (n int) {
	for i := range l {
		n += l[i].Len
	}
	return n
}

// gather appends the bytes of pieces to p.
func gather(p []byte, l []Piece) []byte {
	for i := range l {
		p = append(p, l[i].Mem.Bytes[l[i].Off:l[i].Off+l[i].Len]...)
	}
	return p
}

// scatter writes bytes into pieces in turn, behind the header of a request.
func scatter(l []Piece, p []byte, r *Request, header int) {
	for i, at := 0, 0; i < len(l); i++ {
		x := &l[i]
		h := min(header-at, x.Len)
		for k := range h {
			if r.HeaderKnown>>(at+k)&1 != 0 {
				x.Mem.write(x.Off+k, r.Header[at+k:at+k+1])
			} else {
				x.Mem.blur(x.Off+k, x.Off+k+1)
			}
		}
		n := min(x.Len-h, len(p))
		x.Mem.write(x.Off+h, p[:n])
		p, at = p[n:], at+h
	}
}

// within reports whether all pieces are valid as far as n bytes reach, and whether they are as a
// whole: a device may check a piece, or what it touches of it.
func within(l []Piece, n int, access verbs.AccessFlags) (reached, all bool) {
	reached, all = true, true
	for i := range l {
		x := l[i]
		if x.Len > 0 && !x.valid(access) {
			all = false
			x.Len = min(x.Len, n)
			reached = reached && (n <= 0 || x.valid(access))
		}
		n -= l[i].Len
	}
	return reached, all
}

// emptyInvalid reports whether a piece without bytes names a key or place that is not valid, which
// a device may check or not.
func emptyInvalid(l []Piece, access verbs.AccessFlags) bool {
	for i := range l {
		if l[i].Len == 0 && !l[i].valid(access) {
			return true
		}
	}
	return false
}

// fuzzy reports whether the specification does not fix some byte of the piece.
func (p *Piece) fuzzy() bool {
	for _, s := range p.Mem.unknown {
		if s.from < p.Off+p.Len && p.Off < s.to {
			return true
		}
	}
	return false
}

// blurAll says that the first n bytes of the pieces are not fixed, if that is so.
func blurAll(l []Piece, n int, so bool) {
	for i := 0; so && i < len(l) && n > 0; i++ {
		l[i].Mem.blur(l[i].Off, l[i].Off+min(n, l[i].Len))
		n -= l[i].Len
	}
}

// blurLate says that the first n bytes of the pieces come with a completion at the latest (inCQE).
func blurLate(l []Piece, n int, owner uint64) {
	for i := range l {
		x := &l[i]
		x.Mem.blurUntil(x.Off, x.Off+min(n, x.Len), owner)
		n -= min(n, x.Len)
	}
}

// land puts data that may come with a completion where it is for certain now. Bytes that were
// written in the meantime are one or the other.
func land(l []Piece, p []byte, owner uint64) {
	for i := range l {
		x := &l[i]
		n := min(x.Len, len(p))
		if x.Mem.awaits(x.Off, x.Off+n, owner) {
			x.Mem.write(x.Off, p[:n])
		} else {
			x.Mem.blur(x.Off, x.Off+n)
		}
		p = p[n:]
	}
}

// awaits reports whether the bytes are fixed by a completion and nothing else has touched them.
func (m *Memory) awaits(from, to int, owner uint64) bool {
	for _, s := range m.unknown {
		if s.owner != owner && s.from < to && from < s.to {
			return false
		}
	}
	for from < to {
		at := from
		for _, s := range m.unknown {
			if s.from <= from && from < s.to {
				from = s.to
			}
		}
		if at == from {
			return false
		}
	}
	return true
}

// meets reports whether the piece shares bytes with one of the list.
func (p *Piece) meets(l []Piece) bool {
	for i := range l {
		if x := &l[i]; x.Mem == p.Mem && x.Off < p.Off+p.Len && p.Off < x.Off+x.Len {
			return true
		}
	}
	return false
}
