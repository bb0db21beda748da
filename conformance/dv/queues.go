package dv

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// registerQueues adds the cases of what is posted behind the library's back or by raw bytes, and of
// properties of QPs.
func registerQueues(s *spec.Suite) {
	s.Case("DV-003", ownReceive)
	s.Case("DV-019", rawWQE)
	s.Case("DV-025", sourcePort)
	s.Case("DV-026", lagPort)
	s.Case("DV-027", reservedNumbers)
	s.Case("DV-038", clockBracket)
}

// ownReceive posts a receive of the library's, then two of its own: their completions come through
// the library, which knows nothing of them.
func ownReceive(c *spec.C) {
	const size = 256
	p := kit.NewPair(c, kit.Default())
	d := directQP(c, p.B)
	src, dst := p.Buffer(c, 3*size, kit.AllAccess), p.Buffer(c, 3*size, kit.AllAccess)
	want := src.FillRandom(c)
	entries, stride := d.RecvQueueGeometry()
	c.True("geometry", entries >= int(p.B.Opt.Cap.MaxRecvWR) && stride >= prm.DataSegmentSize && stride&(stride-1) == 0, "%d entries of %d bytes", entries, stride)

	p.B.RecvInto(c, 7, dst.SGE(0, size))
	first := make([]byte, prm.DataSegmentSize)
	kit.Must(c, "read the receive queue", d.RecvQueue(c.T, 0, first))
	s := prm.DataSegment(first)
	c.Equal("length in the library's receive", s.ByteCount(), uint32(size))
	c.True("key and address in the library's receive", s.LKey() == dst.MR.LKey() && s.Addr() == dst.Addr(0), "key %#x for %#x, address %#x for %#x",
		s.LKey(), dst.MR.LKey(), s.Addr(), dst.Addr(0))

	for i := 1; i < 3; i++ {
		wqe := make([]byte, stride)
		prm.DataSegment(wqe).Set(size, dst.MR.LKey(), dst.Addr(i*size))
		if stride > prm.DataSegmentSize {
			prm.DataSegment(wqe[prm.DataSegmentSize:]).Set(0, prm.InvalidLKey, 0)
		}
		kit.Must(c, "write the receive queue", d.WriteRecvQueue(c.T, i*stride, wqe))
	}
	kit.Must(c, "write the doorbell record", d.WriteRecvDoorbellRecord(c.T, 3))
	recv, _ := kit.Mlx5(c, p.B).DoorbellRecord(c.T)
	c.Equal("counter of receives", recv, uint32(3))
	for i := range 3 {
		c.Status("SEND", p.A.PostAndPoll(c, kit.Send(uint64(i), src.SGE(i*size, size-i))), verbs.WCSuccess)
		wc := kit.PollOne(c, p.B.RecvCQ)
		if i > 0 {
			wc.ID = 0 // the library has none of a receive that it did not post
		}
		c.Status("receive", wc, verbs.WCSuccess)
		c.Equal("bytes received", wc.ByteLen, uint32(size-i))
		c.Equal("contents", dst.Get(c, i*size, size-i), want[i*size:i*size+size-i])
	}
	c.Errno("beyond the end of the queue", d.RecvQueue(c.T, entries*stride, first), syscall.EINVAL)
}

// rawWrite is an RDMA WRITE of n bytes as bytes, of a signalled request. Its index is for the
// library to fill in.
func rawWrite(q *kit.QP, from verbs.SGE, to *kit.Buffer, off int) []byte {
	wqe := make([]byte, 3*16)
	prm.CtrlSegment(wqe).Set(prm.WQEOpRDMAWrite, 0, 0xbeef, q.QPN(), 3, prm.CtrlCQUpdate, 0)
	prm.RaddrSegment(wqe[prm.CtrlSegmentSize:]).Set(to.Addr(off), to.MR.RKey())
	prm.DataSegment(wqe[prm.CtrlSegmentSize+prm.RaddrSegmentSize:]).Set(from.Length, from.LKey, from.Addr)
	return wqe
}

