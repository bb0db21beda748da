package workload

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// Endpoint is a process with an open device, and reliable connections to other endpoints, for
// programs that are not loads.
type Endpoint struct {
	Proc verbs.Process
	PD   verbs.PD
	// CQ takes the completions of what is sent, RecvCQ of what is received.
	CQ, RecvCQ verbs.CQ
	l          Load
	ctx        *ctx
	conns      []*conn
}

// EndpointOptions say what an endpoint has.
type EndpointOptions struct {
	QPs              int
	Sends, Receives  int // that a queue pair can have outstanding
	MinRNRTimer      uint8
	MTU              verbs.MTU
	Unprivileged     bool   // without CAP_IPC_LOCK, and with a limit:
	LockedMemoryMost uint64 // RLIMIT_MEMLOCK, in bytes
}

// OpenEndpoint starts a process on a host, opens its first device and creates the queue pairs.
func OpenEndpoint(t verbs.Thread, host verbs.Host, o EndpointOptions) (*Endpoint, error) {
	proc, err := host.NewProcess(t, nil)
	if err != nil {
		return nil, fmt.Errorf("new process: %w", err)
	}
	rnr := o.MinRNRTimer
	e := &Endpoint{Proc: proc, l: Load{QPs: o.QPs, PDs: 1, Window: o.Sends, SignalEvery: 1, RecvDepth: o.Receives, MinRNRTimer: &rnr, MTU: o.MTU, Messages: 1}}
	return e, e.Do(t, "setup", func(t verbs.Thread) error { return e.open(t, &o) })
}

func (e *Endpoint) open(t verbs.Thread, o *EndpointOptions) (err error) {
	if o.Unprivileged {
		p, ok := e.Proc.(verbs.Dropper)
		if !ok {
			return fmt.Errorf("the target cannot take privileges from a process")
		}
		if err := p.DropRights(t, o.LockedMemoryMost); err != nil {
			return err
		}
	}
	if e.ctx, err = e.l.openContext(t, e.Proc, false); err != nil {
		return err
	}
	e.PD = e.ctx.pds[0]
	if e.CQ, err = e.ctx.c.CreateCQ(t, verbs.CQAttr{CQE: max(1, o.QPs*o.Sends)}); err != nil {
		return fmt.Errorf("create CQ: %w", err)
	}
	if e.RecvCQ, err = e.ctx.c.CreateCQ(t, verbs.CQAttr{CQE: max(1, o.QPs*o.Receives)}); err != nil {
		return fmt.Errorf("create receive CQ: %w", err)
	}
	for i := range o.QPs {
		k, err := e.l.createQP(t, e.ctx, e.PD, e.CQ, e.RecvCQ)
		if err != nil {
			return fmt.Errorf("QP %d: %w", i, err)
		}
		e.conns = append(e.conns, k)
	}
	return nil
}

// Do runs f in a thread of the endpoint's process and waits for it.
func (e *Endpoint) Do(t verbs.Thread, name string, f func(t verbs.Thread) error) error {
	return in(t, e.Proc, name, f)
}

// QP is queue pair i.
func (e *Endpoint) QP(i int) verbs.QP { return e.conns[i].qp }

// Connect brings queue pair i of an endpoint and queue pair j of another one to RTS.
func (e *Endpoint) Connect(t verbs.Thread, i int, to *Endpoint, j int) error {
	a, b := e.conns[i], to.conns[j]
	a.peer, b.peer = b, a
	for _, x := range []struct {
		e *Endpoint
		k *conn
	}{{e, a}, {to, b}} {
		if err := x.e.Do(t, "connect", func(t verbs.Thread) error { return x.e.l.bringUp(t, x.k) }); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	return nil
}
