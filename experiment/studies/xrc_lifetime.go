package studies

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// lifetimeCase is what the processes of a node do. One of them makes a target QP, another may join
// it, and a third may come when both have ended.
type lifetimeCase struct {
	name     string
	second   bool // a second process has the domain open, and receives
	joins    bool // it is a user of the QP, too
	destroys bool // both give the QP back before they end
	unnamed  bool // the domain has no file
	reopens  bool // a third process opens the domain and the QP, and destroys it
}

// The cases.
const (
	caseAlone   = "alone"
	caseOpens   = "second opens the domain"
	caseJoins   = "second joins the QP"
	caseDestroy = "both destroy"
	caseReopens = "third reopens"
	caseUnnamed = "no file, third reopens"
)

func lifetimeCases() []lifetimeCase {
	return []lifetimeCase{
		{name: caseAlone},
		{name: caseOpens, second: true},
		{name: caseJoins, second: true, joins: true},
		{name: caseDestroy, second: true, joins: true, destroys: true},
		{name: caseReopens, second: true, joins: true, reopens: true},
		{name: caseUnnamed, unnamed: true, reopens: true},
	}
}

func (x *xrcRun) lifetime() error {
	var rows []table.Row
	for _, c := range lifetimeCases() {
		for i := range x.designs {
			d := &x.designs[i]
			if err := x.Next(fmt.Sprintf("lifetime: %s, design %s", c.name, d.letter)); err != nil {
				return err
			}
			var row table.Row
			row.Set("row", "lifetime").Set("scenario", "lifetime").Set("design", d.letter).Set("kernel", d.kernel).Set("case", c.name)
			err := x.under(d, "lifetime, "+c.name, func(t verbs.Thread, b *bed) error {
				l := &life{d: d, c: c, b: b, row: &row}
				if err := l.live(t); err != nil {
					return err
				}
				row.Set("bytes", x.qpBytes(l.left["qp"]))
				return nil
			})
			if err != nil {
				return err
			}
			rows = append(rows, row)
			x.Emit(row)
		}
	}
	x.concludeLifetime(rows)
	return nil
}

// life is one case under one design. The sender is on host 0, and the others on host 1.
type life struct {
	d   *xrcDesign
	c   lifetimeCase
	b   *bed
	row *table.Row

	from  sender
	users []*user // the creator first
	left  xrcObjects
}

// sender is who sends to the target QP.
type sender struct {
	*workload.Member
	*workload.XRCInitiator
}

// user is a process of the node with what it has of XRC.
type user struct {
	*workload.Member
	domain verbs.XRCD
	inbox  *workload.XRCInbox
	target workload.XRCTarget
	joined bool
}

// domainFile names the domain of a job.
const domainFile = "job"

func (l *life) live(t verbs.Thread) error {
	if err := l.connect(t); err != nil {
		return err
	}
	receiver := l.users[len(l.users)-1]
	before, _, err := l.send(t, receiver)
	if err != nil {
		return err
	}
	l.row.Set("sender_before", before)
	if err := l.end(t, l.users[0]); err != nil {
		return err
	}
	if l.c.destroys {
		if err := l.giveBack(t, receiver); err != nil {
			return err
		}
	}
	status, received, err := l.send(t, receiver)
	if err != nil {
		return err
	}
	now := l.b.objects(1)
	l.row.Set("sender_status", status).Set("received", received).Set("qps_alive", now["qp"]).Set("domains_alive", now["xrcd"])
	if l.c.second {
		if err := l.end(t, receiver); err != nil {
			return err
		}
	}
	if err := l.reopen(t); err != nil {
		return err
	}
	return l.account(t)
}

// file is that of the domain, "" for none.
func (l *life) file() string {
	if l.c.unnamed {
		return ""
	}
	return domainFile
}

