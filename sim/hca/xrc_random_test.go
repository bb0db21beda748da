package hca

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// TestXRCLossyWire is TestLossyWire for an XRC target, whose messages name three SRQs in any order:
// each is carried out once, in order, for the SRQ that it names, by the keys of that SRQ's PD.
func TestXRCLossyWire(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := defaults()
		o.timeout = 5
		o.mtu = roce.MTU(rapid.IntRange(1, 5).Draw(rt, "mtu"))
		p := testParams()
		p.AckDelay = rapid.SampledFrom([]sim.Time{0, 20 * sim.Nanosecond, sim.Microsecond}).Draw(rt, "ackdelay")
		p.SelectiveRepeat, p.RepeatScheme = rapid.Bool().Draw(rt, "selective"), RepeatScheme(rapid.IntRange(0, 2).Draw(rt, "scheme"))
		p.Credits = rapid.Bool().Draw(rt, "credits")
		p.WQECache = rapid.SampledFrom([]int{0, 2}).Draw(rt, "wqecache")
		if rapid.Bool().Draw(rt, "tight") {
			p.PUs, p.Quantum, p.WQEBuffer, p.FetchLimit, p.TxBuffer, p.RQPrefetch = 1, 1, 32, 16, 4096, 1
		}
		x := newXRCBench(t, p, o)
		seed := rapid.Uint64().Draw(rt, "seed")
		bad := false
		for i, w := range []*xrcWire{x.ab, x.ba} {
			b := w.Wire.(*badWire)
			b.rand = sim.NewRand(seed, fmt.Sprint(i))
			b.loss = rapid.SampledFrom([]int{0, 50, 15}).Draw(rt, "loss")
			b.dup = rapid.SampledFrom([]int{0, 20}).Draw(rt, "dup")
			b.delay = rapid.SampledFrom([]int{0, 10}).Draw(rt, "delay")
			bad = bad || b.delay > 0
		}
		r := newXRCRandom(x)
		n := rapid.IntRange(1, 14).Draw(rt, "n")
		for k := range n {
			i, push := rapid.IntRange(0, 2).Draw(rt, "SRQ"), rapid.Bool().Draw(rt, "push")
			op := rapid.SampledFrom([]prm.WQEOpcode{prm.WQEOpSend, prm.WQEOpSendImm, prm.WQEOpRDMAWrite, prm.WQEOpRDMAWriteImm, prm.WQEOpRDMARead, prm.WQEOpAtomicFA}).Draw(rt, "op")
			w := r.next(k, i, op, rapid.IntRange(1, xrcSlot).Draw(rt, "size"))
			w.fence = rapid.Bool().Draw(rt, "fence")
			if push {
				x.ini.push(w)
			} else {
				x.ini.post(w)
			}
			if rapid.Bool().Draw(rt, "late receive") {
				x.run(sim.Time(rapid.IntRange(0, 3000).Draw(rt, "gap")) * sim.Nanosecond)
			}
			x.srqs[i].post(uint16(r.took[i])) // after the message: it may find none
		}
		x.run(60 * ms)
		for k := range n {
			e := x.ini.scq.poll()
			if e != nil && e.Opcode() == prm.CQEReqErr && e.Syndrome() == prm.SyndromeTransportRetryExc && (bad || p.SelectiveRepeat) {
				return // each packet that another overtakes costs a retry
			}
			if e == nil || e.Opcode() != prm.CQEReq {
				rt.Fatalf("WQE %d: CQE % x", k, []byte(e))
			}
		}
		r.check(rt)
		x.quiet()
		for srqn := range x.ab.srqns {
			if srqn != x.srqs[0].n && srqn != x.srqs[1].n && srqn != x.srqs[2].n {
				rt.Fatalf("a request names SRQ %#x", srqn)
			}
		}
	})
}

// xrcRandom is what a run of messages should do.
type xrcRandom struct {
	x    *xrcBench
	mem  [3]*mr    // for RDMA
	want [3][]byte // of mem
	mine []byte    // of x.local
	recv []func(rt *rapid.T)
	took [3]int // receives of each SRQ
}

