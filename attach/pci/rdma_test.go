//go:build linux && amd64

package pci

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/uapi"
)

// guestCQ is a completion queue of 64 entries.
type guestCQ struct {
	g      *guest
	n      uint32
	pa, db uint64
	ci     uint32
}

const cqEntries = 64

func (g *guest) newCQ() *guestCQ {
	g.t.Helper()
	q := &guestCQ{g: g, pa: g.alloc(cqEntries * prm.CQE64Size), db: g.alloc(8)}
	for i := range uint64(cqEntries) {
		g.ram[q.pa+(i+1)*prm.CQE64Size-1] = prm.CQEOpOwnInit
	}
	in := prm.NewIn(prm.OpCreateCQ, 8)
	m := prm.CreateCQIn(in)
	c := m.CQC()
	c.SetLogCQSize(6)
	c.SetUARPage(g.uar)
	c.SetEQN(g.eqn)
	c.SetDBRAddr(q.db)
	m.PAS().Set(0, q.pa)
	q.n = prm.CreateCQOut(g.cmd(in)).CQN()
	return q
}

// wait takes the next completion, for which the program polls.
func (q *guestCQ) wait() prm.CQE64 {
	q.g.t.Helper()
	var e prm.CQE64
	pa := q.pa + uint64(q.ci%cqEntries)*prm.CQE64Size
	q.g.until("a completion", func() bool {
		q.g.last(pa, prm.CQE64Size)
		e = bytes.Clone(q.g.at(pa, prm.CQE64Size))
		return prm.CQE64(e).Ready(q.ci, cqEntries)
	})
	q.ci++
	prm.CQDBRec(q.g.at(q.db, 8)).SetCI(q.ci)
	return e
}

// guestQP is an RC queue pair with 16 blocks to send and 16 WQEs of 16 bytes to receive.
type guestQP struct {
	g          *guest
	cq         *guestCQ
	n          uint32
	rq, sq, db uint64
	pi, rqPI   uint16
}

func (g *guest) newQP() *guestQP {
	g.t.Helper()
	q := &guestQP{g: g, cq: g.newCQ(), db: g.alloc(8), rq: g.alloc(4096)}
	q.sq = q.rq + 16*64
	in := prm.NewIn(prm.OpCreateQP, 8)
	m := prm.CreateQPIn(in)
	c := m.QPC()
	c.SetST(prm.STRC)
	c.SetPMState(prm.PMStateMigrated)
	c.SetPD(g.pd)
	c.SetUARPage(g.uar)
	c.SetLogSQSize(4)
	c.SetLogRQSize(4)
	c.SetLogRQStride(2)
	c.SetCQNSnd(q.cq.n)
	c.SetCQNRcv(q.cq.n)
	c.SetDBRAddr(q.db)
	m.PAS().Set(0, q.rq)
	q.n = prm.CreateQPOut(g.cmd(in)).QPN()
	return q
}

func (q *guestQP) modify(op prm.Opcode, f func(c prm.QPC)) {
	q.g.t.Helper()
	in := prm.NewIn(op, 0)
	m := prm.ModifyQPIn(in)
	m.SetQPN(q.n)
	f(m.QPC())
	q.g.cmd(in)
}

// connect takes q to RTS; its peer is QP n of function k.
func (q *guestQP) connect(k int, n uint32) {
	q.g.t.Helper()
	q.modify(prm.OpRst2InitQP, func(c prm.QPC) {
		c.PrimaryPath().SetVHCAPortNum(1)
		c.SetRRE(true)
		c.SetRWE(true)
	})
	peer := network.Identity(k)
	gid := roce.GIDFromIPv4(peer.IPv4)
	q.modify(prm.OpInit2RTRQP, func(c prm.QPC) {
		a := c.PrimaryPath()
		copy(a.RGID(), gid[:])
		copy(a.RMAC(), peer.MAC[:])
		a.SetHopLimit(64)
		c.SetMTU(uint32(roce.MTU1024))
		c.SetLogMsgMax(30)
		c.SetRemoteQPN(n)
		c.SetMinRNRNAK(1)
	})
	q.modify(prm.OpRTR2RTSQP, func(c prm.QPC) {
		c.PrimaryPath().SetAckTimeout(14)
		c.SetRetryCount(7)
		c.SetRNRRetry(7)
	})
}

// setGID turns RoCE on and gives the port of function k its address, as mlx5_ib does when it comes.
func (g *guest) setGID(k int) {
	g.t.Helper()
	g.setRoCE(true)
	id := network.Identity(k)
	gid := roce.GIDFromIPv4(id.IPv4)
	in := prm.NewIn(prm.OpSetRoCEAddress, 0)
	a := prm.SetRoCEAddressIn(in).Addr()
	copy(a.SourceL3(), gid[:])
	copy(a.MAC(), id.MAC[:])
	a.SetRoCEVersion(prm.RoCEVersion2)
	g.cmd(in)
}

