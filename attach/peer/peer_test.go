//go:build linux

package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
)

// loopback is address n of this process among those of the loopback interface, so that tests that
// run side by side have their own.
func loopback(n int) netip.Addr {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, byte(192 + pid>>8%64), byte(pid), byte(1 + n)})
}

// open is a host at loopback address n.
func open(t *testing.T, n int, change func(*Config)) *Host {
	t.Helper()
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Place: wire.At(loopback(n)), Profile: p, Say: func(format string, a ...any) { t.Errorf("said: "+format, a...) }}
	if change != nil {
		change(&c)
	}
	h, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// card is what one end tells the other.
type card struct {
	gid  verbs.GID
	qpn  uint32
	addr uint64
	rkey uint32
}

// side is one end of a connection.
type side struct {
	t   verbs.Thread
	cq  verbs.CQ
	qp  verbs.QP
	buf verbs.Buffer
	mr  verbs.MR
}

// size is that of the memory of a side.
const size = 1 << 18

// connected makes a side and connects it with the one that gets and gives cards.
func connected(h *Host, t verbs.Thread, give chan<- card, get <-chan card) (*side, card) {
	must := func(what string, err error) {
		if err != nil {
			panic(fmt.Errorf("%s: %w", what, err))
		}
	}
	s := &side{t: t}
	devs, err := t.Process().Devices(t)
	must("devices", err)
	ctx, err := devs[0].Open(t)
	must("open", err)
	pd, err := ctx.AllocPD(t)
	must("PD", err)
	s.cq, err = ctx.CreateCQ(t, verbs.CQAttr{CQE: 63})
	must("CQ", err)
	s.buf, err = t.Process().Map(t, size, verbs.MapOptions{})
	must("map", err)
	s.mr, err = pd.RegMR(t, s.buf.Addr(), size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	must("MR", err)
	s.qp, err = pd.CreateQP(t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: s.cq, RecvCQ: s.cq, Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1}})
	must("QP", err)
	table := make([]verbs.GIDEntry, 1)
	_, err = ctx.QueryGIDTable(t, table, 0)
	must("GID", err)
	var far card
	h.Wait(t, func() {
		give <- card{table[0].GID, s.qp.QPN(), s.buf.Addr(), s.mr.RKey()}
		far = <-get
	})
	attr := verbs.QPAttr{State: verbs.QPSInit, Port: 1, Access: verbs.AccessRemoteWrite}
	must("INIT", s.qp.Modify(t, &attr, verbs.QPMaskState|verbs.QPMaskPKeyIndex|verbs.QPMaskPort|verbs.QPMaskAccessFlags))
	attr = verbs.QPAttr{State: verbs.QPSRTR, PathMTU: verbs.MTU1024, DestQPN: far.qpn, MinRNRTimer: 1, AH: verbs.AHAttr{Port: 1, IsGlobal: true, GRH: verbs.GRH{DGID: far.gid, HopLimit: 64}}}
	must("RTR", s.qp.Modify(t, &attr, verbs.QPMaskState|verbs.QPMaskAV|verbs.QPMaskPathMTU|verbs.QPMaskDestQPN|verbs.QPMaskRQPSN|verbs.QPMaskMaxDestRdAtomic|verbs.QPMaskMinRNRTimer))
	attr = verbs.QPAttr{State: verbs.QPSRTS, Timeout: 16, RetryCnt: 7, RNRRetry: 7}
	must("RTS", s.qp.Modify(t, &attr, verbs.QPMaskState|verbs.QPMaskSQPSN|verbs.QPMaskTimeout|verbs.QPMaskRetryCnt|verbs.QPMaskRNRRetry|verbs.QPMaskMaxQPRdAtomic))
	return s, far
}

// await takes one completion.
func (s *side) await(d time.Duration) error {
	var wc [1]verbs.WC
	switch n, err := s.cq.PollWait(s.t, wc[:], d); {
	case err != nil:
		return err
	case n == 0:
		return errors.New("no completion")
	case wc[0].Status != verbs.WCSuccess:
		return fmt.Errorf("completion with %v", wc[0].Status)
	}
	return nil
}

// rounds is how many writes of all memory there are.
const rounds = 20

// pattern is what round n writes.
func pattern(n int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + n)
	}
	return b
}

// writer writes its memory to the peer's in each round, with an immediate, and waits until the peer
// has seen it.
func writer(s *side, far card) error {
	for n := range rounds {
		if _, err := s.buf.WriteAt(s.t, pattern(n), 0); err != nil {
			return err
		}
		_, err := s.qp.PostSend(s.t, []verbs.SendWR{{Opcode: verbs.WRRDMAWriteImm, Flags: verbs.SendSignaled, RemoteAddr: far.addr, RKey: far.rkey,
			SGEs: []verbs.SGE{{Addr: s.buf.Addr(), Length: size, LKey: s.mr.LKey()}}}})
		if err := errors.Join(err, s.await(time.Minute)); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
	}
	return nil
}

