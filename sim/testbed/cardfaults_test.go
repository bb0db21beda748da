package testbed

import (
	"bytes"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
)

// failure is a request that fails, and what ConnectX-5 and ConnectX-6 were seen to show of it
// (docs/fidelity.md, When things fail).
type failure struct {
	name    string
	prepare func(f *fallen) // what is wrong
	request func(f *fallen) verbs.SendWR
	status  verbs.WCStatus
	vendor  uint32

	requester, responder map[string]uint64 // growth of counters; those of errorCounters that are not named stay
	sent                 uint64            // packets of requests
}

// fallen is a connection on which something fails.
type fallen struct {
	*rig
	a, b *node
	do   func(func(verbs.Thread))
}

var errorCounters = []string{
	"req_cqe_error", "req_cqe_flush_error", "req_remote_access_errors", "req_remote_invalid_request", "req_transport_retries_exceeded",
	"local_ack_timeout_err", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart_cnps", "packet_seq_err", "out_of_sequence", "implied_nak_seq_err", "duplicate_request",
	"resp_cqe_error", "resp_cqe_flush_error", "resp_remote_access_errors", "resp_remote_invalid_request", "resp_local_length_error", "resp_local_protection",
	"resp_local_qp_error", "rx_write_requests", "rx_read_requests", "rx_atomic_requests", "out_of_buffer",
}

// cards runs body on each part that was measured.
func cards(t *testing.T, body func(x *rig)) {
	for _, name := range []string{"connectx-5", "connectx-6"} {
		t.Run(name, func(t *testing.T) {
			run(t, config(t, func(c *Config) {
				p, err := profile.Load(name)
				if err != nil {
					t.Fatal(err)
				}
				p.HCA.LinkLayer = hca.Ethernet
				c.Profile = p
			}), body)
		})
	}
}

// rights sets the access flags of the peer's queue pair.
func (f *fallen) rights(a verbs.AccessFlags) {
	f.do(func(t verbs.Thread) {
		f.ok("rights", f.b.qp.Modify(t, &verbs.QPAttr{Access: a}, verbs.QPMaskAccessFlags))
	})
}

// to is a WRITE of n bytes to the peer's memory.
func (f *fallen) to(n int) verbs.SendWR {
	return verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: f.a.sge(0, n), RemoteAddr: f.b.buf.Addr(), RKey: f.b.mr.RKey()}
}

func write(n int, change func(f *fallen, w *verbs.SendWR)) func(f *fallen) verbs.SendWR {
	return func(f *fallen) verbs.SendWR {
		w := f.to(n)
		if change != nil {
			change(f, &w)
		}
		return w
	}
}

type counts = map[string]uint64