func rawWQE(c *spec.C) {
	const size, n = 512, 12
	o := kit.Default()
	o.SendOps = verbs.QPExRDMAWrite
	o.Direct = &verbs.DirectQPAttr{CompMask: verbs.DirectQPSendOpsFlags, SendOpsFlags: verbs.DirectQPExRawWQE}
	p := kit.NewPair(c, o)
	x := directEx(c, p.A)
	src, dst := p.Buffer(c, n*size, kit.AllAccess), p.Buffer(c, n*size, kit.AllAccess)
	want := src.FillRandom(c)
	isRaw := func(i int) bool { return i%3 != 1 }
	// Two batches, of which the second goes over the end of the ring on devices with small ones.
	for half := range 2 {
		x.WRStart(c.T)
		for i := half * n / 2; i < (half+1)*n/2; i++ {
			if isRaw(i) {
				x.SetWR(uint64(100+i), 0) // flags of raw requests are in their bytes
				x.WRRawWQE(c.T, rawWrite(p.A, src.SGE(i*size, size), dst, i*size))
				continue
			}
			x.SetWR(uint64(100+i), verbs.SendSignaled)
			x.WRRDMAWrite(c.T, dst.MR.RKey(), dst.Addr(i*size))
			x.SetSGE(c.T, src.SGE(i*size, size))
		}
		c.Errno("wr_complete", x.WRComplete(c.T), 0)
	}
	for i, wc := range kit.ExpectSuccess(c, p.A.SendCQ, n) {
		c.Equal("wr_id", wc.ID, uint64(100+i))
		op := verbs.WCOpRDMAWrite
		if isRaw(i) {
			op = verbs.WCOpDriver2
		}
		c.Equal("opcode", wc.Opcode, op)
	}
	c.True("contents", bytes.Equal(dst.Get(c, 0, n*size), want), "the bytes that arrived are others")

	// A raw request without the bit for a completion has none, and the next retires it.
	quiet := rawWrite(p.A, src.SGE(0, 8), dst, size)
	prm.CtrlSegment(quiet).SetFMCESE(0)
	x.WRStart(c.T)
	x.SetWR(1, verbs.SendSignaled)
	x.WRRawWQE(c.T, quiet)
	x.SetWR(2, 0)
	x.WRRawWQE(c.T, rawWrite(p.A, src.SGE(8, 8), dst, 0))
	c.Errno("wr_complete", x.WRComplete(c.T), 0)
	c.Equal("the signalled one alone", kit.PollOne(c, p.A.SendCQ).ID, uint64(2))
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
	c.Equal("the quiet one was carried out", dst.Get(c, size, 8), want[:8])
	// Raw bytes that ask for what the peer does not allow end like any request.
	bad := rawWrite(p.A, src.SGE(0, 8), dst, 0)
	prm.RaddrSegment(bad[prm.CtrlSegmentSize:]).Set(dst.Addr(0)+1<<40, dst.MR.RKey())
	x.WRStart(c.T)
	x.SetWR(3, 0)
	x.WRRawWQE(c.T, bad)
	c.Errno("wr_complete", x.WRComplete(c.T), 0)
	c.Status("a raw WRITE beyond the region", kit.PollOne(c, p.A.SendCQ), verbs.WCRemAccessErr)
}

// clockBracket holds times of completions, as the page of the clock converts them, against reads of
// the clock before and after, by a page that is older and by one that is newer than they are.
func clockBracket(c *spec.C) {
	o := kit.Default()
	e := kit.Open(c)
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 16, Ex: true, WCFlags: verbs.WCExCompletionTimestamp})
	c.NoErr("create_cq_ex", err)
	kit.DestroyOnce(c, "destroy_cq", cq.Destroy)
	o.SendCQ, o.RecvCQ = cq, cq
	p := e.Pair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	d := direct(c, e)
	clock := func() verbs.ClockInfo {
		i, err := d.ClockInfo(c.T)
		c.NoErr("get_clock_info", err)
		c.True("factors", i.Mult > 0 && i.Shift > 0 && i.Mask > 0 && i.Mask&(i.Mask+1) == 0, "mult %d, shift %d, mask %#x", i.Mult, i.Shift, i.Mask)
		return i
	}
	raw := func() uint64 {
		v, err := e.Ctx.RawClock(c.T)
		c.NoErr("query_rt_values_ex", err)
		return v
	}
	older := clock()
	var tries []clockTry
	for len(tries) < clockTries && (len(tries) == 0 || tries[len(tries)-1].excess(older) > slack) {
		t, started := clockTry{}, c.T.Now()
		for j := range t.ticks {
			before := raw()
			p.A.Post(c, kit.Write(uint64(j), mem, 32, mem.SGE(0, 8)))
			t.ticks[j] = [3]uint64{before, completionTime(c, cq), raw()}
		}
		t.took = c.T.Now() - started
		tries = append(tries, t)
	}
	if c.Has(kit.ExactTime) { // the page is written again meanwhile
		c.T.Sleep(3 * time.Second)
	}
	newer := clock()
	c.True("the page moves on", newer.NSec >= older.NSec, "from %d to %d", older.NSec, newer.NSec)
	for _, try := range tries {
		for _, t := range try.ticks {
			a, b := older.TSToNS(t[1]), newer.TSToNS(t[1])
			c.True("the same time by either page", a-b <= uint64(slack) || b-a <= uint64(slack), "%d ns by the older page, %d by the newer", a, b)
		}
	}
	for _, page := range []verbs.ClockInfo{older, newer} {
		inOrder(c, page, tries)
		asLong(c, page, tries)
		c.True("its own cycles are its own time", page.TSToNS(page.LastCycles)-page.NSec <= 1, "%d ns, not %d", page.TSToNS(page.LastCycles), page.NSec)
	}
}

