package hca

import (
	"errors"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// The fuzz targets have one condition: the device answers as hardware would, which
// is never a panic and always after a bounded number of events.

const fuzzEvents = 1 << 18

func settle(t *testing.T, e *sim.Engine) {
	if err := e.Run(sim.Never - 1); errors.Is(err, sim.ErrEventBudget) {
		t.Fatal("the device does not come to rest")
	} else if err != nil {
		t.Fatal(err)
	}
}

func fuzzPair(t *testing.T) (*host, *tQP, *tQP) {
	h := newHost(t, sim.New(sim.Options{MaxEvents: fuzzEvents}), testParams(), 1)
	a, b := h.newQP(h.newCQ(5, 64), h.newCQ(5, 64)), h.newQP(h.newCQ(5, 128), h.newCQ(5, 128))
	o := defaults()
	o.timeout, o.retry, o.rnr = 1, 2, 2
	a.connect(b, o)
	b.connect(a, o)
	return h, a, b
}

// FuzzRing runs arbitrary bytes as WQEs, receive WQEs and doorbell record. A
// prefix that makes a valid control segment is put in front of every block, so
// that the fuzzer gets past it.
func FuzzRing(f *testing.F) {
	f.Add([]byte{0, 8, 2, 0, 0, 0, 0, 0}, []byte("x"), uint16(1))
	f.Add([]byte{0x0a, 1, 0, 3, 0x10, 4, 0, 4}, make([]byte, 128), uint16(9))
	f.Fuzz(func(t *testing.T, ops, body []byte, posted uint16) {
		h, a, b := fuzzPair(t)
		r := h.newMR(64<<10, rightsAll)
		ring := make([]byte, tBlocks*64)
		for i := range ring {
			if len(body) > 0 {
				ring[i] = body[i%len(body)]
			}
		}
		for i := 0; i+1 < len(ops) && i/2 < tBlocks; i += 2 {
			w := prm.CtrlSegment(ring[i/2*64:])
			w.Set(prm.WQEOpcode(ops[i]), 0, uint16(i/2), a.n, int(ops[i+1]), ops[i+1], uint32(ops[i]))
			if ops[i]&1 == 0 {
				prm.RaddrSegment(ring[i/2*64+16:]).Set(r.va+uint64(ops[i+1]), r.rkey)
				prm.DataSegment(ring[i/2*64+32:]).Set(uint32(ops[i+1])<<8, r.lkey, r.va)
			}
		}
		h.m.Write(a.sq, ring)
		h.m.Write(b.rq, ring)
		a.pi, b.rqPI = posted, posted
		a.record()
		b.record()
		last := int(posted-1) % tBlocks * 64
		h.d.MMIOWrite(a.reg(), ring[last:last+8])
		h.d.MMIOWrite(a.reg(), ring[:64])
		settle(t, h.e)
	})
}

// FuzzUAR makes arbitrary writes to BAR 0: each step is offset, length, bytes.
func FuzzUAR(f *testing.F) {
	f.Add([]byte{0, 0x40, 8, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, p []byte) {
		h, a, _ := fuzzPair(t)
		for len(p) >= 4 {
			off := uint64(p[0])<<4 | uint64(p[1]&1)<<12 | uint64(p[1]&0x80)<<16
			n := min(int(p[2]), len(p)-3)
			b := append([]byte{}, p[3:3+n]...)
			if len(b) >= 8 && p[1]&2 != 0 {
				prm.CtrlSegment(b).SetQPN(a.n)
			}
			h.d.MMIOWrite(uint64(h.uar)*4096+off, b)
			h.d.MMIORead(off, b)
			p = p[3+n:]
		}
		settle(t, h.e)
	})
}

// FuzzCommand executes arbitrary mailboxes on a running device.
func FuzzCommand(f *testing.F) {
	for op := range commands {
		f.Add(prm.NewIn(op, 16), uint16(0x1200))
	}
	for id, reg := range registers {
		in := prm.NewIn(prm.OpAccessReg, reg.size)
		prm.AccessRegIn(in).SetRegisterID(id)
		prm.PMTUReg(prm.AccessRegIn(in).Data()).SetLocalPort(1)
		f.Add(in, uint16(0x1200))
	}
	f.Fuzz(func(t *testing.T, in []byte, outLen uint16) {
		h, a, _ := fuzzPair(t)
		a.post(wr{op: prm.WQEOpNOP})
		for range 2 {
			out := make([]byte, outLen)
			if h.d.Command(in, out) <= 0 {
				t.Fatal("no time")
			}
		}
		a.post(wr{op: prm.WQEOpSend, inline: []byte("x")})
		settle(t, h.e)
	})
}

// FuzzFrame receives arbitrary frames: raw, and with valid headers around
// arbitrary transport bytes.
func FuzzFrame(f *testing.F) {
	f.Add(uint8(roce.RCSendOnly), uint32(0xfffffe), []byte("abc"), true)
	f.Add(uint8(roce.RCReadRequest), uint32(0xfffffe), make([]byte, 16), true)
	f.Add(uint8(roce.RCAcknowledge), uint32(0xfffffe), []byte{0x1f, 0, 0, 0}, false)
	f.Fuzz(func(t *testing.T, op uint8, psn uint32, body []byte, quiet bool) {
		h, a, b := fuzzPair(t)
		r := h.newMR(8192, rightsAll)
		b.recv(r.sge(0, 8192))
		if !quiet {
			a.post(wr{op: prm.WQEOpRDMARead, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(0, 4096)}},
				wr{op: prm.WQEOpSend, sges: []sge{r.sge(0, 3000)}})
			run(t, h.e, sim.Time(psn%2000)*sim.Nanosecond)
		}
		raw := h.d.frames.Get(len(body))
		copy(raw.B, body)
		h.d.Receive(raw)
		if len(body) < 4096 {
			for i, q := range []*tQP{b, a} {
				d := h.d.qpn([]*tQP{a, b}[i].n) // frames that its peer would send
				fr := d.tmpl.New(&h.d.frames, roce.Opcode(op), psn+uint32(i), 0, roce.AckReq)
				room := h.d.frames.Get(len(fr.B) + len(body)&^3)
				n := copy(room.B, fr.B[:len(fr.B)-roce.ICRCSize-len(fr.Ext())])
				copy(room.B[n:], body)
				fr.Release()
				fixLengths(room.B)
				room.ICRC = roce.ICRCValid
				h.d.Receive(room)
				_ = q
			}
		}
		settle(t, h.e)
		if n := h.d.frames.Live; n != 0 {
			t.Fatalf("%d frames leaked", n)
		}
	})
}

