package testbed

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// wireField is a field of a frame. rel, if any, is the value with what belongs to one
// run taken away (addresses, QP numbers, keys), which must then be equal.
type wireField struct {
	name string
	in   roce.Headers
	get  func(p *roce.Packet) uint64
	set  func(p *roce.Packet, v uint64) // of fields that may differ
	rel  func(v uint64, from, to *end) uint64
}

func number48(m roce.MAC) (v uint64) {
	for _, b := range m {
		v = v<<8 | uint64(b)
	}
	return v
}

func mac(v uint64) (m roce.MAC) {
	for i := range m {
		m[i] = byte(v >> (40 - 8*i))
	}
	return m
}

func number32(a [4]byte) uint64 {
	return uint64(a[0])<<24 | uint64(a[1])<<16 | uint64(a[2])<<8 | uint64(a[3])
}

func ipv4(v uint64) [4]byte { return [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)} }

func flag(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func minus(base func(from, to *end) uint64) func(v uint64, from, to *end) uint64 {
	return func(v uint64, from, to *end) uint64 { return v - base(from, to) }
}

// port takes the rule of the source port away, when the address vector has no flow
// label: of connections by the QP numbers of both ends. For datagrams Soft-RoCE uses
// the sender's, and libmlx5 draws any port of the range.
func port(v uint64, from, to *end) uint64 {
	rule := uint64(roce.UDPSourcePort(roce.FlowLabel(from.qpn, to.qpn)))
	if from.typ == verbs.QPTUD {
		rule = uint64(roce.UDPSourcePortRXE(from.qpn))
		if !from.rxe && v >= 0xc000 {
			rule = v
		}
	}
	return v - rule
}

// keyOf takes the key away; what is left is what nak_rkey did to it.
func keyOf(v uint64, _, to *end) uint64 { return v ^ uint64(to.rkey) }

// wireFields are all fields from the destination MAC to the end of the extended
// headers, but what roce.Parse has settled (IP version, header length and checksum,
// protocol, destination port).
var wireFields = []wireField{
	{"eth.dst", 0, func(p *roce.Packet) uint64 { return number48(p.Ethernet().Dst()) }, func(p *roce.Packet, v uint64) { p.Ethernet().SetDst(mac(v)) },
		minus(func(_, to *end) uint64 { return number48(to.mac) })},
	{"eth.src", 0, func(p *roce.Packet) uint64 { return number48(p.Ethernet().Src()) }, func(p *roce.Packet, v uint64) { p.Ethernet().SetSrc(mac(v)) },
		minus(func(from, _ *end) uint64 { return number48(from.mac) })},
	{"eth.type", 0, func(p *roce.Packet) uint64 { return uint64(p.Ethernet().Type()) }, nil, nil},
	{"ip.tos", 0, func(p *roce.Packet) uint64 { return uint64(p.IPv4().TOS()) }, nil, nil},
	{"ip.len", 0, func(p *roce.Packet) uint64 { return uint64(p.IPv4().TotalLen()) }, nil, nil},
	{"ip.id", 0, func(p *roce.Packet) uint64 { return uint64(p.IPv4().ID()) }, func(p *roce.Packet, v uint64) { p.IPv4().SetID(uint16(v)) }, nil},
	{"ip.flags", 0, func(p *roce.Packet) uint64 { return uint64(p.IPv4().FlagsOffset()) }, nil, nil},
	{"ip.ttl", 0, func(p *roce.Packet) uint64 { return uint64(p.IPv4().TTL()) }, nil, nil},
	{"ip.src", 0, func(p *roce.Packet) uint64 { return number32(p.IPv4().Src()) }, func(p *roce.Packet, v uint64) { p.IPv4().SetSrc(ipv4(v)) },
		minus(func(from, _ *end) uint64 { return number32(from.ip) })},
	{"ip.dst", 0, func(p *roce.Packet) uint64 { return number32(p.IPv4().Dst()) }, func(p *roce.Packet, v uint64) { p.IPv4().SetDst(ipv4(v)) },
		minus(func(_, to *end) uint64 { return number32(to.ip) })},
	{"udp.srcport", 0, func(p *roce.Packet) uint64 { return uint64(p.UDP().SrcPort()) }, func(p *roce.Packet, v uint64) { p.UDP().SetSrcPort(uint16(v)) }, port},
	{"udp.len", 0, func(p *roce.Packet) uint64 { return uint64(p.UDP().Len()) }, nil, nil},
	{"udp.checksum", 0, func(p *roce.Packet) uint64 { return uint64(p.UDP().Checksum()) }, nil, nil},
	{"bth.opcode", 0, func(p *roce.Packet) uint64 { return uint64(p.Op) }, nil, nil},
	{"bth.se", 0, func(p *roce.Packet) uint64 { return flag(p.BTH().Solicited()) }, nil, nil},
	{"bth.m", 0, func(p *roce.Packet) uint64 { return flag(p.BTH().MigReq()) }, func(p *roce.Packet, v uint64) { p.BTH().SetMigReq(v != 0) }, nil},
	{"bth.padcnt", 0, func(p *roce.Packet) uint64 { return uint64(p.BTH().PadCount()) }, nil, nil},
	{"bth.tver", 0, func(p *roce.Packet) uint64 { return uint64(p.BTH().Version()) }, nil, nil},
	{"bth.pkey", 0, func(p *roce.Packet) uint64 { return uint64(p.BTH().PKey()) }, nil, nil},
	{"bth.fecn", 0, func(p *roce.Packet) uint64 { return flag(p.BTH().FECN()) }, nil, nil},
	{"bth.becn", 0, func(p *roce.Packet) uint64 { return flag(p.BTH().BECN()) }, nil, nil},
	{"bth.resv6", 0, func(p *roce.Packet) uint64 { return uint64(p.BTH().Reserved6()) }, nil, nil},
	{"bth.destqp", 0, func(p *roce.Packet) uint64 { return uint64(p.BTH().DestQP()) }, func(p *roce.Packet, v uint64) { p.BTH().SetDestQP(uint32(v)) },
		minus(func(_, to *end) uint64 { return uint64(to.qpn) })},
	{"bth.ackreq", 0, func(p *roce.Packet) uint64 { return flag(p.BTH().AckReq()) }, nil, nil},
	{"bth.resv7", 0, func(p *roce.Packet) uint64 { return uint64(p.BTH().Reserved7()) }, nil, nil},
	{"bth.psn", 0, func(p *roce.Packet) uint64 { return uint64(p.BTH().PSN()) }, nil, nil},
	{"deth.qkey", roce.HasDETH, func(p *roce.Packet) uint64 { return uint64(p.DETH().QKey()) }, nil, nil},
	{"deth.srcqp", roce.HasDETH, func(p *roce.Packet) uint64 { return uint64(p.DETH().SrcQP()) }, func(p *roce.Packet, v uint64) { p.DETH().SetSrcQP(uint32(v)) },
		minus(func(from, _ *end) uint64 { return uint64(from.qpn) })},
	{"reth.va", roce.HasRETH, func(p *roce.Packet) uint64 { return p.RETH().VA() }, func(p *roce.Packet, v uint64) { p.RETH().SetVA(v) },
		minus(func(_, to *end) uint64 { return to.va })},
	{"reth.rkey", roce.HasRETH, func(p *roce.Packet) uint64 { return uint64(p.RETH().RKey()) }, func(p *roce.Packet, v uint64) { p.RETH().SetRKey(uint32(v)) }, keyOf},
	{"reth.length", roce.HasRETH, func(p *roce.Packet) uint64 { return uint64(p.RETH().Length()) }, nil, nil},
	{"atomiceth.va", roce.HasAtomicETH, func(p *roce.Packet) uint64 { return p.AtomicETH().VA() }, func(p *roce.Packet, v uint64) { p.AtomicETH().SetVA(v) },
		minus(func(_, to *end) uint64 { return to.va })},
	{"atomiceth.rkey", roce.HasAtomicETH, func(p *roce.Packet) uint64 { return uint64(p.AtomicETH().RKey()) },
		func(p *roce.Packet, v uint64) { p.AtomicETH().SetRKey(uint32(v)) }, keyOf},
	{"atomiceth.swap", roce.HasAtomicETH, func(p *roce.Packet) uint64 { return p.AtomicETH().SwapAdd() }, nil, nil},
	{"atomiceth.compare", roce.HasAtomicETH, func(p *roce.Packet) uint64 { return p.AtomicETH().Compare() }, nil, nil},
	{"aeth.syndrome", roce.HasAETH, func(p *roce.Packet) uint64 { return uint64(p.AETH().Syndrome()) },
		func(p *roce.Packet, v uint64) { p.AETH().SetSyndrome(roce.Syndrome(v)) }, nil},
	{"aeth.msn", roce.HasAETH, func(p *roce.Packet) uint64 { return uint64(p.AETH().MSN()) }, nil, nil},
	{"atomicack.original", roce.HasAtomicAckETH, func(p *roce.Packet) uint64 { return p.AtomicAckETH().Original() }, nil, nil},
	{"immdt", roce.HasImmDt, func(p *roce.Packet) uint64 { return uint64(p.ImmDt().Value()) }, nil, nil},
}

// comparison compares the frames of one scenario and uses up the ledger.
type comparison struct {
	*testing.T
	kernel, scenario string
	rxe, sim         *exchange
	used             map[*difference]int
}

// allowed finds the ledger's line for a difference.
func (c *comparison) allowed(field string, rxe, sim uint64) bool {
	for i := range ledger {
		d := &ledger[i]
		if d.field == field && (d.scenario == "" || d.scenario == c.scenario) && (d.kernel == "" || d.kernel == c.kernel) && (d.anyRXE || d.rxe == rxe) && d.sim == sim {
			c.used[d]++
			return true
		}
	}
	return false
}

// frame compares two frames field by field; then it makes ours carry what is known to
// differ, and compares every byte before the ICRC, which decode has checked.
func (c *comparison) frame(n int, rxe, sim *wireFrame) {
	what := fmt.Sprintf("frame %d of %c (%v; ours %v)", n+1, 'A'+rxe.dir, rxe, sim)
	ours, err := roce.Parse(bytes.Clone(sim.B))
	if err != nil {
		c.Fatalf("%s: %v", what, err)
	}
	bad := false
	for _, f := range wireFields {
		h, s := f.in == 0 || rxe.Has(f.in), f.in == 0 || sim.Has(f.in)
		if h != s {
			c.Errorf("%s: %s is there %v, in ours %v", what, f.name, h, s)
			return
		}
		if !h {
			continue
		}
		theirs := f.get(&rxe.Packet)
		want, got := theirs, f.get(&sim.Packet)
		if f.rel != nil {
			want = f.rel(want, &c.rxe.ends[rxe.dir], &c.rxe.ends[1-rxe.dir])
			got = f.rel(got, &c.sim.ends[sim.dir], &c.sim.ends[1-sim.dir])
		}
		if want != got && !c.allowed(f.name, want, got) {
			c.Errorf("%s: %s is %#x, in ours %#x", what, f.name, want, got)
			bad = true
		}
		if f.set != nil {
			f.set(&ours, theirs)
		}
	}
	ours.IPv4().SetChecksum(ours.IPv4().ComputeChecksum())
	a, b := rxe.B[:rxe.Len()-roce.ICRCSize], ours.B[:ours.Len()-roce.ICRCSize]
	if !bad && !bytes.Equal(a, b) {
		at := 0
		for at < min(len(a), len(b)) && a[at] == b[at] {
			at++
		}
		c.Errorf("%s: beyond the fields, byte %d of %d differs (payload begins at %d)", what, at, len(a), len(a)-rxe.PayloadLen()-rxe.PadCount())
	}
}

// sent is what one end sends.
func (e *exchange) sent(dir int) (l []*wireFrame) {
	for i := range e.frames {
		if e.frames[i].dir == dir {
			l = append(l, &e.frames[i])
		}
	}
	return l
}

// rounds takes the repetitions of a request that met RNR NAKs out: all but the first
// and the last try and the first NAK. It checks that they are repetitions.
func (e *exchange) rounds(t *testing.T) (n int) {
	var keep []wireFrame
	for i := range e.frames {
		f := &e.frames[i]
		if i >= 2 && i < len(e.frames)-2 {
			if f.dir != i%2 || !bytes.Equal(f.BTH(), e.frames[i%2].BTH()) || !bytes.Equal(f.Payload(), e.frames[i%2].Payload()) || !bytes.Equal(f.Ext(), e.frames[i%2].Ext()) {
				t.Errorf("%v is no repetition of %v", f, &e.frames[i%2])
			}
			continue
		}
		keep = append(keep, *f)
	}
	n = (len(e.frames) - 2) / 2
	for i := 2; i < len(e.frames); i += 2 {
		if wait := e.frames[i].at - e.frames[i-1].at; wait < roce.RNRTimer(14) {
			t.Errorf("try %d comes %d ns after its RNR NAK, the timer is %d ns", i/2+1, wait, roce.RNRTimer(14))
		}
	}
	e.frames = keep
	return n
}

func (e *exchange) order() string {
	var s []string
	for i := range e.frames {
		s = append(s, e.frames[i].String())
	}
	return strings.Join(s, "; ")
}

// TestAgainstSoftRoCE has both sides run the same programs. Whatever differs on the
// wire is in the ledger, with its reason, or fails the test.
func TestAgainstSoftRoCE(t *testing.T) {
	used := map[*difference]int{}
	for _, kernel := range []string{"6.1", "7.2"} {
		for _, s := range scenarios {
			t.Run(kernel+"/"+s.name, func(t *testing.T) {
				c := &comparison{T: t, kernel: kernel, scenario: s.name, rxe: recorded(t, kernel, s.name), used: used}
				c.sim = simulated(t, c.rxe, s.run)
				if s.name == "rnr" {
					if r, s := uint64(c.rxe.rounds(t)), uint64(c.sim.rounds(t)); r != s && !c.allowed("rounds", r, s) {
						t.Errorf("%d tries meet an RNR NAK, in ours %d", r, s)
					}
				}
				for dir := range 2 {
					a, b := c.rxe.sent(dir), c.sim.sent(dir)
					if len(a) != len(b) {
						t.Errorf("%c sends %d frames, in ours %d:\n%s\n%s", 'A'+dir, len(a), len(b), c.rxe.order(), c.sim.order())
						continue
					}
					for i := range a {
						c.frame(i, a[i], b[i])
					}
				}
				if a, b := c.rxe.order(), c.sim.order(); a != b && !c.allowed("order", 0, 0) {
					t.Errorf("the order is\n%s\nin ours\n%s", a, b)
				}
			})
		}
	}
	for i := range ledger {
		if used[&ledger[i]] == 0 {
			t.Errorf("no frame differs as the ledger says any more: %+v", ledger[i])
		}
	}
}