// clockTries is how often requests are timed by both clocks at most. A host that is short of
// processors reads its clock late, or a device of software is behind with its own; that does not
// happen each time.
const clockTries = 8

// clockTry is a few requests: of each the clock before, of its completion and after, in ticks, and
// how long all took by the host's.
type clockTry struct {
	ticks [4][3]uint64
	took  time.Duration
}

// inOrder says that no time is before an earlier one.
func inOrder(c *spec.C, page verbs.ClockInfo, tries []clockTry) {
	last := uint64(0)
	for _, try := range tries {
		for _, t := range try.ticks {
			for _, ts := range t {
				ns := page.TSToNS(ts)
				c.True("in order", ns >= last, "%d ns after %d ns", ns, last)
				last = ns
			}
		}
	}
}

// all is how long the requests took by the device's clock, and excess by how much that is more than
// by the host's.
func (t *clockTry) all(page verbs.ClockInfo) time.Duration {
	return time.Duration(page.TSToNS(t.ticks[len(t.ticks)-1][2]) - page.TSToNS(t.ticks[0][0]))
}

func (t *clockTry) excess(page verbs.ClockInfo) time.Duration { return t.all(page) - t.took }

// asLong says that a page gives time its length: of the tries the one counts that takes least too
// long.
func asLong(c *spec.C, page verbs.ClockInfo, tries []clockTry) {
	best := slices.MinFunc(tries, func(a, b clockTry) int { return cmp.Compare(a.excess(page), b.excess(page)) })
	all := best.all(page)
	c.True("as long as it took", all <= best.took+slack && all > 0, "%v by the device's clock, %v by the host's", all, best.took)
}

// slack is what the clocks of host and device differ by at most while a few requests are carried
// out.
const slack = time.Millisecond

// completionTime takes a completion and gives its time in ticks.
func completionTime(c *spec.C, cq verbs.CQ) uint64 {
	q, ok := cq.(verbs.CQEx)
	if !ok {
		c.Errorf("a CQ of the extended call has no start_poll")
	}
	pause := time.Microsecond
	for begin := c.T.Now(); ; c.T.Sleep(pause) {
		err := q.StartPoll(c.T, 0)
		if err == nil {
			break
		}
		waited := c.T.Now() - begin
		if !errors.Is(err, syscall.ENOENT) || waited >= kit.CompletionTimeout {
			kit.Must(c, "start_poll", err)
		}
		if waited >= time.Millisecond {
			pause = time.Millisecond
		}
	}
	status, ts := q.Status(), q.ReadCompletionTS()
	q.EndPoll(c.T)
	c.Equal("status", status, verbs.WCSuccess)
	return ts
}

