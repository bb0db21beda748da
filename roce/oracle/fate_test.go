package oracle

import "testing"

// The comments of the simulator's captures say what became of frames; those of which only a part
// arrives are lost.
func TestFates(t *testing.T) {
	for comment, want := range map[string]Fate{
		"": Sent, "loopback": Sent, "dropped by a rule": Lost, "truncated by a rule after it was sent": Lost,
		"loopback, truncated by a rule after it was sent": Lost,
		"corrupted (FCS) by a rule after it was sent":     Corrupted, "edited by a rule after it was sent": Edited,
		"delayed by a rule behind the next frame": Late, "duplicated by a rule": Twice, "marked by a rule (ECN)": Marked,
	} {
		if got := fate(comment); got != want {
			t.Errorf("%q: %v, want %v", comment, got, want)
		}
	}
}
