package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type inner struct {
	Window int    `yaml:"window" min:"1" max:"1024"`
	Verb   string `yaml:"verb" oneof:"read,send,write"`
	Delay  int64  `yaml:"delay" unit:"time" min:"0ps" max:"1s"`
}

type outer struct {
	Name    string            `yaml:"name" required:"true"`
	Size    uint64            `yaml:"size" unit:"size"`
	Rate    uint64            `yaml:"rate" unit:"rate"`
	On      bool              `yaml:"on"`
	Want    float64           `yaml:"want"`
	Set     map[string]string `yaml:"set"`
	Ports   uint64            `yaml:"ports" max:"2"`
	Traffic []inner           `yaml:"traffic"`
	One     *inner            `yaml:"one"`
}

func TestDecode(t *testing.T) {
	var o outer
	doc, err := Decode("a.yaml", []byte("name: x\nsize: 4KiB\nrate: 100Gbps\non: true\nset: {a.b: 3, c: 1.5us}\ntraffic:\n  - {window: 4, verb: send, delay: 1.5us}\none:\n  window: 9\n"), &o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Size != 4096 || o.Rate != 100e9 || !o.On || o.Set["a.b"] != "3" || o.Set["c"] != "1.5us" || o.One.Window != 9 {
		t.Errorf("decoded %+v", o)
	}
	if o.Traffic[0] != (inner{4, "send", 1500000}) {
		t.Errorf("traffic %+v", o.Traffic[0])
	}
	if got := doc.Errorf("traffic.0.window", "x").Error(); got != "a.yaml:7:14: x" {
		t.Errorf("position: %s", got)
	}
	if got := doc.Errorf("traffic.0.other", "x").Error(); !strings.HasPrefix(got, "a.yaml:7:") {
		t.Errorf("position of the parent: %s", got)
	}
}

// Some editors write a byte order mark before the text.
func TestByteOrderMark(t *testing.T) {
	var o outer
	if _, err := Decode("a.yaml", []byte("\ufeffname: x\nports: 1\n"), &o); err != nil || o.Name != "x" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"nam: x\n", `a.yaml:1:1: unknown field "nam" (did you mean "name"?)`},
		{"nam: x\n", `field "name" is missing`},
		{"name: x\ntraffic:\n  - window: 0\n", `a.yaml:3:13: 0 is below 1: 1 to 1024 is allowed`},
		{"name: x\ntraffic:\n  - verb: wriet\n", `a.yaml:3:11: "wriet" is not one of read, send, write (did you mean "write"?)`},
		{"name: x\ntraffic:\n  - delay: 5\n", `a.yaml:3:12: time "5" has no unit: one of ps, ns, us, ms, s`},
		{"name: x\ntraffic:\n  - delay: 5 us2\n", `a.yaml:3:12: time "5 us2"`},
		{"name: x\ntraffic:\n  - delay: 2s\n", `2s is above 1s`},
		{"name: x\nsize: 4kib\n", `a.yaml:2:7: size "4kib": unit "kib" is not one of B, KiB, MiB, GiB, TiB, kB, MB, GB (did you mean "KiB"?)`},
		{"name: x\nname: y\n", `a.yaml:2:1: mapping key "name" already defined`},
		{"name: [x]\n", `a.yaml:1:7: a word is needed here, not a list`},
		{"name: x\ntraffic: 3\n", `a list is needed here`},
		{"name: x\non: yes\n", `"yes" is not true or false`},
		{"name:\n", `field "name" has no value`},
		{"name: &a x\n", `anchors`},
		{"name: x\n---\nname: y\n", `second document`},
		{"name: 'x\n", `a.yaml:1:`},
		{"", `empty`},
		{"name: x\nrate: 1.0000000001bps\n", `finer`},
		{"name: x\nports: 18446744073709551615\n", `a.yaml:2:8: 18446744073709551615 is above 2`},
		{"name: x\nsize: 99999999999999999999\n", `too large`},
		{"name: x\nwant: inf\n", `a.yaml:2:7: "inf" is not a number`},
		{"name: x\nwant: NaN\n", `"NaN" is not a number`},
		{"name: x\nwant: .nan\n", `a number is needed here, not .nan`},
		{"name: .inf\n", `a word is needed here, not .inf`},
		{"name: x\nports: 01\n", `"01" begins with 0, which some read as a number in base 8: write 1`},
	} {
		var o outer
		_, err := Decode("a.yaml", []byte(c.src), &o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.src, err, c.want)
		}
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	var o outer
	_, err := Decode("a.yaml", []byte("name: x\nsize: 4\nrate: 3\non: maybe\n"), &o)
	if err == nil || strings.Count(err.Error(), "a.yaml:") != 2 {
		t.Errorf("want two complaints, got: %v", err)
	}
}

