package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func randomly(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = program.Execute(context.Background(), append([]string{"random"}, args...), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// TestRandom: a simulator that breaks a rule differs, the program that is printed shows it again,
// and a case is written.
func TestRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("draws programs until one shows a broken rule")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONFORM_MUTANTS", self) // a rule that is broken at the face of the device needs no other program
	source := filepath.Join(t.TempDir(), "case.go")
	broken := []string{"--target=sim", "--mutant", "remote-write-always"}
	status, out, errs := randomly(t, append(broken, "--case", source)...)
	if status != exitFailed || !strings.Contains(out, "sim connectx-5 with remote-write-always leaves the model. step ") || !strings.Contains(errs, "leaves the model after") {
		t.Fatalf("status %d:\n%s%s", status, out, errs)
	}
	if text, err := os.ReadFile(source); err != nil || !strings.Contains(string(text), "func random(c *spec.C)") {
		t.Errorf("%v: %s", err, text)
	}
	program := regexp.MustCompile(`(?m)^\{.*\}$`).FindString(out)
	if status, again, errs := randomly(t, append(broken, "--program", program)...); status != exitFailed || !strings.Contains(again, program) {
		t.Errorf("the program again: status %d:\n%s%s", status, again, errs)
	}
	status, out, errs = randomly(t, "--target=sim", "--profile", "connectx-5,connectx-4", "--program", program)
	if status != exitOK || !strings.Contains(out, "does the same") {
		t.Errorf("status %d:\n%s%s", status, out, errs)
	}
}

func TestRandomUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--target=vm": "give sim,hw",
		"--target=sim --profile connectx-5,connectx-4,connectx-6dx": "give one",
		"--target=sim --device x":                                   "choose hardware",
		"--target=sim --profile connectx-5,none":                    "unknown profile",
		"--target=sim --profile connectx-5,connectx-5":              "twice",
		"--mutant long-send-cut":                                    "--target=sim compares",
		"--target=sim --mutant none":                                "no mutant",
		"--target=sim --profile connectx-5,connectx-4 --program x":  "--program:",
		"--target=sim --profile connectx-5,connectx-4 --programs 0": "at least one program",
		"case": "takes no",
	} {
		if status, out, errs := randomly(t, strings.Fields(args)...); status != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s%s, want %q", args, status, out, errs, want)
		}
	}
}

// TestRandomInterrupted: it ends as interrupted, says so, and draws no more programs.
func TestRandomInterrupted(t *testing.T) {
	twin := filepath.Join(t.TempDir(), "twin.yaml") // nothing that time decides differs
	if err := os.WriteFile(twin, []byte("name: twin\ntitle: a second connectx-5\nextends: connectx-5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"random", "--target=sim", "--programs", "2147483647", "--profile", `connectx-5,"` + twin + `"`} // a path may have commas
	for _, early := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		var stdout, stderr bytes.Buffer
		if early {
			cancel()
		} else { // when its workers run, or before
			time.AfterFunc(time.Second, cancel)
		}
		if status := program.Execute(ctx, args, &stdout, &stderr); status != exitInterrupted || !strings.Contains(stderr.String(), "interrupted before a difference") {
			t.Errorf("early %t: status %d, %s%s", early, status, &stdout, &stderr)
		}
		cancel()
	}
}
