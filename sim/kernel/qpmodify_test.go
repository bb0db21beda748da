package kernel

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// path is what a connection to dgid from the IPv4 GID of RoCE v2 needs.
func (s *setup) path(dgid verbs.GID) verbs.AHAttr {
	return verbs.AHAttr{IsGlobal: true, Port: 1, SL: 3, GRH: verbs.GRH{DGID: dgid, SGIDIndex: 3, HopLimit: 9, TrafficClass: 0x68, FlowLabel: 0x12345}}
}

const (
	toInit = verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags
	toRTR  = verbs.QPMaskState | verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN |
		verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	toRTS = verbs.QPMaskState | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskSQPSN |
		verbs.QPMaskMaxQPRdAtomic
)

// What is set on the way from RESET to RTS is what the device is told.
func TestConnect(t *testing.T) {
	s := newSetup(t, testParams())
	s.d.SetNeighbours(func(_ uint16, ip netip.Addr) (MAC, bool) {
		return MAC{2, 0, 0, 0, 0, 9}, ip == netip.MustParseAddr("192.0.2.9")
	})
	u := s.open()
	qp := s.qp(u, s.pd(u), s.cq(u), verbs.QPTRC)
	dst := verbs.GID{10: 0xff, 11: 0xff, 12: 192, 13: 0, 14: 2, 15: 9}
	const all = verbs.AccessRemoteRead | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic
	a := verbs.QPAttr{
		State: verbs.QPSInit, Port: 1, Access: all, PathMTU: verbs.MTU1024, DestQPN: 0x1234, RQPSN: 0x1ffffff, SQPSN: 0xabcdef12,
		MaxRdAtomic: 5, MaxDestRdAtomic: 16, MinRNRTimer: 12, Timeout: 14, RetryCnt: 7, RNRRetry: 6, AH: s.path(dst),
	}
	step := func(state verbs.QPState, mask verbs.QPAttrMask) prm.QPC {
		t.Helper()
		a.State = state
		if err := u.ModifyQP(Caller{}, qp, &a, mask); err != nil {
			t.Fatal(err)
		}
		return prm.ModifyQPIn(s.f.last[s.f.seen[len(s.f.seen)-1]]).QPC()
	}
	c := step(verbs.QPSInit, toInit)
	if !c.RWE() || c.RRE() || c.RAE() || c.CounterSetID() == 0 || c.PrimaryPath().VHCAPortNum() != 1 || c.DBRAddr() == 0 {
		t.Errorf("INIT: only remote writes before there is a depth: %x", []byte(c))
	}
	c = step(verbs.QPSRTR, toRTR)
	p := c.PrimaryPath()
	if !c.RWE() || !c.RRE() || !c.RAE() || c.AtomicMode() != prm.AtomicModeIBComp || c.LogRRAMax() != 4 || c.MTU() != 3 ||
		c.RemoteQPN() != 0x1234 || c.NextRcvPSN() != 0xffffff || c.MinRNRNAK() != 12 || c.LogMsgMax() != 30 {
		t.Errorf("RTR: %x", []byte(c))
	}
	if MAC(p.RMAC()) != (MAC{2, 0, 0, 0, 0, 9}) || verbs.GID(p.RGID()) != dst || p.SrcAddrIndex() != 3 || p.HopLimit() != 64 ||
		p.TClass() != 0x68 || p.DSCP() != 0x1a || p.FlowLabel() != 0x12345 || p.EthPrio() != 3 || p.UDPSport() != 0xe341 {
		t.Errorf("RTR path: %x (UDP port %#x)", []byte(p), p.UDPSport())
	}
	c = step(verbs.QPSRTS, toRTS)
	if c.NextSendPSN() != 0xcdef12 || c.LogSRAMax() != 3 || c.RetryCount() != 7 || c.RNRRetry() != 6 || c.PrimaryPath().AckTimeout() != 14 ||
		c.LogAckReqFreq() != 8 {
		t.Errorf("RTS: %x", []byte(c))
	}
	q, err := u.QueryQP(Caller{}, qp, 0)
	if err != nil || q.State != verbs.QPSRTS || q.SQPSN != 0xcdef12 || q.Timeout != 14 || q.MaxRdAtomic != 8 || q.Cap.MaxRecvWR != 16 {
		t.Errorf("query: %+v, %v", q, err)
	}

	a.State = verbs.QPSSQD
	wantErrno(t, "RTS to SQD", u.ModifyQP(Caller{}, qp, &a, verbs.QPMaskState), syscall.EINVAL)
	a.CurState, a.State = verbs.QPSRTR, verbs.QPSRTS
	s.f.fail[prm.OpRTR2RTSQP] = prm.StatusBadQPState // what a device says to a state that is not so
	wantErrno(t, "wrong current state", u.ModifyQP(Caller{}, qp, &a, toRTS|verbs.QPMaskCurState), syscall.EINVAL)
	a.State = verbs.QPSErr
	wantErrno(t, "to ERR", u.ModifyQP(Caller{}, qp, &a, verbs.QPMaskState), 0)
	a.State = verbs.QPSReset
	wantErrno(t, "to RESET", u.ModifyQP(Caller{}, qp, &a, verbs.QPMaskState), 0)
	n := len(s.f.seen)
	wantErrno(t, "RESET again", u.ModifyQP(Caller{}, qp, &a, verbs.QPMaskState), 0)
	if len(s.f.seen) != n {
		t.Error("RESET to RESET sent a command")
	}
}

