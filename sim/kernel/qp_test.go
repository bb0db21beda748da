package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

func TestCreateQPChecks(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd, cq := s.pd(u), s.cq(u)
	for _, x := range []struct {
		what   string
		change func(*QPReq)
		want   syscall.Errno
	}{
		{"RC", func(*QPReq) {}, 0},
		{"UC", func(r *QPReq) { r.Type = verbs.QPTUC }, 0},
		{"UD", func(r *QPReq) { r.Type = verbs.QPTUD }, 0},
		{"no receives", func(r *QPReq) { r.Cap.MaxRecvWR, r.RQWQECount, r.RQWQEShift = 0, 0, 0 }, 0},
		{"no sends", func(r *QPReq) { r.SQWQECount = 0 }, 0},
		{"unknown type", func(r *QPReq) { r.Type = 77 }, syscall.EINVAL},
		{"raw packet, no capability", func(r *QPReq) { r.Type = verbs.QPTRawPacket }, syscall.EPERM},
		{"XRC", func(r *QPReq) { r.Type = verbs.QPTXRCSend }, syscall.EOPNOTSUPP},
		{"SRQ", func(r *QPReq) { r.HasSRQ = true }, syscall.EINVAL},
		{"no send CQ", func(r *QPReq) { r.SendCQ = 0 }, syscall.EINVAL},
		{"PD as CQ", func(r *QPReq) { r.RecvCQ = pd }, syscall.EINVAL},
		{"no such PD", func(r *QPReq) { r.PD = 1000 }, syscall.ENOENT},
		{"too many receives", func(r *QPReq) { r.Cap.MaxRecvWR = 32769 }, syscall.EINVAL},
		{"send ring too long", func(r *QPReq) { r.SQWQECount = 65536 }, syscall.EINVAL},
		{"send ring no power of two", func(r *QPReq) { r.SQWQECount = 48 }, syscall.EINVAL},
		{"receive ring without receives", func(r *QPReq) { r.Cap.MaxRecvWR = 0 }, syscall.EINVAL},
		{"receive WQEs of 2 GiB", func(r *QPReq) { r.RQWQEShift = 31 }, syscall.EINVAL},
		{"ring not mapped", func(r *QPReq) { r.BufAddr = 0x1000 }, syscall.EFAULT},
		{"record not mapped", func(r *QPReq) { r.DBAddr = 0x1000 }, syscall.EFAULT},
		{"ring not aligned", func(r *QPReq) { r.BufAddr += 32 }, syscall.EINVAL},
		{"user index", func(r *QPReq) { r.UIDX = 0xffffff }, syscall.EINVAL},
		{"user index of 25 bits", func(r *QPReq) { r.UIDX = 1 << 24 }, syscall.EINVAL},
		{"no bfreg named", func(r *QPReq) { r.BFRegMode = BFRegKernel }, syscall.EINVAL},
		{"index into a table that is not there", func(r *QPReq) { r.BFRegMode = BFRegDynamic }, syscall.EINVAL},
		{"both flags", func(r *QPReq) { r.BFRegMode = 3 }, syscall.EINVAL},
		{"unknown create flag", func(r *QPReq) { r.Flags = 1 << 20 }, syscall.EINVAL},
		{"source QPN", func(r *QPReq) { r.Flags = qpSourceQPN }, syscall.EPERM},
		{"cross channel", func(r *QPReq) { r.Flags = qpCrossChannel }, syscall.EOPNOTSUPP},
	} {
		r := s.qpReq(pd, cq, verbs.QPTRC)
		x.change(&r)
		h, _, err := u.CreateQP(Caller{}, r)
		wantErrno(t, x.what, err, x.want)
		if err == nil {
			_, err = u.DestroyQP(Caller{}, h)
			wantErrno(t, x.what+": destroy", err, 0)
		}
	}
	s.proc.NetRaw = true
	r := s.qpReq(pd, cq, verbs.QPTRawPacket)
	_, _, err := u.CreateQP(Caller{}, r)
	wantErrno(t, "raw packet", err, syscall.EOPNOTSUPP)
}