func newXRCRandom(x *xrcBench) *xrcRandom {
	r := &xrcRandom{x: x}
	for i := range r.mem {
		r.mem[i] = x.hb.newMRIn(x.pds[i], 16*xrcSlot, rightsAll)
		r.mem[i].fill(func(k int) byte { return ^pattern(k * (i + 1)) })
		r.want[i] = r.mem[i].bytes(0, 16*xrcSlot)
	}
	r.mine = x.local.bytes(0, 16*xrcSlot)
	return r
}

// next is message k, for SRQ i.
func (r *xrcRandom) next(k, i int, op prm.WQEOpcode, n int) wr {
	x, at := r.x, k*xrcSlot
	w := wr{op: op, srqn: x.srqs[i].n, rkey: r.mem[i].rkey, raddr: r.mem[i].va + uint64(at), imm: uint32(k), sges: []sge{x.local.sge(at, n)}}
	switch op {
	case prm.WQEOpSend, prm.WQEOpSendImm:
		r.expect(i, prm.CQERespSend, k, r.mine[at:at+n])
	case prm.WQEOpRDMAWrite, prm.WQEOpRDMAWriteImm:
		copy(r.want[i][at:], r.mine[at:at+n])
		if op == prm.WQEOpRDMAWriteImm {
			r.expect(i, prm.CQERespWrImm, k, nil)
		}
	case prm.WQEOpRDMARead:
		copy(r.mine[at:at+n], r.want[i][at:])
	case prm.WQEOpAtomicFA:
		w.sges, w.swap = []sge{x.local.sge(at, 8)}, uint64(k)+7
		old := host64(r.want[i][at:])
		putHost64(r.mine[at:], old)
		putHost64(r.want[i][at:], old+w.swap)
	}
	return w
}

// expect is that the next receive of SRQ i is taken, by message k.
func (r *xrcRandom) expect(i int, op prm.CQEOpcode, k int, data []byte) {
	x, at := r.x, r.took[i]
	r.took[i]++
	data = append([]byte(nil), data...)
	r.recv = append(r.recv, func(rt *rapid.T) {
		e := x.cqs[i].poll()
		if e == nil || int(e.WQECounter()) != at || e.SRQNUIdx() != 0x100+uint32(i) || e.QPN() != x.tgt.n {
			rt.Fatalf("message %d for WQE %d of SRQ %d: CQE % x", k, at, i, []byte(e))
		}
		if !bytes.Equal(x.mem[i].bytes(at*xrcSlot, len(data)), data) {
			rt.Fatalf("message %d for WQE %d of SRQ %d: wrong bytes", k, at, i)
		}
	})
}

// check compares memory and receives; completions of one CQ are in the order of the messages.
func (r *xrcRandom) check(rt *rapid.T) {
	for _, f := range r.recv {
		f(rt)
	}
	if !bytes.Equal(r.x.local.bytes(0, 16*xrcSlot), r.mine) {
		rt.Fatal("memory of the initiator differs")
	}
	for i, m := range r.mem {
		if !bytes.Equal(m.bytes(0, 16*xrcSlot), r.want[i]) {
			rt.Fatalf("memory of PD %d differs", i)
		}
	}
}

// TestXRCPaging has each kind of access meet absent pages, in both schemes: of the initiator's own
// memory, and of memory in the PD of the SRQ that is named. The driver finds the work request by
// the queue's number.
func TestXRCPaging(t *testing.T) {
	for _, op := range []prm.WQEOpcode{prm.WQEOpSend, prm.WQEOpRDMAWrite, prm.WQEOpRDMARead, prm.WQEOpAtomicFA} {
		for _, memory := range []bool{false, true} {
			for _, where := range []string{"initiator", "target", "nobody"} {
				t.Run(fmt.Sprintf("%#x, memory scheme %v, %s", op, memory, where), func(t *testing.T) { pageXRC(t, op, memory, where) })
			}
		}
	}
}