func TestModifyChecks(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd, cq := s.pd(u), s.cq(u)
	own := verbs.GID{10: 0xff, 11: 0xff, 12: 192, 13: 0, 14: 2, 15: 1}
	for _, x := range []struct {
		what   string
		from   verbs.QPState
		mask   verbs.QPAttrMask
		change func(*verbs.QPAttr)
		want   syscall.Errno
	}{
		{"to INIT", verbs.QPSReset, toInit, nil, 0},
		{"port 0", verbs.QPSReset, toInit, func(a *verbs.QPAttr) { a.Port = 0 }, syscall.EINVAL},
		{"port 2", verbs.QPSReset, toInit, func(a *verbs.QPAttr) { a.Port = 2 }, syscall.EINVAL},
		{"P_Key index", verbs.QPSReset, toInit, func(a *verbs.QPAttr) { a.PKeyIndex = 128 }, syscall.EINVAL},
		{"unknown attribute", verbs.QPSReset, toInit | 1<<21, nil, syscall.EOPNOTSUPP},
		{"capacity", verbs.QPSReset, toInit | verbs.QPMaskCap, nil, syscall.EINVAL},
		{"rate limit on RC", verbs.QPSReset, toInit | verbs.QPMaskRateLimit, nil, syscall.EINVAL},
		{"state 7", verbs.QPSReset, verbs.QPMaskState, func(a *verbs.QPAttr) { a.State = 7 }, syscall.EINVAL},
		{"RESET to ERR", verbs.QPSReset, verbs.QPMaskState, func(a *verbs.QPAttr) { a.State = verbs.QPSErr }, syscall.EINVAL},
		{"to RTR", verbs.QPSInit, toRTR, nil, 0},
		{"not global", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.AH.IsGlobal = false }, syscall.EINVAL},
		{"address port 0", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.AH.Port = 0 }, syscall.EINVAL},
		{"GID index outside", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.AH.GRH.SGIDIndex = 200 }, syscall.EINVAL},
		{"GID slot empty", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.AH.GRH.SGIDIndex = 7 }, syscall.ENODATA},
		{"nobody answers", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.AH.GRH.DGID[15] = 77 }, syscall.ETIMEDOUT},
		{"other address family", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.AH.GRH.DGID = verbs.GID{0x20, 1} }, syscall.EINVAL},
		{"path MTU 0", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.PathMTU = 0 }, syscall.EINVAL},
		{"path MTU 6", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.PathMTU = 6 }, syscall.EINVAL},
		{"depth as responder", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.MaxDestRdAtomic = 17 }, syscall.EINVAL},
		{"static rate 1", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.AH.StaticRate = 1 }, syscall.EINVAL},
		{"static rate 24", verbs.QPSInit, toRTR, func(a *verbs.QPAttr) { a.AH.StaticRate = 24 }, syscall.EINVAL},
		{"alternate path", verbs.QPSInit, toRTR | verbs.QPMaskAltPath, func(a *verbs.QPAttr) { a.AltPort, a.AltAH = 1, a.AH }, syscall.EINVAL},
		{"alternate port", verbs.QPSInit, toRTR | verbs.QPMaskAltPath, func(a *verbs.QPAttr) { a.AltAH = a.AH }, syscall.EINVAL},
		{"to RTS", verbs.QPSRTR, toRTS, nil, 0},
		{"depth as requester", verbs.QPSRTR, toRTS, func(a *verbs.QPAttr) { a.MaxRdAtomic = 17 }, syscall.EINVAL},
		{"depth at the limit", verbs.QPSRTR, toRTS, func(a *verbs.QPAttr) { a.MaxRdAtomic = 16 }, 0},
		{"a retry count missing", verbs.QPSRTR, toRTS &^ verbs.QPMaskRetryCnt, nil, syscall.EINVAL},
	} {
		h := s.qp(u, pd, cq, verbs.QPTRC)
		q, _ := lookup[*qp](&u.objs, h, "QP")
		q.state, q.port = x.from, 1
		a := verbs.QPAttr{State: x.from + 1, Port: 1, PathMTU: verbs.MTU1024, MaxRdAtomic: 1, MaxDestRdAtomic: 1, AH: s.path(own)}
		if x.change != nil {
			x.change(&a)
		}
		wantErrno(t, x.what, u.ModifyQP(Caller{}, h, &a, x.mask), x.want)
		want := x.from
		if x.want == 0 {
			want++
		}
		if q.state != want {
			t.Errorf("%s: state %v, want %v", x.what, q.state, want)
		}
	}

	ud := s.qp(u, pd, cq, verbs.QPTUD)
	a := verbs.QPAttr{State: verbs.QPSInit, Port: 1, QKey: 0x80000001}
	mask := verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskQKey
	wantErrno(t, "privileged Q_Key", u.ModifyQP(Caller{}, ud, &a, mask), syscall.EPERM)
	s.proc.NetRaw = true
	wantErrno(t, "privileged Q_Key with CAP_NET_RAW", u.ModifyQP(Caller{}, ud, &a, mask), 0)
	a.State = verbs.QPSRTR
	wantErrno(t, "UD to RTR", u.ModifyQP(Caller{}, ud, &a, verbs.QPMaskState), 0)
	if c := prm.ModifyQPIn(s.f.last[prm.OpInit2RTRQP]).QPC(); c.MTU() != 5 || c.LogMsgMax() != 12 || c.ST() != prm.STUD {
		t.Errorf("UD: %x", []byte(c))
	}
	a.State = verbs.QPSRTS
	wantErrno(t, "UD to RTS", u.ModifyQP(Caller{}, ud, &a, verbs.QPMaskState|verbs.QPMaskSQPSN), 0)
}
