//go:build linux

package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// tunnel leads a device of a testbed over a socket: what it sends gets the addresses of the
// sockets, and what comes those of the devices.
type tunnel struct {
	port       *Port
	own, other netip.Addr
	dev        *link.Port // of the device
	mac        roce.MAC   // of the device
	in         [2][4]byte // source and destination that the device knows
	peer       *tunnel
}

// Send implements hca.Wire.
func (t *tunnel) Send(f *roce.Frame) {
	pk, err := f.Decode()
	if err != nil {
		panic(err)
	}
	h := pk.IPv4()
	t.peer.in, t.mac, t.peer.mac = [2][4]byte{h.Src(), h.Dst()}, pk.Ethernet().Src(), pk.Ethernet().Dst()
	pk.UDP().SetSrcPort(roce.UDPPort)
	t.address(f, pk, [2][4]byte{t.own.As4(), t.other.As4()})
	t.port.Receive(f)
}

// Receive takes a frame that has come.
func (t *tunnel) Receive(f *roce.Frame) {
	pk, err := f.Decode()
	if err != nil {
		panic(err)
	}
	pk.Ethernet().SetDst(t.mac)
	t.address(f, pk, t.in)
	t.dev.Peer().Send(f)
}

// address changes the addresses of a packet. An ICRC that is not there yet is right then.
func (t *tunnel) address(f *roce.Frame, pk *roce.Packet, a [2][4]byte) {
	h := pk.IPv4()
	h.SetSrc(a[0])
	h.SetDst(a[1])
	pk.FixChecksum()
	if f.ICRC != roce.ICRCPending {
		pk.FixICRC()
	}
}

// relay is between two sockets: each takes one of its faces for the other. It loses, doubles,
// delays and damages datagrams.
type relay struct {
	faces  [2]*socket // that the first, and the second end sends to
	ends   [2]netip.Addr
	peers  [2]*peer // the senders, as the faces see them
	pool   roce.Pool
	solver roce.HiddenIPv4
	draws  *rand.Rand
	rates  [4]int // in a thousand: lost, doubled, late, damaged
	late   [][]byte
	lateTo []int
	did    [4]int
	buf    []byte
}

// pump moves what has come.
func (r *relay) pump(t testing.TB) {
	late, to := r.late, r.lateTo
	r.late, r.lateTo = nil, nil
	for side, s := range r.faces {
		for {
			n, _, err := unix.Recvfrom(s.fd, r.buf, 0)
			if err != nil {
				break
			}
			f, drop := r.peers[side].frame(&r.pool, &r.solver, &arrived{data: r.buf[:n], from: netip.AddrPortFrom(r.ends[side], roce.UDPPort)})
			if f == nil {
				t.Fatalf("a datagram for the relay: %v", drop)
			}
			pk, err := f.Decode()
			if err != nil {
				t.Fatal(err)
			}
			h := pk.IPv4()
			h.SetSrc(r.face(1 - side).As4())
			h.SetDst(r.ends[1-side].As4())
			pk.PutIPv4Hidden(uint16(r.draws.Uint32N(2)*uint32(r.did[0])), roce.IPv4DontFragment)
			pk.FixICRC()
			r.pass(t, 1-side, bytes.Clone(f.B[pk.BTHOffset():]))
			f.Release()
		}
	}
	for i, b := range late {
		r.send(t, to[i], b)
	}
}

// face is the address of a face.
func (r *relay) face(side int) netip.Addr {
	a, _ := unix.Getsockname(r.faces[side].fd)
	return netip.AddrFrom4(a.(*unix.SockaddrInet4).Addr)
}

func (r *relay) pass(t testing.TB, to int, b []byte) {
	x := int(r.draws.Uint32N(1000))
	for i, rate := range r.rates {
		if x -= rate; x >= 0 {
			continue
		}
		r.did[i]++
		switch i {
		case 0:
			return
		case 1:
			r.send(t, to, b)
		case 2:
			r.late, r.lateTo = append(r.late, b), append(r.lateTo, to)
			return
		case 3:
			r.damage(to, b)
		}
		break
	}
	r.send(t, to, b)
}