func pageXRC(t *testing.T, op prm.WQEOpcode, memory bool, absent string) {
	p := pagedParams()
	p.ODP.XRC = p.ODP.RC
	x := newXRCBench(t, p, defaults())
	own := x.hb.pd
	x.hb.pd = x.pds[1]
	pa, pb := newPager(t, x.ha.host, 2, x.ini), newPager(t, x.hb.host, 2)
	x.hb.pd = own
	pb.srqs = map[uint32]*tSRQ{x.srqs[1].n: x.srqs[1]}
	for _, pg := range []*pager{pa, pb} {
		pg.chooseScheme(memory)
		pg.fill(pattern)
		pg.t = t
	}
	if absent != "initiator" {
		pa.in(0)
		pa.in(1)
	}
	if absent != "target" {
		pb.in(0)
		pb.in(1)
	}
	n := 3000
	if op == prm.WQEOpAtomicFA {
		n = 8
	}
	// A receive before it, of another SRQ, and one behind.
	x.srqs[0].post(2)
	x.srqs[1].put(0, 1, pb.region, 2500, 3000)
	x.srqs[1].post(1)
	x.ini.post(x.send(0, 64), wr{op: op, srqn: x.srqs[1].n, rkey: pb.region.rkey, raddr: pb.region.va + 2504, sges: []sge{pa.region.sge(2000, n)}, swap: 1}, x.send(0, 64))
	for range 60 {
		x.run(20 * sim.Microsecond)
		pa.serve(never)
		pb.serve(never)
	}
	for range 3 {
		x.ini.scq.expect(prm.CQEReq)
	}
	x.received(0, 0, prm.CQERespSend)
	x.received(0, 1, prm.CQERespSend)
	if op == prm.WQEOpSend {
		x.received(1, 0, prm.CQERespSend)
	}
	data := make([]byte, 2*4096)
	for i := range data {
		data[i] = pattern(i)
	}
	src, dst := pa.bytes(2000, n), pb.bytes(2504, n)
	switch op {
	case prm.WQEOpSend:
		dst = pb.bytes(2500, n)
	case prm.WQEOpAtomicFA:
		dst = data[2504:2512]
		if v := host64(pb.bytes(2504, 8)); v != host64(dst)+1 {
			t.Errorf("the word is %#x", v)
		}
	}
	if !bytes.Equal(src, dst) || op != prm.WQEOpRDMARead && op != prm.WQEOpAtomicFA && !bytes.Equal(src, data[2000:2000+n]) {
		t.Error("wrong bytes")
	}
	if fa, fb := pa.faults > 0, pb.faults > 0; fa != (absent == "initiator") || fb != (absent == "target") {
		t.Errorf("%d and %d faults", pa.faults, pb.faults)
	}
	if out := x.ha.d.faults.Out() + x.hb.d.faults.Out(); out != 0 {
		t.Errorf("%d faults are out", out)
	}
	x.quiet()
}

// TestXRCUnpaged: an operation that the device does not page on XRC is a bad access, though it
// pages it on RC.
func TestXRCUnpaged(t *testing.T) {
	p := pagedParams()
	p.ODP.XRC = prm.ODPWrite
	x := newXRCBench(t, p, defaults())
	own := x.hb.pd
	x.hb.pd = x.pds[1]
	pb := newPager(t, x.hb.host, 2)
	x.hb.pd = own
	x.srqs[1].put(0, 1, pb.region, 0, 64)
	x.srqs[1].post(1)
	x.ini.post(x.send(1, 8))
	x.run(100 * sim.Microsecond)
	x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteOp)
	x.cqs[1].expectError(prm.CQERespErr, prm.SyndromeLocalProt)
	c := prm.ODPCap(x.hb.d.fw.caps[prm.CapODP].cur[:])
	if got := c.Transport().XRC(); got != prm.ODPWrite || c.Transport().RC() != p.ODP.RC {
		t.Errorf("the page says %#x", got)
	}
}

