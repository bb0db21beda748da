package experiment

import (
	"fmt"
	"testing"
)

// One queue pair of all threads of two sockets, ConnectX-6: 0.34, 0.27, 0.26 and 0.255 M READs/s
// with 32, 48, 64 and 96 threads in the data of Ren et al., SMART (ASPLOS 2024). Their program
// (test/test_rdma.cpp of madsys-dev/smart) posts eight READs one by one, each signalled, and polls
// until all have completed; work is what check 20 has. Nothing is fitted to these figures. From 48
// threads on each core of a socket has one that waits for the lock, and the rate falls no further.
func TestQueuePairOfTwoSockets(t *testing.T) {
	for _, c := range []struct {
		threads int
		want    float64
	}{{32, 0.342}, {48, 0.268}, {64, 0.264}, {96, 0.255}} {
		out := runText(t, fmt.Sprintf("name: x\nprofile: connectx-6\nlink: switch\ncores: 96\nset: {kernel.generation: static, provider.generation: static}\ntraffic:\n"+
			"  - {verb: read, payload: 8B, threads: %d, qp_sharing: %d, window: %d, drain: true, work: 75ns, mr_size: 2MiB, page_size: 2MiB, access: random, mtu: 512, warmup: 4ms, duration: 8ms}\n",
			c.threads, c.threads, 8*c.threads))
		if got := out.Results[0].Rate() / 1e6; got < c.want/1.5 || got > c.want*1.5 {
			t.Errorf("%d threads: %.3f M/s, want %.3f within a factor of 1.5", c.threads, got, c.want)
		}
	}
}

// A load that drains has pauses: a batch of eight lasts as long as its last READ, where a window
// that is kept full has the next one posted already.
func TestDrain(t *testing.T) {
	rate := func(window int, more string) float64 {
		out := runText(t, fmt.Sprintf("name: x\nprofile: connectx-6\ntraffic:\n  - {verb: read, payload: 8B, window: %d, %swarmup: 50us, duration: 100us}\n", window, more))
		return out.Results[0].Rate() / 1e6
	}
	one, full, drained, list := rate(1, ""), rate(8, ""), rate(8, "drain: true, "), rate(8, "drain: true, postlist: 4, signal_every: 4, ")
	if drained < 2*one || drained > 0.7*full {
		t.Errorf("one by one %.2f M/s, with a full window %.2f, in batches %.2f", one, full, drained)
	}
	if list < 2*one || list > 0.7*full {
		t.Errorf("one by one %.2f M/s, with a full window %.2f, in batches of two lists %.2f", one, full, list)
	}
}
