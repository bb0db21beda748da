package testbed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/verbs"
)

const rxeDir = "../../fixtures/captures/rxe/"

// end is what a program knew of one end of a connection. A is the requester, of
// ibv_rc_pingpong the client.
type end struct {
	ip       [4]byte
	mac      roce.MAC
	qpn, psn uint32
	va       uint64 // of the memory that requests name
	rkey     uint32
	typ      verbs.QPType
	rxe      bool
}

// exchange is a run of a scenario: its two ends and the frames between them, by time.
type exchange struct {
	ends   [2]end // A, B
	frames []wireFrame
}

type wireFrame struct {
	roce.Packet
	at  int64 // nanoseconds
	dir int   // the end that sent it
}

func (f *wireFrame) String() string {
	return fmt.Sprintf("%c %v %#x", 'A'+f.dir, f.Op, f.BTH().PSN())
}

// decode reads a capture of the two ends; every frame must be whole.
func (e *exchange) decode(t *testing.T, file []byte) {
	t.Helper()
	_, packets, err := pcap.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i, raw := range packets {
		p, err := roce.Parse(raw.Data)
		if err != nil {
			t.Fatalf("frame %d: %v", i+1, err)
		}
		if !p.ICRCOK() || p.Len() != len(raw.Data) {
			t.Errorf("frame %d: ICRC right %v, %d bytes of %d", i+1, p.ICRCOK(), p.Len(), len(raw.Data))
		}
		f := wireFrame{Packet: p, at: raw.Time, dir: 0}
		if p.Framing != roce.RoCEv2IPv4 {
			t.Fatalf("frame %d: %v", i+1, p.Framing)
		}
		switch p.IPv4().Src() {
		case e.ends[0].ip:
		case e.ends[1].ip:
			f.dir = 1
		default:
			t.Fatalf("frame %d is of %v", i+1, p.IPv4().Src())
		}
		e.frames = append(e.frames, f)
	}
}