// TestXRCReceiveFault: the fault of a receive is the SRQ's, by its number. Where such a WQE comes
// back by a completion, it comes to the SRQ's CQ, and the message takes the next one; an SRQ that
// goes meanwhile, or pages that cannot come, end it.
func TestXRCReceiveFault(t *testing.T) {
	for _, form := range []odp.SRQFault{odp.SRQFaultEvent, odp.SRQFaultCompletion} {
		for _, end := range []string{"served", "destroyed", "refused"} {
			t.Run(fmt.Sprintf("%s, %s", []string{"event", "completion"}[form], end), func(t *testing.T) {
				p := pagedParams()
				p.ODP.XRC, p.ODP.SRQFault = p.ODP.RC, form
				x := newXRCBench(t, p, defaults())
				own := x.hb.pd
				x.hb.pd = x.pds[1]
				pb := newPager(t, x.hb.host, 2)
				x.hb.pd = own
				pb.srqs = map[uint32]*tSRQ{x.srqs[1].n: x.srqs[1]}
				x.srqs[1].put(0, 1, pb.region, 100, 64)
				x.srqs[1].put(1, 2, pb.region, 4000, 64)
				x.srqs[1].post(2)
				x.ini.post(x.send(1, 8))
				x.run(30 * sim.Microsecond)
				if e := pb.nextEQE(pb.eq); e == nil || prm.PageFaultWQE(e.Data()).FaultType() != prm.FaultRMP ||
					prm.PageFaultWQE(e.Data()).WQNumber() != x.srqs[1].n || prm.PageFaultWQE(e.Data()).WQEIndex() != 0 {
					t.Fatalf("event % x", []byte(e))
				}
				pb.eq.ci--
				index := 0
				if form == odp.SRQFaultCompletion {
					index = 1
					if e := x.cqs[1].expect(prm.CQERespErr); e.VendorErrSynd() != prm.VendorSyndODPFault || e.WQECounter() != 0 || e.SRQNUIdx() != 0x101 {
						t.Errorf("CQE % x", []byte(e))
					}
				}
				switch end {
				case "destroyed":
					x.hb.cmd(number(prm.OpDestroyXRCSRQ, x.srqs[1].n))
				case "refused":
					pb.refuse = func(int) bool { return true }
				}
				for range 60 {
					pb.serve(never)
					x.run(20 * sim.Microsecond)
				}
				switch end {
				case "served":
					x.ini.scq.expect(prm.CQEReq)
					x.received(1, index, prm.CQERespSend)
					if got := pb.bytes([]int{100, 4000}[index], 8); !bytes.Equal(got, x.local.bytes(0, 8)) {
						t.Error("wrong bytes")
					}
				case "destroyed":
					x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteAccess)
					x.event(prm.EventWQAccessError, x.tgt.n)
					x.event(prm.EventSRQLastWQE, x.tgt.n)
				default:
					x.ini.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteOp)
					x.cqs[1].expectError(prm.CQERespErr, prm.SyndromeLocalProt)
					x.event(prm.EventSRQLastWQE, x.tgt.n)
				}
				x.quiet()
			})
		}
	}
}

