package experiment

import "testing"

// The seed of a run decides the random choices of its loads: the queue pair of a request, and the
// part of memory that it uses.
func TestSeedDecidesWhatLoadsChoose(t *testing.T) {
	for _, load := range []string{"qps_per_thread: 4, spread: 8, window: 8", "access: random, mrs: 4096, mr_size: 64KiB, measure: latency, verb: read"} {
		rate := func(seed uint64) string {
			res := execute(t, "name: x\ntraffic: [{messages: 100, threads: 2, "+load+"}]\n", Request{Seed: seed})
			text, err := res.Rows[0].Exact()
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if one := rate(1); one != rate(1) || one == rate(2) {
			t.Errorf("%s: the seed changes nothing, or more: %s", load, one)
		}
	}
}
