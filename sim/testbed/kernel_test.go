package testbed

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
)

// kernelSetup is sim/kernel over sim/hca, which neither may know of the other.
type kernelSetup struct {
	t    *testing.T
	e    *sim.Engine
	dev  *kernel.Device
	hca  *hca.Device
	link *pcie.Link
	proc *kernel.Process
	u    *kernel.Ucontext
}

func newKernelSetup(t *testing.T, gen kernel.Generation) *kernelSetup {
	t.Helper()
	p, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	p.Kernel.Generation = gen
	return newKernelSetupOf(t, p)
}

func newKernelSetupOf(t *testing.T, p *profile.Profile) *kernelSetup {
	t.Helper()
	var err error
	s := &kernelSetup{t: t, e: sim.New(sim.Options{})}
	m := mem.New(1 << 34)
	link := pcie.NewLink(s.e, m, p.PCIe)
	s.link = link
	s.hca = hca.New(s.e, "mlx5_0", link, p.HCA, hca.Identity{GUID: 0x11, MAC: [6]byte{2, 0, 0, 0, 0, 1}, BoardID: "SIM0001"})
	link.Attach(s.hca, func(v int) { s.dev.Interrupt(v) })
	if s.dev, err = kernel.NewDevice(s.e, "mlx5_0", link, m, p.Kernel); err != nil {
		t.Fatal(err)
	}
	if err := s.dev.AddIP(netip.MustParseAddr("10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	s.proc = &kernel.Process{Name: "test", Space: mem.NewSpace(m), IPCLock: true}
	return s
}

func (s *kernelSetup) run(body func(c kernel.Caller)) {
	s.t.Helper()
	s.e.Go("test", func(p *sim.Proc) { body(kernel.Caller{P: p}) })
	if err := s.e.Run(sim.Second); err != nil {
		s.t.Fatal(err)
	}
}

func (s *kernelSetup) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

func (s *kernelSetup) buf(n uint64) uint64 {
	va, err := s.proc.Space.Map(n, mem.Read|mem.Write)
	s.must(err)
	return uint64(va)
}

func (s *kernelSetup) open(c kernel.Caller) (uarPage uint32) {
	var err error
	s.u, _, err = s.dev.AllocUcontext(c, s.proc, kernel.UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 4, LibCaps: 3, MaxCQEVersion: 1})
	s.must(err)
	if s.dev.Generation() == kernel.Static {
		return 0
	}
	o, err := s.u.AllocUAR(c, kernel.UARTypeBF)
	s.must(err)
	return o.PageID
}

func (s *kernelSetup) cq(c kernel.Caller, ch *kernel.Channel, uar uint32) (kernel.Handle, uint32) {
	r := kernel.CQReq{CQE: 15, CQESize: 64, BufAddr: s.buf(4096), DBAddr: s.buf(4096), Cookie: 7, Channel: ch,
		UARPage: uar, UARValid: s.dev.Generation() == kernel.Dynamic}
	ring := make([]byte, 16*64)
	for i := range 16 {
		ring[64*i+63] = prm.CQEOpOwnInit
	}
	s.must(s.proc.Space.WriteAt(ring, mem.VA(r.BufAddr)))
	h, cqn, err := s.u.CreateCQ(c, r)
	s.must(err)
	return h, cqn
}

func (s *kernelSetup) qpReq(pd, cq kernel.Handle, uar uint32) kernel.QPReq {
	r := kernel.QPReq{Type: verbs.QPTRC, PD: pd, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16},
		BufAddr: s.buf(16*64 + 64*64), DBAddr: s.buf(4096), SQWQECount: 64, RQWQECount: 16, RQWQEShift: 6, UIDX: 5, Cookie: 9}
	if s.dev.Generation() == kernel.Dynamic {
		r.BFRegMode, r.BFRegIndex = kernel.BFRegUARPage, uar
	}
	return r
}