// sourcePort sets the UDP source port of a connection to another process, and looks at its
// requests.
func sourcePort(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	for _, typ := range []verbs.QPType{verbs.QPTRC, verbs.QPTUC} {
		o := kit.Default()
		o.Type = typ
		a, b := e.PairWith(c, other, o)
		d := directQP(c, a)
		src := e.Buffer(c, 64, kit.AllAccess)
		dst := other.Buffer(c, 64, kit.AllAccess, 0)
		seen := func() (ports []uint16) {
			packets := kit.Tap(c, func() {
				wr := verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{src.SGE(0, 8)}, RemoteAddr: dst.Addr, RKey: dst.RKey}
				c.Status("WRITE", a.PostAndPoll(c, wr), verbs.WCSuccess)
			})
			for _, p := range packets {
				if p.IsFrom(e.LocalAddr) && p.DestQPN() == b.QPN {
					ports = append(ports, p.UDP().SrcPort())
				}
			}
			return ports
		}
		before := seen()
		c.True("requests", len(before) == 1, "%d packets for one WRITE", len(before))
		for _, port := range []uint16{0xc123, 0xffff, 0xc000, 0xe001} {
			c.Errno("modify_qp_udp_sport", d.ModifyUDPSport(c.T, port), 0)
			c.Equal("source ports of the requests", seen(), []uint16{port})
		}
		c.Equal("state", a.QueryState(c), verbs.QPSRTS)
		a.ModifyState(c, verbs.QPSErr)
		c.ErrnoIn("in ERROR", d.ModifyUDPSport(c.T, 0xc124), syscall.EOPNOTSUPP, syscall.EINVAL)
	}
	q := e.CreateQP(c, kit.Default())
	d := directQP(c, q)
	c.ErrnoIn("in RESET", d.ModifyUDPSport(c.T, 0xc124), syscall.EOPNOTSUPP, syscall.EINVAL)
	ud := kit.Default()
	ud.Type = verbs.QPTUD
	c.ErrnoIn("on UD", directQP(c, e.CreateQP(c, ud)).ModifyUDPSport(c.T, 0xc124), syscall.EOPNOTSUPP, syscall.EINVAL)
}

// reservedNumbers holds numbers while more QPs are made than the numbers that were reserved lie
// apart.
func reservedNumbers(c *spec.C) {
	const held, qps = 40, 200
	e := kit.Open(c)
	d := direct(c, e)
	reserved := map[uint32]bool{}
	var order []uint32
	for range held {
		n, err := d.ReserveQPN(c.T)
		c.NoErr("reserved_qpn_alloc", err)
		c.True("a number of 24 bits", n > 1 && n < 1<<24, "%#x", n)
		c.True("a number of its own", !reserved[n], "%#x was given twice", n)
		reserved[n] = true
		order = append(order, n)
	}
	cq := e.CreateCQ(c, 16)
	attr := verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}}
	for i := range qps {
		q, err := e.PD.CreateQP(c.T, attr)
		c.NoErr("create_qp", err)
		c.True("not a reserved number", !reserved[q.QPN()], "QP %d has %#x, which is reserved", i, q.QPN())
		if i%2 == 0 { // half of them stay
			kit.Must(c, "destroy_qp", q.Destroy(c.T))
			continue
		}
		kit.DestroyOnce(c, "destroy_qp", q.Destroy)
	}
	unheld := order[held-1] + 1<<20
	c.Errno("release of a number that was never reserved", d.ReleaseQPN(c.T, unheld), syscall.EINVAL)
	for _, n := range order {
		c.Errno("reserved_qpn_dealloc", d.ReleaseQPN(c.T, n), 0)
		c.Errno("again", d.ReleaseQPN(c.T, n), syscall.EINVAL)
	}
}

func lagPort(c *spec.C) {
	e := kit.Open(c)
	a, err := direct(c, e).QueryDirect(c.T, verbs.DirectNumLagPorts)
	c.NoErr("query_device", err)
	p := e.Pair(c, kit.Default())
	d := directQP(c, p.A)
	for port := uint8(1); port <= a.NumLagPorts; port++ {
		c.Errno("modify_qp_lag_port", d.ModifyLagPort(c.T, port), 0)
		got, active, err := d.QueryLagPort(c.T)
		c.NoErr("query_qp_lag_port", err)
		c.Equal("port", got, port)
		c.True("active port", active >= 1 && active <= a.NumLagPorts, "%d of %d", active, a.NumLagPorts)
	}
	c.ErrnoIn("port 0", d.ModifyLagPort(c.T, 0), syscall.EINVAL)
	c.ErrnoIn("port above the number of ports", d.ModifyLagPort(c.T, a.NumLagPorts+1), syscall.EINVAL)
}
