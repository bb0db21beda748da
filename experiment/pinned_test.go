package experiment

import (
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// What the model does and no card is known to do, so that a change of it is noticed.
// docs/fidelity.md says what is wrong.

// More threads on registers of their own than the engines take: the buffer of 64 WQEs that the
// device has for a queue pair is full when a push comes, so the WQE is fetched, and those behind it
// with it. Then each WQE takes the bus to the device twice, and that is the limit. With room for
// the whole window nothing is fetched, and the rate does not fall so far.
func TestPushesThatFindTheBufferFull(t *testing.T) {
	const text = `
name: own
profile: connectx-4
cores: 32
set: {kernel.generation: static, provider.generation: static, hca.link_layer: infiniband}
traffic:
  - {threads: 16, contexts: 16, verb: write, payload: 2B, inline: true, window: 128, signal_every: 64, warmup: 150us, duration: 150us}
`
	for _, c := range []struct {
		threads   int
		buffer    string
		low, high float64
		fetches   bool
	}{{16, "64", 140, 146, false}, {20, "64", 80, 96, true}, {20, "128", 128, 152, false}} {
		n := fmt.Sprint(c.threads)
		out := runText(t, text, Setting{"traffic.0.threads", n}, Setting{"traffic.0.contexts", n}, Setting{"hca.wqe_buffer", c.buffer})
		rate := out.Results[0].Rate() / 1e6
		fetched, _ := out.Counter("host0.hca.wqe_fetches")
		if l, _ := out.use.limit(); c.fetches && (l.Resource != sim.Doorbell || l.Unit != "host0/mlx5_0, PCIe to the device") {
			t.Errorf("%d threads, buffer of %s: limited by %v, %s", c.threads, c.buffer, l.Resource, l.Unit)
		}
		if rate < c.low || rate > c.high || fetched > 0 != c.fetches {
			t.Errorf("%d threads, buffer of %s: %.1f M/s, %.0f fetches; want %.0f to %.0f M/s", c.threads, c.buffer, rate, fetched, c.low, c.high)
		}
	}
}

// One queue pair of threads of one socket: 0.58, 0.44 and 0.40 M/s with 8, 16 and 24 threads in the
// data of Ren et al., SMART (ASPLOS 2024). Ours has several times that, since who waits for a lock
// costs the others nothing there. The load is that of TestQueuePairOfTwoSockets.
func TestQueuePairOfOneSocketIsTooFast(t *testing.T) {
	for _, threads := range []int{8, 24} {
		out := runText(t, fmt.Sprintf("name: x\nprofile: connectx-6\nlink: switch\ncores: 96\nset: {kernel.generation: static, provider.generation: static}\ntraffic:\n"+
			"  - {verb: read, payload: 8B, threads: %d, qp_sharing: %d, window: %d, drain: true, work: 75ns, mr_size: 2MiB, page_size: 2MiB, access: random, mtu: 512, warmup: 200us, duration: 300us}\n",
			threads, threads, 8*threads))
		if got := out.Results[0].Rate() / 1e6; got < 3.9 || got > 5.3 {
			t.Errorf("%d threads: %.3f M/s, and it had 4.6: nearer to 0.5 it belongs to the checks", threads, got)
		}
	}
}