// connect takes a QP to RTS with itself as its peer.
func (s *kernelSetup) connect(c kernel.Caller, h kernel.Handle, qpn uint32, gid verbs.GID) verbs.QPAttr {
	a := verbs.QPAttr{Port: 1, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic,
		PathMTU: verbs.MTU1024, DestQPN: qpn, RQPSN: 0x123456, SQPSN: 0x123456, MaxRdAtomic: 16, MaxDestRdAtomic: 16,
		MinRNRTimer: 12, Timeout: 14, RetryCnt: 6, RNRRetry: 5,
		AH: verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: gid, SGIDIndex: 3, HopLimit: 64, TrafficClass: 8, FlowLabel: 77}}}
	for st, mask := range []verbs.QPAttrMask{
		verbs.QPSInit: verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags,
		verbs.QPSRTR: verbs.QPMaskState | verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN |
			verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer,
		verbs.QPSRTS: verbs.QPMaskState | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry |
			verbs.QPMaskSQPSN | verbs.QPMaskMaxQPRdAtomic,
	} {
		if mask != 0 {
			a.State = verbs.QPState(st)
			s.must(s.u.ModifyQP(c, h, &a, mask))
		}
	}
	return a
}

// The whole life of a QP with itself as its peer, in both generations, and nothing is
// left afterwards.
func TestKernelOverDevice(t *testing.T) {
	for _, gen := range []kernel.Generation{kernel.Dynamic, kernel.Static} {
		s := newKernelSetup(t, gen)
		s.run(func(c kernel.Caller) {
			uar := s.open(c)
			u := s.u
			pd, _, err := u.AllocPD(c)
			s.must(err)
			ch, err := u.CreateChannel(c)
			s.must(err)
			cq, _ := s.cq(c, ch, uar)
			h, resp, err := u.CreateQP(c, s.qpReq(pd, cq, uar))
			s.must(err)
			_, _, _, err = u.RegMR(c, pd, s.buf(1<<20), 1<<20, 0, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			s.must(err)
			gid, err := u.QueryGIDEntry(c, 1, 3)
			s.must(err)
			a := s.connect(c, h, resp.QPN, gid.GID)
			q, err := u.QueryQP(c, h, 0)
			s.must(err)
			want := a
			want.CurState, want.Cap, want.AH.SL = verbs.QPSRTS, q.Cap, 0
			want.AltAH, want.PathMigState = q.AltAH, q.PathMigState
			if q != want {
				t.Errorf("generation %d: query\n%+v, want\n%+v", gen, q, want)
			}
			// RTR2RTS on a QP in RTS: the device, not the kernel, knows better.
			a.CurState = verbs.QPSRTR
			err = u.ModifyQP(c, h, &a, verbs.QPMaskState|verbs.QPMaskCurState|verbs.QPMaskTimeout|verbs.QPMaskRetryCnt|verbs.QPMaskRNRRetry|
				verbs.QPMaskSQPSN|verbs.QPMaskMaxQPRdAtomic)
			if verbs.ErrnoOf(err) != syscall.EINVAL {
				t.Errorf("wrong current state: %v", err)
			}
			port, err := u.QueryPort(c, 1)
			s.must(err)
			if port.State != verbs.PortActive || port.ActiveMTU != verbs.MTU4096 {
				t.Errorf("port %+v", port)
			}
			dev, err := u.QueryDevice(c)
			s.must(err)
			if dev.VendorID != 0x2c9 || dev.FWVer != "16.35.2000" || dev.NodeGUID != 0x11 {
				t.Errorf("device %+v", dev)
			}
			u.Close(c)
		})
		if r := s.dev.Resources(); r != (kernel.Resources{}) || s.proc.Space.Pinned != 0 || s.dev.Counters().LeakedUARs != 0 {
			t.Errorf("generation %d: left over: %+v, %d pages, %+v", gen, r, s.proc.Space.Pinned, s.dev.Counters())
		}
	}
}

// The device refuses a path MTU above what the host set for the port.
func TestPathMTUAbovePort(t *testing.T) {
	for net, fits := range map[int]verbs.MTU{1500: verbs.MTU1024, 2200: verbs.MTU2048, 4200: verbs.MTU4096} {
		p, err := profile.Load("connectx-5")
		if err != nil {
			t.Fatal(err)
		}
		p.Kernel.NetMTU = net
		s := newKernelSetupOf(t, p)
		s.run(func(c kernel.Caller) {
			uar := s.open(c)
			pd, _, err := s.u.AllocPD(c)
			s.must(err)
			cq, _ := s.cq(c, nil, uar)
			gid, err := s.u.QueryGIDEntry(c, 1, 3)
			s.must(err)
			port, err := s.u.QueryPort(c, 1)
			s.must(err)
			if port.ActiveMTU != fits {
				t.Errorf("interface MTU %d: active MTU %d", net, port.ActiveMTU)
			}
			for mtu := verbs.MTU256; mtu <= verbs.MTU4096; mtu++ {
				h, resp, err := s.u.CreateQP(c, s.qpReq(pd, cq, uar))
				s.must(err)
				a := verbs.QPAttr{State: verbs.QPSInit, Port: 1}
				s.must(s.u.ModifyQP(c, h, &a, verbs.QPMaskState|verbs.QPMaskPKeyIndex|verbs.QPMaskPort|verbs.QPMaskAccessFlags))
				a = verbs.QPAttr{State: verbs.QPSRTR, PathMTU: mtu, DestQPN: resp.QPN, MaxDestRdAtomic: 1,
					AH: verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: gid.GID, SGIDIndex: 3}}}
				err = s.u.ModifyQP(c, h, &a, verbs.QPMaskState|verbs.QPMaskAV|verbs.QPMaskPathMTU|verbs.QPMaskDestQPN|verbs.QPMaskRQPSN|
					verbs.QPMaskMaxDestRdAtomic|verbs.QPMaskMinRNRTimer)
				want := syscall.Errno(0)
				if mtu > fits {
					want = syscall.EINVAL
				}
				if verbs.ErrnoOf(err) != want {
					t.Errorf("interface MTU %d, path MTU %d: %v", net, mtu.Bytes(), err)
				}
			}
		})
	}
}

