package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Each command that help shows has a manual page with all its flags, and groff formats the pages
// without a complaint.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	var out, errs strings.Builder
	if status := program.Execute(t.Context(), []string{"man", dir}, &out, &errs); status != 0 || out.String()+errs.String() != "" {
		t.Fatalf("status %d: %s%s", status, &out, &errs)
	}
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		file := filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if want := strings.ReplaceAll("--"+f.Name, "-", `\-`); !f.Hidden && !strings.Contains(string(text), want) {
				t.Errorf("%s: no %s", c.CommandPath(), want)
			}
		})
		if groff, err := exec.LookPath("groff"); err == nil {
			if out, err := exec.Command(groff, "-man", "-ww", "-z", file).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s", file, err, out)
			}
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "help" && c.Name() != "completion" {
				walk(sub)
			}
		}
	}
	walk(newRoot(io.Discard, io.Discard))
	if files, err := os.ReadDir(dir); err != nil || len(files) != pages || pages < 10 {
		t.Errorf("%d files for %d commands (%v)", len(files), pages, err)
	}
	if status := program.Execute(t.Context(), []string{"man"}, &out, &errs); status != exitUsage || !strings.Contains(errs.String(), "man needs one folder") {
		t.Errorf("man without a folder: status %d: %s", status, &errs)
	}
}

// The shell completes commands, flags, experiments, scenarios and profiles.
func TestShellCompletion(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{[]string{"ru"}, []string{"run\tRun an experiment or a scenario", ":4"}},
		{[]string{"run", ""}, []string{"uar-sharing\t", "stream.yaml\t", ":0"}}, // :0: and files
		{[]string{"run", "odp", ""}, []string{":4"}},
		{[]string{"run", "--profile", ""}, []string{"connectx-5\n", ":0"}},
		{[]string{"run", "--sens"}, []string{"--sensitivity\t"}},
		{[]string{"profile", "show", "connect"}, []string{"connectx-5\n"}},
		{[]string{"run", "../../fixtures/scenarios/lo"}, []string{"../../fixtures/scenarios/loss.yaml\n", ":0"}},
		{[]string{"run", "--set", "hca.log_max_q"}, []string{"hca.log_max_qp=\t", ":6"}},
		{[]string{"run", "stream.yaml", "--set", "traffic.0.ve"}, []string{"traffic.0.verb=\t", ":6"}},
		{[]string{"run", "request-response.yaml", "--set", "traffic."}, []string{"traffic.1.window=\t"}},
		{[]string{"run", "loss.yaml", "--sweep", "faults.0.per"}, []string{"faults.0.per_million=\t"}},
		{[]string{"run", "stream.yaml", "--set", "traffic.0.verb=w"}, []string{"traffic.0.verb=write\ntraffic.0.verb=write_imm\n:4"}},
		{[]string{"run", "uar-sharing", "--sweep", "graph=1,"}, []string{"graph=1,2\ngraph=1,all\n:6"}},
		{[]string{"run", "uar-sharing", "--sweep", "uar.bf_conflict=none,s"}, []string{"uar.bf_conflict=none,serialize\n"}},
		{[]string{"run", "odp", "--set", "mess"}, []string{"message_kib=\t", "messages=\t"}},
		{[]string{"run", "stream.yaml", "--format", ""}, []string{"table\njson\ncsv\njsonl\n:4"}},
		{[]string{"list", "keys", "switch.ec"}, []string{"switch.ecn_min\n"}},
		{[]string{"list", "k"}, []string{"keys\t"}},
		{[]string{"help", "scenario", "tr"}, []string{"traffic\t"}},
	} {
		var out, errs strings.Builder
		status := program.Execute(t.Context(), append([]string{"__complete"}, c.words...), &out, &errs)
		for _, want := range c.want {
			if status != 0 || !strings.Contains(out.String(), want) {
				t.Errorf("%q: status %d, no %q in:\n%s%s", c.words, status, want, &out, &errs)
			}
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, errs strings.Builder
		if status := program.Execute(t.Context(), []string{"completion", shell}, &out, &errs); status != 0 || !strings.Contains(out.String(), "__complete") {
			t.Errorf("%s: status %d: %s", shell, status, &errs)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed, so that its script is not read by it")
	}
	var script, errs strings.Builder
	program.Execute(t.Context(), []string{"completion", "bash"}, &script, &errs)
	check := exec.Command(bash, "-n")
	check.Stdin = strings.NewReader(script.String())
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// What is not a key of an experiment is not offered for it.
func TestCompletionOffersNoOtherKeys(t *testing.T) {
	for _, c := range []struct {
		words []string
		not   string
	}{
		{[]string{"run", "stream.yaml", "--set", "traffic.1"}, "traffic.1"},
		{[]string{"run", "stream.yaml", "--set", "na"}, "name="},
		{[]string{"run", "completions", "--set", "hca."}, "hca."},
		{[]string{"run", "uar-sharing", "--set", "traffic."}, "traffic."},
		{[]string{"run", "uar-sharing", "--sweep", "graph=1,"}, "graph=1,1"},
	} {
		var out, errs strings.Builder
		if status := program.Execute(t.Context(), append([]string{"__complete"}, c.words...), &out, &errs); status != 0 || strings.Contains(out.String(), c.not) {
			t.Errorf("%q: status %d:\n%s%s", c.words, status, &out, &errs)
		}
	}
}