var failures = []failure{
	{"local key unknown", nil, write(8, func(_ *fallen, w *verbs.SendWR) { w.SGEs[0].LKey ^= 0xff00 }), verbs.WCLocProtErr, 0x52, counts{"req_cqe_error": 1}, nil, 0},
	{"SGE longer than its region", nil, write(2*memory4K, nil), verbs.WCLocProtErr, 0x53, counts{"req_cqe_error": 1}, counts{"rx_write_requests": 1}, memory4K / 1024},
	{"READ into a region without local write", nil, write(8, func(f *fallen, w *verbs.SendWR) {
		mr, err := f.a.pd.RegMR(f.t, f.a.buf.Addr(), 64, verbs.AccessRemoteRead)
		f.ok("region", err)
		w.Opcode, w.SGEs[0].LKey = verbs.WRRDMARead, mr.LKey()
	}), verbs.WCLocProtErr, 0x33, counts{"req_cqe_error": 1}, nil, 0},
	{"WRITE to a QP without remote write", func(f *fallen) { f.rights(verbs.AccessRemoteRead) }, write(8, nil),
		verbs.WCRemInvReqErr, 0x8a, counts{"req_cqe_error": 1, "req_remote_invalid_request": 1}, nil, 1},
	{"WRITE to a QP and a region without remote write", func(f *fallen) { f.rights(verbs.AccessRemoteRead) }, write(8, func(f *fallen, w *verbs.SendWR) {
		f.do(func(t verbs.Thread) {
			mr, err := f.b.pd.RegMR(t, f.b.buf.Addr(), 64, verbs.AccessRemoteRead)
			f.ok("region", err)
			w.RKey = mr.RKey()
		})
	}), verbs.WCRemInvReqErr, 0x8a, counts{"req_cqe_error": 1, "req_remote_invalid_request": 1}, nil, 1},
	{"atomic to a QP without atomics", func(f *fallen) { f.rights(verbs.AccessRemoteWrite) }, write(8, func(_ *fallen, w *verbs.SendWR) { w.Opcode = verbs.WRAtomicFetchAdd }),
		verbs.WCRemInvReqErr, 0x8a, counts{"req_cqe_error": 1, "req_remote_invalid_request": 1}, nil, 1},
	{"remote key unknown", nil, write(8, func(_ *fallen, w *verbs.SendWR) { w.RKey ^= 0xff00 }),
		verbs.WCRemAccessErr, 0x88, counts{"req_cqe_error": 1, "req_remote_access_errors": 1}, counts{"rx_write_requests": 1}, 1},
	{"address beyond the region", nil, write(64, func(_ *fallen, w *verbs.SendWR) { w.RemoteAddr += memory4K - 32 }),
		verbs.WCRemAccessErr, 0x88, counts{"req_cqe_error": 1, "req_remote_access_errors": 1}, counts{"rx_write_requests": 1}, 1},
	{"READ by an unknown key", nil, write(8, func(_ *fallen, w *verbs.SendWR) { w.Opcode, w.RKey = verbs.WRRDMARead, w.RKey^0xff00 }),
		verbs.WCRemAccessErr, 0x88, counts{"req_cqe_error": 1, "req_remote_access_errors": 1}, counts{"rx_read_requests": 1}, 1},
	{"no receive request", func(f *fallen) { f.again(14, 7, 1) }, write(8, func(_ *fallen, w *verbs.SendWR) { w.Opcode = verbs.WRSend }),
		verbs.WCRNRRetryExcErr, 0x87, counts{"req_cqe_error": 1}, counts{"out_of_buffer": 2}, 2},
	{"no answer", func(f *fallen) {
		f.do(func(t verbs.Thread) {
			f.ok("RESET", f.b.qp.Modify(t, &verbs.QPAttr{State: verbs.QPSReset}, verbs.QPMaskState))
		})
	}, write(8, nil), verbs.WCRetryExcErr, 0x81,
		counts{"req_cqe_error": 1, "req_transport_retries_exceeded": 1, "local_ack_timeout_err": 6, "roce_adp_retrans": 6, "roce_slow_restart_cnps": 11}, nil, 12},
}

// memory4K is the size of the memory of each side.
const memory4K = 4096

// again sets the queue pair of the requester up anew, with other retries.
func (f *fallen) again(timeout, retries, rnr uint8) {
	f.t.Sleep(time.Microsecond)
	f.ok("RESET", f.a.qp.Modify(f.t, &verbs.QPAttr{State: verbs.QPSReset}, verbs.QPMaskState))
	f.connectWith(f.t, f.a.qp, f.a.gid, f.b.gid, f.b.qp.QPN(), verbs.MTU1024, verbs.QPAttr{Timeout: timeout, RetryCnt: retries, RNRRetry: rnr})
}

// end is the next completion in error.
func (f *fallen) end() verbs.WC {
	f.Helper()
	var wc [1]verbs.WC
	n, err := f.a.cq.PollWait(f.t, wc[:], time.Minute)
	f.ok("poll", err)
	if n != 1 {
		f.Fatalf("no completion in a minute")
	}
	return wc[0]
}

func (f *fallen) counters(host int) counts {
	c, err := f.bed.HardwareCounters(f.t, host)
	f.ok("counters", err)
	return c
}

// grown compares the growth of the counters of a host with what is wanted; others stay.
func (f *fallen) grown(what string, host int, before, want counts) {
	f.Helper()
	now := f.counters(host)
	for _, name := range errorCounters {
		if got := now[name] - before[name]; got != want[name] {
			f.Errorf("%s: %s rises by %d, want %d", what, name, got, want[name])
		}
	}
}

// TestFailuresOfCards: status, vendor byte and counters of each cause.
func TestFailuresOfCards(t *testing.T) {
	for _, c := range failures {
		t.Run(c.name, func(t *testing.T) {
			cards(t, func(x *rig) {
				f := &fallen{rig: x}
				f.a, f.b, f.do = x.pair(true, memory4K)
				if c.prepare != nil {
					c.prepare(f)
				}
				w := c.request(f)
				own, peer, sent := f.counters(0), f.counters(1), f.requests()
				x.post(f.a, w)
				wc := f.end()
				if wc.Status != c.status || wc.VendorErr != c.vendor {
					x.Errorf("%v, vendor error %#x, want %v, %#x", wc.Status, wc.VendorErr, c.status, c.vendor)
				}
				x.t.Sleep(100 * time.Microsecond)
				f.grown("requester", 0, own, c.requester)
				f.grown("responder", 1, peer, c.responder)
				if n := f.requests() - sent; n != c.sent {
					x.Errorf("%d request packets, want %d", n, c.sent)
				}
			})
		})
	}
}

