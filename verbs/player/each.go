package player

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// absent are errnos by which a device says that it has no objects of a kind.
var absent = []error{syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EPROTONOSUPPORT}

// oneOfEach makes an object of every kind, beside what open made, and leaves them all. What
// the device does not have it leaves out.
func (a *Agent) oneOfEach(t verbs.Thread, _ verbs.PlayerCommand, r *verbs.PlayerReply) error {
	var (
		pd   = a.pds[0]
		ch   verbs.CompChannel
		cq   verbs.CQ
		srq  verbs.SRQ
		td   verbs.TD
		path = verbs.AHAttr{IsGlobal: true, Port: a.port, GRH: verbs.GRH{DGID: a.gid.GID, SGIDIndex: uint8(a.gid.Index), HopLimit: 1}}
	)
	if a.ib {
		path = verbs.AHAttr{Port: a.port, DLID: a.lid}
	}
	qp := func(typ verbs.QPType, srq verbs.SRQ) func() error {
		return func() error {
			_, err := pd.CreateQP(t, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: a.cq, SRQ: srq,
				Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}})
			return err
		}
	}
	for _, step := range []struct {
		kind string
		make func() error
	}{
		{"channel", func() (err error) { ch, err = a.ctx.CreateCompChannel(t); return err }},
		{"cq", func() (err error) { cq, err = a.ctx.CreateCQ(t, verbs.CQAttr{CQE: 16, Channel: ch}); return err }},
		{"srq", func() (err error) { srq, err = pd.CreateSRQ(t, verbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1}); return err }},
		{"rc", qp(verbs.QPTRC, nil)},
		{"uc", qp(verbs.QPTUC, nil)},
		{"ud", qp(verbs.QPTUD, nil)},
		{"rc on the srq", func() error { return qp(verbs.QPTRC, srq)() }},
		{"mr", func() error { return a.registerPage(t, pd) }},
		{"mw", func() error { _, err := pd.AllocMW(t, verbs.MWType1); return err }},
		{"ah", func() error { _, err := pd.CreateAH(t, path); return err }},
		{"td", func() (err error) { td, err = a.ctx.AllocTD(t, verbs.TDInitAttr{}); return err }},
		{"parent domain", func() error {
			_, err := a.ctx.AllocParentDomain(t, verbs.ParentDomainAttr{PD: pd, TD: td})
			return err
		}},
	} {
		err := step.make()
		for _, no := range absent {
			if errors.Is(err, no) {
				err = errMissing
			}
		}
		switch {
		case err == nil:
			r.Values[step.kind] = 1
		case err != errMissing:
			return fmt.Errorf("%s: %w", step.kind, err)
		}
	}
	return nil
}

var errMissing = errors.New("the device has none")

func (a *Agent) registerPage(t verbs.Thread, pd verbs.PD) error {
	mem, err := t.Process().Map(t, 4096, verbs.MapOptions{})
	if err != nil {
		return err
	}
	_, err = pd.RegMR(t, mem.Addr(), mem.Len(), verbs.AccessLocalWrite)
	return err
}
