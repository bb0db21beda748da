package fault

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

func TestParseEvents(t *testing.T) {
	p, err := Parse("f.yaml", []byte(`
events:
  - {at: 2ms, do: remove, device: host1/mlx5_0}
  - {at: 3.5us, do: kill, process: host1/p12}
  - {at: 0ns, do: unmap, process: host0/p1, region: 2, offset: 4KiB, length: 100B}
  - at: 1s
    do: remap
    process: host0/p1
    region: 1
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{At: 2e9, Kind: Remove, Device: "host1/mlx5_0"},
		{At: 3.5e6, Kind: Kill, Process: "host1/p12"},
		{Kind: Unmap, Process: "host0/p1", Region: 2, Offset: 4096, Length: 100},
		{At: 1e12, Kind: Remap, Process: "host0/p1", Region: 1},
	}
	if d := cmp.Diff(want, p.Events); d != "" {
		t.Error(d)
	}
	for i, text := range []string{"remove host1/mlx5_0", "kill host1/p12", "unmap region 2 of host0/p1", "remap region 1 of host0/p1"} {
		if got := p.Events[i].String(); got != text {
			t.Errorf("event %d is called %q, not %q", i, got, text)
		}
	}
}

func TestParseEventErrors(t *testing.T) {
	for src, want := range map[string]string{
		"events: [{at: 1us, do: kil, process: a/p1}]":                                                                    `f.yaml:1:24: .*kill`,
		"events: [{do: kill, process: a/p1}]":                                                                            `f.yaml:1:\d+: field "at" is missing`,
		"events: [{at: 1, do: kill, process: a/p1}]":                                                                     `f.yaml:1:15: .*unit`,
		"events: [{at: 1us, do: kill}]":                                                                                  `f.yaml:1:10: kill needs a process`,
		"events: [{at: 1us, do: kill, process: a}]":                                                                      `f.yaml:1:39: "a" is not a process`,
		"events: [{at: 1us, do: kill, process: a/p0}]":                                                                   `f.yaml:1:39: "a/p0" is not a process`,
		"events: [{at: 1us, do: kill, process: a/p1, region: 1}]":                                                        `f.yaml:1:53: region is given, and kill`,
		"events: [{at: 1us, do: remove, process: a/p1, device: a/m}]":                                                    `f.yaml:1:41: process is given, and remove`,
		"events: [{at: 1us, do: remove}]":                                                                                `f.yaml:1:10: remove needs a device`,
		"events: [{at: 1us, do: unmap, process: a/p1}]":                                                                  `f.yaml:1:10: unmap needs a region`,
		"events: [{at: 1us, do: unmap, process: a/p1, region: 0}]":                                                       `f.yaml:1:54: .*below 1`,
		"events: [{at: 1us, do: remap, process: a/p1, region: 1, length: 0}]":                                            `f.yaml:1:65: .*below`,
		"events:\n- {at: 1us, do: kill, process: a/p1}\n- {at: 1us, do: remap, process: a/p1, region: 1,\n   device: b}": `f.yaml:4:12: device is given, and remap`,
	} {
		if _, err := Parse("f.yaml", []byte(src)); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

func TestCheckEvents(t *testing.T) {
	target := Target{Devices: []string{"host0/mlx5_0"}, Hosts: []string{"host0"}}
	target.Cannot = func(k EventKind) string {
		if k == Remap {
			return "it is not modelled"
		}
		return ""
	}
	for src, want := range map[string]string{
		"events: [{at: 1us, do: remove, device: host0/mlx5_0}, {at: 1us, do: kill, process: host0/p7}]": "",
		"events: [{at: 1us, do: remove, device: host1/mlx5_0}]":                                         `f.yaml:1:40: there is no device "host1/mlx5_0" (did you mean "host0/mlx5_0"?)`,
		"events: [{at: 1us, do: kill, process: host3/p1}]":                                              `f.yaml:1:39: there is no host "host3"`,
		"events: [{at: 1us, do: remap, process: host0/p1, region: 1}]":                                  `f.yaml:1:24: remap cannot be injected here: it is not modelled`,
	} {
		p, err := Parse("f.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		err = p.Check(target)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

func TestUnmapCoversWholePages(t *testing.T) {
	for _, c := range []struct {
		offset, length, addr, n uint64
		start, size             uint64
		ok                      bool
	}{
		{0, 0, 0x10000, 0x3000, 0x10000, 0x3000, true},
		{0, 0, 0x10010, 0x100, 0x10000, 0x1000, true},
		{0xff0, 0x20, 0x10000, 0x3000, 0x10000, 0x2000, true},
		{0x1000, 1, 0x10010, 0x3000, 0x11000, 0x1000, true},
		{0x3000, 0, 0x10000, 0x3000, 0, 0, false},
		{0x1000, 0x2001, 0x10000, 0x3000, 0, 0, false},
		{1, ^uint64(0), 0x10000, 0x3000, 0, 0, false},
	} {
		e := Event{Kind: Unmap, Offset: c.offset, Length: c.length}
		start, size, ok := e.Pages(c.addr, c.n, 4096)
		if start != c.start || size != c.size || ok != c.ok {
			t.Errorf("%+v: %#x, %#x, %v", c, start, size, ok)
		}
	}
}

// checkComplaints: every error of a file has a position in it.
func checkComplaints(t *testing.T, src string, err error) {
	all := []error{err}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		all = j.Unwrap()
	}
	for _, e := range all {
		var at *input.Error
		if !errors.As(e, &at) || at.Line < 1 || at.Col < 1 {
			t.Errorf("%q: %v has no place", src, e)
		}
	}
}

// checkEvents: every event that was parsed is complete.
func checkEvents(t *testing.T, src string, p *Plan) {
	for _, e := range p.Events {
		if e.At < 0 || e.Kind >= eventKinds || (e.Device == "") == (e.Process == "") && e.Kind != Remove {
			t.Errorf("%q: %+v", src, e)
		}
		if start, n, ok := e.Pages(0x7f0000001000, 1<<20, 4096); ok && (start%4096 != 0 || n%4096 != 0 || n > 1<<20) {
			t.Errorf("%q: pages %#x+%#x of a region", src, start, n)
		}
	}
}
