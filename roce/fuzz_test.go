package roce_test

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
)

func FuzzParse(f *testing.F) {
	eachCaptured(f, func(_ string, frame []byte) { f.Add(frame) })
	var pool roce.Pool
	for _, global := range []bool{false, true} {
		tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.InfiniBand, SLID: 1, DLID: 2, PKey: roce.DefaultPKey, Global: global})
		if err != nil {
			f.Fatal(err)
		}
		for _, op := range []roce.Opcode{roce.RCSendOnly, roce.RCWriteOnly, roce.RCAcknowledge, roce.UDSendOnly} {
			fr := tmpl.New(&pool, op, 1, 5, 0)
			clear(fr.Payload())
			fr.FinishICRC()
			f.Add(append(bytes.Clone(fr.B), 0, 0))
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		was := bytes.Clone(frame)
		for _, parse := range []func([]byte) (roce.Packet, error){roce.Parse, roce.ParseInfiniBand} {
			p, err := parse(frame)
			if err == nil {
				read(t, &p)
			} else if _, ok := err.(roce.DropReason); !ok {
				t.Fatalf("%T is not a DropReason", err)
			}
		}
		if !bytes.Equal(was, frame) {
			t.Fatal("Parse changed the frame")
		}
	})
}

// read touches everything that an accepted packet offers.
func read(t *testing.T, p *roce.Packet) {
	if n := len(p.Payload()); n != p.PayloadLen() || p.PadCount() > 3 {
		t.Fatalf("payload %d, %d, pad %d", n, p.PayloadLen(), p.PadCount())
	}
	for h, get := range map[roce.Headers]func() []byte{
		roce.HasRDETH: func() []byte { return p.RDETH() }, roce.HasDETH: func() []byte { return p.DETH() },
		roce.HasXRCETH: func() []byte { return p.XRCETH() }, roce.HasDCETH: func() []byte { return p.DCETH() }, roce.HasFETH: func() []byte { return p.FETH() },
		roce.HasRETH: func() []byte { return p.RETH() }, roce.HasAtomicETH: func() []byte { return p.AtomicETH() },
		roce.HasAETH: func() []byte { return p.AETH() }, roce.HasAtomicAckETH: func() []byte { return p.AtomicAckETH() },
		roce.HasImmDt: func() []byte { return p.ImmDt() }, roce.HasIETH: func() []byte { return p.IETH() },
	} {
		if p.Has(h) && len(get()) != h.Size() {
			t.Fatalf("header %#x has %d bytes", h, len(get()))
		}
	}
	p.ICRCOK()
	p.PutGRH(make([]byte, 40))
	_, _, _ = p.SrcGID(), p.DstGID(), p.TrafficClass()
	p.VLAN()
	p.VCRC()
	if p.Len() > len(p.B) || len(p.Ext()) != int(p.Info().HeaderLen) {
		t.Fatal("lengths")
	}
}

func BenchmarkParse(b *testing.B) {
	frame := append(append(fromHex(b, "020000000002 020000000001 0800"), fromHex(b, wireAck)...), 0, 0, 0, 0)
	for b.Loop() {
		if _, err := roce.Parse(frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTemplate(b *testing.B) {
	var pool roce.Pool
	tmpl, _ := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GIDFromIPv4([4]byte{1}), DstGID: roce.GIDFromIPv4([4]byte{2})})
	b.ReportAllocs()
	for b.Loop() {
		tmpl.New(&pool, roce.RCWriteOnly, 1, 64, roce.AckReq).Release()
	}
}

func BenchmarkICRC(b *testing.B) {
	ip := append(fromHex(b, wireAck), make([]byte, 1024)...)
	for b.Loop() {
		roce.ICRC(ip)
	}
}
