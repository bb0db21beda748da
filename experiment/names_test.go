package experiment

import (
	"strconv"
	"strings"
	"testing"
)

// No name leaves the output folder, and none brings control characters or formulas along.
func TestNames(t *testing.T) {
	for _, name := range []string{"../x", "/etc/x", "a/b", "..", ".x", "=1+1", "+1", "-1", "@a", "a\x1b[2J", "a\nb", "a\\b", "a\u202eb", strings.Repeat("a", 101)} {
		for _, src := range []string{"name: " + strconv.Quote(name) + "\ntraffic: [{messages: 1}]\n", "name: x\ntraffic: [{name: " + strconv.Quote(name) + ", messages: 1}]\n"} {
			if _, err := ParseScenario("s.yaml", []byte(src)); err == nil || !strings.HasPrefix(err.Error(), "s.yaml:") || strings.ContainsAny(err.Error(), "\x1b") {
				t.Errorf("%q: %v", src, err)
			}
		}
	}
	for _, name := range []string{"x", "two-loads", "Größe 2", "run_1.b (2)"} {
		if _, err := ParseScenario("s.yaml", []byte("name: "+strconv.Quote(name)+"\ntraffic: [{messages: 1}]\n")); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := ParseScenario("s.yaml", []byte("name: x\nsource: \"a\\eb\"\ntraffic: [{messages: 1}]\n")); err == nil {
		t.Error("a source with an escape character is accepted")
	}
}

// A scenario without loads, and one whose loads cannot be told apart, are refused.
func TestLoadsAreNamed(t *testing.T) {
	for load, want := range map[string]string{
		"": "traffic has no load",
		"{name: a, messages: 1}, {messages: 1}, {name: a, messages: 1}": "loads 0 and 2 are both named a",
		"{name: load1, messages: 1}, {messages: 1}":                     "loads 0 and 1 are both named load1",
	} {
		_, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: ["+load+"]\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", load, err, want)
		}
	}
}

// A scenario of more loads than hosts have threads is refused before each of them is checked.
func TestTooManyLoads(t *testing.T) {
	_, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: ["+strings.Repeat("{messages: 1}, ", mostLoads+1)+"]\n"))
	if err == nil || !strings.Contains(err.Error(), "1025 loads are more than the 1024") {
		t.Errorf("%v", err)
	}
}