// recorded reads a capture of Soft-RoCE and what its program printed.
func recorded(t *testing.T, kernel, scenario string) *exchange {
	t.Helper()
	e := &exchange{ends: [2]end{{ip: [4]byte{10, 9, 0, 1}}, {ip: [4]byte{10, 9, 0, 2}}}}
	for i := range e.ends {
		e.ends[i].typ, e.ends[i].rxe = typeOf(scenario), true
	}
	log, err := os.ReadFile(rxeDir + kernel + "/" + scenario + ".log")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(rxeDir + kernel + "/" + scenario + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	e.decode(t, file)
	// Nobody prints the addresses of the veth pair. B sends nothing on UC and UD.
	e.ends[1].mac = e.frames[0].Ethernet().Dst()
	for _, f := range e.frames {
		e.ends[f.dir].mac = f.Ethernet().Src()
	}
	if scenario == pingpong {
		for _, line := range strings.Split(string(log), "\n") {
			for i, ip := range []string{"::ffff:10.9.0.1", "::ffff:10.9.0.2"} {
				if strings.HasPrefix(line, "  local address:") && strings.HasSuffix(line, ip) {
					n, err := fmt.Sscanf(line, "  local address: LID 0x0000, QPN %v, PSN %v,", &e.ends[i].qpn, &e.ends[i].psn)
					if n != 2 {
						t.Fatalf("%q: %v", line, err)
					}
				}
			}
		}
		return e
	}
	var said struct {
		QPNA, QPNB, PSNA, PSNB, RKeyB uint32
		VAB                           uint64
	}
	if err := json.Unmarshal([]byte(strings.SplitN(string(log), "\n", 2)[0]), &said); err != nil {
		t.Fatal(err)
	}
	e.ends[0].qpn, e.ends[0].psn = said.QPNA, said.PSNA
	e.ends[1].qpn, e.ends[1].psn, e.ends[1].va, e.ends[1].rkey = said.QPNB, said.PSNB, said.VAB, said.RKeyB
	return e
}

// fix is the simulated twin of the program that made the captures, rxefix.c: the same
// requests with the same sizes, offsets and contents.
type fix struct {
	*rig
	a, b *node
	do   func(f func(verbs.Thread)) // in a thread of B's process
	peer verbs.Process
}

// typeOf is the transport that rxefix.c takes for a scenario.
func typeOf(scenario string) verbs.QPType {
	switch scenario[:3] {
	case "uc_":
		return verbs.QPTUC
	case "ud_":
		return verbs.QPTUD
	}
	return verbs.QPTRC
}

const pingpong = "rc_pingpong_n5"

// scenarios are the scenarios without loss, with what rxefix.c does in each.
var scenarios = []struct {
	name string
	run  func(x *fix)
}{
	{"send_only", func(x *fix) { x.recv(0, 4096); x.send(verbs.WRSend, 0, 101, 0); x.done(1, 1) }},
	{"send_imm", func(x *fix) { x.recv(0, 4096); x.send(verbs.WRSendImm, 0, 64, 0); x.done(1, 1) }},
	{"send_multi", func(x *fix) { x.recv(0, 8192); x.send(verbs.WRSend, 0, 3500, 0); x.done(1, 1) }},
	{"psn_wrap", func(x *fix) { x.recv(0, 8192); x.send(verbs.WRSend, 0, 3500, 0); x.done(1, 1) }},
	{"write", func(x *fix) {
		x.send(verbs.WRRDMAWrite, 0, 2500, 128)
		x.send(verbs.WRRDMAWrite, 0, 0, 128)
		x.done(2, 0)
	}},
	{"write_imm", func(x *fix) { x.recv(0, 64); x.send(verbs.WRRDMAWriteImm, 0, 1500, 128); x.done(1, 1) }},
	{"read", func(x *fix) {
		x.do(func(t verbs.Thread) { x.write(t, x.b.buf, ramp(4096, 5, 3), 0) })
		x.send(verbs.WRRDMARead, 8192, 2500, 0)
		x.done(1, 0)
	}},
	{"atomic", func(x *fix) {
		x.do(func(t verbs.Thread) {
			x.write(t, x.b.buf, []byte{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}, 64)
		})
		for i, w := range []verbs.SendWR{
			{Opcode: verbs.WRAtomicFetchAdd, CompareAdd: 0x10},
			{Opcode: verbs.WRAtomicCmpSwp, CompareAdd: 0x1122334455667798, Swap: 0xdeadbeef00c0ffee},
			{Opcode: verbs.WRAtomicCmpSwp, CompareAdd: 1, Swap: 2},
		} {
			w.Flags, w.SGEs, w.RemoteAddr, w.RKey = verbs.SendSignaled, x.a.sge(8*i, 8), x.b.buf.Addr()+64, x.b.mr.RKey()
			x.post(x.a, w)
			x.done(1, 0)
		}
	}},
	{"rnr", func(x *fix) {
		x.send(verbs.WRSend, 0, 200, 0)
		x.t.Sleep(30 * time.Millisecond)
		x.recv(0, 4096)
		x.done(1, 1)
	}},
	{"nak_rkey", func(x *fix) {
		x.post(x.a, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: x.a.sge(0, 64),
			RemoteAddr: x.b.buf.Addr(), RKey: x.b.mr.RKey() ^ 0x5a})
		x.fails(verbs.WCRemAccessErr)
	}},
	{"nak_recv_too_short", func(x *fix) { x.recv(0, 16); x.send(verbs.WRSend, 0, 64, 0); x.fails(verbs.WCRemInvReqErr) }},
	{pingpong, (*fix).pingpong},
	{"uc_write", func(x *fix) { x.send(verbs.WRRDMAWrite, 0, 2500, 128); x.done(1, 0); x.t.Sleep(200 * time.Millisecond) }},
	{"ud_send", func(x *fix) {
		ah, err := x.a.pd.CreateAH(x.t, verbs.AHAttr{IsGlobal: true, Port: 1,
			GRH: verbs.GRH{DGID: x.b.gid.GID, SGIDIndex: uint8(x.a.gid.Index), HopLimit: 64}})
		x.ok("AH", err)
		x.recv(0, 4096)
		for _, op := range []verbs.WROpcode{verbs.WRSend, verbs.WRSendImm} {
			x.post(x.a, verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, Imm: 0xCAFE0001, SGEs: x.a.sge(0, 50),
				AH: ah, RemoteQPN: x.b.qp.QPN(), RemoteQKey: rxeQKey})
		}
		x.done(2, 1)
		x.do(func(t verbs.Thread) {
			if !bytes.Equal(x.read(t, x.b.buf, 40, 50), ramp(50, 7, 1)) {
				x.Error("the datagram did not arrive")
			}
		})
	}},
}

func ramp(n, step, first int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*step + first)
	}
	return p
}

func (x *fix) recv(off, length int) {
	x.do(func(t verbs.Thread) {
		_, err := x.b.qp.PostRecv(t, []verbs.RecvWR{{SGEs: x.b.sge(off, length)}})
		x.ok("recv", err)
	})
}

// send posts a request of A to offset roff of B's memory.
func (x *fix) send(op verbs.WROpcode, off, length, roff int) {
	w := verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, Imm: 0xCAFE0001, RemoteAddr: x.b.buf.Addr() + uint64(roff), RKey: x.b.mr.RKey()}
	if length > 0 {
		w.SGEs = x.a.sge(off, length)
	}
	x.post(x.a, w)
}