// guestMR is a registered buffer, whose virtual addresses are physical ones.
type guestMR struct {
	pa, n uint64
	key   uint32
}

func (g *guest) newMR(n uint64) guestMR {
	g.t.Helper()
	r := guestMR{pa: g.alloc(n), n: n}
	pages := (n + 4095) / 4096
	in := prm.NewIn(prm.OpCreateMKey, int(pages+1)/2*16)
	m := prm.CreateMKeyIn(in)
	c := m.MKC()
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetRR(true)
	c.SetRW(true)
	c.SetLW(true)
	c.SetLR(true)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(0x5a)
	c.SetPD(g.pd)
	c.SetStartAddr(r.pa)
	c.SetLen(n)
	c.SetLogPageSize(12)
	m.SetTranslationsOctwordActualSize(uint32((pages + 1) / 2))
	for i := range pages {
		prm.MTT(m.Entries()).Set(int(i), r.pa+i*4096, 0)
	}
	r.key = prm.MKeyOf(prm.CreateMKeyOut(g.cmd(in)).MKeyIndex(), 0x5a)
	return r
}

// records stores what was posted, and rings.
func (q *guestQP) records() {
	db := prm.QPDBRec(q.g.at(q.db, 8))
	db.SetSend(q.pi)
	db.SetRecv(q.rqPI)
}

func (q *guestQP) recv(r guestMR, off uint64, n uint32) {
	b := q.g.at(q.rq+uint64(q.rqPI%16)*64, 64)
	clear(b)
	prm.DataSegment(b).Set(n, r.key, r.pa+off)
	prm.DataSegment(b[16:]).Set(0, prm.InvalidLKey, 0)
	q.rqPI++
	q.records()
}

func (q *guestQP) post(op prm.WQEOpcode, r guestMR, off uint64, n uint32, remote uint64, rkey uint32) {
	q.g.t.Helper()
	b := make([]byte, 0, 64)
	b = b[:prm.CtrlSegmentSize]
	if op != prm.WQEOpSend {
		b = b[:len(b)+prm.RaddrSegmentSize]
		prm.RaddrSegment(b[prm.CtrlSegmentSize:]).Set(remote, rkey)
	}
	prm.DataSegment(b[len(b):][:prm.DataSegmentSize]).Set(n, r.key, r.pa+off)
	b = b[:len(b)+prm.DataSegmentSize]
	prm.CtrlSegment(b).Set(op, 0, q.pi, q.n, len(b)/16, prm.CtrlCQUpdate, 0)
	copy(q.g.at(q.sq+uint64(q.pi%16)*64, 64), b)
	q.pi++
	q.records()
	q.g.check(q.g.c.Write(uapi.VFIORegionBAR0, uint64(q.g.uar)*4096+prm.UARBFOffset, b[:8]))
}

// pairOf brings two functions up and connects a QP of each.
func pairOf(t *testing.T, s *Server) (a, b *guestQP) {
	t.Helper()
	for k, q := range []**guestQP{&a, &b} {
		g := dial(t, s.Sockets()[k])
		g.bringUp()
		g.setGID(k)
		*q = g.newQP()
	}
	a.connect(1, b.n)
	b.connect(0, a.n)
	return a, b
}

func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
}

// TestRCBetweenTwoFunctions sends, writes and reads between two virtual machines.
func TestRCBetweenTwoFunctions(t *testing.T) {
	cfg := config(t, 2, "connectx-5")
	log := new(said)
	cfg.Logf = log.logf
	cfg.Pcap = filepath.Join(t.TempDir(), "p.pcapng")
	var err error
	// The last packet of the first long write is lost: a timer of the device, in real time, brings
	// it again.
	if cfg.Faults, err = fault.Parse("f.yaml", []byte("faults:\n- {opcode: 8, count: 1, do: drop}\n")); err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg)
	a, b := pairOf(t, s)
	ra, rb := a.g.newMR(64<<10), b.g.newMR(64<<10)
	fill(a.g.at(ra.pa, 64<<10), 1)
	for n := range uint32(20) { // around the rings
		b.recv(rb, 0, 4096)
		a.post(prm.WQEOpSend, ra, uint64(n), 3000+n, 0, 0)
		if e := a.cq.wait(); e.Opcode() != prm.CQEReq {
			t.Fatalf("send: %x", []byte(e))
		}
		if e := b.cq.wait(); e.Opcode() != prm.CQERespSend || e.ByteCnt() != 3000+n {
			t.Fatalf("receive: %x", []byte(e))
		}
		if !bytes.Equal(b.g.at(rb.pa, int(3000+n)), a.g.at(ra.pa+uint64(n), int(3000+n))) {
			t.Fatalf("message %d arrives changed", n)
		}
	}
	a.post(prm.WQEOpRDMAWrite, ra, 0, 60000, rb.pa+1000, rb.key)
	if e := a.cq.wait(); e.Opcode() != prm.CQEReq || !bytes.Equal(b.g.at(rb.pa+1000, 60000), a.g.at(ra.pa, 60000)) {
		t.Fatalf("write: %x", []byte(e))
	}
	fill(b.g.at(rb.pa, 64<<10), 2)
	a.post(prm.WQEOpRDMARead, ra, 0, 64<<10, rb.pa, rb.key)
	if e := a.cq.wait(); e.Opcode() != prm.CQEReq || !bytes.Equal(b.g.at(rb.pa, 64<<10), a.g.at(ra.pa, 64<<10)) {
		t.Fatalf("read: %x", []byte(e))
	}
	a.g.kill()
	b.g.kill()
	closed(t, s)
	if !log.has("rule 1 of the faults has acted upon 1 frame of 2") {
		t.Errorf("%q", log.lines)
	}
	if st, err := os.Stat(cfg.Pcap); err != nil || st.Size() < 180_000 {
		t.Errorf("capture: %v, %v", st, err)
	}
}