// damage flips a bit that the receiver notices: the datagrams of a peer that numbers them, as these
// are, hide one flip in 2^15.
func (r *relay) damage(to int, b []byte) {
	from := r.face(to)
	for whole := true; whole; {
		at, bit := r.draws.Uint32N(uint32(len(b))), byte(1)<<r.draws.Uint32N(8)
		b[at] ^= bit
		f, _ := newPeer(from, r.ends[to]).frame(&r.pool, &r.solver, &arrived{data: b, from: netip.AddrPortFrom(from, roce.UDPPort)})
		if whole = f != nil; whole {
			f.Release()
			b[at] ^= bit
		}
	}
}

// send sends to an end from the face that it knows.
func (r *relay) send(t testing.TB, to int, b []byte) {
	if err := unix.Sendto(r.faces[to].fd, b, 0, &unix.SockaddrInet4{Port: roce.UDPPort, Addr: r.ends[to].As4()}); err != nil {
		t.Fatal(err)
	}
}

// linkUp is a testbed of two hosts whose devices are joined by sockets and a relay between them.
func linkUp(t testing.TB, seed uint64, rates [4]int, first int) (*testbed.Testbed, *relay, [2]*tunnel) {
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	p.HCA.AckReqPackets = 16
	r := &relay{draws: rand.New(rand.NewPCG(seed, 2)), rates: rates, buf: make([]byte, receiveSize)}
	var tunnels [2]*tunnel
	for i := range tunnels {
		face, err := openSocket(loopback(first + 2 + i))
		if err == nil {
			err = unix.SetsockoptInt(face.fd, unix.IPPROTO_UDP, unix.UDP_GRO, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.faces[i], r.ends[i] = face, loopback(first+i)
		port, err := OpenPort(Config{Place: At(r.ends[i])})
		if err != nil {
			t.Fatal(err)
		}
		tunnels[i] = &tunnel{port: port, own: r.ends[i], other: loopback(first + 2 + i)}
	}
	for i := range tunnels {
		tunnels[i].peer = tunnels[1-i]
		r.peers[i] = newPeer(r.ends[i], r.face(i))
	}
	cfg := testbed.Default(p)
	cfg.Seed = seed
	n := 0
	cfg.Wrap.Wire = func(p *link.Port) hca.Wire {
		tunnels[n].dev = p
		n++
		return tunnels[n-1]
	}
	bed, err := testbed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e := bed.Engine()
	for _, x := range tunnels {
		c := link.NewCable(e, p.Link, "in", "wire")
		c.End(0).Attach(x)
		x.port.Attach(c.End(1), new(roce.Pool))
	}
	var tick sim.Handler
	tick = func(uint64) {
		for _, x := range tunnels {
			x.port.Flush()
		}
		r.pump(t)
		for _, x := range tunnels {
			if x.port.Fetch() {
				x.port.Deliver()
			}
		}
		e.After(10*sim.Microsecond, tick, 0)
	}
	e.After(0, tick, 0)
	return bed, r, tunnels
}

// operation is one work request of a drawn program.
type operation struct {
	op   verbs.WROpcode
	size int
}

// TestDisturbedTraffic: whatever is lost, doubled, late or damaged between two sockets, each
// operation completes once, and its bytes are right.
func TestDisturbedTraffic(t *testing.T) {
	kinds := []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRSend, verbs.WRAtomicFetchAdd}
	var did [4]int
	first := 100
	rapid.Check(t, func(rt *rapid.T) {
		rates := [4]int{}
		for i, name := range []string{"lost", "doubled", "late", "damaged"} {
			rates[i] = rapid.IntRange(0, 20).Draw(rt, name)
		}
		var ops []operation
		for range rapid.IntRange(1, 40).Draw(rt, "n") {
			ops = append(ops, operation{rapid.SampledFrom(kinds).Draw(rt, "op"), rapid.IntRange(0, slot).Draw(rt, "size")})
		}
		bed, r, tunnels := linkUp(t, rapid.Uint64().Draw(rt, "seed"), rates, first)
		defer func() {
			for i, x := range tunnels {
				_ = x.port.Close()
				_ = unix.Close(r.faces[i].fd)
			}
		}()
		err := bed.Run(0, func(th verbs.Thread) { (&traffic{tb: t, bed: bed, t: th}).run(ops) })
		for _, x := range tunnels {
			if x.port.C.BadICRC > uint64(r.did[3]) || x.port.C.Overrun > 0 {
				rt.Errorf("%d damaged: %+v", r.did[3], x.port.C)
			}
		}
		if err := bed.Close(); err != nil {
			rt.Error(err)
		}
		if err != nil {
			rt.Fatal(err)
		}
		for i := range did {
			did[i] += r.did[i]
		}
	})
	if !t.Failed() && (did[0] == 0 || did[1] == 0 || did[2] == 0 || did[3] == 0) {
		t.Errorf("lost, doubled, late, damaged: %v", did)
	}
}

// slot is the memory of an operation.
const slot = 10000

// traffic carries out operations between two hosts.
type traffic struct {
	tb  testing.TB
	bed *testbed.Testbed
	t   verbs.Thread
}

func (x *traffic) ok(what string, err error) {
	x.tb.Helper()
	if err != nil {
		panic(fmt.Sprintf("%s: %v", what, err))
	}
}

// end is one side.
type end struct {
	cq  verbs.CQ
	qp  verbs.QP
	buf verbs.Buffer
	mr  verbs.MR
	gid verbs.GIDEntry
}

const rights = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic

func (x *traffic) open(t verbs.Thread, n int) *end {
	devs, err := t.Process().Devices(t)
	x.ok("devices", err)
	ctx, err := devs[0].Open(t)
	x.ok("open", err)
	pd, err := ctx.AllocPD(t)
	x.ok("pd", err)
	e := &end{}
	e.cq, err = ctx.CreateCQ(t, verbs.CQAttr{CQE: 256})
	x.ok("cq", err)
	e.buf, err = t.Process().Map(t, uint64(n*slot), verbs.MapOptions{})
	x.ok("map", err)
	e.mr, err = pd.RegMR(t, e.buf.Addr(), uint64(n*slot), rights)
	x.ok("mr", err)
	e.qp, err = pd.CreateQP(t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: e.cq, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 1, MaxRecvSGE: 1}})
	x.ok("qp", err)
	table := make([]verbs.GIDEntry, 256)
	k, err := ctx.QueryGIDTable(t, table, 0)
	x.ok("gids", err)
	for _, g := range table[:k] {
		if g.Type == verbs.GIDTypeRoCEv2 && g.GID[10] == 0xff {
			e.gid = g
		}
	}
	return e
}