// requests are the request packets that the first host has sent.
func (f *fallen) requests() uint64 {
	for _, r := range f.bed.Counters() {
		if r.Unit == "host0/mlx5_0/hca" && r.Name == "tx_requests" {
			return r.Value
		}
	}
	f.Fatal("no counter tx_requests")
	return 0
}

// TestFlushesOfCards: the request at the head of a queue that is moved to ERR has a vendor byte of
// its own and counts as no flush.
func TestFlushesOfCards(t *testing.T) {
	cards(t, func(x *rig) {
		f := &fallen{rig: x}
		f.a, f.b, f.do = x.pair(true, memory4K)
		f.do(func(t verbs.Thread) {
			x.ok("RESET", f.b.qp.Modify(t, &verbs.QPAttr{State: verbs.QPSReset}, verbs.QPMaskState))
		})
		before := f.counters(0)
		for range 3 {
			x.post(f.a, f.to(8))
		}
		x.t.Sleep(5 * time.Microsecond)
		x.ok("ERR", f.a.qp.Modify(x.t, &verbs.QPAttr{State: verbs.QPSErr}, verbs.QPMaskState))
		for i, vendor := range []uint32{0xf5, 0xf9, 0xf9} {
			if wc := f.end(); wc.Status != verbs.WCWRFlushErr || wc.VendorErr != vendor {
				x.Errorf("request %d: %v, %#x, want %#x", i, wc.Status, wc.VendorErr, vendor)
			}
		}
		f.grown("moved to ERR", 0, before, counts{"req_cqe_error": 3, "req_cqe_flush_error": 2})
		x.post(f.a, f.to(8))
		if wc := f.end(); wc.VendorErr != 0xf9 {
			x.Errorf("posted in ERR: %#x", wc.VendorErr)
		}
	})
	cards(t, func(x *rig) {
		f := &fallen{rig: x}
		f.a, f.b, f.do = x.pair(true, memory4K)
		before := f.counters(0)
		w := f.to(8)
		w.RKey ^= 0xff00
		x.post(f.a, w)
		x.post(f.a, f.to(8))
		for i, vendor := range []uint32{0x88, 0xf9} {
			if wc := f.end(); wc.VendorErr != vendor {
				x.Errorf("request %d: %v, %#x, want %#x", i, wc.Status, wc.VendorErr, vendor)
			}
		}
		f.grown("behind a failed one", 0, before, counts{"req_cqe_error": 2, "req_cqe_flush_error": 1, "req_remote_access_errors": 1})
	})
}

// TestMemoryAfterFailures: packets are checked one by one, and the send PSN stands where the
// responder has stopped.
func TestMemoryAfterFailures(t *testing.T) {
	for _, c := range []struct {
		name                   string
		length, inside, landed int
	}{
		{"one packet that ends beyond", 64, 32, 0}, {"4 KiB with 2 KiB inside", 4096, 2048, 2048}, {"4 KiB with 2,560 B inside", 4096, 2560, 2048},
		{"nothing inside", 4096, 0, 0}, {"all but the last byte", 4096, 4095, 3072},
	} {
		t.Run(c.name, func(t *testing.T) {
			cards(t, func(x *rig) {
				f := &fallen{rig: x}
				f.a, f.b, f.do = x.pair(true, 2*memory4K)
				x.write(x.t, f.a.buf, bytes.Repeat([]byte{0xaa}, c.length), 0)
				w := f.to(c.length)
				f.do(func(t verbs.Thread) {
					mr, err := f.b.pd.RegMR(t, f.b.buf.Addr(), memory4K, everything)
					x.ok("region", err)
					w.RKey, w.RemoteAddr = mr.RKey(), f.b.buf.Addr()+uint64(memory4K-c.inside)
				})
				x.post(f.a, w)
				if wc := f.end(); wc.Status != verbs.WCRemAccessErr {
					x.Fatalf("%v", wc.Status)
				}
				f.do(func(t verbs.Thread) {
					got := x.read(t, f.b.buf, memory4K-c.inside, c.length)
					if n := bytes.Count(got, []byte{0xaa}); n != c.landed || !bytes.Equal(got[:n], bytes.Repeat([]byte{0xaa}, n)) {
						x.Errorf("%d bytes landed, want %d", n, c.landed)
					}
				})
				if n := f.psn() - 77; n != uint32(c.landed/1024) {
					x.Errorf("the send PSN has moved by %d, want %d", n, c.landed/1024)
				}
			})
		})
	}
}

