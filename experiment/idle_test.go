package experiment

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// rowsOf runs a scenario of a file and returns its rows and notes.
func rowsOf(t *testing.T, text string, set ...string) (rows string, notes []string) {
	t.Helper()
	s, err := ParseScenario("s.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	res, err := s.Experiment().Execute(t.Context(), Request{Seed: 5, Set: set}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	b, err := json.Marshal(res.Rows)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), res.Notes
}

// idleKeys are the settings that notes call idle.
func idleKeys(notes []string) (keys []string) {
	for _, n := range notes {
		if key, _, ok := strings.Cut(n, " changes nothing here: "); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestSettingsThatChangeNothingAreNamed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"traffic: [{duration: 20us}]\n", ""},
		{"set: {congestion.dcqcn: \"true\"}\ntraffic: [{duration: 20us}]\n", "congestion.dcqcn"},
		{"link: switch\nset: {congestion.dcqcn: \"true\"}\ntraffic: [{duration: 20us}]\n", "congestion.dcqcn"},
		{"link: switch\nset: {congestion.dcqcn: \"true\", switch.ecn_min: 10KiB, switch.ecn_max: 100KiB, switch.ecn_chance: \"1\"}\ntraffic: [{duration: 20us}]\n", "congestion.dcqcn"},
		{"link: switch\nset: {congestion.dcqcn: \"true\", switch.ecn_min: 10KiB, switch.ecn_max: 100KiB}\ntraffic: [{clients: 8, payload: 16KiB, messages: 20}]\n", ""},
		{"link: switch\nset: {congestion.dcqcn: \"true\", switch.ecn_max: 0B, switch.ecn_min: 0B}\ntraffic: [{clients: 8, payload: 16KiB, messages: 20}]\n", "congestion.dcqcn"},
		{"link: switch\nset: {switch.ecn_max: 2MiB}\ntraffic: [{duration: 20us}]\n", "switch.ecn_max"},
		{"link: switch\nset: {link.pfc: \"true\"}\ntraffic: [{payload: 64KiB, duration: 20us}, {from: 1, to: 0, payload: 64KiB, duration: 20us, cores: [2]}]\n", "link.pfc"},
		{"set: {link.pfc: \"true\"}\ntraffic: [{verb: read, from: 0, to: 1..2, payload: 64KiB, duration: 20us}]\n", ""},
		{"link: switch\nset: {link.pfc: \"true\", link.pfc_xoff: 4KiB, link.pfc_xon: 2KiB}\ntraffic: [{payload: 64KiB, duration: 20us}]\n", ""},
		{"set: {switch.buffer: 2MiB, link.pfc_xoff: 64KiB}\ntraffic: [{duration: 20us}]\n", "link.pfc_xoff switch.buffer"},
		{"set: {link.pfc: \"true\"}\ntraffic: [{duration: 20us}]\n", "link.pfc"},
		{"hosts: 4\nlink: switch\ntraffic: [{duration: 20us}]\n", "hosts"},
		{"traffic: [{measure: latency, window: 4, verb: read, recv_depth: 8, messages: 20}]\n", "traffic.0.recv_depth traffic.0.window"},
		{"traffic: [{transport: ud, retry_cnt: 3, rd_atomic: 1, duration: 20us}]\n", "traffic.0.rd_atomic traffic.0.retry_cnt"},
		{"traffic: [{verb: send, recv_depth: 8, duration: 20us}, {verb: write, recv_depth: 8, duration: 20us, cores: [3]}]\n", "traffic.1.recv_depth"},
	} {
		_, notes := rowsOf(t, "name: x\n"+c.text)
		if got := strings.Join(idleKeys(notes), " "); got != c.want {
			t.Errorf("%s: %q are called idle, want %q", c.text, got, c.want)
		}
	}
}

// What is called idle is idle: without it, or with another value, a drawn scenario has the same
// rows.
func TestIdleSettingsAreIdle(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	tried := map[string]int{}
	for range 25 {
		link := pick("cable", "switch")
		set := map[string][2]string{
			"congestion.dcqcn": {"true", "false"}, "link.pfc": {"true", "false"}, "link.pfc_xoff": {"100KiB", "64KiB"}, "switch.buffer": {"256KiB", "1MiB"},
			"switch.ecn_max": {"2MiB", "1600000B"}, "gpu.write_buffer": {"128KiB", "64KiB"},
		}
		keys := map[string][2]string{
			"window": {"3", "9"}, "postlist": {"2", "1"}, "signal_every": {"2", "1"}, "retry_cnt": {"3", "7"}, "ack_timeout": {"10", "14"}, "rnr_retry": {"2", "7"},
			"min_rnr_timer": {"3", "12"}, "rd_atomic": {"4", "16"}, "recv_depth": {"64", "128"}, "recv_postlist": {"2", "1"},
		}
		transport := pick("rc", "uc", "ud")
		verb := map[string]string{"rc": pick("write", "send", "read", "faa", "write_imm"), "uc": pick("write", "send", "write_imm"), "ud": "send"}[transport]
		load := fmt.Sprintf("transport: %s, verb: %s, messages: %d", transport, verb, 40+rng.IntN(100))
		if verb != "faa" {
			load += ", payload: " + pick("8B", "200B", "1000B")
		}
		if rng.IntN(3) == 0 && transport == "rc" {
			load += ", measure: latency"
		}
		given, others := map[string]string{}, map[string]string{}
		for k, v := range keys {
			if rng.IntN(4) == 0 {
				load += ", " + k + ": " + v[0]
				given["traffic.0."+k], others["traffic.0."+k] = v[0], v[1]
			}
		}
		var values []string
		for k, v := range set {
			if rng.IntN(4) == 0 {
				values = append(values, k+`: "`+v[0]+`"`)
				given[k], others[k] = v[0], v[1]
			}
		}
		text := fmt.Sprintf("name: x\nlink: %s\nset: {%s}\ntraffic:\n  - {%s}\n", link, strings.Join(values, ", "), load)
		if _, err := ParseScenario("s.yaml", []byte(text)); err != nil {
			continue // values that do not go together
		}
		rows, notes := rowsOf(t, text)
		for _, key := range idleKeys(notes) {
			if others[key] == "" {
				continue
			}
			tried[key]++
			if again, _ := rowsOf(t, text, key+"="+others[key]); again != rows {
				t.Errorf("%s is called idle, and %s changes the rows:\n%s%s\n%s", key, others[key], text, rows, again)
			}
		}
	}
	if len(tried) < 6 {
		t.Errorf("only %v were tried", tried)
	}
}

// TestAttributesComeWithSettings: what a load asks of the library is checked when all settings have
// been made.
func TestAttributesComeWithSettings(t *testing.T) {
	s, err := ParseScenario("td.yaml", []byte("name: td\ntraffic: [{td: independent, messages: 20}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	x := s.Experiment()
	const cure = "td.yaml:2:16: td: independent asks for an attribute that no released library has: set provider.independent_td to true"
	if _, err := x.Execute(t.Context(), Request{Seed: 1}, nil); err == nil || !strings.Contains(err.Error(), cure) {
		t.Errorf("without the attribute: %v", err)
	}
	if _, err := x.Execute(t.Context(), Request{Seed: 1, Set: []string{"provider.independent_td=true"}}, nil); err != nil {
		t.Errorf("with it: %v", err)
	}
}