func (x *traffic) connect(t verbs.Thread, a, b *end) {
	q := verbs.QPAttr{State: verbs.QPSInit, Port: 1, Access: rights &^ verbs.AccessLocalWrite}
	x.ok("INIT", a.qp.Modify(t, &q, verbs.QPMaskState|verbs.QPMaskPKeyIndex|verbs.QPMaskPort|verbs.QPMaskAccessFlags))
	q = verbs.QPAttr{State: verbs.QPSRTR, PathMTU: verbs.MTU1024, DestQPN: b.qp.QPN(), RQPSN: 0xfffff0, MaxDestRdAtomic: 8, MinRNRTimer: 12,
		AH: verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: b.gid.GID, SGIDIndex: uint8(a.gid.Index), HopLimit: 64}}}
	x.ok("RTR", a.qp.Modify(t, &q, verbs.QPMaskState|verbs.QPMaskAV|verbs.QPMaskPathMTU|verbs.QPMaskDestQPN|verbs.QPMaskRQPSN|verbs.QPMaskMaxDestRdAtomic|verbs.QPMaskMinRNRTimer))
	q = verbs.QPAttr{State: verbs.QPSRTS, SQPSN: 0xfffff0, Timeout: 12, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 8}
	x.ok("RTS", a.qp.Modify(t, &q, verbs.QPMaskState|verbs.QPMaskSQPSN|verbs.QPMaskTimeout|verbs.QPMaskRetryCnt|verbs.QPMaskRNRRetry|verbs.QPMaskMaxQPRdAtomic))
}

