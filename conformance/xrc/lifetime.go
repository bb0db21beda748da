package xrc

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// service is two processes on one host that receive through a target QP, and a sender of the case's
// process.
type service struct {
	*kit.Env
	c       *spec.C
	creator *kit.OtherXRC
	second  *kit.OtherXRC
	target  *kit.OtherQP
	sender  *kit.QP
	mem     *kit.Buffer
	sent    int
}

// message is how long each is, and receives how many each process can take.
const (
	message  = 64
	receives = 8
)

// serve starts both processes, of which the first makes the target QP. The second opens it if
// shares is set.
func serve(c *spec.C, shares bool) *service {
	e := kit.Open(c)
	s := &service{Env: e, c: c, creator: kit.JoinXRC(c, domainFile, receives), second: kit.JoinXRC(c, domainFile, receives), mem: e.Buffer(c, message, kit.AllAccess)}
	s.target = s.creator.Target(c)
	if shares {
		s.second.OpenTarget(c, s.target)
	}
	o := kit.Default()
	o.Timeout, o.RetryCnt = 14, 2
	s.sender = e.SenderTo(c, s.target, o)
	return s
}

// send sends a message that a process is to receive, and says how that ended.
func (s *service) send(to *kit.OtherXRC) verbs.WCStatus {
	s.sent++
	s.mem.Set(s.c, 0, fmt.Appendf(make([]byte, 0, message), "%-64d", s.sent))
	return s.sender.PostAndPoll(s.c, to.To(kit.Send(uint64(s.sent), s.mem.All()))).Status
}

