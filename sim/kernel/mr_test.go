package kernel

import (
	"math"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

const page = mem.PageSize

func TestRegMRChecks(t *testing.T) {
	p := testParams()
	p.MKeyCache = NoKeyAgain // so that each has a context of its own
	s := newSetup(t, p)
	u := s.open()
	pd := s.pd(u)
	rw, ro := s.buf(4*page, mem.Read|mem.Write), s.buf(4*page, mem.Read)
	gone := s.buf(page, mem.Read)
	if err := s.proc.Space.Unmap(mem.VA(gone), page); err != nil {
		t.Fatal(err)
	}
	const lw, rem, atom = verbs.AccessLocalWrite, verbs.AccessRemoteWrite, verbs.AccessRemoteAtomic
	for _, x := range []struct {
		what         string
		addr, length uint64
		iova         uint64
		access       verbs.AccessFlags
		want         syscall.Errno
	}{
		{"plain", rw, page, rw, lw | rem | verbs.AccessRemoteRead | atom, 0},
		{"one byte", rw + 5, 1, rw + 5, lw, 0},
		{"over a page boundary", rw + page - 1, 2, 0x7000 + page - 1, lw, 0},
		{"remote write without local write", rw, page, rw, rem, syscall.EINVAL},
		{"remote atomic without local write", rw, page, rw, atom, syscall.EINVAL},
		{"wraps", math.MaxUint64 - 100, 200, math.MaxUint64 - 100, lw, syscall.EINVAL},
		{"ends in the last page", math.MaxUint64 - 100, 50, math.MaxUint64 - 100, lw, syscall.EINVAL},
		{"length 0 on a page", rw, 0, rw, lw, syscall.EINVAL},
		{"length 0 in a page", rw + 8, 0, rw + 8, lw, syscall.EINVAL},
		{"unmapped", gone, page, gone, lw, syscall.EFAULT},
		{"half unmapped", rw + 3*page, 2 * page, rw + 3*page, lw, syscall.EFAULT},
		{"read-only with local write", ro, page, ro, lw, syscall.EFAULT},
		{"read-only with window binding", ro, page, ro, verbs.AccessMWBind, syscall.EFAULT},
		{"read-only with remote read", ro, page, ro, verbs.AccessRemoteRead, 0},
		{"read-only with nothing", ro, page, ro, 0, 0},
		{"unknown mandatory bit 10", rw, page, rw, lw | 1<<10, syscall.EINVAL},
		{"unknown mandatory bit 19", rw, page, rw, lw | 1<<19, syscall.EINVAL},
		{"unknown mandatory bit 30", rw, page, rw, lw | 1<<30, syscall.EINVAL},
		{"unknown optional bits", rw, page, rw, lw | verbs.AccessOptionalRange, 0},
		{"on demand", rw, page, rw, lw | verbs.AccessOnDemand, syscall.EOPNOTSUPP},
		{"flush global", rw, page, rw, lw | verbs.AccessFlushGlobal, syscall.EOPNOTSUPP},
		{"flush persistent", rw, page, rw, lw | verbs.AccessFlushPersistent, syscall.EOPNOTSUPP},
		{"zero based, huge pages", rw, page, rw, lw | verbs.AccessZeroBased | verbs.AccessHugetlb, 0},
		{"iova elsewhere", rw + 100, page, 0x123000 + 100, lw, 0},
		{"iova 0", rw, page, 0, lw, 0},
		{"iova with another offset", rw, page, rw + 1, lw, syscall.EINVAL},
	} {
		h, key, _, err := u.RegMR(Caller{}, pd, x.addr, x.length, x.iova, x.access)
		wantErrno(t, x.what, err, x.want)
		if err != nil {
			continue
		}
		in := prm.CreateMKeyIn(s.f.last[prm.OpCreateMKey])
		c := in.MKC()
		if c.StartAddr() != x.iova || c.Len() != x.length || c.AccessMode() != prm.MKeyModeMTT || c.QPN() != prm.MKeyQPNAny ||
			c.LW() != (x.access&lw != 0) || c.RW() != (x.access&rem != 0) || c.RR() != (x.access&verbs.AccessRemoteRead != 0) ||
			c.A() != (x.access&atom != 0) || !c.LR() || c.MKey70() != key&0xff {
			t.Errorf("%s: context %x", x.what, []byte(c))
		}
		if err := u.DeregMR(Caller{}, h); err != nil {
			t.Error(err)
		}
	}
	if s.proc.Space.Pinned != 0 {
		t.Errorf("%d pages are pinned", s.proc.Space.Pinned)
	}
	_, _, _, err := u.RegMR(Caller{}, 999, rw, page, rw, lw)
	wantErrno(t, "no such PD", err, syscall.ENOENT)
}

func TestMemlock(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	s.proc.IPCLock, s.proc.MemlockLimit = false, 4*page+100
	addr := s.buf(8*page, mem.Read|mem.Write)
	reg := func(n uint64) (Handle, error) {
		h, _, _, err := u.RegMR(Caller{}, pd, addr, n, addr, verbs.AccessLocalWrite)
		return h, err
	}
	h, err := reg(4 * page)
	wantErrno(t, "all of the limit", err, 0)
	_, err = reg(1)
	wantErrno(t, "one page more", err, syscall.ENOMEM)
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)
	_, err = reg(5 * page)
	wantErrno(t, "over the limit", err, syscall.ENOMEM)
	h, err = reg(3*page + 1)
	wantErrno(t, "the charge came back", err, 0)
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)
	s.proc.MemlockLimit = 0
	_, err = reg(1)
	wantErrno(t, "limit 0", err, syscall.EPERM)
	s.proc.IPCLock = true
	_, err = reg(8 * page)
	wantErrno(t, "limit 0 with CAP_IPC_LOCK", err, 0)
}

