package oracle_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
)

// edit changes one frame of a capture and makes its ICRC right again.
func edit(t *testing.T, c *oracle.Capture, frame int, f func(p *roce.Packet)) {
	t.Helper()
	data := slices.Clone(c.Frames[frame-1].Data)
	p, err := roce.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	f(&p)
	if p, err = roce.Parse(data); err == nil {
		roce.PutICRC(data[p.Len()-roce.ICRCSize:], p.ComputeICRC())
	}
	c.Frames[frame-1].Data = data
}

func setPSN(d int32) func(p *roce.Packet) {
	return func(p *roce.Packet) { p.BTH().SetPSN(roce.AddPSN(p.BTH().PSN(), d)) }
}

func setOp(op roce.Opcode) func(p *roce.Packet) {
	return func(p *roce.Packet) { p.BTH().SetOpcode(op) }
}

func setMSN(n uint32) func(p *roce.Packet) {
	return func(p *roce.Packet) { p.AETH().SetMSN(n) }
}

func setSyndrome(s roce.Syndrome) func(p *roce.Packet) {
	return func(p *roce.Packet) { p.AETH().SetSyndrome(s) }
}

// chop takes n bytes of payload off a packet.
func chop(c *oracle.Capture, frame, n int) {
	f := &c.Frames[frame-1]
	p, _ := roce.Parse(slices.Clone(f.Data))
	data := slices.Delete(slices.Clone(p.B), p.Len()-roce.ICRCSize-n, p.Len()-roce.ICRCSize)
	ip := roce.IPv4(data[roce.EthernetSize : roce.EthernetSize+roce.IPv4Size])
	ip.SetTotalLen(ip.TotalLen() - uint16(n))
	ip.SetChecksum(ip.ComputeChecksum())
	u := roce.UDP(data[roce.EthernetSize+roce.IPv4Size:])
	u.SetLen(u.Len() - uint16(n))
	q, err := roce.Parse(data)
	if err != nil {
		panic(err)
	}
	roce.PutICRC(data[q.Len()-roce.ICRCSize:], q.ComputeICRC())
	f.Data, f.Length = data, len(data)
}

// remove takes a frame out of a capture; insert sends a copy of one again, later.
func remove(c *oracle.Capture, frame int) {
	c.Frames = slices.Delete(c.Frames, frame-1, frame)
}

func insert(c *oracle.Capture, frame, after int, delay int64) {
	f := c.Frames[frame-1]
	f.Time = c.Frames[after-1].Time + delay
	c.Frames = slices.Insert(c.Frames, after, f)
}

func swap(c *oracle.Capture, a, b int) {
	f := c.Frames
	f[a-1].Data, f[b-1].Data = f[b-1].Data, f[a-1].Data
	f[a-1].Length, f[b-1].Length = f[b-1].Length, f[a-1].Length
}

type mutation struct {
	name, capture, rule string
	kind                oracle.Kind
	change              func(t *testing.T, c *oracle.Capture)
	options             func(o *oracle.Options)
}

func one(frame int, f func(p *roce.Packet)) func(t *testing.T, c *oracle.Capture) {
	return func(t *testing.T, c *oracle.Capture) { edit(t, c, frame, f) }
}

const (
	ms       = 1_000_000
	timerEnd = 70 * ms
)

