package input

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// numbers is a file with a field of each kind that numbers are written in.
type numbers struct {
	Window uint64            `yaml:"window"`
	Signed int               `yaml:"signed"`
	Size   uint64            `yaml:"size" unit:"size"`
	Time   int64             `yaml:"time" unit:"time"`
	Rate   uint64            `yaml:"rate" unit:"rate"`
	Value  float64           `yaml:"value"`
	Words  map[string]string `yaml:"words"`
}

// A number is read only if all readers of YAML, old and new, read it as the same.
func TestNotationsOfNumbers(t *testing.T) {
	for _, x := range []struct {
		text string
		want string // of the error; "": it is taken
	}{
		{"window: 16", ""}, {"window: 0", ""}, {"window: 0x10", ""}, {"signed: -16", ""},
		{"window: 017", "write 17"}, {"window: 00", "write 0"}, {"window: 0_7", "write 7"}, {"signed: -017", "write 17"},
		{"window: 1_6", "write 16"}, {"window: 16_", "write 16"}, {"window: 0x1_0", "write 0x10"}, {"signed: -1_6", "write 16"},
		{"window: 0o20", "0x10"}, {"window: 0O20", "0x10"}, {"window: 0b101", "0x10"}, {"window: 0X10", "0x10"},
		{"window: +16", "write 16"}, {"window: 1:30", "as 90"}, {"window: 1e3", "write its digits"}, {"window: 1.5e3", "write its digits"},
		{"window: .5", "both sides"}, {"window: 5.", "both sides"}, {"window: 1.0", "not a whole number"}, {"window: ''", "not a whole number"},
		{"signed: --1", "not a whole number"},
		{"size: 16", ""}, {"size: 4KiB", ""}, {"size: 0.5KiB", ""}, {"size: 0B", ""},
		{"size: 017", "write 17"}, {"size: 017B", "write 17"}, {"size: 1_024", "write 1024"}, {"size: 1_024B", "write 1024"}, {"size: +1KiB", "write 1"},
		{"size: 0x10", "unit"}, {"time: 1e3ns", "write its digits"}, {"time: 1:30s", "as 90"}, {"time: .5us", "both sides"}, {"time: 5.us", "both sides"}, {"time: 010us", "write 10"},
		{"time: 00.5us", "write 0.5"}, {"rate: 1_0Gbps", "write 10"}, {"rate: 010Gbps", "write 10"},
		{"value: 1.5", ""}, {"value: -0.5", ""}, {"value: 2e6", ""}, {"value: 1.5e-3", ""}, {"value: 0.005", ""}, {"value: 0", ""},
		{"value: 017", "write 17"}, {"value: 1_6", "write 16"}, {"value: 1_6.5", "write 16.5"}, {"value: .5", "both sides"}, {"value: 5.", "both sides"}, {"value: 5.e3", "both sides"},
		{"value: +1.5", "write 1.5"}, {"value: 0x10", "not a number"}, {"value: inf", "not a number"}, {"value: nan", "not a number"}, {"value: 1:30", "as 90"},
	} {
		_, err := Decode("f.yaml", []byte(x.text), new(numbers))
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "f.yaml:1:")) {
			t.Errorf("%s: %v, want %q", x.text, err, x.want)
		}
		key, text, _ := strings.Cut(x.text, ": ")
		if text = strings.Trim(text, "'"); x.want != "" { // on the command line too
			if err := Set(new(numbers), key, text); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("Set %s=%s: %v, want %q", key, text, err, x.want)
			}
		}
	}
}

// Whatever is taken is digits, or 0x and digits, and means what these say; nothing is taken with
// another meaning.
func TestWholeTakesOneNotation(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	const letters = "0123456789_+-.:oxXbBeEaf"
	for range 200_000 {
		var b strings.Builder
		for range 1 + rng.IntN(6) {
			b.WriteByte(letters[rng.IntN(len(letters))])
		}
		s := b.String()
		got, err := Whole(s)
		base, digits := 10, s
		if hex, ok := strings.CutPrefix(s, "0x"); ok {
			base, digits = 16, hex
		}
		want, bad := strconv.ParseUint(digits, base, 64)
		unusual := base == 10 && len(s) > 1 && s[0] == '0'
		if (err == nil) != (bad == nil && !unusual) || err == nil && got != want {
			t.Fatalf("%q: %d, %v; as digits: %d, %v", s, got, err, want, bad)
		}
	}
}
