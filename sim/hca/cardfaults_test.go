package hca

import (
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// says writes a send counter into the doorbell record.
func (q *tQP) says(pi uint16) {
	was := q.pi
	q.pi = pi
	q.record()
	q.pi = was
}

// TestRecordRulesInERR: what the register has announced is sent; once the queue pair is in ERR the
// requests up to the doorbell record complete, none where it is behind the first of them, and those
// that are missing when it is raised.
func TestRecordRulesInERR(t *testing.T) {
	const posted = 5
	for _, how := range []string{"moved", "refused", "unanswered", "local"} {
		for said := range posted + 1 {
			t.Run(fmt.Sprintf("%s, record %d of %d", how, said, posted), func(t *testing.T) {
				p := measuredParams()
				p.CardFaults = true
				ha, hb, a, _, _, _ := twoHosts(t, p, 1, defaults())
				r := hb.newMR(4096, rightsAll)
				w := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("x")}
				a.post(w, w)
				run(t, ha.e, 50*sim.Microsecond)
				a.scq.expect(prm.CQEReq)
				a.scq.expect(prm.CQEReq)
				first := w
				syndrome := prm.SyndromeWRFlush
				switch how {
				case "moved":
					ha.d.SetWire(&void{e: ha.e})
				case "refused":
					first.rkey ^= 1
					syndrome = prm.SyndromeRemoteAccess
				case "unanswered":
					ha.d.SetWire(&void{e: ha.e})
					syndrome = prm.SyndromeTransportRetryExc
				case "local":
					first = wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, sges: []sge{{5, 0, 8}}}
					syndrome = prm.SyndromeLocalProt
				}
				ring := []wr{first, w, w, w, w}
				b := a.put(ring...)
				a.says(2 + uint16(said))
				ha.d.MMIOWrite(a.reg(), b[:8])
				run(t, ha.e, 10*sim.Microsecond)
				if how == "moved" {
					a.modify2(prm.Op2ErrQP)
				}
				run(t, ha.e, 4*sim.Second)
				if s := a.state(); s != prm.QPStateERR {
					t.Fatalf("state %d", s)
				}
				next := func(i int) {
					t.Helper()
					want, vendor := prm.SyndromeWRFlush, uint8(0xf9)
					if i == 0 {
						want, vendor = syndrome, map[string]uint8{"moved": 0xf5, "refused": 0x88, "unanswered": 0x81, "local": 0x52}[how]
					}
					if e := a.scq.expectError(prm.CQEReqErr, want); e.WQECounter() != uint16(2+i) || e.VendorErrSynd() != vendor {
						t.Errorf("request %d: WQE %d, vendor byte %#x, want %#x", i, e.WQECounter(), e.VendorErrSynd(), vendor)
					}
				}
				for i := range said {
					next(i)
				}
				a.scq.expectNone()
				if c := a.query(); c.SWSQWQEBBCounter() != uint32(2+said) {
					t.Errorf("sw_sq_wqebb_counter is %d, want %d", c.SWSQWQEBBCounter(), 2+said)
				}
				if how == "unanswered" && ha.counter(prm.QCReqTransportRetriesExceeded) != 1 || how == "refused" && ha.counter(prm.QCReqRemoteAccessErrors) != 1 {
					t.Error("the failure is not counted")
				}
				if said == posted {
					return
				}
				a.says(2 + posted)
				run(t, ha.e, 73*sim.Microsecond)
				for i := said; i < posted; i++ {
					next(i)
				}
				a.scq.expectNone()
				if err := ha.e.Run(sim.Never - 1); err != nil { // the looks come to an end
					t.Fatal(err)
				}
			})
		}
	}
}

// TestRecordBehind: a record that comes before the requests that are not complete gives no
// completion, and a bounded number of events.
func TestRecordBehind(t *testing.T) {
	p := measuredParams()
	p.CardFaults = true
	ha, hb, a, _, _, _ := twoHosts(t, p, 1, defaults())
	r := hb.newMR(4096, rightsAll)
	w := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("x")}
	a.post(w, w)
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.scq.expect(prm.CQEReq)
	w.rkey ^= 1
	b := a.put(w)
	a.says(1)
	ha.d.MMIOWrite(a.reg(), b[:8])
	run(t, ha.e, 10*sim.Second)
	a.scq.expectNone()
	if a.state() != prm.QPStateERR || ha.counter(prm.QCReqRemoteAccessErrors) != 1 || a.query().SWSQWQEBBCounter() != 1 {
		t.Errorf("state %d, record %d", a.state(), a.query().SWSQWQEBBCounter())
	}
	if err := ha.e.Run(sim.Never - 1); err != nil {
		t.Fatal(err)
	}
	if n := ha.e.Events(); n > 1e6 {
		t.Errorf("%d events", n)
	}
	// Set up anew it works.
	a.modify2(prm.Op2RstQP)
	a.scq.expectNone()
}
