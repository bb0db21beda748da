package workload

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// Member is a process with an open device, for programs that make their queue pairs one by one.
type Member struct {
	Proc  verbs.Process
	Ctx   verbs.Context
	PD    verbs.PD
	calls XRCCalls
	ctx   *ctx
}

// OpenMember starts a process on a host and opens its first device. The calls are those of its
// kernel.
func OpenMember(t verbs.Thread, host verbs.Host, calls XRCCalls) (*Member, error) {
	proc, err := host.NewProcess(t, nil)
	if err != nil {
		return nil, fmt.Errorf("new process: %w", err)
	}
	m := &Member{Proc: proc, calls: calls}
	return m, m.Do(t, "setup", func(t verbs.Thread) (err error) {
		l := Load{PDs: 1}
		if m.ctx, err = l.openContext(t, proc, false); err != nil {
			return err
		}
		m.Ctx, m.PD = m.ctx.c, m.ctx.pds[0]
		return nil
	})
}

// Do runs f in a thread of the process and waits for it: verbs.ErrProcessDied if the process ends
// first.
func (m *Member) Do(t verbs.Thread, name string, f func(t verbs.Thread) error) error {
	return in(t, m.Proc, name, f)
}

// Queue is a queue pair of a member.
type Queue struct {
	k *conn
	l Load
}

// QP is the queue pair.
func (q *Queue) QP() verbs.QP { return q.k.qp }

// AH is the address of the peer of a UD queue pair.
func (q *Queue) AH() verbs.AH { return q.k.ah }

// Queue makes a queue pair of a transport, RC or UD. a has its CQs, its SRQ if it has one, and its
// capacities.
func (m *Member) Queue(t verbs.Thread, transport Transport, a verbs.QPInitAttr) (*Queue, error) {
	a.Type = types[transport]
	qp, err := m.PD.CreateQP(t, a)
	if err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	return &Queue{k: &conn{qp: qp, ctx: m.ctx}, l: Load{Transport: transport, MTU: verbs.MTU1024}}, nil
}

// Attempts are how long and how often a queue pair tries, as codes and counts of ibv_qp_attr, and
// its path MTU.
type Attempts struct {
	Timeout, RetryCnt, RNRRetry, MinRNRTimer uint8
	MTU                                      verbs.MTU
}

// Tries sets timeouts, retries and MTU for the next Connect. Without it they are the defaults of a
// Load.
func (q *Queue) Tries(a Attempts) {
	q.l.AckTimeout, q.l.RetryCnt, q.l.RNRRetry, q.l.MinRNRTimer, q.l.MTU = &a.Timeout, &a.RetryCnt, &a.RNRRetry, &a.MinRNRTimer, a.MTU
}

// Connect brings the queue pair to RTS, towards a peer. The peer's side has a call of its own.
func (q *Queue) Connect(t verbs.Thread, peer *Queue) error {
	q.k.peer = peer.k
	return q.l.bringUp(t, q.k)
}