// Whatever lies behind a range, the translation that the mkey's layout means leads each
// address to its own byte.
func TestTranslation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &umem{}
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			start := rapid.Uint64Range(1, 1<<20).Draw(t, "frame")
			for i := range rapid.Uint64Range(1, 40).Draw(t, "pages") {
				m.pages = append(m.pages, mem.PA((start+i)*page))
			}
		}
		off := rapid.Uint64Range(0, page-1).Draw(t, "offset")
		m.addr = 0x7f0000000000 + off
		size := uint64(len(m.pages)) * page
		least := uint64(1) // such that the last page is touched
		if size > page {
			least = size - page - off + 1
		}
		m.length = rapid.Uint64Range(least, size-off).Draw(t, "length")
		iova := rapid.Uint64Range(0, 1<<30).Draw(t, "iova")*page + off
		if rapid.Bool().Draw(t, "match") { // an address that shares bits with the memory
			iova = uint64(m.pages[0]) + off
		}
		pg := m.bestPageSize(mkeyPageSizes, iova)
		if pg < page {
			t.Fatalf("page size %d", pg)
		}
		check := func(pg uint64) bool {
			m.iova = iova
			if n := m.numBlocks(pg); uint64(n) != (iova&(pg-1)+m.length+pg-1)/pg {
				return false
			}
			for va := uint64(0); va < m.length; va += 1 + min(page/3, m.length-va) {
				i := (iova&(pg-1) + va) / pg
				got := m.block(int(i), pg) + (iova+va)&(pg-1)
				at := off + va
				if got != uint64(m.pages[at/page])+at%page {
					return false
				}
			}
			return true
		}
		if !check(pg) {
			t.Fatalf("pages of %d lead astray", pg)
		}
	})
}

// Contiguous memory that shares its low bits with the iova is one entry.
func TestBestPageSize(t *testing.T) {
	run := func(start, n uint64) (p []mem.PA) {
		for i := range n {
			p = append(p, mem.PA(start+i*page))
		}
		return p
	}
	for _, x := range []struct {
		what   string
		pages  []mem.PA
		length uint64
		iova   uint64
		want   uint64
	}{
		{"one page", run(0x5000, 1), page, 0x9000, page},
		{"2 MiB, aligned alike", run(2<<20, 512), 2 << 20, 6 << 20, 2 << 20},
		{"2 MiB at an odd iova", run(2<<20, 512), 2 << 20, 6<<20 + page, page},
		{"two runs of 64 KiB", append(run(1<<20, 16), run(4<<20, 16)...), 128 << 10, 8 << 20, 64 << 10},
		{"less than a page", run(1<<20, 1), 100, 1 << 20, page},
	} {
		m := &umem{addr: 0, length: x.length, pages: x.pages}
		if got := m.bestPageSize(mkeyPageSizes, x.iova); got != x.want {
			t.Errorf("%s: %d, want %d", x.what, got, x.want)
		}
	}
}