// FuzzUnreliable receives sequences of packets of UC and UD with arbitrary opcodes, PSNs
// and lengths: each step is QP, opcode, PSN, payload length.
func FuzzUnreliable(f *testing.F) {
	f.Add([]byte{0, 0x20, 0xfe, 255, 0, 0x22, 0xff, 9, 1, 0x64, 0, 30, 2, 0x65, 0, 9}, uint8(3))
	f.Add([]byte{0, 0x26, 0xfe, 255, 0, 0x29, 0xff, 9, 0, 0x2a, 0, 0, 0, 0x2b, 1, 8}, uint8(1))
	f.Add([]byte{3, 0x64, 0, 30, 3, 0x65, 1, 255, 3, 0x26, 0, 9}, uint8(2))
	f.Fuzz(func(t *testing.T, steps []byte, recvs uint8) {
		h := newHost(t, sim.New(sim.Options{MaxEvents: fuzzEvents}), testParams(), 1)
		a, b := h.newQPOn(h.newCQ(5, 64), h.newCQ(5, 64), h.uar, uc), h.newQPOn(h.newCQ(5, 64), h.newCQ(5, 128), h.uar, uc)
		o := defaults()
		o.mtu = roce.MTU256
		a.connect(b, o)
		b.connect(a, o)
		u := h.newUD(tQKey)
		u.group(prm.OpAttachToMCG)
		g := h.newGSI()
		r := h.newMR(8192, rightsAll)
		for range recvs % 8 {
			b.recv(r.sge(0, 600))
			u.recv(r.sge(1000, 100))
			g.recv(r.sge(1200, 100))
		}
		run(t, h.e, sim.Microsecond)
		path := roce.Path{Framing: roce.RoCEv2IPv4, SrcMAC: h.id.MAC, DstMAC: h.id.MAC, SrcGID: h.gid, DstGID: h.gid, HopLimit: 1, PKey: roce.DefaultPKey}
		for ; len(steps) >= 4; steps = steps[4:] {
			op := roce.Opcode(steps[1])
			p := path
			p.DestQP = []uint32{b.n, u.n, multicastQPN, gsiQPN}[steps[0]%4]
			if p.DestQP == multicastQPN {
				p.DstGID, p.DstMAC = tGroup, tGroup.MulticastMAC()
			}
			tmpl, err := roce.NewTemplate(p)
			if err != nil {
				t.Fatal(err)
			}
			n := int(steps[3])
			if n == 255 {
				n = 256
			}
			fr := tmpl.New(&h.d.frames, op, 0xffff00|uint32(steps[2]), n, roce.AckReq)
			clear(fr.Payload())
			if info := op.Info(); info.Headers.Has(roce.HasDETH) {
				fr.DETH().SetQKey(tQKey)
				if p.DestQP == gsiQPN {
					fr.DETH().SetQKey(gsiQKey)
				}
			} else if info.Headers.Has(roce.HasRETH) {
				fr.RETH().SetVA(r.va + uint64(steps[0]))
				fr.RETH().SetRKey(r.rkey)
				fr.RETH().SetLength(uint32(n) + uint32(steps[0]>>2))
			}
			foreign := h.d.frames.Get(len(fr.B)) // not of a template: its bytes are looked at
			copy(foreign.B, fr.B)
			foreign.ICRC = roce.ICRCValid
			fr.Release()
			h.d.Receive(foreign)
			run(t, h.e, sim.Time(steps[0])*sim.Nanosecond)
		}
		settle(t, h.e)
		if n := h.d.frames.Live; n != 0 {
			t.Fatalf("%d frames leaked", n)
		}
	})
}

// fixLengths makes the lengths of an IPv4 frame those of its bytes.
func fixLengths(b []byte) {
	const eth, ip = roce.EthernetSize, roce.IPv4Size
	h := roce.IPv4(b[eth : eth+ip])
	old, n := h.TotalLen(), uint16(len(b)-eth)
	sum := uint32(^h.Checksum()) + uint32(^old) + uint32(n)
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	h.SetTotalLen(n)
	h.SetChecksum(^uint16(sum))
	roce.UDP(b[eth+ip : eth+ip+roce.UDPSize]).SetLen(n - ip)
}