func TestSet(t *testing.T) {
	o := outer{Traffic: []inner{{}}, Set: map[string]string{}}
	for _, c := range [][2]string{{"traffic.0.window", "7"}, {"one.delay", "3ns"}, {"set.hca.x", "v"}, {"size", "1.5KiB"}} {
		if err := Set(&o, c[0], c[1]); err != nil {
			t.Errorf("%s=%s: %v", c[0], c[1], err)
		}
	}
	if o.Traffic[0].Window != 7 || o.One.Delay != 3000 || o.Set["hca.x"] != "v" || o.Size != 1536 {
		t.Errorf("set %+v %+v", o, o.One)
	}
	for _, c := range [][3]string{
		{"traffic.1.window", "7", "items 0 to 0"}, {"traffic.0.windo", "7", `did you mean "window"`}, {"traffic", "7", "is a list or a map"},
		{"name.x", "7", "single value"}, {"traffic.0.window", "0", "below 1"}, {"traffic.0.window", "010", "in base 8: write 10"},
		{"traffic.00.window", "7", "items 0 to 0"}, {"traffic.+0.window", "7", "items 0 to 0"},
	} {
		if err := Set(&o, c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s=%s: got %v, want %s", c[0], c[1], err, c[2])
		}
	}
}

func TestFormatParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(0, 1<<62).Draw(t, "v")
		if got, err := ParseTime(FormatTime(int64(v))); err != nil || got != int64(v) {
			t.Fatalf("time %d: %s: %d, %v", v, FormatTime(int64(v)), got, err)
		}
		if got, err := ParseRate(FormatRate(v)); err != nil || got != v {
			t.Fatalf("rate %d: %s: %d, %v", v, FormatRate(v), got, err)
		}
		k := v >> rapid.IntRange(0, 60).Draw(t, "shift")
		if got, err := ParseSize(FormatSize(k << 10)); err == nil && got != k<<10 {
			t.Fatalf("size %d: %s: %d", k<<10, FormatSize(k<<10), got)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: x\ntraffic:\n  - {window: 4, verb: send, delay: 1.5us}\n"))
	f.Add([]byte("name: x\nset: {a: 1}\none: {window: 3}\nsize: 1.5KiB"))
	f.Add([]byte("- a\n- {b: [c]}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var o outer
		_, err := Decode("f.yaml", src, &o)
		if err == nil && o.Name == "" && !strings.Contains(string(src), "name") {
			t.Error("a required field is missing and nobody said so")
		}
	})
}

// What is hostile by its size alone is refused before the parser sees it.
func TestExcess(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, MostBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{large: "longer than 1048576 bytes", "/dev/zero": "longer than 1048576 bytes", filepath.Join(dir, "none"): "no such file"} {
		if _, err := ReadFile(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const many = 100_000
	for what, want := range map[string]string{
		strings.Repeat("[", many): "x:1:101: more than 100 lists", strings.Repeat("{a: ", many): "x:1:401: ", "n: " + strings.Repeat("- ", many): "",
		strings.Repeat("- ", many): "x:1:201: ", "\n" + strings.Repeat("? ", many): "x:2:201: ", strings.Repeat("a: [\n", many): "x:101:4: ",
		strings.Repeat("- \n", many):                   "more than 20000 lines",
		"name: \"" + strings.Repeat("[]", many) + "\"": "", "# " + strings.Repeat("-", many) + "\nname: x": "",
	} {
		var v struct {
			Name string `yaml:"name"`
			N    string `yaml:"n"`
		}
		_, err := Decode("x", []byte(what), &v)
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20q: %v, want %q", what, err, want)
		}
		if want == "" && err != nil && strings.Contains(err.Error(), "more than") {
			t.Errorf("%.20q: %v", what, err)
		}
	}
}