// connect opens everything: the sender's initiator and the creator's target QP, and what the second
// process has.
func (l *life) connect(t verbs.Thread) error {
	hosts := l.b.TB.Hosts()
	var err error
	if l.from.Member, err = workload.OpenMember(t, hosts[0], l.d.calls); err != nil {
		return err
	}
	err = l.from.Do(t, "open", func(t verbs.Thread) (err error) {
		l.from.XRCInitiator, err = l.from.Initiator(t, nil, 2)
		return err
	})
	if err != nil {
		return err
	}
	creator, err := l.user(t, func(t verbs.Thread, u *user) (err error) {
		u.target, err = u.Listen(t, u.domain, l.from.Member, l.from.QP.QPN())
		u.joined = err == nil
		return err
	})
	if err != nil {
		return err
	}
	if l.c.second {
		_, err := l.user(t, func(t verbs.Thread, u *user) (err error) {
			if !l.c.joins {
				return nil
			}
			u.target, err = u.Join(t, u.domain, creator.target.QPN)
			u.joined = err == nil
			l.row.Set("joined", outcomeOf(err))
			if verbs.ErrnoOf(err) == syscall.ENOSYS { // the design has no such call
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return l.from.Do(t, "connect", func(t verbs.Thread) error { return l.from.Connect(t, creator.Member, creator.target.QPN) })
}

// outcomeOf is how a call ended, in a word.
func outcomeOf(err error) string {
	if err == nil {
		return "ok"
	}
	return errno(err)
}

// inboxDepth is how many messages a process can receive.
const inboxDepth = 4

// user starts a process of the node, which opens the domain, posts receives, and does what more
// says.
func (l *life) user(t verbs.Thread, more func(t verbs.Thread, u *user) error) (*user, error) {
	m, err := workload.OpenMember(t, l.b.TB.Hosts()[1], l.d.calls)
	if err != nil {
		return nil, err
	}
	u := &user{Member: m}
	l.users = append(l.users, u)
	return u, u.Do(t, "open", func(t verbs.Thread) (err error) {
		if u.domain, err = u.OpenDomain(t, l.file(), syscall.O_CREAT); err != nil {
			return err
		}
		if u.inbox, err = u.Inbox(t, u.domain, inboxDepth, messageSize); err != nil {
			return err
		}
		return more(t, u)
	})
}

// messageSize is that of a message, in bytes.
const messageSize = 64

// send sends a message to a process, and says how it ended for the sender, and whether it arrived.
func (l *life) send(t verbs.Thread, to *user) (status string, received bool, err error) {
	err = l.from.Do(t, "send", func(t verbs.Thread) error {
		buf, err := l.from.Proc.Map(t, messageSize, verbs.MapOptions{})
		if err != nil {
			return err
		}
		wr := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled | verbs.SendInline, XRCRemoteSRQN: to.inbox.SRQN,
			SGEs: []verbs.SGE{{Addr: buf.Addr(), Length: messageSize}}}
		if _, err := l.from.QP.PostSend(t, []verbs.SendWR{wr}); err != nil {
			return err
		}
		var wc [1]verbs.WC
		n, err := l.from.CQ.PollWait(t, wc[:], 10*time.Second)
		if err == nil && n == 0 {
			err = fmt.Errorf("no completion")
		}
		status = wc[0].Status.String()
		return err
	})
	if err != nil {
		return "", false, err
	}
	err = to.Do(t, "receive", func(t verbs.Thread) error {
		var wc [1]verbs.WC
		n, err := to.inbox.CQ.PollWait(t, wc[:], time.Millisecond)
		received = n > 0 && wc[0].Status == verbs.WCSuccess
		return err
	})
	if errors.Is(err, verbs.ErrProcessDied) {
		err = nil
	}
	return status, received, err
}

// giveBack has a user give the QP back, where there is a call for it.
func (l *life) giveBack(t verbs.Thread, u *user) error {
	if !u.joined || l.d.calls == workload.XRCAllocated {
		return nil
	}
	u.joined = false
	return u.Do(t, "destroy", func(t verbs.Thread) error { return u.Leave(t, u.target) })
}

// end ends a process, as SIGKILL does; where the case says so it gives back the QP first.
func (l *life) end(t verbs.Thread, u *user) error {
	if l.c.destroys {
		if err := l.giveBack(t, u); err != nil {
			return err
		}
	}
	u.Proc.Kill(t)
	t.Sleep(cleanUp)
	return nil
}

// cleanUp is more than the kernel takes to close what a process had open.
const cleanUp = 10 * time.Millisecond

// reopen has a third process open the domain, without O_CREAT, and the QP, and destroy it.
func (l *life) reopen(t verbs.Thread) error {
	if !l.c.reopens {
		return nil
	}
	third, err := workload.OpenMember(t, l.b.TB.Hosts()[1], l.d.calls)
	if err != nil {
		return err
	}
	err = third.Do(t, "reopen", func(t verbs.Thread) error {
		d, err := third.OpenDomain(t, l.file(), 0)
		if err != nil {
			return fmt.Errorf("open domain: %w", err)
		}
		g, err := third.Join(t, d, l.users[0].target.QPN)
		if err == nil {
			err = third.Leave(t, g)
		} else {
			err = fmt.Errorf("open QP: %w", err)
		}
		err = cmp.Or(err, d.Close(t))
		return err
	})
	l.row.Set("reopen", outcomeOf(err))
	third.Proc.Kill(t)
	t.Sleep(cleanUp)
	return nil
}

// account ends the sender and counts what is left.
func (l *life) account(t verbs.Thread) error {
	l.from.Proc.Kill(t)
	t.Sleep(cleanUp)
	l.left = l.b.objects(1)
	l.row.Set("qps_left", l.left["qp"]).Set("domains_left", l.left["xrcd"])
	if err := l.left.audit(); err != nil {
		return err
	}
	sender := l.b.objects(0)
	if n := sender["qp"] + sender["xrcd"]; n > 0 {
		return fmt.Errorf("%d QPs and domains are left at the sender", n)
	}
	return sender.audit()
}
