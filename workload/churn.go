package workload

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Churn makes a load's threads register or deregister memory instead of posting.
type Churn string

// The kinds of churn. Register keeps what it registers; Deregister deregisters what was
// registered before the load began. A thread ends early after MRs regions.
const (
	Register   Churn = "reg_mr"
	Deregister Churn = "dereg_mr"
)

// churner is what a thread of such a load works on: one buffer, registered again and
// again.
type churner struct {
	pd  verbs.PD
	buf verbs.Buffer
	mrs []verbs.MR
}

const churnAccess = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead

// buildChurn opens a context and maps a buffer for each thread.
func (s *Started) buildChurn(t verbs.Thread, host verbs.Host) error {
	l := s.l
	proc, err := host.NewProcess(t, l.Env)
	if err != nil {
		return fmt.Errorf("new process: %w", err)
	}
	s.a = &side{proc: proc}
	return in(t, proc, "setup", s.openChurn)
}

func (s *Started) openChurn(t verbs.Thread) error {
	l := s.l
	devs, err := s.a.proc.Devices(t)
	if err != nil || len(devs) == 0 {
		return fmt.Errorf("%d devices: %w", len(devs), err)
	}
	c, err := devs[0].Open(t)
	if err != nil {
		return fmt.Errorf("open %s: %w", devs[0].Name(), err)
	}
	pd, err := c.AllocPD(t)
	if err != nil {
		return fmt.Errorf("alloc PD: %w", err)
	}
	for i := range l.Threads {
		buf, err := s.a.proc.Map(t, l.MRSize, verbs.MapOptions{PageSize: l.PageSize})
		if err != nil {
			return fmt.Errorf("map %d bytes: %w", l.MRSize, err)
		}
		s.churners = append(s.churners, churner{pd: pd, buf: buf})
		for l.Churn == Deregister && len(s.churners[i].mrs) < l.MRs {
			if err := s.register(t, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// register registers the buffer of thread i once more.
func (s *Started) register(t verbs.Thread, i int) error {
	c := &s.churners[i]
	mr, err := c.pd.RegMR(t, c.buf.Addr(), s.l.MRSize, churnAccess)
	if err != nil {
		return fmt.Errorf("register MR: %w", err)
	}
	c.mrs = append(c.mrs, mr)
	s.res.countTranslation(mr)
	return nil
}

// churn registers or deregisters until the load ends. Work lies between two calls.
func (s *Started) churn(t verbs.Thread, i int) {
	l, c, r := s.l, &s.churners[i], &s.res.Threads[i]
	for n := 0; n < l.MRs && s.res.Failed == nil && !s.finished(t, i, r.Completed); n++ {
		if l.Work > 0 {
			t.Sleep(l.Work)
		}
		var err error
		if l.Churn == Register {
			err = s.register(t, i)
		} else {
			err = c.mrs[n].Dereg(t)
		}
		if err != nil {
			s.fail(t.Now(), "thread %d: %s: %v", i, l.Churn, err)
			return
		}
		s.count(t.Now(), t.Now(), r, &s.flows[i][0], 1)
	}
}

// checkChurn reports what is impossible for such a load.
func (l *Load) checkChurn() error {
	switch {
	case l.Churn != Register && l.Churn != Deregister:
		return fmt.Errorf("unknown churn %q", l.Churn)
	case l.Contexts != 1 || l.QPShare != 1 || l.Latency:
		return fmt.Errorf("a load with churn has one context and no queue pairs: leave out contexts, qp_sharing and measure")
	case l.BothWays || l.OnDemand != "" || l.Cold:
		return fmt.Errorf("a load with churn posts nothing, and registers pinned memory: leave out both_ways, on_demand and cold")
	case l.LocalMRSize != 0 || l.Stride != 0:
		return fmt.Errorf("a load with churn has regions on one host and uses none of them: leave out local_mr_size and stride")
	case l.Messages == 0 && l.Duration == 0 || l.Work < 0 || l.Work > time.Second:
		return fmt.Errorf("a load with churn needs messages or duration, and work of at most 1s")
	}
	return nil
}
