package experiment

import (
	"runtime"
	"testing"

	"github.com/rdmasim/rdmasim/sim/profile"
)

// A run that touches large regions here and there leaves nothing to the runs behind it.
func TestMemoryOfEarlierRuns(t *testing.T) {
	p, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range []string{"payload: 8B, mr_size: 8GiB, stride: 4KiB, access: random, window: 16, messages: 2000", "messages: 10"} {
		s, err := ParseScenario("one.yaml", []byte("name: one\ntraffic:\n  - {"+load+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context(), 1, p); err != nil {
			t.Fatal(err)
		}
	}
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > 2<<30 {
		t.Errorf("%d MiB are in use", m.HeapAlloc>>20)
	}
}