// FuzzXRC receives sequences of packets of XRC with arbitrary opcodes, SRQ numbers, PSNs and
// lengths at a target, while SRQs go and come, the target is reset, and its peer sends too: each
// step is what, opcode, PSN, payload length.
func FuzzXRC(f *testing.F) {
	f.Add([]byte{0, 0xa0, 0xfe, 255, 0, 0xa2, 0xff, 9, 1, 0xa4, 0, 30}, uint8(3))
	f.Add([]byte{0, 0xa0, 0xfe, 255, 8, 0, 0, 0, 0, 0xa2, 0xff, 9}, uint8(3))
	f.Add([]byte{0, 0xac, 0xfe, 0, 2, 0xb4, 0xff, 0, 1, 0xaa, 0, 9, 0, 0xac, 0xfe, 0}, uint8(1))
	f.Add([]byte{1, 0xa4, 0xfe, 8, 8, 1, 0, 0, 10, 0, 0, 0, 9, 1, 0, 0, 3, 0xa4, 0xfe, 1}, uint8(0))
	f.Fuzz(func(t *testing.T, steps []byte, recvs uint8) {
		o := defaults()
		o.mtu, o.timeout, o.retry, o.rnr = roce.MTU256, 1, 2, 2
		x := newXRCBench(t, testParams(), o)
		for _, s := range x.srqs {
			s.post(uint16(recvs % 16))
		}
		for ; len(steps) >= 4; steps = steps[4:] {
			if x.step(steps[0]%16, steps[1], steps[2], int(steps[3]), o); x.e.Now() > 200*ms {
				break
			}
			x.run(sim.Time(steps[0]) * 10 * sim.Nanosecond)
		}
		x.hb.cmd(number(prm.Op2ErrQP, x.tgt.n))
		x.ha.cmd(number(prm.Op2ErrQP, x.ini.n))
		settle(t, x.e)
		if n := x.ha.d.frames.Live + x.hb.d.frames.Live; n != 0 {
			t.Fatalf("%d frames leaked", n)
		}
	})
}

// step is a step of FuzzXRC.
func (x *xrcBench) step(what, op, psn uint8, n int, o opts) {
	i := int(op) % 3
	switch what {
	case 8: // an SRQ goes, and another may get its number
		x.hb.try(number(prm.OpDestroyXRCSRQ, x.srqs[i].n))
		x.srqs[i] = x.hb.newXRCSRQ(x.domain, x.pds[i], x.cqs[i], 0x100+uint32(i))
		x.srqs[i].fillAll(x.mem[i], xrcSlot)
		x.srqs[i].post(uint16(psn % 16))
	case 9:
		x.ini.post(wr{op: []prm.WQEOpcode{prm.WQEOpSend, prm.WQEOpRDMAWriteImm, prm.WQEOpRDMARead, prm.WQEOpAtomicFA}[psn%4], srqn: x.srqs[i].n,
			rkey: x.mem[i].rkey, raddr: x.mem[i].va, sges: []sge{x.local.sge(0, max(8, n*8))}})
	case 10:
		x.hb.cmd(number(prm.Op2ErrQP, x.tgt.n))
	case 11:
		x.hb.cmd(number(prm.Op2RstQP, x.tgt.n))
		x.tgt.connect(x.ini, o)
	case 12:
		x.srqs[i].post(uint16(psn))
	default:
		srqn := append([]uint32{x.far.n, x.hb.spare.n, 0, 0xffffff}, x.srqs[0].n, x.srqs[1].n, x.srqs[2].n)[what%7]
		x.inject(roce.XRC.Opcode(op), srqn, uint32(int32(int8(psn)))&roce.PSNMask, n) // the first is 0xfffffe
	}
}

// inject has the target receive a packet that its peer might send.
func (x *xrcBench) inject(op roce.Opcode, srqn, psn uint32, n int) {
	d := x.hb.d
	if n == 255 {
		n = 256
	}
	f := x.ha.d.qpn(x.ini.n).tmpl.New(&d.frames, op, psn, n, roce.AckReq)
	clear(f.Payload())
	info := op.Info()
	if info.Headers.Has(roce.HasXRCETH) {
		f.XRCETH().SetSRQN(srqn)
	}
	i := int(srqn) % 3
	if info.Headers.Has(roce.HasRETH) {
		f.RETH().SetVA(x.mem[i].va)
		f.RETH().SetRKey(x.mem[i].rkey)
		f.RETH().SetLength(uint32(max(n, 8)))
	}
	if info.Headers.Has(roce.HasAtomicETH) {
		f.AtomicETH().SetVA(x.mem[i].va)
		f.AtomicETH().SetRKey(x.mem[i].rkey)
	}
	foreign := d.frames.Get(len(f.B)) // not of a template: its bytes are looked at
	copy(foreign.B, f.B)
	foreign.ICRC = roce.ICRCValid
	f.Release()
	d.Receive(foreign)
}
