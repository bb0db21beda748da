package roce_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/gopacket/pcapgo"

	"github.com/rdmasim/rdmasim/roce"
)

const captures = "../fixtures/captures/rxe"

// eachCaptured calls f with every frame of the Soft-RoCE captures.
func eachCaptured(t testing.TB, f func(name string, frame []byte)) (files, frames int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(captures, "*", "*.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := pcapgo.NewReader(file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for {
			frame, info, err := r.ReadPacketData()
			if err == io.EOF {
				break
			}
			if err != nil || info.CaptureLength != info.Length {
				t.Fatalf("%s: frame %d of %d bytes: %v", name, info.CaptureLength, info.Length, err)
			}
			f(name, frame)
			frames++
		}
		file.Close()
	}
	return len(names), frames
}

func TestCapturesDecodeAndEncode(t *testing.T) {
	var pool roce.Pool
	files, frames := eachCaptured(t, func(name string, frame []byte) {
		p, err := roce.Parse(frame)
		if err != nil {
			t.Fatalf("%s: %v: % x", name, err, frame)
		}
		if !p.ICRCOK() {
			t.Errorf("%s: ICRC %08x, computed %08x", name, p.StoredICRC(), p.ComputeICRC())
		}
		if p.Len() != len(frame) || !p.PayloadOK(1024) || p.PadCount() != roce.PadCount(p.PayloadLen()) {
			t.Errorf("%s: %v of %d bytes, payload %d, pad %d", name, p.Op, p.Len(), p.PayloadLen(), p.PadCount())
		}
		f := rebuild(t, &pool, p)
		f.FinishICRC()
		if !bytes.Equal(f.B, frame) {
			t.Errorf("%s: %v encoded again\n% x\nwas\n% x", name, p.Op, f.B, frame)
		}
		f.Release()
	})
	if files != 38 || frames != 307 {
		t.Errorf("%d files with %d frames, want 38 and 307", files, frames)
	}
}

// rebuild encodes a decoded packet from its fields alone.
func rebuild(t *testing.T, pool *roce.Pool, p roce.Packet) *roce.Frame {
	t.Helper()
	bth := p.BTH()
	path := roce.Path{
		Framing: p.Framing, SrcMAC: p.Ethernet().Src(), DstMAC: p.Ethernet().Dst(),
		SrcGID: p.SrcGID(), DstGID: p.DstGID(), TrafficClass: p.TrafficClass(),
		PKey: bth.PKey(), DestQP: bth.DestQP(), MigReq: bth.MigReq(),
	}
	if v := p.VLAN(); v != nil {
		path.Tagged, path.VLANTCI = true, v.TCI()
	}
	if p.Framing == roce.RoCEv2IPv4 {
		path.HopLimit, path.FirstIPID = p.IPv4().TTL(), p.IPv4().ID()
	} else {
		path.HopLimit, path.FlowLabel = p.IPv6().HopLimit(), p.IPv6().FlowLabel()
	}
	if p.Framing != roce.RoCEv1 {
		path.SrcPort = p.UDP().SrcPort()
	}
	tmpl, err := roce.NewTemplate(path)
	if err != nil {
		t.Fatal(err)
	}
	var flags roce.Flags
	if bth.AckReq() {
		flags |= roce.AckReq
	}
	if bth.Solicited() {
		flags |= roce.Solicited
	}
	if bth.BECN() {
		flags |= roce.BECN
	}
	f := tmpl.New(pool, p.Op, bth.PSN(), p.PayloadLen(), flags)
	copyHeaders(f, &p)
	copy(f.Payload(), p.Payload())
	return f
}

// copyHeaders sets each extended header of f through its setters.
func copyHeaders(f *roce.Frame, p *roce.Packet) {
	if p.Has(roce.HasDETH) {
		f.DETH().SetQKey(p.DETH().QKey())
		f.DETH().SetSrcQP(p.DETH().SrcQP())
	}
	if p.Has(roce.HasXRCETH) {
		f.XRCETH().SetSRQN(p.XRCETH().SRQN())
	}
	if p.Has(roce.HasRETH) {
		f.RETH().SetVA(p.RETH().VA())
		f.RETH().SetRKey(p.RETH().RKey())
		f.RETH().SetLength(p.RETH().Length())
	}
	if p.Has(roce.HasAtomicETH) {
		f.AtomicETH().SetVA(p.AtomicETH().VA())
		f.AtomicETH().SetRKey(p.AtomicETH().RKey())
		f.AtomicETH().SetSwapAdd(p.AtomicETH().SwapAdd())
		f.AtomicETH().SetCompare(p.AtomicETH().Compare())
	}
	if p.Has(roce.HasAETH) {
		f.AETH().SetSyndrome(p.AETH().Syndrome())
		f.AETH().SetMSN(p.AETH().MSN())
	}
	if p.Has(roce.HasAtomicAckETH) {
		f.AtomicAckETH().SetOriginal(p.AtomicAckETH().Original())
	}
	if p.Has(roce.HasImmDt) {
		f.ImmDt().SetValue(p.ImmDt().Value())
	}
	if p.Has(roce.HasIETH) {
		f.IETH().SetRKey(p.IETH().RKey())
	}
}

// The source ports of the captures follow the formulas.
func TestCapturedSourcePorts(t *testing.T) {
	if got := roce.UDPSourcePort(roce.FlowLabel(0x12, 0x13)); got != 49494 {
		t.Errorf("port of QPs 0x12 and 0x13 is %d, captured 49494", got)
	}
	if a, b := roce.UDPSourcePortRXE(1), roce.UDPSourcePortRXE(0x1D); a != 55410 || b != 50413 {
		t.Errorf("rxe UD ports %d and %d, captured 55410 and 50413", a, b)
	}
	eachCaptured(t, func(name string, frame []byte) {
		if p, _ := roce.Parse(frame); p.UDP().SrcPort() < 0xC000 {
			t.Errorf("%s: source port %d", name, p.UDP().SrcPort())
		}
	})
}
