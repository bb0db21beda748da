package experiment

import (
	"strings"
	"testing"
)

// Defaults follow from what is given, wherever it is given: a change by --set is as good as one in
// the file.
func TestDefaultsFollowChanges(t *testing.T) {
	const file = "name: x\ntraffic:\n  - {messages: 10}\n"
	for _, c := range []struct {
		key, val string
		want     func(*Traffic) bool
	}{
		{"traffic.0.payload", "64KiB", func(l *Traffic) bool { return l.MRSize == 2*65536+64 }},
		{"traffic.0.payload", "0", func(l *Traffic) bool { return l.Payload == 0 }},
		{"traffic.0.empty", "true", func(l *Traffic) bool { return l.Payload == 0 }},
		{"traffic.0.verb", "faa", func(l *Traffic) bool { return l.Payload == 8 }},
		{"traffic.0.transport", "ud", func(l *Traffic) bool { return l.Verb == "send" }},
		{"link", "loopback", func(l *Traffic) bool { return *l.To == 0 }},
	} {
		s, err := ParseScenario("s.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a change of what was changed before, too
			if s, err = s.With(Setting{c.key, c.val}); err != nil || !c.want(&s.Traffic[0]) {
				t.Fatalf("%s=%s: %v", c.key, c.val, err)
			}
		}
	}
	s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic:\n  - {messages: 10, payload: 0}\n"))
	if err != nil || s.Traffic[0].Payload != 0 {
		t.Fatalf("a payload of 0 in the file: %v", err)
	}
	if s, err = s.With(Setting{"traffic.0.payload", "64"}); err != nil || s.Traffic[0].Payload != 64 {
		t.Fatalf("a payload after one of 0: %v", err)
	}
}

// Values of a load that contradict each other are refused, in the file and by a change.
func TestContradictionsAreRefused(t *testing.T) {
	for _, c := range []struct{ load, key, val, want string }{
		{"empty: true, payload: 4KiB", "", "", "empty is true and payload is 4KiB"},
		{"payload: 4KiB", "traffic.0.empty", "true", "let payload be 0"},
		{"verb: write, mix: [{verb: read}]", "", "", "leave one out"},
		{"mix: [{verb: read}]", "traffic.0.verb", "write", "leave one out"},
		{"duration: 0us", "", "", "duration is 0"},
		{"window: 1", "traffic.0.duration", "0us", "give the time that is counted"},
		{"duration: 1ps", "", "", "less than 1ns"},
		{"threads: 2, qp_sharing: 2, window: 1", "", "", "window is 1, and 2 threads that share a queue pair"},
		{"threads: 4, qp_sharing: 4, signal_every: 64, messages: 64", "", "", "signal_every 64, need 256"},
		{"window: 8, drain: true, postlist: 3, messages: 64", "", "", "a multiple of postlist and signal_every"},
		{"window: 8, drain: true, measure: latency, messages: 64", "", "", "does not measure latency"},
		{"verb: send, receive: none, duration: 20us, messages: 1000", "", "", "needs a duration, no messages"},
	} {
		s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic:\n  - {"+c.load+"}\n"))
		if err == nil && c.key != "" {
			_, err = s.With(Setting{c.key, c.val})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s=%s: %v, want %q", c.load, c.key, c.val, err, c.want)
		}
	}
}

// A change leaves the scenario that it was made to as it was, in its lists too.
func TestChangesAreOfTheCopy(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic:\n  - {messages: 10, mix: [{verb: send}], cores: [3]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.With(Setting{"traffic.0.mix.0.verb", "read"}, Setting{"traffic.0.cores.0", "5"}); err != nil {
		t.Fatal(err)
	}
	if l := s.Traffic[0]; l.Mix[0].Verb != "send" || l.Cores[0] != 3 {
		t.Errorf("a change of a copy made it %+v on cores %v", l.Mix, l.Cores)
	}
	if again, err := s.With(); err != nil || again.Traffic[0].Mix[0].Verb != "send" || again.Traffic[0].Cores[0] != 3 {
		t.Errorf("the next copy has the change (%v)", err)
	}
}