func TestQPContextAtCreation(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd, cq := s.pd(u), s.cq(u)
	r := s.qpReq(pd, cq, verbs.QPTRC)
	r.DBAddr += 64
	r.ScatterToCQE, r.SigAll = true, true
	_, resp, err := u.CreateQP(Caller{}, r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.BFRegIndex != InvalidBFReg {
		t.Errorf("bfreg %#x", resp.BFRegIndex)
	}
	in := prm.CreateQPIn(s.f.last[prm.OpCreateQP])
	c := in.QPC()
	ring, _, _, _ := s.proc.Space.Translate(mem.VA(r.BufAddr))
	db, _, _, _ := s.proc.Space.Translate(mem.VA(r.DBAddr))
	for _, x := range []struct {
		what      string
		got, want uint64
	}{
		{"st", uint64(c.ST()), prm.STRC}, {"pm_state", uint64(c.PMState()), prm.PMStateMigrated},
		{"log_sq_size", uint64(c.LogSQSize()), 6}, {"log_rq_size", uint64(c.LogRQSize()), 4}, {"log_rq_stride", uint64(c.LogRQStride()), 2},
		{"uar_page", uint64(c.UARPage()), 9}, {"user_index", uint64(c.UserIndex()), 5}, {"dbr_addr", c.DBRAddr(), uint64(db)},
		{"cs_req", uint64(c.CSReq()), prm.CSReqUpTo32B}, {"cs_res", uint64(c.CSRes()), prm.CSResUpTo32B},
		{"rq_type", uint64(c.RQType()), prm.RQTypeRegular}, {"cqn_snd", uint64(c.CQNSnd()), uint64(c.CQNRcv())},
		{"ring", in.PAS().At(0) + uint64(c.PageOffset())*(uint64(4096)<<c.LogPageSize()/64), uint64(ring)},
	} {
		if x.got != x.want {
			t.Errorf("%s: %#x, want %#x", x.what, x.got, x.want)
		}
	}
}

// The kernel's choice in the static generation, for 20 QPs with all defaults.
func TestStaticBFRegs(t *testing.T) {
	p := testParams()
	p.Generation = Static
	s := newSetup(t, p)
	u, resp, err := s.d.AllocUcontext(Caller{}, s.proc, UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 4, LibCaps: 3, MaxCQEVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	if resp.TotBFRegs != 16 || resp.NumDynBFRegs != 1024 || resp.BFRegSize != 512 || s.d.res.UAR != 8 {
		t.Errorf("%+v, %d UARs", resp, s.d.res.UAR)
	}
	pd, cq := s.pd(u), s.cq(u)
	for i, want := range []uint32{24, 25, 28, 29, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 1, 4, 5, 8, 9} {
		r := s.qpReq(pd, cq, verbs.QPTRC)
		r.BFRegMode = BFRegKernel
		_, resp, err := u.CreateQP(Caller{}, r)
		if err != nil || resp.BFRegIndex != want {
			t.Errorf("QP %d: uuarn %d, %v, want %d", i+1, resp.BFRegIndex, err, want)
		}
		c := prm.CreateQPIn(s.f.last[prm.OpCreateQP]).QPC()
		if m, err := u.MmapUAR(Caller{}, MmapRegular, want/4); err != nil || m.Off != uint64(c.UARPage())*4096 {
			t.Errorf("QP %d: UAR %d is not page %d of the table (%v, %v)", i+1, c.UARPage(), want/4, m, err)
		}
	}

	r := s.qpReq(pd, cq, verbs.QPTRC)
	r.BFRegMode, r.BFRegIndex = BFRegDynamic, 5
	_, _, err = u.CreateQP(Caller{}, r)
	wantErrno(t, "dynamic bfreg whose page is not mapped", err, syscall.EINVAL)
	m, err := u.MmapUAR(Caller{}, MmapAllocWC, 2)
	wantErrno(t, "map dynamic page", err, 0)
	_, err = u.MmapUAR(Caller{}, MmapAllocWC, 2)
	wantErrno(t, "map it again", err, syscall.EINVAL)
	_, resp2, err := u.CreateQP(Caller{}, r)
	wantErrno(t, "dynamic bfreg", err, 0)
	if c := prm.CreateQPIn(s.f.last[prm.OpCreateQP]).QPC(); m == nil || m.Off != uint64(c.UARPage())*4096 || resp2.BFRegIndex != InvalidBFReg {
		t.Errorf("UAR %d, %+v", c.UARPage(), resp2)
	}
	for _, x := range []struct {
		cmd, arg uint32
		want     syscall.Errno
	}{
		{MmapRegular, 8, syscall.EINVAL}, {MmapNC, 7, 0}, {MmapWC, 7, 0}, {MmapAllocWC, 511, 0}, {MmapAllocWC, 512, syscall.EINVAL},
		{1, 0, syscall.ENOSYS}, {4, 0, syscall.EINVAL},
	} {
		_, err := u.MmapUAR(Caller{}, x.cmd, x.arg)
		wantErrno(t, "mmap", err, x.want)
	}
	_, err = u.AllocUAR(Caller{}, UARTypeNC)
	wantErrno(t, "UAR object of a kernel that has none", err, syscall.EOPNOTSUPP)
}

// Offsets of UAR objects are used again, the lowest first, and so never run out in a program that
// frees what it allocates.
func TestOffsetsOfUARObjects(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	alloc := func() *UARObject {
		o, err := u.AllocUAR(Caller{}, UARTypeNC)
		wantErrno(t, "UAR object", err, 0)
		return o
	}
	a, b, c := alloc(), alloc(), alloc()
	if a.MmapOff != 0x900*4096 || b.MmapOff != 0x901*4096 || c.MmapOff != 0x902*4096 {
		t.Errorf("%#x, %#x, %#x", a.MmapOff, b.MmapOff, c.MmapOff)
	}
	wantErrno(t, "free", u.FreeUAR(Caller{}, b), 0)
	wantErrno(t, "free", u.FreeUAR(Caller{}, a), 0)
	if again := alloc(); again.MmapOff != a.MmapOff {
		t.Errorf("%#x, want that of the first object", again.MmapOff)
	}
	s.f.fail[prm.OpAllocUAR] = prm.StatusNoRes
	_, err := u.AllocUAR(Caller{}, UARTypeNC)
	wantErrno(t, "no UAR", err, syscall.EAGAIN)
	s.f.fail[prm.OpAllocUAR] = prm.StatusOK
	if again := alloc(); again.MmapOff != b.MmapOff {
		t.Errorf("%#x, want that of the second object", again.MmapOff)
	}
	m := mmapPages{used: mmapEndEntry - mmapFirstEntry}
	_, err = m.take()
	wantErrno(t, "no offset", err, syscall.ENOMEM)
}

func TestOpenChecks(t *testing.T) {
	s := newSetup(t, testParams())
	for _, x := range []struct {
		what string
		req  UcontextReq
		want syscall.Errno
	}{
		{"dynamic", UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 4, LibCaps: 3}, 0},
		{"old library", UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 4, LibCaps: 1}, 0},
		{"unknown flag", UcontextReq{TotalBFRegs: 16, Flags: 2}, syscall.EOPNOTSUPP},
		{"comp_mask", UcontextReq{TotalBFRegs: 16, CompMask: 1}, syscall.EOPNOTSUPP},
		{"all low-latency", UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 16}, syscall.EINVAL},
		{"all low-latency, dynamic", UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 16, LibCaps: 3}, syscall.EINVAL},
		{"none", UcontextReq{}, syscall.EINVAL},
		{"too many", UcontextReq{TotalBFRegs: 514}, syscall.ENOMEM},
		{"too many, dynamic", UcontextReq{TotalBFRegs: 514, LibCaps: 3}, 0},
	} {
		u, resp, err := s.d.AllocUcontext(Caller{}, s.proc, x.req)
		wantErrno(t, x.what, err, x.want)
		if err == nil {
			if dyn := x.req.LibCaps&2 != 0; dyn != (resp.TotBFRegs == 0) {
				t.Errorf("%s: %+v", x.what, resp)
			}
			u.Close(Caller{})
		}
	}
	u := s.open()
	_, err := u.MmapUAR(Caller{}, MmapRegular, 0)
	wantErrno(t, "static page in the dynamic generation", err, syscall.EINVAL)
	o, err := u.AllocUAR(Caller{}, UARTypeBF)
	wantErrno(t, "UAR object", err, 0)
	o2, err := u.AllocUAR(Caller{}, UARTypeNC)
	wantErrno(t, "UAR object", err, 0)
	if o.MmapOff == o2.MmapOff || o.Map.Off != uint64(o.PageID)*4096 || o.MmapLen != 4096 {
		t.Errorf("%+v %+v", o, o2)
	}
	_, err = u.AllocUAR(Caller{}, 2)
	wantErrno(t, "UAR type", err, syscall.EOPNOTSUPP)
	wantErrno(t, "free", u.FreeUAR(Caller{}, o), 0)
	wantErrno(t, "free twice", u.FreeUAR(Caller{}, o), syscall.ENOENT)
	s.f.fail[prm.OpDeallocUAR] = prm.StatusBadResState // a queue still rings there
	wantErrno(t, "free in use", u.FreeUAR(Caller{}, o2), 0)
	s.f.fail[prm.OpDeallocUAR] = prm.StatusOK
	u.Close(Caller{})
	if s.d.res.UAR != 0 {
		t.Errorf("%d UARs left", s.d.res.UAR)
	}
}

