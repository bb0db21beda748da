package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/sim"
)

// A READ or an atomic whose response finds no page is asked for again at each interval until the
// driver's answer has reached the queue, uses no retry, and then has its data once. Without the
// hypothesis it is asked for once more.
func TestLandingIsAskedForAgain(t *testing.T) {
	const answered = 500 * sim.Microsecond // and the queue goes on 10 us later
	for _, op := range []prm.WQEOpcode{prm.WQEOpRDMARead, prm.WQEOpAtomicFA} {
		for interval, want := range map[sim.Time]uint64{
			0:                     0,
			100 * sim.Microsecond: 5,
			505 * sim.Microsecond: 1, // the fault is there 2 us after the request
			510 * sim.Microsecond: 0, // the queue has learned by then
			600 * sim.Microsecond: 0,
		} {
			p, o := pagedParams(), defaults()
			p.ODP.AskAgain, o.timeout = interval, 5 // 131 us, which no request may see
			ha, hb, a, _, ab, _ := twoHosts(t, p, 1, o)
			pa, far := newPager(t, ha, 1, a), hb.newMR(4096, rightsAll)
			far.fill(pattern)
			n := 8
			if op == prm.WQEOpRDMARead {
				n = 3000
			}
			expected := far.bytes(0, n)
			a.post(wr{op: op, rkey: far.rkey, raddr: far.va, swap: 3, sges: []sge{pa.region.sge(0, n)}})
			run(t, ha.e, answered)
			pa.serve(never)
			run(t, ha.e, 50*sim.Microsecond)
			a.scq.expect(prm.CQEReq)
			run(t, ha.e, 2*sim.Millisecond)
			if got := ha.d.Counters().RequestsAskedAgain; got != want || ab.n != int(want)+2 {
				t.Errorf("%#x, every %v: asked again %d times, want %d, with %d packets", op, interval, got, want, ab.n)
			}
			if got := pa.bytes(0, n); !bytes.Equal(got, expected) {
				t.Errorf("%#x, every %v: the data differs", op, interval)
			}
			if got, want := host64(far.bytes(0, 8)), host64(expected)+3; op == prm.WQEOpAtomicFA && got != want {
				t.Errorf("the counter is %d, want %d", got, want)
			}
			if ha.counter(prm.QCLocalAckTimeoutErr) != 0 || pa.faults != 1 {
				t.Errorf("%#x, every %v: %d timeouts, %d faults", op, interval, ha.counter(prm.QCLocalAckTimeoutErr), pa.faults)
			}
		}
	}
}

// The interval begins with each fault: a READ that meets an absent page soon after the one before
// it is asked for when its own has gone by.
func TestAskingBeginsWithEachFault(t *testing.T) {
	p := pagedParams()
	p.ODP.AskAgain = 100 * sim.Microsecond
	ha, hb, a, _, _, _ := twoHosts(t, p, 1, defaults())
	pa, far := newPager(t, ha, 2, a), hb.newMR(4096, rightsAll)
	for page := range 2 {
		a.post(wr{op: prm.WQEOpRDMARead, rkey: far.rkey, raddr: far.va, sges: []sge{pa.region.sge(4096*page, 64)}})
	}
	run(t, ha.e, 60*sim.Microsecond)
	pa.serve(never) // the queue goes on 10 us later, and the second READ meets its page
	run(t, ha.e, 20*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	for want := range uint64(4) { // 80 us, 180 us and so on; the second fault is there at 72
		if n := ha.d.Counters().RequestsAskedAgain; n != want {
			t.Errorf("at %v: asked again %d times, want %d", ha.e.Now(), n, want)
		}
		run(t, ha.e, 100*sim.Microsecond)
	}
}

// Of queue pairs whose responses land on one page each learns alone that it has come, one after the
// other, and asks until then. A page that was there before has none of it.
func TestQueuesLearnOneAfterTheOther(t *testing.T) {
	const queues, learn, interval = 4, 200 * sim.Microsecond, 20 * sim.Microsecond
	for _, prefetched := range []bool{false, true} {
		p, o := pagedParams(), defaults()
		p.ODP.AskAgain, p.ODP.Learn = interval, learn
		ha, hb, first, _, _, _ := twoHosts(t, p, 1, o)
		qps := []*tQP{first}
		for range queues - 1 {
			a, b := ha.newQP(ha.newCQ(9, 64), ha.newCQ(9, 64)), hb.newQP(hb.newCQ(9, 64), hb.newCQ(9, 64))
			a.connect(b, o)
			b.connect(a, o)
			qps = append(qps, a)
		}
		pa, far := newPager(t, ha, 1, qps...), hb.newMR(4096, rightsAll)
		if prefetched {
			pa.in(0)
		}
		for i, q := range qps {
			q.post(wr{op: prm.WQEOpRDMARead, rkey: far.rkey, raddr: far.va, sges: []sge{pa.region.sge(64*i, 64)}})
		}
		run(t, ha.e, 100*sim.Microsecond) // all faults are out
		pa.serve(never)
		asked := ha.d.Counters().RequestsAskedAgain
		run(t, ha.e, 20*sim.Microsecond)
		for i, q := range qps {
			if prefetched {
				q.scq.expect(prm.CQEReq)
				continue
			}
			q.scq.expectNone()
			run(t, ha.e, learn-20*sim.Microsecond)
			q.scq.expectNone()
			run(t, ha.e, 20*sim.Microsecond)
			q.scq.expect(prm.CQEReq)
			// Until this queue has learned, it and those behind it ask ten times.
			n := ha.d.Counters().RequestsAskedAgain
			if each := uint64(queues-i) * uint64(learn/interval); n-asked > each+queues || n-asked+queues < each {
				t.Errorf("queue %d: %d requests while it waited, want about %d", i, n-asked, each)
			}
			asked = n
		}
		run(t, ha.e, sim.Millisecond)
		if n := ha.d.Counters().RequestsAskedAgain; n != asked || prefetched && n != 0 {
			t.Errorf("prefetched %v: %d requests in all, %d when the last had learned", prefetched, n, asked)
		}
	}
}

// What an initiator of XRC asks for again names its SRQ, like each of its requests.
func TestAskingNamesTheSRQ(t *testing.T) {
	p := pagedParams()
	p.ODP.XRC, p.ODP.AskAgain = prm.ODPRead, 20*sim.Microsecond
	x := newXRCBench(t, p, defaults())
	pa := newPager(t, x.ha.host, 1, x.ini)
	pa.chooseScheme(true)
	s, m := x.srqs[1], x.mem[1]
	x.ini.post(wr{op: prm.WQEOpRDMARead, srqn: s.n, rkey: m.rkey, raddr: m.va, sges: []sge{pa.region.sge(0, 3000)}})
	x.run(100 * sim.Microsecond)
	pa.serve(never)
	x.run(50 * sim.Microsecond)
	x.ini.scq.expect(prm.CQEReq)
	if n := x.ha.d.Counters().RequestsAskedAgain; n != 5 || x.ab.srqns[s.n] != 7 || len(x.ab.srqns) != 1 {
		t.Errorf("asked again %d times, SRQs %v in requests", n, x.ab.srqns)
	}
	x.judge(oracle.Options{MTU: 1024, ODP: true}, "OR-041") // a response that was dropped for its page has arrived
	x.quiet()
}