// TestWindowThatGoesAwayUnderDMA takes memory away that keys still name: by an unmap, by a shorter
// file, and by the end of bus mastering.
func TestWindowThatGoesAwayUnderDMA(t *testing.T) {
	for _, how := range []string{"unmap", "truncate", "bus master"} {
		t.Run(how, func(t *testing.T) {
			s := start(t, config(t, 2, "connectx-5"))
			defer closed(t, s)
			a, b := pairOf(t, s)
			defer a.g.kill()
			defer b.g.kill()
			// The buffer is alone in a window of its own.
			const at, n = 1 << 32, 64 << 10
			fd, err := unix.MemfdCreate("more", unix.MFD_CLOEXEC)
			if err == nil {
				err = unix.Ftruncate(fd, n)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			b.g.check(b.g.c.Map(at, n, rw, fd, 0))
			ra := a.g.newMR(n)
			fill(a.g.at(ra.pa, n), 3)
			in := prm.NewIn(prm.OpCreateMKey, 16)
			m := prm.CreateMKeyIn(in)
			c := m.MKC()
			c.SetAccessMode(prm.MKeyModeMTT)
			c.SetRW(true)
			c.SetLW(true)
			c.SetLR(true)
			c.SetQPN(prm.MKeyQPNAny)
			c.SetPD(b.g.pd)
			c.SetStartAddr(at)
			c.SetLen(n)
			c.SetLogPageSize(16)
			m.SetTranslationsOctwordActualSize(1)
			prm.MTT(m.Entries()).Set(0, at, 0)
			rkey := prm.MKeyOf(prm.CreateMKeyOut(b.g.cmd(in)).MKeyIndex(), 0)

			a.post(prm.WQEOpRDMAWrite, ra, 0, n, at, rkey)
			a.cq.wait()
			var got [n]byte
			if _, err := unix.Pread(fd, got[:], 0); err != nil || !bytes.Equal(got[:], a.g.at(ra.pa, n)) {
				t.Fatalf("before: %v", err)
			}
			switch how {
			case "unmap":
				b.g.check(b.g.c.Unmap(at, n, 0))
			case "truncate":
				if err := unix.Ftruncate(fd, 4096); err != nil {
					t.Fatal(err)
				}
			default:
				b.g.setCommand(0)
			}
			fill(a.g.at(ra.pa, n), 4)
			a.post(prm.WQEOpRDMAWrite, ra, 0, n, at, rkey)
			a.cq.wait() // the responder acknowledges: the loss is on its bus
			clear(got[:])
			k, _ := unix.Pread(fd, got[:], 0)
			if how != "truncate" && (k != n || !bytes.Equal(got[:3], []byte{3, 10, 17})) {
				t.Errorf("%d bytes, %x: written to without a right", k, got[:3])
			}
			if how == "truncate" && (k != 4096 || got[0] != 4) {
				t.Errorf("%d bytes, %x: what is left of the file should be written", k, got[:3])
			}
			s.m.mu.Lock()
			if s.m.fns[1].link.Counters().Unsupported == 0 {
				t.Error("nothing is counted")
			}
			s.m.mu.Unlock()
		})
	}
}

// TestKilledInTraffic kills a virtual machine while messages are under way, and begins again.
func TestKilledInTraffic(t *testing.T) {
	s := start(t, config(t, 2, "connectx-5"))
	defer closed(t, s)
	for n := range 10 {
		a, b := pairOf(t, s)
		ra, rb := a.g.newMR(64<<10), b.g.newMR(64<<10)
		for range 12 {
			a.post(prm.WQEOpRDMAWrite, ra, 0, 64<<10, rb.pa, rb.key)
			b.post(prm.WQEOpRDMARead, rb, 0, 64<<10, ra.pa, ra.key)
		}
		if n%2 == 0 {
			a.g.kill()
			b.g.kill()
		} else {
			b.g.kill()
			a.g.kill()
		}
	}
	if got := fmt.Sprint(s.m.fns[0].lives, s.m.fns[1].lives); got != "10 10" {
		t.Errorf("lives: %s", got)
	}
}