func TestCreateCQChecks(t *testing.T) {
	s := newSetup(t, testParams())
	u, other := s.open(), s.open()
	alien, err := other.CreateChannel(Caller{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what   string
		change func(*CQReq)
		want   syscall.Errno
	}{
		{"plain", func(*CQReq) {}, 0},
		{"128-byte entries", func(r *CQReq) { r.CQESize, r.CQE, r.Entries = 128, 7, 8 }, 0},
		{"last vector", func(r *CQReq) { r.CompVector = 3 }, 0},
		{"vector too high", func(r *CQReq) { r.CompVector = 4 }, syscall.EINVAL},
		{"no entries", func(r *CQReq) { r.CQE = 0 }, syscall.EINVAL},
		{"too many entries", func(r *CQReq) { r.CQE = 1 << 22 }, syscall.EINVAL},
		{"absurdly many entries", func(r *CQReq) { r.CQE = 0xffffffff }, syscall.EINVAL},
		{"ring of another size", func(r *CQReq) { r.Entries = 32 }, syscall.EINVAL},
		{"CQE size", func(r *CQReq) { r.CQESize = 96 }, syscall.EINVAL},
		{"no UAR", func(r *CQReq) { r.UARValid = false }, syscall.EINVAL},
		{"ring unmapped", func(r *CQReq) { r.BufAddr = 0x1000 }, syscall.EFAULT},
		{"ring in a page", func(r *CQReq) { r.BufAddr += 64 }, syscall.EINVAL},
		{"record unmapped", func(r *CQReq) { r.DBAddr = 0x1000 }, syscall.EFAULT},
		{"channel of another context", func(r *CQReq) { r.Channel = alien }, syscall.EBADF},
	} {
		r := s.cqReq(u, 15)
		x.change(&r)
		h, cqn, err := u.CreateCQ(Caller{}, r)
		wantErrno(t, x.what, err, x.want)
		if err != nil {
			continue
		}
		in := prm.CreateCQIn(s.f.last[prm.OpCreateCQ])
		if n := uint32(1) << in.CQC().LogCQSize(); n != r.CQE+1 || in.CQC().EQN() != uint32(s.d.eqs[1+r.CompVector].eqn) ||
			s.d.cqs[cqn] == nil {
			t.Errorf("%s: context %x", x.what, []byte(in.CQC()))
		}
		_, _, err = u.DestroyCQ(Caller{}, h)
		wantErrno(t, x.what, err, 0)
	}
	h := s.cq(u)
	r := s.cqReq(u, 31)
	pinned := s.d.Resources().PinnedPages
	resize := func(what string, cqe uint32, buf uint64, want syscall.Errno, got uint32) {
		t.Helper()
		n, err := u.ResizeCQ(Caller{}, h, cqe, buf, 64)
		wantErrno(t, what, err, want)
		if n != got {
			t.Errorf("%s: %d entries, want %d", what, n, got)
		}
	}
	resize("resize to the same ring", 8, 0, 0, 15)
	resize("resize to nothing", 0, 0, syscall.EINVAL, 0)
	resize("resize to too much", 1<<22, 0, syscall.EINVAL, 0)
	resize("resize to memory that is not there", 31, 1<<40, syscall.EFAULT, 0)
	s.f.fail[prm.OpModifyCQ] = prm.StatusBadSizeOutsCQEs
	resize("resize below what is outstanding", 31, r.BufAddr, syscall.EINVAL, 0)
	if n := s.d.Resources().PinnedPages; n != pinned {
		t.Errorf("%d pages are pinned after refusals, before %d", n, pinned)
	}
	delete(s.f.fail, prm.OpModifyCQ)
	resize("resize", 31, r.BufAddr, 0, 31)
	in := prm.ModifyCQIn(s.f.last[prm.OpModifyCQ])
	if prm.CmdIn(in).OpMod() != prm.ModifyCQResize || in.CQC().LogCQSize() != 5 || in.PAS().Count() == 0 {
		t.Errorf("command % x", []byte(in))
	}
}
