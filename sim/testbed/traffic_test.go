package testbed

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + i>>8)
	}
	return p
}

// Each operation moves its bytes, in loopback and over the cable.
func TestOperations(t *testing.T) {
	for _, remote := range []bool{false, true} {
		for _, n := range []int{0, 1, 2, 28, 60, 1023, 1024, 1025, 5000} {
			run(t, config(t), func(x *rig) {
				a, b, do := x.pair(remote, 16<<10)
				want := pattern(n)
				x.write(x.t, a.buf, want, 100)
				flags := verbs.SendSignaled
				if n <= 28 {
					flags |= verbs.SendInline
				}
				x.post(a, verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: flags, SGEs: a.sge(100, n),
					RemoteAddr: b.buf.Addr() + 200, RKey: b.mr.RKey()})
				if wc := x.wait(x.t, a); wc.ID != 1 || wc.Opcode != verbs.WCOpRDMAWrite || wc.QPN != a.qp.QPN() {
					x.Errorf("remote %v, %d bytes: write completed as %+v", remote, n, wc)
				}
				do(func(t verbs.Thread) {
					if got := x.read(t, b.buf, 200, n); !bytes.Equal(got, want) {
						x.Errorf("remote %v: %d bytes were not written", remote, n)
					}
					_, err := b.qp.PostRecv(t, []verbs.RecvWR{{ID: 9, SGEs: b.sge(8192, 8000)}})
					x.ok("recv", err)
				})
				x.post(a, verbs.SendWR{ID: 2, Opcode: verbs.WRSendImm, Imm: 0xa1b2c3d4, Flags: verbs.SendSignaled, SGEs: a.sge(100, n)})
				x.wait(x.t, a)
				if remote {
					do(func(t verbs.Thread) { x.checkReceive(t, b, want) })
				} else {
					x.checkReceive(x.t, b, want)
				}
				x.post(a, verbs.SendWR{ID: 3, Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, SGEs: a.sge(8192, n),
					RemoteAddr: b.buf.Addr() + 200, RKey: b.mr.RKey()})
				if wc := x.wait(x.t, a); wc.Opcode != verbs.WCOpRDMARead || int(wc.ByteLen) != n {
					x.Errorf("remote %v, %d bytes: read completed as %+v", remote, n, wc)
				}
				if got := x.read(x.t, a.buf, 8192, n); !bytes.Equal(got, want) {
					x.Errorf("remote %v: %d bytes were not read", remote, n)
				}
			})
		}
	}
}

func (x *rig) checkReceive(t verbs.Thread, b *node, want []byte) {
	x.Helper()
	wc := x.wait(t, b)
	if wc.ID != 9 || wc.Opcode != verbs.WCOpRecv || wc.Flags&verbs.WCWithImm == 0 || wc.Imm != 0xa1b2c3d4 || int(wc.ByteLen) != len(want) {
		x.Errorf("%d bytes received as %+v", len(want), wc)
	}
	if got := x.read(t, b.buf, 8192, len(want)); !bytes.Equal(got, want) {
		x.Errorf("%d bytes were not received", len(want))
	}
}

func TestAtomics(t *testing.T) {
	for _, remote := range []bool{false, true} {
		run(t, config(t), func(x *rig) {
			a, b, do := x.pair(remote, 4096)
			do(func(t verbs.Thread) { x.write(t, b.buf, []byte{5, 0, 0, 0, 0, 0, 0, 0}, 64) })
			for i, c := range []struct {
				op         verbs.WROpcode
				add, swap  uint64
				old, after byte
			}{{verbs.WRAtomicFetchAdd, 3, 0, 5, 8}, {verbs.WRAtomicCmpSwp, 8, 20, 8, 20}, {verbs.WRAtomicCmpSwp, 8, 30, 20, 20}} {
				x.post(a, verbs.SendWR{ID: uint64(i), Opcode: c.op, Flags: verbs.SendSignaled, SGEs: a.sge(0, 8),
					RemoteAddr: b.buf.Addr() + 64, RKey: b.mr.RKey(), CompareAdd: c.add, Swap: c.swap})
				x.wait(x.t, a)
				if got := x.read(x.t, a.buf, 0, 8); got[0] != c.old {
					x.Errorf("remote %v, atomic %d returned %v, want %d", remote, i, got, c.old)
				}
				do(func(t verbs.Thread) {
					if got := x.read(t, b.buf, 64, 8); got[0] != c.after {
						x.Errorf("remote %v, atomic %d left %v, want %d", remote, i, got, c.after)
					}
				})
			}
		})
	}
}

// The queue can be kept full for many times its length, unsignalled requests are
// retired with the signalled ones behind them, and a post too many is refused.
func TestFullQueueRefusesOnePostMore(t *testing.T) {
	run(t, config(t), func(x *rig) {
		a, b, _ := x.pair(true, 4096)
		depth := int(a.qp.Caps().MaxSendWR)
		w := verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGEs: a.sge(0, 64), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()}
		posted, done := 0, 0
		var wc [16]verbs.WC
		for done < 20*depth {
			for posted-done < depth {
				w.ID, w.Flags = uint64(posted), 0
				if posted%16 == 15 {
					w.Flags = verbs.SendSignaled
				}
				x.post(a, w)
				posted++
			}
			if _, err := a.qp.PostSend(x.t, []verbs.SendWR{w}); verbs.ErrnoOf(err).Error() != "cannot allocate memory" {
				x.Fatalf("post to a full queue: %v, want ENOMEM", err)
			}
			n, err := a.cq.PollWait(x.t, wc[:], 1e9)
			x.ok("poll", err)
			for _, c := range wc[:n] {
				if c.Status != verbs.WCSuccess || int(c.ID) != done+15 {
					x.Fatalf("completion %+v after %d", c, done)
				}
				done += 16
			}
			if n == 0 {
				x.Fatalf("nothing completes after %d", done)
			}
		}
	})
}