// psn is the send PSN that a query of the requester's queue pair gives.
func (f *fallen) psn() uint32 {
	a, _, err := f.a.qp.Query(f.t, verbs.QPMaskState|verbs.QPMaskSQPSN)
	f.ok("query", err)
	return a.SQPSN
}

// TestPSNAfterFailures: after RETRY_EXC the send PSN stands at what was sent; moved to ERR in the
// middle of a WRITE, at what has landed.
func TestPSNAfterFailures(t *testing.T) {
	cards(t, func(x *rig) {
		f := &fallen{rig: x}
		f.a, f.b, f.do = x.pair(true, memory4K)
		f.do(func(t verbs.Thread) {
			x.ok("RESET", f.b.qp.Modify(t, &verbs.QPAttr{State: verbs.QPSReset}, verbs.QPMaskState))
		})
		x.post(f.a, f.to(3000))
		if wc := f.end(); wc.Status != verbs.WCRetryExcErr {
			x.Fatalf("%v", wc.Status)
		}
		if n := f.psn() - 77; n != 3 {
			x.Errorf("the send PSN has moved by %d, want 3", n)
		}
	})
	for _, after := range []time.Duration{5 * time.Microsecond, 20 * time.Microsecond, 51 * time.Microsecond} {
		cards(t, func(x *rig) {
			const size = 4 << 20
			f := &fallen{rig: x}
			f.a, f.b, f.do = x.pair(true, size)
			x.write(x.t, f.a.buf, bytes.Repeat([]byte{0xaa}, size), 0)
			x.post(f.a, f.to(size))
			x.t.Sleep(after)
			x.ok("ERR", f.a.qp.Modify(x.t, &verbs.QPAttr{State: verbs.QPSErr}, verbs.QPMaskState))
			if wc := f.end(); wc.Status != verbs.WCWRFlushErr {
				x.Fatalf("%v", wc.Status)
			}
			x.t.Sleep(time.Millisecond)
			moved := int(f.psn()-77) * 1024
			f.do(func(t verbs.Thread) {
				got := x.read(t, f.b.buf, 0, size)
				n := bytes.Count(got, []byte{0xaa})
				if n == 0 || n == size || !bytes.Equal(got[:n], bytes.Repeat([]byte{0xaa}, n)) {
					x.Errorf("%d bytes landed", n)
				}
				if moved != n {
					x.Errorf("%d bytes landed, the send PSN has moved by %d", n, moved)
				}
			})
		})
	}
}

// TestSilenceAfterDeregistration: WRITEs under way are neither acknowledged nor refused for a
// while, and then refused.
func TestSilenceAfterDeregistration(t *testing.T) {
	cards(t, func(x *rig) {
		f := &fallen{rig: x}
		f.a, f.b, f.do = x.pair(true, memory4K)
		w := f.to(8)
		var gone time.Duration
		f.do(func(t verbs.Thread) {
			x.ok("dereg", f.b.mr.Dereg(t))
			gone = t.Now()
		})
		x.post(f.a, w)
		var wc [1]verbs.WC
		if n, err := f.a.cq.PollWait(x.t, wc[:], gone+900*time.Microsecond-x.t.Now()); n != 0 || err != nil {
			x.Fatalf("%d completions, %v", n, err)
		}
		if wc := f.end(); wc.Status != verbs.WCRemAccessErr || wc.VendorErr != 0x88 {
			x.Errorf("%v, %#x", wc.Status, wc.VendorErr)
		}
		if d := x.t.Now() - gone; d > 1300*time.Microsecond {
			x.Errorf("refused after %v", d)
		}
	})
	cards(t, func(x *rig) { // long after it, and beyond a region that is there, at once
		for _, wait := range []time.Duration{2 * time.Millisecond, 0} {
			f := &fallen{rig: x}
			f.a, f.b, f.do = x.pair(true, memory4K)
			w := f.to(8)
			if wait > 0 {
				f.do(func(t verbs.Thread) { x.ok("dereg", f.b.mr.Dereg(t)) })
			} else {
				w.RemoteAddr += memory4K
			}
			x.t.Sleep(wait)
			began := x.t.Now()
			x.post(f.a, w)
			if wc := f.end(); wc.Status != verbs.WCRemAccessErr || x.t.Now()-began > 300*time.Microsecond {
				x.Errorf("%v after %v", wc.Status, x.t.Now()-began)
			}
		}
	})
}