// done waits for completions of A and of B.
func (x *fix) done(a, b int) {
	for range a {
		x.wait(x.t, x.a)
	}
	x.do(func(t verbs.Thread) {
		for range b {
			x.wait(t, x.b)
		}
	})
}

func (x *fix) fails(want verbs.WCStatus) {
	var wc [1]verbs.WC
	if k, err := x.a.cq.PollWait(x.t, wc[:], time.Second); err != nil || k != 1 || wc[0].Status != want {
		x.Errorf("completion: %d, %v, %v, want %v", k, err, wc[0].Status, want)
	}
}

// pingpong is ibv_rc_pingpong -n 5: 4096 bytes each way, one at a time, from and to
// the same buffer.
func (x *fix) pingpong() {
	const rounds = 5
	prepare := func(t verbs.Thread, n *node) {
		x.write(t, n.buf, bytes.Repeat([]byte{0x7b}, 4096), 0)
		for range rounds {
			_, err := n.qp.PostRecv(t, []verbs.RecvWR{{SGEs: n.sge(0, 4096)}})
			x.ok("recv", err)
		}
	}
	send := func(t verbs.Thread, n *node) {
		_, err := n.qp.PostSend(t, []verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: n.sge(0, 4096)}})
		x.ok("send", err)
	}
	x.do(func(t verbs.Thread) { prepare(t, x.b) })
	prepare(x.t, x.a)
	server := x.peer.Start(x.t, "server", -1, func(t verbs.Thread) {
		for range rounds {
			x.wait(t, x.b) // the client's message
			send(t, x.b)
			x.wait(t, x.b) // sent
		}
	})
	for range rounds {
		send(x.t, x.a)
		x.wait(x.t, x.a)
		x.wait(x.t, x.a)
	}
	x.t.Join(server)
}

// simulated runs the twin of a scenario with the PSNs of the recording.
func simulated(t *testing.T, want *exchange, body func(x *fix)) *exchange {
	t.Helper()
	e := &exchange{}
	var file bytes.Buffer
	run(t, config(t, func(c *Config) { c.Pcap = &file }), func(r *rig) {
		r.typ = want.ends[0].typ
		x := &fix{rig: r, a: r.node(r.t, 1<<16)}
		var err error
		x.peer, err = r.bed.Hosts()[1].NewProcess(r.t, nil)
		r.ok("process", err)
		x.do = func(f func(verbs.Thread)) { r.t.Join(x.peer.Start(r.t, "B", -1, f)) }
		x.write(r.t, x.a.buf, ramp(1<<16, 7, 1), 0)
		x.do(func(t verbs.Thread) {
			x.b = r.node(t, 1<<16)
			x.join(t, x.b, x.a, want.ends[1].psn, want.ends[0].psn)
		})
		x.join(r.t, x.a, x.b, want.ends[0].psn, want.ends[1].psn)
		for i, n := range []*node{x.a, x.b} {
			id := r.bed.hosts[i].devices[0].hca.Identity()
			e.ends[i] = end{ip: id.IPv4, mac: id.MAC, qpn: n.qp.QPN(), psn: want.ends[i].psn, typ: r.typ, va: n.buf.Addr(), rkey: n.mr.RKey()}
		}
		body(x)
	})
	e.decode(t, file.Bytes())
	return e
}

// rxeQKey is the Q_Key of rxefix.c.
const rxeQKey = 0x11111111

// join connects own to peer with the attributes of rxefix.c.
func (x *fix) join(t verbs.Thread, own, peer *node, sq, rq uint32) {
	x.Helper()
	a := verbs.QPAttr{State: verbs.QPSInit, Port: 1, QKey: rxeQKey, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic}
	mask := verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort
	if x.typ == verbs.QPTUD {
		mask |= verbs.QPMaskQKey
	} else {
		mask |= verbs.QPMaskAccessFlags
	}
	x.ok("INIT", own.qp.Modify(t, &a, mask))
	a = verbs.QPAttr{State: verbs.QPSRTR, PathMTU: verbs.MTU1024, DestQPN: peer.qp.QPN(), RQPSN: rq, MaxDestRdAtomic: 4, MinRNRTimer: 14,
		AH: verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: peer.gid.GID, SGIDIndex: uint8(own.gid.Index), HopLimit: 64}}}
	mask = verbs.QPMaskState
	if x.typ != verbs.QPTUD {
		mask |= verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	}
	if x.typ == verbs.QPTRC {
		mask |= verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	}
	x.ok("RTR", own.qp.Modify(t, &a, mask))
	a = verbs.QPAttr{State: verbs.QPSRTS, SQPSN: sq, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 4}
	mask = verbs.QPMaskState | verbs.QPMaskSQPSN
	if x.typ == verbs.QPTRC {
		mask |= verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
	}
	x.ok("RTS", own.qp.Modify(t, &a, mask))
}