// fill is what slot i of an end holds at first.
func fill(side, i int) []byte {
	b := make([]byte, slot)
	for k := range b {
		b[k] = byte(side*101 + i*31 + k*7 + k>>8)
	}
	return b
}

// run posts all operations, each with a slot of its own, waits for them, and looks at every byte of
// both sides.
func (x *traffic) run(ops []operation) {
	t := x.t
	other, err := x.bed.Hosts()[1].NewProcess(t, nil)
	x.ok("process", err)
	there := func(f func(verbs.Thread)) { t.Join(other.Start(t, "peer", -1, f)) }
	a := x.open(t, len(ops))
	var b *end
	there(func(t verbs.Thread) {
		b = x.open(t, len(ops))
		x.connect(t, b, a)
		for i, o := range ops {
			_, err := b.buf.WriteAt(t, fill(1, i), int64(i*slot))
			x.ok("fill", err)
			if o.op == verbs.WRSend {
				_, err := b.qp.PostRecv(t, []verbs.RecvWR{{ID: uint64(i), SGEs: []verbs.SGE{{Addr: b.buf.Addr() + uint64(i*slot), Length: slot, LKey: b.mr.LKey()}}}})
				x.ok("receive", err)
			}
		}
	})
	x.connect(t, a, b)
	for i, o := range ops {
		_, err := a.buf.WriteAt(t, fill(0, i), int64(i*slot))
		x.ok("fill", err)
		if o.op == verbs.WRAtomicFetchAdd {
			ops[i].size = 8
		}
	}
	for i, o := range ops {
		_, err := a.qp.PostSend(t, []verbs.SendWR{{ID: uint64(i), Opcode: o.op, Flags: verbs.SendSignaled, CompareAdd: 3,
			SGEs:       []verbs.SGE{{Addr: a.buf.Addr() + uint64(i*slot), Length: uint32(o.size), LKey: a.mr.LKey()}},
			RemoteAddr: b.buf.Addr() + uint64(i*slot), RKey: b.mr.RKey()}})
		x.ok("post", err)
	}
	var posted, received []uint64
	for i, o := range ops {
		posted = append(posted, uint64(i))
		if o.op == verbs.WRSend {
			received = append(received, uint64(i))
		}
	}
	x.wait(t, a, posted)
	there(func(t verbs.Thread) { x.wait(t, b, received) }) // the library takes short messages out of completions
	for i, o := range ops {
		mine, theirs := fill(0, i), fill(1, i)
		switch o.op {
		case verbs.WRRDMARead:
			copy(mine, theirs[:o.size])
		case verbs.WRAtomicFetchAdd:
			copy(mine, theirs[:8])
			for k, carry := 0, 3; k < 8; k++ {
				carry += int(theirs[k])
				theirs[k], carry = byte(carry), carry>>8
			}
		default:
			copy(theirs, mine[:o.size])
		}
		x.same(t, a, fmt.Sprintf("here, operation %d, %+v", i, o), i, mine)
		there(func(t verbs.Thread) { x.same(t, b, fmt.Sprintf("there, operation %d, %+v", i, o), i, theirs) })
	}
}

// wait takes the completions of these work requests, in order.
func (x *traffic) wait(t verbs.Thread, e *end, ids []uint64) {
	for len(ids) > 0 {
		var wc [8]verbs.WC
		n, err := e.cq.PollWait(t, wc[:], 10*time.Second)
		x.ok("poll", err)
		if n == 0 || n > len(ids) {
			panic(fmt.Sprintf("%d completions where %d are missing", n, len(ids)))
		}
		for i, c := range wc[:n] {
			if c.Status != verbs.WCSuccess || c.ID != ids[i] {
				panic(fmt.Sprintf("completion %+v in place of work request %d", c, ids[i]))
			}
		}
		ids = ids[n:]
	}
}

func (x *traffic) same(t verbs.Thread, e *end, what string, i int, want []byte) {
	got := make([]byte, slot)
	_, err := e.buf.ReadAt(t, got, int64(i*slot))
	x.ok("read", err)
	for k := range want {
		if got[k] != want[k] {
			panic(fmt.Sprintf("%s: byte %d is %#x and not %#x", what, k, got[k], want[k]))
		}
	}
}
