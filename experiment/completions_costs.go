package experiment

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel/completion"
	"github.com/rdmasim/rdmasim/sim/os"
)

// cost is what a primitive takes, and where that is from. Without a source it is assumed, for a
// Skylake server of 2.1 to 2.6 GHz.
type cost struct {
	name, source string
	d            sim.Time
	put          *sim.Time
}

// The costs are no values of a profile: none of them is known of the host of a profile's device.
func costs(o *os.Params, c *completion.Params) []cost {
	const ns, us = sim.Nanosecond, sim.Microsecond
	return []cost{
		{"interrupt latency", "", 350 * ns, &o.InterruptLatency}, {"interrupt entry", "", 250 * ns, &o.IRQEntry}, {"interrupt exit", "", 250 * ns, &o.IRQExit},
		{"softirq entry", "", 200 * ns, &o.SoftirqEntry}, {"tasklet without work", "", 150 * ns, &o.Tasklet},
		{"jiffy", "HZ=250, as Debian, Ubuntu and SUSE configure it", 4 * sim.Millisecond, &o.Jiffy},
		{"wake-up", "", 700 * ns, &o.Wake},
		{"wake-up of an idle core", "linux-kernel, February 2012: 1600 to 2000 cycles of Westmere with an interrupt", 800 * ns, &o.WakeIdle},
		{"interprocessor interrupt", "", 600 * ns, &o.IPI}, {"context switch", "", 1200 * ns, &o.Switch},
		{"thread from another core", "", 2 * us, &o.Migrated}, {"thread from another node", "", 5 * us, &o.MigratedNode},
		{"exit from polling", "", 100 * ns, &o.PollExit}, {"exit from C1", "Linux intel_idle.c: Sapphire Rapids, Ice Lake, Knights Landing", us, &o.C1Exit},
		{"exit from C6", "Linux intel_idle.c: Skylake server", 133 * us, &o.C6Exit}, {"residency of C6", "Linux intel_idle.c: Skylake server", 600 * us, &o.C6Residency},
		{"spinlock", "", 15 * ns, &o.Lock}, {"hand-over of a spinlock", "", 30 * ns, &o.LockHandover},
		{"cache line from another core", "nviennot/core-to-core-latency: 48 ns on Xeon Gold 6242, 51 on Platinum 8375C", 50 * ns, &o.LineTransfer},
		{"cache line from another node", "", 130 * ns, &o.LineTransferNode}, {"new worker", "", 50 * us, &o.WorkerCreation}, {"work item", "", 20 * ns, &o.WorkItem},
		{"slice", "Linux 6.12 kernel/sched/fair.c: 0.7 ms * 4 from 8 CPUs on", 2800 * us, &o.Slice},
		{"pass over an event queue", "", 150 * ns, &c.EQHandler}, {"event", "", 100 * ns, &c.EQE}, {"ib_poll_cq", "", 60 * ns, &c.PollCall}, {"completion polled", "", 70 * ns, &c.PollCQE},
		{"ib_req_notify_cq", "", 150 * ns, &c.Arm}, {"arm until the device has it", "", 200 * ns, &c.ArmLatency}, {"call of a handler", "", 20 * ns, &c.Dispatch},
		{"change of a CQ's moderation", "", 30 * us, &c.ModifyCQ}, {"its CPU time", "", 3 * us, &c.ModifyCQCPU},
	}
}

// postReceive is the time under the lock of a receive queue for an entry, assumed: its bytes are
// written, and the doorbell record.
const postReceive = 60 * time.Nanosecond

func hostCosts(others map[string]string) os.Params {
	o := os.Params{SoftirqJiffies: 1, SoftirqRounds: 10} // kernel/softirq.c: MAX_SOFTIRQ_TIME is 2 ms, so one jiffy; MAX_SOFTIRQ_RESTART
	for _, c := range costs(&o, &completion.Params{}) {
		c.set(others)
	}
	return o
}

func adapterCosts(others map[string]string) completion.Params {
	p := completion.Params{}
	for _, c := range costs(&os.Params{}, &p) {
		c.set(others)
	}
	return p
}

// set puts the cost, or the value that others have for it.
func (c *cost) set(others map[string]string) {
	*c.put = c.d
	if d, err := input.ParseTime(others[c.name]); err == nil {
		*c.put = sim.Time(d)
	}
}

// assumedCosts are those without a source.
func assumedCosts() (all []AssumedCost) {
	for _, c := range costs(&os.Params{}, &completion.Params{}) {
		if c.source == "" {
			all = append(all, AssumedCost{c.name, input.FormatTime(int64(c.d))})
		}
	}
	return all
}

// noteCosts says what the costs are and where they are from.
func (x *completionRun) noteCosts() {
	var known, assumed []string
	for _, c := range costs(&os.Params{}, &completion.Params{}) {
		if c.source == "" {
			assumed = append(assumed, fmt.Sprintf("%s %v", c.name, c.d))
		} else {
			known = append(known, fmt.Sprintf("%s %v (%s)", c.name, c.d, c.source))
		}
	}
	x.Note("costs with a source: %s.", strings.Join(known, "; "))
	x.Note("assumed costs: %s; and the handler's.", strings.Join(assumed, ", "))
	x.Note("modelled: Linux 6.12 without preemption in the kernel, one thread a core. Completions arrive by schedule; no wire or peer is behind them. irq-inline is hypothetical: ib_core has no such context, and o2iblnd's handlers may not run in interrupts.")
}