// expect sends a message that must arrive as the receive numbered slot of the process.
func (s *service) expect(step string, to *kit.OtherXRC, slot int) {
	s.c.Equal(step, s.send(to).String(), verbs.WCSuccess.String())
	s.c.Equal(step+": receive", to.AwaitStatuses(s.c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
	s.c.Equal(step+": contents", string(to.Mem.Get(s.c, message*slot, message)), fmt.Sprintf("%-64d", s.sent))
}

func sharedByFile(c *spec.C) {
	s := serve(c, false)
	s.expect("to the process that made the target", s.creator, 0)
	s.expect("to the process that only has the domain", s.second, 0)
	s.expect("to the process that made the target", s.creator, 1)
}

func creatorDestroys(c *spec.C) {
	s := serve(c, true)
	s.expect("before", s.second, 0)
	s.creator.Do(c, player.DestroyQP, kit.Args{"qp": s.target.ID}, nil)
	s.expect("after", s.second, 1)
	s.expect("to the SRQ of the process that destroyed its handle", s.creator, 0)
}

func creatorExits(c *spec.C) {
	s := serve(c, true)
	s.expect("before", s.second, 0)
	s.creator.Kill(c)
	s.expect("after", s.second, 1)
}

func lastExits(c *spec.C) {
	s := serve(c, false)
	s.expect("before", s.second, 0)
	s.creator.Kill(c)
	c.Equal("send after the only user of the target ended", s.send(s.second).String(), verbs.WCRetryExcErr.String())
	_, err := s.second.DoErr(c, player.OpenTarget, kit.Args{"xrcd": s.second.Domain, "qpn": uint64(s.target.QPN)}, nil)
	c.Errno("open_qp of the target", err, syscall.EINVAL)
}

// nothingLeft ends all processes one after the other: with the last one QP and domain are gone.
func nothingLeft(c *spec.C) {
	s := serve(c, true)
	s.expect("with both", s.second, 0)
	s.creator.Kill(c)
	s.second.Kill(c)
	c.Equal("send after all have ended", s.send(s.second).String(), verbs.WCRetryExcErr.String())
	_, err := s.TryXRCD(c, kit.OpenFile(c, domainFile), 0)
	c.Errno("open_xrcd without O_CREAT", err, syscall.EAGAIN)
	again := kit.JoinXRC(c, domainFile, 1)
	_, err = again.DoErr(c, player.OpenTarget, kit.Args{"xrcd": again.Domain, "qpn": uint64(s.target.QPN)}, nil)
	c.Errno("open_qp of the target in a new domain of the file", err, syscall.EINVAL)
}

func unlinked(c *spec.C) {
	s := serve(c, true)
	s.second.Do(c, player.Unlink, nil, []byte(domainFile))
	s.expect("to the first", s.creator, 0)
	s.expect("to the second", s.second, 0)
	third := kit.OpenOtherProcess(c, 0, nil)
	_, err := third.DoErr(c, player.OpenXRCD, nil, []byte(domainFile))
	c.Errno("open_xrcd of a new file of that name", err, syscall.EAGAIN)
	s.creator.Kill(c)
	s.expect("to the second, alone", s.second, 1)
}

// eventsOfAll lets the target meet a request that its SRQ's PD does not allow.
func eventsOfAll(c *spec.C) {
	s := serve(c, true)
	extra := s.second.OpenTarget(c, s.target)
	c.True("handles differ", extra.ID != 1, "the second handle has the number of the first")
	wr := s.second.To(kit.Send(1, s.mem.All()))
	wr.Opcode, wr.RemoteAddr, wr.RKey = verbs.WRRDMAWrite, s.second.Mem.Addr, s.second.Mem.RKey^0x5a00
	c.Status("write with a key that is not there", s.sender.PostAndPoll(c, wr), verbs.WCRemAccessErr)
	for _, x := range []struct {
		who  string
		o    *kit.OtherXRC
		want int
	}{{"the creator", s.creator, 1}, {"the second process, with two handles", s.second, 2}} {
		seen, others := map[uint64]int{}, map[string]int{}
		for {
			r, err := x.o.DoErr(c, player.AsyncEvent, kit.Args{"timeout": uint64(kit.QuietPeriod)}, nil)
			if err != nil {
				break
			}
			if typ := verbs.EventType(r.Values["type"]); typ == verbs.EventQPAccessErr {
				seen[r.Values["qp"]]++
			} else {
				others[typ.String()]++
			}
		}
		c.Equal("handles of "+x.who+" that have QP_ACCESS_ERR", len(seen), x.want)
		for _, n := range seen {
			c.Equal("events of a handle of "+x.who, n, 1)
		}
		c.Observe("other events of "+x.who, others)
	}
}

// modifyIsShared changes a target through its first handle and one of another process.
func modifyIsShared(c *spec.C) {
	e := kit.Open(c)
	t := e.CreateTarget(c, e.OpenXRCD(c, kit.OpenFile(c, domainFile), syscall.O_CREAT), kit.Default())
	other := kit.OpenOtherProcess(c, 0, nil)
	d := other.Do(c, player.OpenXRCD, nil, []byte(domainFile)).Values["xrcd"]
	h := other.Do(c, player.OpenTarget, kit.Args{"xrcd": d, "qpn": uint64(t.QPN())}, nil).Values["qp"]
	expect := func(want verbs.QPState) {
		v := other.Do(c, player.QueryQP, kit.Args{"qp": h}, nil).Values
		c.Equal("state of the second handle", verbs.QPState(v["state"]).String(), want.String())
	}
	o := kit.Default()
	o.Type = verbs.QPTXRCSend
	a := e.CreateQP(c, o)
	expect(verbs.QPSReset)
	t.StepTo(c, a.Peer(), verbs.QPSInit)
	expect(verbs.QPSInit)
	t.StepTo(c, a.Peer(), verbs.QPSRTR)
	expect(verbs.QPSRTR)
	other.Do(c, player.SetState, kit.Args{"qp": h, "state": uint64(verbs.QPSErr)}, nil)
	c.Equal("state of the first handle", t.QueryState(c).String(), verbs.QPSErr.String())
	t.ModifyState(c, verbs.QPSReset) // by the handle that made it
	expect(verbs.QPSReset)
	other.Do(c, player.Connect, kit.Args{"qp": h, "to": uint64(verbs.QPSRTR), "dest_qpn": uint64(a.QPN()), "dlid": uint64(a.Env.LocalAddr.LID),
		"rnr_timer": 9, "type": uint64(verbs.QPTXRCRecv)}, a.Env.LocalAddr.GID[:])
	attr, _, err := t.Query(c.T, verbs.QPMaskState|verbs.QPMaskDestQPN|verbs.QPMaskMinRNRTimer)
	c.NoErr("query_qp", err)
	c.Equal("state of the first handle", attr.State.String(), verbs.QPSRTR.String())
	c.Equal("dest_qp_num of the first handle", attr.DestQPN == a.QPN(), true)
	c.Equal("min_rnr_timer of the first handle", attr.MinRNRTimer, uint8(9))
	other.Kill(c)
}

// twoHandles has one process open a target that it made once more: it lives until both handles are
// destroyed.
func twoHandles(c *spec.C) {
	s := serve(c, false)
	h := s.creator.OpenTarget(c, s.target)
	s.creator.Do(c, player.DestroyQP, kit.Args{"qp": s.target.ID}, nil)
	s.expect("after one handle was destroyed", s.second, 0)
	outcome := "0"
	r, err := s.creator.Try(c, player.DestroyQP, kit.Args{"qp": h.ID}, nil)
	if err != nil {
		outcome = "the process died"
	} else if r.Errno != 0 {
		outcome = syscall.Errno(r.Errno).Error()
	}
	c.Equal("destroy_qp of the handle that was opened", outcome, "0")
	c.Equal("send after both", s.send(s.second).String(), verbs.WCRetryExcErr.String())
}
