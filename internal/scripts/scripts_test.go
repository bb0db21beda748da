// Package scripts tests the scripts of the repository as far as they decide anything without a
// virtual machine.
package scripts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shell runs a script with programs of the test before all others.
func shell(t *testing.T, programs map[string]string, script string, args ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range programs {
		executable(t, filepath.Join(bin, name), text)
	}
	c := exec.Command(script, args...)
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LAB_CACHE=", "LAB_KERNELS=6.1")
	out, err := c.CombinedOutput()
	return string(out), err
}

func executable(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A log that cannot be read is no clean log.
func TestLogOfAKernel(t *testing.T) {
	for dmesg, clean := range map[string]bool{
		"echo mlx5_core is up":                  true,
		"echo mlx5_core is up; echo BUG: x":     false,
		"echo dmesg: read kernel buffer; false": false,
		"exit 1":                                false,
		"true":                                  false,
	} {
		out, err := shell(t, map[string]string{"dmesg": dmesg}, "../../scripts/vm-complaints", "WARNING|BUG:|Oops")
		if (err == nil) != clean || clean != (out == "") {
			t.Errorf("dmesg is %q: %v, %s", dmesg, err, out)
		}
	}
}

// A run of the suite in the lab leaves its own record with how it was made, or none.
func TestRecordOfTheLabIsOfItsRun(t *testing.T) {
	text, err := os.ReadFile("../../scripts/lab-conform")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ fetch, run, left string }{
		{":", `echo fresh >"$dir/rxe-6.1.json"`, "fresh"},
		{":", `echo fresh >"$dir/rxe-6.1.json"; exit 1`, "fresh"}, // cases fail
		{":", "exit 1", ""},
		{":", ":", ""},
		{"exit 1", ":", ""}, // there is no such kernel
	} {
		project := t.TempDir()
		dir := filepath.Join(project, "out/lab")
		executable(t, filepath.Join(project, "scripts/lab"), `case "$*" in --tools) ;; *--fetch) `+x.fetch+";; *) dir='"+dir+"'; "+x.run+";; esac")
		if err := os.WriteFile(filepath.Join(project, "scripts/lab-conform"), text, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"rxe-6.1.json": "old", "rxe-6.1.yaml": "old", "6.1/package": "linux-image"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, err := shell(t, map[string]string{"make": ":", "git": "echo 0123456789ab", "dpkg-query": "echo 1"}, filepath.Join(project, "scripts/lab-conform"))
		if fails := x.left == "" || strings.Contains(x.run, "exit 1"); (err != nil) != fails {
			t.Errorf("%+v: %v\n%s", x, err, out)
		}
		record, _ := os.ReadFile(filepath.Join(dir, "rxe-6.1.json"))
		made, _ := os.ReadFile(filepath.Join(dir, "rxe-6.1.yaml"))
		if got := strings.TrimSpace(string(record)); got != x.left || (len(made) > 0) != (x.left != "") || strings.Contains(string(made), "old") ||
			x.left != "" && !strings.Contains(string(made), "kernel_package: linux-image") {
			t.Errorf("%+v: the record is %q, made by %q\n%s", x, got, made, out)
		}
	}
}

// scripts/mutant says by its status whether the case kills the mutant, refuses what is not one
// mutant and one case, and builds the program that it lacks.
func TestOneMutantOnOneCase(t *testing.T) {
	text, err := os.ReadFile("../../scripts/mutant")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		program string // empty: the script must build it
		args    []string
		status  int
		says    string
	}{
		{"echo 'no-rnr-nak  RC  killed  RC-013  status'", []string{"no-rnr-nak", "RC-013"}, 0, "the whole failure: bin/conform-mutants --target=sim --mutant no-rnr-nak --label-filter RC-013"},
		{"echo 'no-rnr-nak  RC  survived'", []string{"no-rnr-nak", "RC-001"}, 1, "survived"},
		{"echo 'conform: no such mutant' >&2; exit 2", []string{"no-rnr", "RC-013"}, 2, "no such mutant"},
		{"", []string{"no-rnr-nak", "RC-013"}, 0, "building bin/conform-mutants"},
		{":", nil, 2, "usage: scripts/mutant NAME CASE"},
		{":", []string{"no-rnr-nak"}, 2, "1 arguments are given"},
		{":", []string{"no-*", "RC-013"}, 2, "no-* is not the name of one mutant"},
		{":", []string{"no-rnr-nak", "RC"}, 2, "RC is not a case"},
	} {
		project := t.TempDir()
		if err := os.MkdirAll(filepath.Join(project, "scripts"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(project, "scripts/mutant"), text, 0o755); err != nil {
			t.Fatal(err)
		}
		if x.program != "" {
			executable(t, filepath.Join(project, "bin/conform-mutants"), x.program)
		}
		build := `printf '#!/bin/sh\necho no-rnr-nak RC killed\n' >bin/conform-mutants; chmod +x bin/conform-mutants`
		out, err := shell(t, map[string]string{"go": build}, filepath.Join(project, "scripts/mutant"), x.args...)
		status := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			status = exit.ExitCode()
		}
		if status != x.status || !strings.Contains(out, x.says) {
			t.Errorf("%q: status %d, want %d and %q:\n%s", x.args, status, x.status, x.says, out)
		}
	}
}
