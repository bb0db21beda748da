package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// completions are mutants of the kernel's completion models and of the operating system under them.
// No program reaches them through verbs: the counts of sim/kernel/completion/oracle notice them,
// and Killers are its probes.
var completions = []Mutant{
	{Name: "softirq-without-budget", broken: rule.IRQPollHasABudget, Killers: []string{"budget of the softirq"}},
	{Name: "batch-8-for-16", broken: rule.PollBatchIs16, Killers: []string{"bursts"}},
	{Name: "direct-batch-16", broken: rule.DirectBatchIs8, Killers: []string{"direct"}},
	{Name: "polls-after-a-short-batch", broken: rule.ShortBatchEnds, Killers: []string{"bursts"}},
	{Name: "arm-before-poll", broken: rule.ArmFollowsThePoll, Killers: []string{"bursts"}},
	{Name: "missed-event-ignored", broken: rule.MissedEventsAreHandled, Killers: []string{"missed events"}},
	{Name: "full-budget-rearmed", broken: rule.FullBudgetIsNotRearmed, Killers: []string{"budget of the workqueue"}},
	{Name: "softirq-listed-twice", broken: rule.IRQPollIsScheduledOnce, Killers: []string{"a second event"}},
	{Name: "arm-stays", broken: rule.OneArmOneEvent, Killers: []string{"bursts"}},
	{Name: "event-queue-unarmed", broken: rule.EQIsArmedAgain, Killers: []string{"missed events"}},
	{Name: "event-queue-without-budget", broken: rule.EQHasABudget, Killers: []string{"events in a queue"}},
	{Name: "direct-armed", broken: rule.DirectIsNeverArmed, Killers: []string{"direct"}},
	{Name: "bound-work-wanders", broken: rule.BoundWorkStaysOnItsCPU, Killers: []string{"events in a queue"}},
	{Name: "pool-never-grows", broken: rule.PoolsGrow, Killers: []string{"sleeping handlers"}},
	{Name: "sleeping-worker-blocks", broken: rule.BlockedWorkersAreReplaced, Killers: []string{"sleeping handlers"}},
	{Name: "work-runs-twice-at-once", broken: rule.WorkIsNotReentrant, Killers: []string{"completion while the handler runs"}},
	{Name: "pending-cleared-last", broken: rule.PendingIsClearedFirst, Killers: []string{"budget of the workqueue"}},
	{Name: "oldest-idle-worker-first", broken: rule.WorkersAreLIFO, Killers: []string{"LIFO"}},
	{Name: "softirqs-never-end", broken: rule.SoftirqsEnd, Killers: []string{"endless softirqs"}},
}

// CompletionArea is the area of mutants that counts notice, not cases.
const CompletionArea = "KCQ"

// Counted says whether counts notice the mutant, instead of cases of the suite.
func (m Mutant) Counted() bool { return m.Area == CompletionArea }

// Rules are the rules that a counted mutant breaks.
func (m Mutant) Rules() rule.Broken { return rule.Break(m.broken) }
