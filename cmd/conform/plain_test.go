package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// Texts that terminals and readers take for something else: escape sequences, a bell, 8-bit control
// sequences, another direction, characters that nobody sees, and a line that looks like one of the
// program's.
const hostile = "\x1b[2J\a\u009b31ma\u202eb\u200bx\r\x7f\U000e0041\nok: 500 cases on mlx5: 500 pass"

// clean fails if a text holds anything but what one can read.
func clean(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s has what is not UTF-8: %q", what, text)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			t.Errorf("%s has %q:\n%q", what, r, text)
			return
		}
	}
	if strings.HasPrefix(text, "ok: 500") || strings.Contains(text, "\nok: 500") {
		t.Errorf("%s has a line that is not its own:\n%s", what, text)
	}
}

// hostileRecord is a record with that text wherever a record has one, and got as what was seen.
func hostileRecord(t *testing.T, got string) string {
	t.Helper()
	h := hostile
	c := report.Case{ID: "RC-001" + h, Area: "RC" + h, Text: h, Strength: "E" + h, Outcome: report.Fail, Reason: h, Step: h, Where: h, Testbed: []string{h}, Seed: 1,
		Observations: []report.Observation{{Step: h, Kind: "value", Got: got + h, Want: h, Deviation: h}, {Step: "other" + h, Kind: "wc", Got: map[string]any{h: got}}}}
	flaky := c
	flaky.ID, flaky.Outcome, flaky.Differs = "RC-002"+h, report.Flaky, &c
	failed := c
	failed.ID, failed.Outcome = "RC-003"+h, report.Outcome(map[bool]report.Outcome{true: report.Pass, false: report.Fail}[got == "a"])
	r := &report.Run{Schema: report.Schema, Target: report.Target{Kind: "hw", Profile: h, Device: h}, Environment: map[string]string{h: h, report.KeyPart: h, report.KeyProvider: h,
		report.KeyFirmware: h, report.KeyKernel: h}, Findings: []string{h}, Cases: []report.Case{c, flaky, failed}}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return fileOf(t, "record.json", text)
}

func fileOf(t *testing.T, name string, text []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func hostileCapture(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w, err := pcap.NewWriter(&b, oracle.Application)
	if err != nil {
		t.Fatal(err)
	}
	i, err := w.AddInterface(hostile + " port1")
	if err == nil {
		err = w.Write(i, 0, make([]byte, 64), hostile)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return fileOf(t, "x.pcapng", b.Bytes())
}

// No text of a record, a capture or a command line reaches an output as anything but text.
func TestHostileTexts(t *testing.T) {
	t.Setenv("CONFORM_HW", hostile)
	t.Setenv("PATH", "")
	a, b := hostileRecord(t, "a"), hostileRecord(t, "b")
	capture := hostileCapture(t)
	for _, args := range [][]string{
		{"diff", a, b}, {"diff", "-v", a, b}, {"diff", "--format", "json", a, b}, {"diff", a, a}, {"diff", hostile, b}, {"accept", a}, {"diff", capture, a},
		{"wire", capture}, {"wire", "--notes", capture}, {"wire", "--format", "json", capture}, {"wire", a}, {"wire", hostile},
		{hostile}, {"--" + hostile}, {"show", hostile}, {"list", hostile}, {"--label-filter", hostile}, {"--profile", hostile}, {"--target", hostile},
		{"--fault", hostile}, {"--fault", fileOf(t, "x.yaml", []byte(hostile))}, {"--baseline", a, "--target=hw"}, {"--target=hw"}, {"agent", "--listen", hostile},
		{"--report", "/dev/null/" + hostile}, {"--pcap", hostile + "/x"}, {"mutants", "--filter", hostile},
	} {
		_, out, stderr := command(t, args...)
		what := strings.Join(args, " ")
		clean(t, what, out)
		clean(t, what, stderr)
		if len(args) > 2 && args[2] == "json" && !json.Valid([]byte(out)) {
			t.Errorf("%s prints what is not JSON: %s", what, out)
		}
	}
}

// Nor does one reach JUnit, which stays XML, or a record that is written again, which says the
// same.
func TestHostileRecordIsWritten(t *testing.T) {
	r, err := report.ReadFile(t.Context(), hostileRecord(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	var junit, again bytes.Buffer
	if err := r.WriteJUnit(&junit, func(string) string { return hostile }); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(&again); err != nil {
		t.Fatal(err)
	}
	clean(t, "JUnit", junit.String())
	clean(t, "record", again.String())
	for dec := xml.NewDecoder(&junit); ; {
		if _, err := dec.Token(); err != nil {
			if err.Error() != "EOF" {
				t.Error(err)
			}
			break
		}
	}
	same, err := report.ReadFile(t.Context(), fileOf(t, "again.json", again.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if same.Cases[0].Reason != hostile {
		t.Errorf("a reason becomes %q", same.Cases[0].Reason)
	}
}