// Frames: send_multi 1-4 First, Middle, Middle, Last, 5 ACK. write 1-3, 4 ACK or the
// next WRITE. read 1 request, 2-4 responses. atomic request, ACK, three times. rnr
// SEND, RNR NAK, ... drop_middle 7.2: 1-4, 5 NAK, 6-8 again, 9 ACK.
var mutations = []mutation{
	{"source port out of range", "send_only", "OR-003", oracle.Warning, one(1, func(p *roce.Packet) { p.UDP().SetSrcPort(1000) }), nil},
	{"source port changes", "send_multi", "OR-004", oracle.Warning, one(3, func(p *roce.Packet) { p.UDP().SetSrcPort(p.UDP().SrcPort() ^ 1) }), nil},
	{"fragment", "send_only", "OR-006", oracle.Violation, one(1, func(p *roce.Packet) {
		p.IPv4().SetFlagsOffset(roce.IPv4MoreFragments)
		p.IPv4().SetChecksum(p.IPv4().ComputeChecksum())
	}), nil},
	{"DF clear", "send_only", "OR-007", oracle.Warning, one(1, func(p *roce.Packet) {
		p.IPv4().SetFlagsOffset(0)
		p.IPv4().SetChecksum(p.IPv4().ComputeChecksum())
	}), nil},
	{"IP checksum", "send_only", "OR-008", oracle.Violation, one(1, func(p *roce.Packet) { p.IPv4().SetChecksum(1) }), nil},
	{"UDP length", "send_only", "OR-009", oracle.Violation, one(1, func(p *roce.Packet) { p.UDP().SetLen(p.UDP().Len() - 4) }), nil},
	{"UDP checksum", "send_only", "OR-010", oracle.Violation, one(1, func(p *roce.Packet) { p.UDP().SetChecksum(1) }), nil},
	{"ICRC", "send_only", "OR-011", oracle.Violation, func(_ *testing.T, c *oracle.Capture) {
		c.Frames[0].Data = slices.Clone(c.Frames[0].Data)
		c.Frames[0].Data[60] ^= 1
	}, nil},
	{"a corrupted frame is acknowledged", "send_only", "OR-012", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { c.Frames[0].Fate = oracle.Corrupted }, nil},
	{"TVer", "send_only", "OR-013", oracle.Violation, one(1, func(p *roce.Packet) { p.BTH().SetVersion(1) }), nil},
	{"reserved bits", "send_only", "OR-014", oracle.Warning, one(1, func(p *roce.Packet) { p.BTH().SetReserved7(5) }), nil},
	{"reserved opcode", "send_only", "OR-015", oracle.Violation, one(1, setOp(0x1F)), nil},
	{"frame too short", "send_only", "OR-016", oracle.Violation, func(_ *testing.T, c *oracle.Capture) {
		c.Frames[1].Data = c.Frames[1].Data[:50]
		c.Frames[1].Length = 30
	}, nil},
	{"pad of a Middle", "send_multi", "OR-017", oracle.Violation, one(2, func(p *roce.Packet) { p.BTH().SetPadCount(1) }), nil},
	{"P_Key", "send_multi", "OR-019", oracle.Violation, one(2, func(p *roce.Packet) { p.BTH().SetPKey(0x8001) }), nil},
	{"QPN 0", "send_multi", "OR-020", oracle.Violation, one(2, func(p *roce.Packet) { p.BTH().SetDestQP(0) }), nil},
	{"SE on a First", "send_multi", "OR-021", oracle.Violation, one(1, func(p *roce.Packet) { p.BTH().SetSolicited(true) }), nil},
	{"AckReq on an ACK", "send_multi", "OR-022", oracle.Warning, one(5, func(p *roce.Packet) { p.BTH().SetAckReq(true) }), nil},
	{"TTL changes", "send_multi", "OR-024", oracle.Warning, one(3, func(p *roce.Packet) {
		p.IPv4().SetTTL(9)
		p.IPv4().SetChecksum(p.IPv4().ComputeChecksum())
	}), nil},
	{"first PSN", "send_only", "OR-027", oracle.Violation, func(t *testing.T, c *oracle.Capture) { edit(t, c, 1, setPSN(1)); edit(t, c, 2, setPSN(1)) }, nil},
	{"PSN skips one", "send_multi", "OR-028", oracle.Violation, func(t *testing.T, c *oracle.Capture) {
		for f := 3; f <= 5; f++ {
			edit(t, c, f, setPSN(1))
		}
	}, nil},
	{"PSN skips one, capture perhaps not complete, NAK", "drop_middle", "OR-028", oracle.Inconclusive, func(_ *testing.T, c *oracle.Capture) { remove(c, 2) },
		func(o *oracle.Options) { o.Complete = false }},
	{"PSN skips one, capture declared complete, NAK", "drop_middle", "OR-028", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { remove(c, 2) },
		func(o *oracle.Options) { o.Declared = true }},
	{"PSN skips one, capture declared complete, ACK", "send_multi", "OR-002", oracle.Inconclusive, func(_ *testing.T, c *oracle.Capture) { remove(c, 3) },
		func(o *oracle.Options) { o.Declared = true }},
	{"Middle without First", "send_multi", "OR-029", oracle.Violation, one(1, setOp(roce.RCSendMiddle)), nil},
	{"First twice", "send_multi", "OR-029", oracle.Violation, one(2, setOp(roce.RCSendFirst)), nil},
	{"another kind inside", "send_multi", "OR-029", oracle.Violation, one(2, setOp(roce.RCWriteMiddle)), nil},
	{"Only inside", "send_multi", "OR-029", oracle.Violation, one(3, setOp(roce.RCSendOnly)), nil},
	{"short Middle", "send_multi", "OR-030", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { chop(c, 2, 4) }, nil},
	{"RETH length", "write", "OR-031", oracle.Violation, one(1, func(p *roce.Packet) { p.RETH().SetLength(2501) }), nil},
	{"RETH length above 2^31", "write", "OR-033", oracle.Violation, one(1, func(p *roce.Packet) { p.RETH().SetLength(1<<31 + 1) }), nil},
	{"atomic not aligned", "atomic", "OR-035", oracle.Violation, one(1, func(p *roce.Packet) { p.AtomicETH().SetVA(p.AtomicETH().VA() + 1) }), nil},
	{"other bytes again", "drop_middle", "OR-036", oracle.Violation, one(7, func(p *roce.Packet) { p.Payload()[9] ^= 1 }), nil},
	{"other opcode again", "drop_middle", "OR-036", oracle.Violation, one(7, setOp(roce.RCSendLast)), nil},
	{"READ goes on at another address", "drop_read_resp", "OR-037", oracle.Violation, one(5, func(p *roce.Packet) { p.RETH().SetVA(p.RETH().VA() - 4) }), nil},
	{"READ goes on with another length", "drop_read_resp", "OR-037", oracle.Violation, one(5, func(p *roce.Packet) { p.RETH().SetLength(1400) }), nil},
	{"max_rd_atomic", "read", "OR-039", oracle.Violation, func(*testing.T, *oracle.Capture) {}, func(o *oracle.Options) { o.MaxRdAtomic = ref(0) }},
	{"sent again without cause", "send_multi", "OR-041", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { insert(c, 2, 4, 1000) }, nil},
	{"sent again before the timer", "timeout", "OR-041", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { c.Frames[0].Time = c.Frames[1].Time - 40*ms }, nil},
	{"timer late", "timeout", "OR-042", oracle.Warning, func(_ *testing.T, c *oracle.Capture) { c.Frames[0].Time -= 400 * ms }, nil},
	{"a NAK is followed a third time", "drop_middle", "OR-041", oracle.Violation, func(_ *testing.T, c *oracle.Capture) {
		insert(c, 6, 7, 1000)
		insert(c, 6, 8, 1000)
	}, nil},
	{"a NAK is followed again long after it has come", "drop_middle", "OR-041", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { insert(c, 6, 9, 1*ms) }, nil},
	{"NAK not followed", "drop_middle", "OR-043", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { remove(c, 6) }, nil},
	{"a PSN skipped after going back", "drop_middle", "OR-044", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { remove(c, 7) }, nil},
	{"before the RNR time", "rnr", "OR-045", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { c.Frames[2].Time = c.Frames[1].Time + 30_000 },
		func(o *oracle.Options) { o.Tolerance = 0 }},
	{"retries", "timeout", "OR-047", oracle.Violation, func(*testing.T, *oracle.Capture) {}, func(o *oracle.Options) { o.RetryCount = ref(0) }},
	{"RNR retries", "rnr", "OR-048", oracle.Violation, func(*testing.T, *oracle.Capture) {}, func(o *oracle.Options) { o.RNRRetry = ref(2) }},
	{"request after a fatal NAK", "nak_rkey", "OR-049", oracle.Violation, func(t *testing.T, c *oracle.Capture) { insert(c, 1, 2, timerEnd) }, nil},
	{"nobody asked", "timeout", "OR-051", oracle.Violation, one(1, func(p *roce.Packet) { p.BTH().SetAckReq(false) }), nil},
	{"AckReq missing", "send_only", "OR-052", oracle.Warning, one(1, func(p *roce.Packet) { p.BTH().SetAckReq(false) }), nil},
	{"a First in place of a Middle", "drop_middle", "OR-053", oracle.Violation, one(6, setOp(roce.RCSendFirst)), nil},
	{"ACK for what was not sent", "send_only", "OR-058", oracle.Violation, one(2, setPSN(1)), nil},
	{"ACK for what was lost", "send_multi", "OR-058", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { c.Frames[2].Fate = oracle.Lost }, nil},
	{"ACK goes backwards", "atomic", "OR-080", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { swap(c, 2, 3); swap(c, 3, 4) }, nil},
	{"MSN too small", "send_multi", "OR-061", oracle.Violation, one(5, setMSN(0)), nil},
	{"MSN too large", "send_multi", "OR-061", oracle.Violation, one(5, setMSN(2)), nil},
	{"MSN decreases", "atomic", "OR-062", oracle.Violation, one(6, setMSN(1)), func(o *oracle.Options) { o.Delivered = true }},
	{"READ response for a SEND", "send_only", "OR-063", oracle.Violation, one(2, setOp(roce.RCReadResponseOnly)), nil},
	{"ACK for an atomic", "read", "OR-063", oracle.Violation, func(t *testing.T, c *oracle.Capture) {
		ack := load(t, filepath.Join(captures, "7.2/send_only.pcap")).Frames[1]
		ack.Time, ack.Number = c.Frames[1].Time, c.Frames[1].Number
		q, _ := roce.Parse(c.Frames[1].Data)
		to, port := q.BTH().DestQP(), q.UDP().SrcPort()
		c.Frames[1] = ack
		edit(t, c, 2, func(p *roce.Packet) { p.BTH().SetDestQP(to); p.UDP().SetSrcPort(port) })
	}, nil},
	{"NAK for another PSN", "drop_middle", "OR-064", oracle.Violation, one(5, setPSN(2)), func(o *oracle.Options) { o.Delivered = true }},
	{"NAK for what was executed", "drop_middle", "OR-064", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { insert(c, 5, 9, 1000) }, nil},
	{"NAK twice", "drop_middle", "OR-065", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { insert(c, 5, 5, 1000) }, nil},
	{"sequence NAK behind an RNR NAK", "rnr", "OR-067", oracle.Violation, func(t *testing.T, c *oracle.Capture) {
		insert(c, 2, 2, 1000)
		edit(t, c, 3, setSyndrome(roce.NAKSequence))
	}, nil},
	{"RNR NAK for an atomic", "nak_rkey", "OR-068", oracle.Violation, one(2, setSyndrome(roce.RNRSyndrome(14))), nil},
	{"RNR timer", "rnr", "OR-069", oracle.Violation, one(2, setSyndrome(roce.RNRSyndrome(13))), nil},
	{"RNR NAK again", "rnr", "OR-070", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { insert(c, 2, 2, 1000) }, nil},
	{"the last packet asks when it is sent again", "timeout", "OR-041", oracle.Note, func(t *testing.T, c *oracle.Capture) {
		edit(t, c, 1, func(p *roce.Packet) { p.BTH().SetAckReq(false) })
		c.Frames[0].Time = c.Frames[1].Time - 40*ms
	}, nil},
	{"READ asked for again after its answer", "read", "OR-041", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { insert(c, 1, 4, 1000) }, nil},
	{"READ asked for again after its answer, paging", "read", "OR-041", oracle.Note, func(_ *testing.T, c *oracle.Capture) { insert(c, 1, 4, 1000) },
		func(o *oracle.Options) { o.ODP = true }},
	{"RNR NAK with MSN", "rnr", "OR-070", oracle.Violation, one(4, setMSN(1)), nil},
	{"remote access error for a SEND", "nak_recv_too_short", "OR-071", oracle.Violation, one(2, setSyndrome(roce.NAKRemoteAccess)), nil},
	{"a response after a fatal NAK", "nak_rkey", "OR-072", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { insert(c, 2, 2, timerEnd) },
		func(o *oracle.Options) { o.Delivered = true }},
	{"access error for length 0", "nak_rkey", "OR-074", oracle.Violation, one(1, func(p *roce.Packet) { p.RETH().SetLength(0) }), nil},
	{"error NAK for a duplicate", "drop_ack", "OR-075", oracle.Violation, one(4, setSyndrome(roce.NAKInvalidRequest)), nil},
	{"duplicate executed", "drop_ack", "OR-076", oracle.Violation, one(4, setMSN(2)), nil},
	{"reserved syndrome", "send_only", "OR-079", oracle.Violation, one(2, setSyndrome(0x45)), nil},
	{"max_dest_rd_atomic", "read", "OR-040", oracle.Violation, func(*testing.T, *oracle.Capture) {}, func(o *oracle.Options) { o.MaxDestRdAtomic = ref(0) }},
	{"credits of an SRQ", "send_only", "OR-079", oracle.Violation, one(2, setSyndrome(3)), func(o *oracle.Options) { o.SRQ = true }},
	{"responses in another order", "read", "OR-081", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { swap(c, 2, 3) }, nil},
	{"response missing", "read", "OR-081", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { remove(c, 3) }, nil},
	{"response opcode", "read", "OR-081", oracle.Violation, one(4, setOp(roce.RCReadResponseOnly)), nil},
	{"response length", "read", "OR-082", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { chop(c, 4, 4) }, nil},
	{"response outside", "read", "OR-083", oracle.Violation, one(4, setPSN(1)), nil},
	{"NAK in a response", "read", "OR-084", oracle.Violation, one(2, setSyndrome(roce.NAKRemoteOp)), nil},
	{"original value", "atomic", "OR-086", oracle.Violation, one(4, func(p *roce.Packet) { p.AtomicAckETH().SetOriginal(1 << 40) }), func(o *oracle.Options) { o.OnlyAtomics = true }},
	{"atomic repeated with another answer", "atomic", "OR-078", oracle.Violation, func(t *testing.T, c *oracle.Capture) {
		insert(c, 5, 6, timerEnd)
		insert(c, 6, 7, 1000)
		edit(t, c, 8, func(p *roce.Packet) { p.AtomicAckETH().SetOriginal(7) })
	}, nil},
	{"UC sends again", "uc_write", "OR-088", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { insert(c, 2, 3, 1000) }, nil},
	{"UC order", "uc_write", "OR-029", oracle.Violation, one(2, setOp(roce.UC.Opcode(roce.OpSendMiddle))), nil},
	{"Q_Key of QP1", "cm_rping", "OR-092", oracle.Violation, one(1, func(p *roce.Packet) { p.DETH().SetQKey(1) }), nil},
	{"class version", "cm_rping", "OR-097", oracle.Violation, one(1, func(p *roce.Packet) { p.Payload()[2] = 1 }), nil},
	{"REP without REQ", "cm_rping", "OR-098", oracle.Violation, func(_ *testing.T, c *oracle.Capture) { remove(c, 1) }, nil},
	{"PSN unlike the CM's", "cm_rping", "OR-100", oracle.Violation, one(1, func(p *roce.Packet) { p.Payload()[24+46] ^= 1 }), nil},
	{"initiator depth", "cm_rping", "OR-101", oracle.Violation, one(2, func(p *roce.Packet) { p.Payload()[24+25] = 255 }), nil},
	{"ACK nobody asked for", "send_only", "OR-002", oracle.Inconclusive, func(_ *testing.T, c *oracle.Capture) { remove(c, 1) }, nil},
	{"frame missing in an incomplete capture", "send_multi", "OR-002", oracle.Inconclusive, func(_ *testing.T, c *oracle.Capture) { remove(c, 3) },
		func(o *oracle.Options) { o.Complete = false }},
	{"time goes back", "send_multi", "OR-001", oracle.Inconclusive, func(_ *testing.T, c *oracle.Capture) { c.Frames[2].Time -= ms }, nil},
	{"tap lost frames", "send_multi", "OR-001", oracle.Inconclusive, func(_ *testing.T, c *oracle.Capture) { c.Dropped = 1 }, nil},
}

