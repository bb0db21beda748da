package experiment

// Example is a short scenario that shows how a question is asked.
type Example struct{ Asks, Text string }

// Examples returns the scenarios for the reference of keys. A test runs each.
func Examples() []Example {
	return []Example{
		{"Eight threads post small writes on one context: what do they reach?", `name: writers
traffic:
  - {threads: 8, contexts: 1, verb: write, payload: 2B, inline: true, signal_every: 64}
`},
		{"Does a context for each thread help them, or a thread domain for each queue pair? A sweep of four runs", `name: shared-or-not
traffic:
  - {threads: 8, payload: 2B, inline: true, signal_every: 64}
sweep:
  over: ["traffic.0.contexts=1,8", "traffic.0.td=none,per-thread"]
`},
		{"How long does a READ of 4 KiB take, one at a time?", `name: read-latency
profile: connectx-6dx
traffic:
  - {verb: read, payload: 4KiB, mtu: 4096, measure: latency, messages: 500}
`},
		{"SENDs one way and READs the other share a link: what does each get?", `name: two-loads
traffic:
  - {name: requests, verb: send, payload: 64B, duration: 300us}
  - {name: bulk, from: 1, to: 0, verb: read, payload: 64KiB, mtu: 4096, window: 8, duration: 300us}
`},
		{"Sixteen hosts write to one through a switch with flow control: goodput, fairness, and times from post to completion", `name: incast
set: {link.pfc: "true"}
traffic:
  - {clients: 16, payload: 64KiB, mtu: 4096, window: 4, measure: both, duration: 2ms}
`},
		{"Four hosts exchange with each other, seven SENDs to three READs: when is each flow complete?", `name: exchange
hosts: 4
traffic:
  - {pattern: all-to-all, mix: [{verb: send, weight: 7}, {verb: read, weight: 3}], payload: 4KiB, messages: 200}
`},
		{"Packets are lost: what is left of the rate? A sweep with three seeds for each loss, which give intervals", `name: loss
traffic:
  - {payload: 64KiB, mtu: 4096, window: 8, ack_timeout: 10, duration: 5ms}
faults:
  - {do: drop, direction: requests, per_million: 500}
sweep: {over: ["faults.0.per_million=50,500,5000"], seeds: 3}
`},
		{"What does a page fault of the device add to the latency of a SEND?", `name: page-faults
traffic:
  - {verb: send, payload: 4KiB, mtu: 4096, on_demand: explicit, on_demand_at: to, cold: true, measure: latency, messages: 50}
`},
		{"READs from memory of a GPU that hangs at the root complex", `name: gpu
set: {gpu.path: root}
traffic:
  - {verb: read, payload: 64KiB, mr_size: 1MiB, mtu: 4096, window: 16, memory: gpu, memory_at: to, duration: 500us}
`},
		{"Which poll context should a kernel driver with sixteen peers use?", `name: kernel-driver
completions: {model: workqueue, peers: 16, handler: {mean: 3us, distribution: exponential}}
sweep:
  over: ["completions.model=softirq,workqueue,unbound"]
`},
	}
}
