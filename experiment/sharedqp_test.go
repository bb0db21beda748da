package experiment

import (
	"fmt"
	"testing"
)

// One queue pair of all threads of two sockets, READs in batches of 8, ConnectX-6: 0.34, 0.26 and 0.255 M/s with 32, 64 and 96 threads in
// the data of Ren et al., SMART (ASPLOS 2024), of which the client's software is a part, hence the factor. Nothing is fitted to it.
func TestQueuePairOfTwoSockets(t *testing.T) {
	for threads, want := range map[int]float64{32: 0.34, 64: 0.26, 96: 0.255} {
		out := runText(t, fmt.Sprintf("name: x\nprofile: connectx-6\nlink: switch\ncores: 96\nset: {kernel.generation: static, provider.generation: static}\ntraffic:\n"+
			"  - {verb: read, payload: 8B, threads: %d, qp_sharing: %d, window: %d, postlist: 8, signal_every: 8, mr_size: 2MiB, page_size: 2MiB, access: random, mtu: 512, warmup: 400us, duration: 1ms}\n",
			threads, threads, 8*threads))
		if got := out.results[0].Rate() / 1e6; got < want/1.5 || got > want*1.5 {
			t.Errorf("%d threads: %.3f M/s, want %.3f within a factor of 1.5", threads, got, want)
		}
	}
}