// TestMutations changes one thing in a good capture; the rule that it breaks must
// fire, and must not have fired before.
func TestMutations(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			c := load(t, filepath.Join(captures, "7.2", m.capture+".pcap"))
			o := recorded(m.capture)
			o.Tolerance = 4 * ms
			want := m.rule + " " + m.kind.String()
			if got := kinds(oracle.Judge(c, o)); slices.Contains(got, want) && m.capture != "nak_recv_too_short" {
				t.Fatalf("%s before the change: %v", want, got)
			}
			if m.options != nil {
				m.options(&o)
			}
			m.change(t, &c)
			for i := range c.Frames {
				c.Frames[i].Number = i + 1
			}
			if res := oracle.Judge(c, o); !slices.Contains(kinds(res), want) {
				t.Errorf("want %s", want)
				for _, v := range res.Verdicts {
					t.Log(v)
				}
			}
		})
	}
}

// TestBrokenCaptureHasNoVerdicts: without integrity no rule that needs history is
// judged.
func TestBrokenCaptureHasNoVerdicts(t *testing.T) {
	c := load(t, filepath.Join(captures, "7.2/drop_read_resp.pcap"))
	c.Dropped = 3
	res := oracle.Judge(c, recorded("drop_read_resp"))
	if got := kinds(res); res.Whole || !slices.Equal(got, []string{"OR-001 inconclusive", "OR-023 warning"}) {
		t.Errorf("whole %t, verdicts %v", res.Whole, got)
	}
}

