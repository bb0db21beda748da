package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if status := program.Execute(t.Context(), args, &out, &errs); status != 0 || errs.Len() > 0 {
		t.Fatalf("%q: status %d: %s", args, status, &errs)
	}
	return out.String()
}

// The reference of scenario files has each key with what is allowed, in lines that a terminal of
// 100 columns shows, and each part alone.
func TestHelpScenario(t *testing.T) {
	whole := printed(t, "help", "scenario")
	for line := range strings.Lines(whole) {
		if n := len(strings.TrimRight(line, "\n")); n > 100 && !strings.HasPrefix(line, "    - {") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, k := range experiment.ScenarioKeys() {
		if k.Help == "" {
			t.Errorf("%s: no help", k.Path)
		}
		last := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
		if k.Path != "set.NAME" && !strings.HasSuffix(k.Path, ".env.NAME") && !strings.Contains(whole, " "+last+" ") && !strings.Contains(whole, "."+last+" ") {
			t.Errorf("%s is not in the reference", k.Path)
		}
	}
	for part, want := range map[string][]string{
		"file":        {"    link  ", "default cable, or switch"},
		"traffic":     {"  Who posts to whom\n    name  ", "  Memory\n", "    window          outstanding requests of a queue pair [1 to 32768; default 128]\n", "    work            time that a thread computes before each post call [0ns to 1s; default 0ns]\n"},
		"faults":      {"    do  ", "spoil; required]", "edits.N.offset"},
		"completions": {"    handler.mean  "},
		"sweep":       {"    over  "},
		"examples":    {"  name: incast\n  set: "},
	} {
		text := printed(t, "help", "scenario", part)
		if !strings.Contains(whole, strings.TrimSpace(text)) || strings.Contains(text, "Usage:") {
			t.Errorf("%s is no part of the whole:\n%s", part, text)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", part, w, text)
			}
		}
	}
	if n := strings.Count(whole, ".distribution  "); n != 1 {
		t.Errorf("the keys of a time that varies stand there %d times", n)
	}
	var out, errs strings.Builder
	if status := program.Execute(t.Context(), []string{"help", "scenario", "trafic"}, &out, &errs); status != exitUsage || !strings.Contains(errs.String(), `did you mean "traffic"`) {
		t.Errorf("status %d: %s", status, &errs)
	}
}

// Keys are listed with value, bounds and the kind of source; a pattern chooses some.
func TestListKeys(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
		not  string
	}{
		{[]string{"keys", "ecn_"}, []string{"KEY ", "\nswitch.ecn_max "}, "traffic"},
		{[]string{"keys", "traffic.*_sharing"}, []string{"traffic.N.cq_sharing  0      0 to 10000  scenario\n"}, "hca."},
		{[]string{"keys", "hca.repeat_window"}, []string{"1 to 65536  assumed\n"}, "published"},
		{[]string{"keys", "uar.bf_conflict"}, []string{"uar.bf_conflict ", "none, serialize, refetch  hypothesis\n"}, "scenario"},
		{[]string{"keys", "hca.log_max_qp", "--profile", "connectx-4"}, []string{"hca.log_max_qp ", "3 to 18"}, "scenario"},
		{[]string{"keys", "--format", "csv", "link.band"}, []string{"key,value,allowed,source\nlink.bandwidth,100Gbps,rate,"}, "KEY"},
		{[]string{"experiments"}, []string{"  uar-sharing: ", "    threads=16"}, "stream.yaml"},
		{[]string{"scenarios"}, []string{"  stream.yaml  "}, "uar-sharing"},
		{[]string{"profiles"}, []string{"connectx-5 "}, "x86-host"},
		{nil, []string{"  uar-sharing: ", "  stream.yaml  "}, "KEY"},
	} {
		out := printed(t, append([]string{"list"}, c.args...)...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %q in\n%s", c.args, want, out)
			}
		}
		if strings.Contains(out, c.not) {
			t.Errorf("%q: %q in\n%s", c.args, c.not, out)
		}
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(printed(t, "list", "keys", "--format", "json")), &rows); err != nil || len(rows) < 300 || rows[0]["key"] != "name" {
		t.Errorf("%d rows: %v", len(rows), err)
	}
	for args, want := range map[string]string{
		"list keys hca.repaet_window": `no key matches "hca.repaet_window" (did you mean "hca.repeat_window"?)`,
		"list keys [":                 "is no pattern",
		"list keys a b":               "one pattern is allowed",
		"list key":                    `(did you mean "keys"?): rdmasim list, alone or with experiments, scenarios, profiles, keys`,
		"list keys --profile nope":    "unknown profile",
	} {
		var out, errs strings.Builder
		if status := program.Execute(t.Context(), strings.Fields(args), &out, &errs); status != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d: %s", args, status, &errs)
		}
	}
}

// Commands stand in help by use.
func TestHelpIsOrderedByUse(t *testing.T) {
	var names []string
	for _, c := range newRoot(io.Discard, io.Discard).Commands() {
		if !c.Hidden && !c.IsAdditionalHelpTopicCommand() {
			names = append(names, c.Name())
		}
	}
	if got := strings.Join(names, " "); got != "run exec perf wire vm pci list profile validate calibrate results help completion" && got != "run exec perf wire vm pci list profile validate calibrate results completion help" {
		t.Error(got)
	}
}