// A signalled write, by raw bytes, on an armed CQ wakes the thread on its channel; a
// write with a wrong key moves the QP to ERR and tells the async file.
func TestEventsFromDevice(t *testing.T) {
	s := newKernelSetup(t, kernel.Dynamic)
	s.run(func(c kernel.Caller) {
		uar := s.open(c)
		u := s.u
		pd, _, err := u.AllocPD(c)
		s.must(err)
		ch, err := u.CreateChannel(c)
		s.must(err)
		cq, cqn := s.cq(c, ch, uar)
		req := s.qpReq(pd, cq, uar)
		h, resp, err := u.CreateQP(c, req)
		s.must(err)
		gid, err := u.QueryGIDEntry(c, 1, 3)
		s.must(err)
		s.connect(c, h, resp.QPN, gid.GID)
		data := s.buf(4096)
		_, lkey, rkey, err := u.RegMR(c, pd, data, 4096, data, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		s.must(err)
		s.must(s.proc.Space.WriteAt([]byte("hello"), mem.VA(data)))

		post := func(n uint16, key uint32) {
			wqe := make([]byte, prm.WQEBBSize)
			prm.CtrlSegment(wqe).Set(prm.WQEOpRDMAWrite, 0, n, resp.QPN, 3, 0x08, 0)
			prm.RaddrSegment(wqe[16:]).Set(data+100, key)
			prm.DataSegment(wqe[32:]).Set(5, lkey, data)
			s.must(s.proc.Space.WriteAt(wqe, mem.VA(req.BufAddr+16*64+uint64(n)*prm.WQEBBSize)))
			rec := make([]byte, prm.DBRecSize)
			prm.QPDBRec(rec).SetSend(n + 1)
			s.must(s.proc.Space.WriteAt(rec, mem.VA(req.DBAddr)))
			s.link.PostMMIO(c.P, uint64(uar)*prm.UARPageSize+prm.UARBFOffset, wqe[:8])
		}
		arm := make([]byte, prm.CQArmDoorbellSize)
		prm.CQArmDoorbell(arm).Set(prm.MakeArmWord(0, false, 0), cqn)
		s.link.PostMMIO(c.P, uint64(uar)*prm.UARPageSize+prm.UARCQArm, arm)

		post(0, rkey)
		cookie, err := ch.Wait(c, c.P.Now()+sim.Millisecond)
		if cookie != 7 || err != nil {
			t.Errorf("cookie %d, %v", cookie, err)
		}
		got := make([]byte, 5)
		s.must(s.proc.Space.ReadAt(got, mem.VA(data+100)))
		if string(got) != "hello" {
			t.Errorf("written %q", got)
		}

		post(1, rkey+0x100)
		ev, err := u.WaitAsync(c, c.P.Now()+sim.Millisecond)
		if ev.Cookie != 9 || ev.Type != verbs.EventQPAccessErr || err != nil {
			t.Errorf("event %+v, %v", ev, err)
		}
		c.P.Sleep(sim.Millisecond)
		if q, err := u.QueryQP(c, h, 0); err != nil || q.State != verbs.QPSErr {
			t.Errorf("after a remote access error: %v, %v", q.State, err)
		}
		u.Close(c)
	})
}
