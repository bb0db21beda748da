// Package completion models how the kernel gets completions: the event queues and CQs of an adapter
// as its driver meets them, and the CQs of ib_core over them with their poll contexts
// (drivers/infiniband/core/cq.c, lib/irq_poll.c, lib/dim; Linux 6.12).
//
// CQEs come by schedule (CQ.Arrive): no queue pair, wire or peer is behind them. The device is
// modelled as far as its driver meets it: arming is one shot and carries the consumer index, so
// that a CQE beyond it fires at once; an event queue has a budget for each interrupt; moderation
// counts CQEs and has a period.
package completion

import (
	"errors"

	"github.com/rdmasim/rdmasim/sim"
)

// Params are the costs of the driver and of ib_core. The zero value is not usable.
type Params struct {
	EQHandler   sim.Time `bounds:"0.."` // a pass over an event queue, with its doorbell
	EQE         sim.Time `bounds:"0.."` // for each event
	PollCall    sim.Time `bounds:"0.."` // ib_poll_cq
	PollCQE     sim.Time `bounds:"0.."` // for each completion that it takes
	Arm         sim.Time `bounds:"0.."` // ib_req_notify_cq: the record, a barrier and a write to a register
	ArmLatency  sim.Time `bounds:"0.."` // until the device knows
	Dispatch    sim.Time `bounds:"0.."` // calling the handler of a completion
	ModifyCQ    sim.Time `bounds:"0.."` // command that changes the moderation: until it takes effect
	ModifyCQCPU sim.Time `bounds:"0.."` // and what it takes of a CPU
}

// Validate says what is impossible in p.
func (p *Params) Validate() error { return errors.Join(sim.OutOfBounds("completion", p)...) }

// Numbers of ib_core (drivers/infiniband/core/cq.c) and of mlx5_core (eq.c).
const (
	batch           = 16    // IB_POLL_BATCH
	batchDirect     = 8     // IB_POLL_BATCH_DIRECT
	budgetIRQ       = 256   // IB_POLL_BUDGET_IRQ, and that of the softirq for all CQs of a CPU
	budgetWorkqueue = 65536 // IB_POLL_BUDGET_WORKQUEUE
	budgetEQ        = 128   // MLX5_EQ_POLLING_BUDGET
	mostShared      = 4096  // IB_MAX_SHARED_CQ_SZ
	mostEntries     = 1 << 22
)