// FuzzJudge: no bytes make the oracle fail.
func FuzzJudge(f *testing.F) {
	for _, name := range []string{"drop_middle", "read", "atomic", "cm_rping", "rnr"} {
		c := load(f, filepath.Join(captures, "7.2", name+".pcap"))
		var all []byte
		for _, x := range c.Frames {
			all = append(append(all, byte(len(x.Data)>>8), byte(len(x.Data))), x.Data...)
		}
		f.Add(all, uint8(0))
		f.Add(all, uint8(255))
	}
	f.Fuzz(func(t *testing.T, all []byte, flags uint8) {
		var c oracle.Capture
		for at := int64(0); len(all) >= 2 && len(c.Frames) < 64; at += 5000 {
			n := min(int(all[0])<<8|int(all[1]), len(all)-2)
			data := slices.Clone(all[2 : 2+n])
			all = all[2+n:]
			if p, err := roce.Parse(data); err == nil {
				roce.PutICRC(data[p.Len()-roce.ICRCSize:], p.ComputeICRC())
			}
			c.Frames = append(c.Frames, oracle.Frame{Number: len(c.Frames) + 1, Time: at, Data: data, Length: n, Fate: oracle.Fate(flags % 6)})
		}
		o := oracle.Options{Complete: flags&1 != 0, Delivered: flags&2 != 0, Reconnects: flags&4 != 0, OnlyAtomics: true}
		if res := oracle.Judge(c, o); res.Frames != len(c.Frames) {
			t.Errorf("%d of %d frames", res.Frames, len(c.Frames))
		}
	})
}

