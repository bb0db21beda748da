package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// fuzzNet is a host with a network interface on a wire that comes back to it.
func fuzzNet(t *testing.T) *netHost {
	e := sim.New(sim.Options{MaxEvents: fuzzEvents})
	h := newNetHost(t, e, 1)
	h.d.SetWire(newWire(e, h.d, 1, "back"))
	h.open()
	h.recv.post(tPackets)
	return h
}

func (h *netHost) atRest(t *testing.T) {
	settle(t, h.e)
	h.recv.drop(t)
	if n := h.d.frames.Live; n != 0 {
		t.Fatalf("%d frames leaked", n)
	}
}

// drop takes the RQ out of service.
func (q *tRQ) drop(t *testing.T) {
	q.h.cmd(q.modify(q.state(), prm.PacketQueueRST))
	settle(t, q.h.e)
}

// FuzzPacketRing runs arbitrary bytes as the WQEs of an SQ and of an RQ: a control segment that is
// whole is put in front of each block that ops names, with opcode and DS count from there.
func FuzzPacketRing(f *testing.F) {
	f.Add([]byte{0x0a, 4, 0x0e, 8, 0, 1}, make([]byte, 64), uint16(3))
	f.Add([]byte{0x0a, 3, 0x0a, 63, 0x25, 4}, []byte{0, 0, 0, 0xc0, 5, 0xb4, 0, 42}, uint16(20))
	f.Fuzz(func(t *testing.T, ops, body []byte, posted uint16) {
		h := fuzzNet(t)
		ring := make([]byte, 4*tPackets*64)
		for i := range ring {
			if len(body) > 0 {
				ring[i] = body[i%len(body)]
			}
		}
		packet := checked(udp(h, h, 7, patterned(500)))
		h.m.Write(h.send.buf, packet)
		for i := 0; i+1 < len(ops) && i/2 < 4*tPackets; i += 2 {
			w := ring[i/2*64:]
			prm.CtrlSegment(w).Set(prm.WQEOpcode(ops[i]), 0, uint16(i/2), h.send.n, int(ops[i+1]), ops[i+1], 0)
			if ops[i]&1 == 0 {
				eth := prm.EthSegment(w[16:32])
				eth.SetInlineSize(uint16(ops[i+1]) >> 1 & 0x3f)
				eth.SetMSS(uint16(ops[i+1]) << 3)
				prm.DataSegment(w[32:]).Set(uint32(len(packet)), h.key, uint64(h.send.buf))
			}
		}
		h.m.Write(h.send.ring, ring)
		if len(ops) > 0 && ops[0]&0x40 != 0 {
			h.m.Write(h.recv.ring, ring[:tPackets*32])
		}
		last := int(posted-1) % (4 * tPackets) * 64
		bell := bytes.Clone(ring[last : last+8])
		prm.CtrlSegment(append(bell, make([]byte, 8)...)).SetQPN(h.send.n)
		h.d.MMIOWrite(uint64(h.uar)*4096+prm.UARBFOffset, bell)
		h.atRest(t)
	})
}

// FuzzPacketFrame receives arbitrary frames with RoCE on and off, behind tables that look at all of
// them.
func FuzzPacketFrame(f *testing.F) {
	e := sim.New(sim.Options{})
	h := newNetHost(f, e, 1)
	f.Add(checked(udp(h, h, 7, patterned(30))), true)
	f.Add(checked(udp(h, h, roce.UDPPort, patterned(30))), false)
	f.Fuzz(func(t *testing.T, b []byte, on bool) {
		h := fuzzNet(t)
		h.setRoCE(on)
		all := h.newTable(1, 0)
		g := h.newGroup(all, 0, 0, nil)
		h.setEntry(all, g, 0, nil, toTIR(h.tir))
		mod := prm.NewIn(prm.OpModifyFlowTable, 0)
		m := prm.ModifyFlowTableIn(mod)
		m.SetTableID(h.table)
		m.SetFieldSelect(prm.FlowTableMissID)
		m.Context().SetMissAction(prm.FlowMissForward)
		m.Context().SetMissID(all)
		h.cmd(mod)
		for range 2 {
			fr := h.d.frames.Get(len(b))
			copy(fr.B, b)
			h.d.Receive(fr)
			settle(t, h.e)
		}
		h.atRest(t)
	})
}

// FuzzNetdevCommand executes arbitrary mailboxes, one after the other, on a function with a network
// interface, and then sends a packet.
func FuzzNetdevCommand(f *testing.F) {
	for op := range nicCommands {
		f.Add(prm.NewIn(op, 16), prm.NewIn(prm.OpDestroySQ, 0), uint16(0x400))
	}
	e := sim.New(sim.Options{})
	h := newNetHost(f, e, 1)
	h.open()
	f.Add(h.createSQ(h.send, nil), h.createRQ(h.recv, nil), uint16(0x400))
	f.Add(h.send.modify(1, 3), h.recv.modify(1, 3), uint16(0x400))
	f.Add(groupIn(h.table, 8, 9, nil), entryIn(h.table, h.group, 2, nil, toTIR(h.tir)), uint16(0x400))
	f.Fuzz(func(t *testing.T, first, second []byte, outLen uint16) {
		h := fuzzNet(t)
		for _, in := range [][]byte{first, second, first} {
			out := make([]byte, outLen)
			if h.d.Command(in, out) <= 0 {
				t.Fatal("no time")
			}
		}
		h.send.transmit(packetWQE{data: checked(udp(h, h, 7, patterned(100)))})
		settle(t, h.e)
	})
}
