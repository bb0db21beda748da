package td

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// sameTranscript runs one program on a plain PD and on a thread domain.
func sameTranscript(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	var packets [][]string
	var memory, results []string
	for _, name := range []string{"plain", "domain"} {
		o := kit.Default()
		o.Cap.MaxInline = 32
		if name == "domain" {
			o.PD = e.AllocTD(c).PD
		}
		a, b := e.PairWith(c, other, o)
		mem, far := e.Buffer(c, 256, kit.AllAccess), other.Buffer(c, 256, kit.AllAccess, 0)
		mem.FillByte(c, 0)
		mem.Set(c, 0, []byte("the same bytes in both runs"))
		b.Recv(c, far, posts)
		var wcs []string
		do := func(wr verbs.SendWR) {
			wc := a.PostAndPoll(c, wr)
			wcs = append(wcs, fmt.Sprintf("%d %v %d %d", wc.ID, wc.Status, wc.Opcode, wc.Flags))
		}
		tap := kit.Tap(c, func() {
			for i := range uint64(posts) {
				do(kit.Send(i, mem.SGE(0, 1+int(i))))
				wr := far.WriteTo(i, 128, mem.SGE(0, 1+int(i)))
				wr.Flags |= verbs.SendInline
				do(wr)
				do(far.ReadFrom(i, 128, mem.SGE(192, 1+int(i))))
			}
		})
		packets = append(packets, kit.Transcript(tap, []uint32{b.QPN, a.QPN()}, []uint32{o.PSN, o.PSN}))
		memory = append(memory, fmt.Sprintf("%x %x", mem.Get(c, 0, 256), far.Get(c, 128, 128)))
		results = append(results, strings.Join(wcs, "\n"))
	}
	c.True("packets", len(packets[0]) >= 4*posts, "the tap saw %d", len(packets[0]))
	c.Equal("packets", packets[1], packets[0])
	c.Equal("completions", results[1], results[0])
	c.Equal("memory", memory[1], memory[0])
}

const (
	threads  = 8
	eachOwn  = 10_000    // sends of each thread, so that the suite stays short
	ownFull  = 1_000_000 // what the catalogue says
	eachBoth = 1_000     // all of all threads fit into one queue
	inHand   = 16
)

// sendInOrder has the thread send n messages, with a few in hand, and take the completions of
// both ends.
func (u tdUser) sendInOrder(c *spec.C, n int) {
	posted, done := 0, 0
	for done < n {
		for posted < n && posted-done < inHand {
			u.B.RecvInto(c, uint64(posted), u.mem.SGE(64, 16))
			u.A.Post(c, kit.Send(uint64(posted), u.mem.SGE(0, 16)))
			posted++
		}
		s, r := kit.ExpectSuccess(c, u.A.SendCQ, 1)[0], kit.ExpectSuccess(c, u.B.RecvCQ, 1)[0]
		if s.ID != uint64(done) || r.ID != uint64(done) {
			c.Failf("completions %d: send of request %d, receive of request %d", done, s.ID, r.ID)
		}
		done++
	}
}

func threadsWithOwn(c *spec.C) {
	n := c.Scale(eachOwn, ownFull)
	c.Observe("sends of each thread", n)
	e := kit.Open(c)
	users := make([]tdUser, threads)
	for i := range users {
		users[i] = newTDUser(c, e)
	}
	kit.RunThreads(c, threads, func(c *spec.C, i int) { users[i].sendInOrder(c, n) })
	for _, u := range users {
		kit.ExpectNoCompletion(c, u.A.SendCQ, kit.QuietPeriod/20)
		kit.ExpectNoCompletion(c, u.B.RecvCQ, kit.QuietPeriod/20)
	}
}

func threadsSharing(c *spec.C) {
	c.Observe("sends of each thread", eachBoth)
	e := kit.Open(c)
	o := kit.Default()
	const total = threads * eachBoth
	o.Cap.MaxSendWR, o.Cap.MaxRecvWR, o.CQE = total, total, total
	p := e.Pair(c, o)
	mem := e.Buffer(c, 256, kit.AllAccess)
	for i := range uint64(total) {
		p.B.RecvInto(c, i, mem.SGE(64, 8))
	}
	kit.RunThreads(c, threads, func(c *spec.C, i int) {
		for k := range eachBoth {
			p.A.Post(c, kit.Send(uint64(i*eachBoth+k), mem.SGE(8*i, 8)))
		}
	})
	seen := make([]bool, total)
	last := make([]int, threads)
	for _, w := range kit.ExpectSuccess(c, p.A.SendCQ, total) {
		if w.ID >= total || seen[w.ID] {
			c.Failf("request %d completed twice, or was never posted", w.ID)
		}
		seen[w.ID] = true
		if i, k := int(w.ID)/eachBoth, int(w.ID)%eachBoth; k != last[i] {
			c.Failf("thread %d: request %d completed where %d was due", i, k, last[i])
		} else {
			last[i]++
		}
	}
	kit.ExpectInOrder(c, p.B.RecvCQ, total)
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
	c.Observe("completed", total)
}

// raceDetected runs in another process, which the library ends.
func raceDetected(c *spec.C) {
	o := kit.OpenOtherProcess(c, 0, nil)
	q := o.CreateQP(c, player.AllocTDQP, kit.Args{"send_wr": 256})
	back := o.CreateQP(c, player.CreateQP, nil)
	opt := kit.Default()
	q.Connect(c, back.Peer(opt.PSN), opt, verbs.QPSRTS)
	back.Connect(c, q.Peer(opt.PSN), opt, verbs.QPSRTS)
	mem := o.Buffer(c, 64, kit.AllAccess, 0)
	r, err := o.Try(c, player.Race, kit.Args{"qp": q.ID, "threads": 2, "count": 100, "buf": mem.ID, "len": 8}, nil)
	c.True("the process was ended", errors.Is(err, verbs.ErrProcessDied), "want ErrProcessDied, got %v (%s)", err, r.Text)
	c.True("its last words", strings.Contains(strings.ToLower(r.Text), "multithread"), "got %q", r.Text)
}

func neighbourAtFullRate(c *spec.C) {
	e := kit.Open(c)
	even, odd := newTDUser(c, e), newTDUser(c, e)
	c.Equal("one page", kit.BFReg(c, even.A).UARPage == kit.BFReg(c, odd.A).UARPage, true)
	const n = 500
	c.Observe("messages", n)
	var stop atomic.Bool
	kit.RunThreads(c, 2, func(c *spec.C, i int) {
		if i == 0 {
			even.sendInOrder(c, n)
			stop.Store(true)
			return
		}
		wr := kit.Write(0, odd.mem, 128, odd.mem.SGE(0, 8))
		wr.Flags |= verbs.SendInline
		posted, done := uint64(0), uint64(0)
		for !stop.Load() || done < posted {
			for !stop.Load() && posted-done < inHand {
				wr.ID = posted
				odd.A.Post(c, wr)
				posted++
			}
			for _, w := range kit.ExpectSuccess(c, odd.A.SendCQ, 1) {
				if w.ID != done {
					c.Failf("the neighbour's request %d completed where %d was due", w.ID, done)
				}
				done++
			}
		}
	})
	even.sendAndCheck(c, "afterwards")
	odd.sendAndCheck(c, "the neighbour afterwards")
}