// reader sees what the writer writes. It posts a receive after the writer may have sent.
func reader(s *side) error {
	for n := range rounds {
		_, err := s.qp.PostRecv(s.t, []verbs.RecvWR{{}})
		if err := errors.Join(err, s.await(time.Minute)); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		got := make([]byte, size)
		if _, err := s.buf.ReadAt(s.t, got, 0); err != nil {
			return err
		}
		if want := pattern(n); !bytes.Equal(got, want) {
			return fmt.Errorf("round %d: byte %d is wrong", n, firstDifference(got, want))
		}
	}
	return nil
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// both runs a writer and a reader.
func both(t *testing.T, w, r *Host) {
	t.Helper()
	ab, ba := make(chan card, 1), make(chan card, 1)
	end := make(chan error, 2)
	go func() {
		var failure error
		err := w.Run(t.Context(), func(th verbs.Thread) {
			s, far := connected(w, th, ab, ba)
			failure = writer(s, far)
			ba <- card{} // for the reader, whose device may have to answer again
		})
		end <- errors.Join(err, failure)
	}()
	go func() {
		var failure error
		err := r.Run(t.Context(), func(th verbs.Thread) {
			s, _ := connected(r, th, ba, ab)
			failure = reader(s)
			r.Wait(th, func() { <-ba })
		})
		end <- errors.Join(err, failure)
	}()
	for range 2 {
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
}

// Two hosts, each with a socket of its own, write to each other's memory; one loses frames of both
// directions, and its capture has all that it sent and what came.
func TestTwoHosts(t *testing.T) {
	var file bytes.Buffer
	w := open(t, 0, func(c *Config) {
		c.Faults = &fault.Plan{Rules: []fault.Rule{{Action: fault.Drop, Chance: 10_000}}}
		c.Pcap = &file
	})
	r := open(t, 1, func(c *Config) { c.Allow = []netip.Prefix{netip.PrefixFrom(loopback(0), 32)} })
	both(t, w, r)
	if lines := w.Faults(); len(lines) != 1 || strings.Contains(lines[0], "upon 0 of") {
		t.Errorf("%v", lines)
	}
	if n := w.Counters()["rx_write_requests"] + r.Counters()["rx_write_requests"]; n < rounds {
		t.Errorf("%d writes have come, %d were sent", n, rounds)
	}
	for _, h := range []*Host{w, r} {
		if c := h.Wire().Counts(); c.Sent < rounds || c.Received < rounds || c.Dropped() != "" {
			t.Errorf("%d datagrams sent, %d received, dropped: %q", c.Sent, c.Received, c.Dropped())
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	_, frames, err := pcap.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if pk, err := roce.Parse(f.Data); err != nil || !pk.ICRCOK() || pk.IPv4().ID() >= 64 {
			t.Fatalf("%x: %v", f.Data, err)
		}
	}
	if least := rounds * size / 1024; len(frames) < least {
		t.Errorf("%d frames are captured, at least %d were sent", len(frames), least)
	}
}

// A body that waits for somebody outside does not hold the host up, and is left behind when its
// user has no more patience.
func TestInterrupted(t *testing.T) {
	h := open(t, 2, nil)
	defer h.Close()
	h.grace = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan int)
	defer close(forever)
	err := h.Run(ctx, func(th verbs.Thread) {
		cancel()
		h.Wait(th, func() { <-forever })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// What cannot be is refused with what to do.
func TestOpenErrors(t *testing.T) {
	c := open(t, 3, nil)
	defer c.Close()
	load := func(name string) *profile.Profile {
		p, err := profile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	plain := load(profile.Default)
	for want, cfg := range map[string]Config{
		"is taken by another session":   {Place: wire.At(loopback(3)), Profile: plain},
		"is no address of this machine": {Place: wire.At(netip.MustParseAddr("192.0.2.201")), Profile: plain},
		"choose a profile without -ib":  {Place: wire.At(loopback(4)), Profile: load("connectx-5-ib")},
	} {
		if h, err := Open(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
			if err == nil {
				_ = h.Close()
			}
		}
	}
	plan, err := fault.Parse("f.yaml", []byte("events: [{do: kill, process: host0/p1, at: 1ms}]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Place: wire.At(loopback(5)), Profile: plain, Faults: plan}); err == nil || !strings.Contains(err.Error(), "frames and links") {
		t.Errorf("%v", err)
	}
	// Nothing is kept of what was refused.
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback(5), roce.UDPPort)))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// The clock of programs is the wall's, and a pause takes as long as it says, however busy the
// machine is.
func TestWallClock(t *testing.T) {
	h := open(t, 6, nil)
	defer h.Close()
	const pause = 30 * time.Millisecond
	var took time.Duration
	began := time.Now()
	err := h.Run(t.Context(), func(th verbs.Thread) {
		at := th.Now()
		th.Sleep(pause)
		took = th.Now() - at
	})
	if whole := time.Since(began); err != nil || took < pause-time.Millisecond || took > whole {
		t.Errorf("a pause of %v took %v by its own clock, %v by ours: %v", pause, took, whole, err)
	}
}
