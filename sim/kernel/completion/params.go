// Package completion is how the kernel gets completions: the event queues and CQs of an adapter as its driver meets them, and the
// CQs of ib_core over them with their poll contexts (drivers/infiniband/core/cq.c, lib/irq_poll.c, lib/dim; Linux 6.12).
//
// CQEs come by schedule (CQ.Arrive): no queue pair, wire or peer is behind them. What the driver meets of the device is modelled:
// arming is one shot and carries the consumer index, so that a CQE beyond it fires at once; an event queue has a budget for each
// interrupt; moderation counts CQEs and has a period.
package completion

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Params are the costs of the driver and of ib_core. The zero value is not usable.
type Params struct {
	EQHandler   sim.Time // a pass over an event queue, with its doorbell
	EQE         sim.Time // for each event
	PollCall    sim.Time // ib_poll_cq
	PollCQE     sim.Time // for each completion that it takes
	Arm         sim.Time // ib_req_notify_cq: the record, a barrier and a write to a register
	ArmLatency  sim.Time // until the device knows
	Dispatch    sim.Time // calling the handler of a completion
	ModifyCQ    sim.Time // command that changes the moderation: until it takes effect
	ModifyCQCPU sim.Time // and what it takes of a CPU
}

// Validate says what is impossible in p.
func (p *Params) Validate() error {
	for _, c := range []struct {
		name string
		t    sim.Time
	}{{"EQHandler", p.EQHandler}, {"EQE", p.EQE}, {"PollCall", p.PollCall}, {"PollCQE", p.PollCQE}, {"Arm", p.Arm}, {"ArmLatency", p.ArmLatency},
		{"Dispatch", p.Dispatch}, {"ModifyCQ", p.ModifyCQ}, {"ModifyCQCPU", p.ModifyCQCPU}} {
		if c.t < 0 || c.t > sim.Second {
			return fmt.Errorf("completion: %s of %v: want 0 to %v", c.name, c.t, sim.Second)
		}
	}
	return nil
}

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
