package fault

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	p, err := Parse("f.yaml", []byte(`
faults:
  - {do: drop, direction: requests, flow: 1, packet: 5, iteration: 1}
  - {do: delay, message: 3, delay: 20us}
  - do: edit
    from: host0/mlx5_0
    dest_qp: 0x41
    opcode: 0x11
    psn: 0x100
    count: 1
    edits: [{offset: 2, value: 0x80}, {offset: -7, value: 1}]
links:
  - {port: host1/mlx5_0, at: 2ms, to: down}
`))
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Rules[0]; r.Match != MatchDirection|MatchFlow|MatchPacket|MatchIteration || r.Response || r.Flow != 1 || r.Packet != 5 || r.Action != Drop {
		t.Errorf("%+v", r)
	}
	if r := p.Rules[1]; r.Match != MatchMessage || r.Message != 3 || r.Action != Delay || r.Delay != 20_000_000 {
		t.Errorf("%+v", r)
	}
	if r := p.Rules[2]; r.Match != MatchPort|MatchDestQP|MatchOpcode|MatchPSN || r.DestQP != 0x41 || r.Opcode != 0x11 || r.PSN != 0x100 || r.Count != 1 || len(r.Edits) != 2 || r.Edits[1].Offset != -7 {
		t.Errorf("%+v", r)
	}
	if l := p.Links[0]; l.Port != "host1/mlx5_0" || l.At != 2e9 || l.Up {
		t.Errorf("%+v", l)
	}
	err = p.Check(Target{Ports: []string{"host0/mlx5_0", "host2/mlx5_0"}})
	if err == nil || !strings.Contains(err.Error(), `f.yaml:13:12: there is no port "host1/mlx5_0"`) {
		t.Errorf("%v", err)
	}
}

func TestParseErrors(t *testing.T) {
	for src, want := range map[string]string{
		"faults: [{do: drp}]":                                    `f.yaml:1:15: .*drop`,
		"faults: [{do: drop, qp: 1}]":                            `f.yaml:1:\d+: .*qp`,
		"faults: [{psn: 1}]":                                     `f.yaml:1:\d+: .*do`,
		"faults: [{do: delay}]":                                  `f.yaml:1:\d+: a delay must be positive`,
		"faults: [{do: delay, delay: 5}]":                        `f.yaml:1:\d+: .*5`,
		"faults: [{do: drop, delay: 5us}]":                       `f.yaml:1:\d+: delay is given, and drop`,
		"faults: [{do: edit}]":                                   `f.yaml:1:\d+: edit needs edits`,
		"faults: [{do: drop, psn: 0x1000000}]":                   `f.yaml:1:\d+: .*0x1000000`,
		"faults: [{do: drop, packet: 0}]":                        `f.yaml:1:\d+: .*below 1`,
		"faults: [{do: drop, packet: 1, direction: responses}]":  `f.yaml:1:\d+: .*requests`,
		"links: [{port: a, at: -1us, to: up}]":                   `f.yaml:1:\d+: `,
		"links: [{port: a, at: 1us, to: sideways}]":              `f.yaml:1:\d+: .*down`,
		"faults: [{do: edit, edits: [{offset: -49, value: 1}]}]": `f.yaml:1:\d+: -49 is below -48`,
		"faults: []": `f.yaml:1:\d+: the file has no faults`,
		"faults: {":  `f.yaml:1:\d+: `,
	} {
		if _, err := Parse("f.yaml", []byte(src)); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// TestHistory addresses packets by flow, packet, message and iteration.
func TestHistory(t *testing.T) {
	request := func(port string, qp, psn uint32, first bool) Frame {
		return Frame{Port: port, DestQP: qp, PSN: psn & 0xFFFFFF, First: first}
	}
	// Two messages of 3 and 2 packets over the wrap of the PSN; the second packet is sent
	// again; another QP; a response with a PSN of the first flow.
	base := uint32(0xFFFFFE)
	frames := []Frame{
		request("a", 1, base, true), request("a", 1, base+1, false), request("a", 1, base+2, false),
		request("a", 1, base+3, true), request("a", 1, base+4, false), request("a", 1, base+1, false),
		request("a", 2, 7, true), request("b", 1, 9, true),
		{Port: "a", DestQP: 1, PSN: base & 0xFFFFFF, Response: true, First: true},
	}
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{Match: MatchPacket, Packet: 2}, ".x...x..."},
		{Rule{Match: MatchPacket | MatchIteration, Packet: 2, Iteration: 2}, ".....x..."},
		{Rule{Match: MatchMessage, Message: 2}, "...xx...."},
		{Rule{Match: MatchMessage | MatchFlow, Message: 1, Flow: 1}, "xxx..x..."},
		{Rule{Match: MatchFlow, Flow: 2}, "......x.."},
		{Rule{Match: MatchFlow, Flow: 3}, ".......x."},
		{Rule{Match: MatchDirection, Response: true}, "........x"},
		{Rule{Match: MatchDirection | MatchFlow | MatchIteration, Flow: 1, Iteration: 1}, "xxxxx...."},
	} {
		c.rule.Action = Drop
		var s Script
		if err := s.Add(c.rule); err != nil {
			t.Fatal(err)
		}
		got := ""
		for i := range frames {
			if s.Decide(&frames[i], nil) != nil {
				got += "x"
			} else {
				got += "."
			}
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.rule, got, c.want)
		}
	}
}

// TestDocumentedFormParses: the example of docs/wire.md is true.
func TestDocumentedFormParses(t *testing.T) {
	doc, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "```yaml\n")
	example, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("docs/wire.md has no YAML example")
	}
	p, err := Parse("docs/wire.md", []byte(example))
	if err != nil || len(p.Rules) != 4 || len(p.Links) != 2 || len(p.Events) != 4 {
		t.Errorf("%v, %+v", err, p)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("faults: [{do: drop, packet: 3}]\nlinks: [{port: a, at: 1us, to: up}]")
	f.Add("events: [{at: 1us, do: kill, process: a/p1}, {at: 0ns, do: remove, device: a/b}]")
	f.Add("events: [{at: 1us, do: unmap, process: a/p1, region: 1, offset: 18446744073709551615, length: 4KiB}]")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := Parse("f.yaml", []byte(src))
		if err != nil {
			checkComplaints(t, src, err)
			return
		}
		checkEvents(t, src, p)
		var s Script
		for _, r := range p.Rules {
			if err := s.Add(r); err != nil {
				t.Errorf("%q: parsed, then refused: %v", src, err)
			}
		}
	})
}