// TestCongestion: notifications without a mark, too close, and missing, each break their
// rule; a capture with one for each mark breaks none.
func TestCongestion(t *testing.T) {
	tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: gidOf(2), DstGID: gidOf(1), HopLimit: 64, SrcPort: 0xC000,
		PKey: roce.DefaultPKey, DestQP: 0x11, TrafficClass: 48 << 2})
	if err != nil {
		t.Fatal(err)
	}
	data, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: gidOf(1), DstGID: gidOf(2), HopLimit: 64, SrcPort: 0xC000,
		PKey: roce.DefaultPKey, DestQP: 0x12, MigReq: true})
	if err != nil {
		t.Fatal(err)
	}
	markable, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: gidOf(1), DstGID: gidOf(2), HopLimit: 64, SrcPort: 0xC000,
		PKey: roce.DefaultPKey, DestQP: 0x12, TrafficClass: 2, MigReq: true})
	if err != nil {
		t.Fatal(err)
	}
	var pool roce.Pool
	type step struct {
		at   int64 // microseconds
		fate oracle.Fate
		cnp  bool
	}
	for _, c := range []struct {
		name  string
		steps []step
		rule  string
		ect   bool
	}{
		{"one for a mark", []step{{0, oracle.Marked, false}, {2, oracle.Sent, true}, {3, oracle.Marked, false}, {100, oracle.Sent, false}}, "", false},
		{"no mark", []step{{0, oracle.Sent, false}, {2, oracle.Sent, true}}, "OR-106", false},
		{"no mark that was captured", []step{{0, oracle.Sent, false}, {2, oracle.Sent, true}}, "", true},
		{"the mark was lost", []step{{0, oracle.Lost, false}, {2, oracle.Sent, true}}, "OR-106", false},
		{"too close", []step{{0, oracle.Marked, false}, {2, oracle.Sent, true}, {5, oracle.Sent, true}}, "OR-108", false},
		{"none", []step{{0, oracle.Marked, false}, {30, oracle.Sent, false}}, "OR-107", false},
	} {
		var capture oracle.Capture
		psn := uint32(0)
		for i, s := range c.steps {
			from := data
			if c.ect {
				from = markable
			}
			f := from.New(&pool, roce.RCSendOnly|roce.Opcode(roce.UC), psn, 0, 0)
			if s.cnp {
				f = tmpl.New(&pool, roce.CNPacket, 0, 0, roce.BECN)
			} else {
				psn++
			}
			f.FinishICRC()
			capture.Frames = append(capture.Frames, oracle.Frame{Number: i + 1, Time: s.at * 1000, Data: f.B, Length: len(f.B), Fate: s.fate})
		}
		res := oracle.Judge(capture, oracle.Options{Complete: true, Delivered: true, CNPInterval: 4000})
		var broken []string
		for _, v := range res.Verdicts {
			if v.Kind == oracle.Violation {
				broken = append(broken, v.Rule)
			}
		}
		if c.rule == "" && len(broken) != 0 || c.rule != "" && !slices.Equal(broken, []string{c.rule}) {
			t.Errorf("%s: broken are %v, want %q", c.name, broken, c.rule)
		}
	}
}

func gidOf(n byte) roce.GID { return roce.GIDFromIPv4([4]byte{10, 0, 0, n}) }
