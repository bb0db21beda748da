package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// What terminals, spreadsheets and readers take for something else than text: an escape sequence, a
// bell, an 8-bit control sequence, another direction, a character that nobody sees, a byte that is
// not of UTF-8, and a new line.
var hostile = []string{"\x1b[2J\a\u009b31ma\u202eb\u200bx\r\x7f\U000e0041", "\x9bx", "x\nok: 500 cases", "=HYPERLINK(1)"}

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
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "ok: 500") || strings.Contains(what, "csv") && (strings.HasPrefix(line, "=HYPER") || strings.Contains(line, ",=HYPER")) {
			t.Errorf("%s has the line %q", what, line)
		}
	}
}

// No text of a command line or a file reaches an output as anything but text.
func TestHostileTexts(t *testing.T) {
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := write("name: x\ntraffic: [{messages: 10}]\n")
	texts := hostile
	if testing.Short() {
		texts = hostile[:1]
	}
	for _, h := range texts {
		q := strconv.QuoteToASCII(h)
		if strings.Contains(q, `\x9b`) {
			q = `"` + h + `"`
		}
		check := func(figure string) string {
			return "check: 99\ntitle: " + q + "\nsource: " + q + "\nscenario: {name: x, traffic: [{messages: 10}]}\nruns: {a: {}}\nfigures:\n" +
				"  - {id: " + q + ", name: " + q + ", value: " + figure + ", expected: 1, unit: " + q + ", tolerance: 1%, kind: predicted, known_miss: " + q + ", known_value: 2}\n"
		}
		for _, args := range [][]string{
			{h}, {"--" + h}, {"profile", h}, {"profile", "show", h}, {"run", h}, {"run", h + ".yaml"}, {"exec", "--", "/no" + h},
			{"run", good, "--set", h + "=1"}, {"run", good, "--set", "traffic.0.verb=" + h}, {"run", good, "--set", "name=" + h}, {"run", good, "--set", "source=" + h},
			{"run", good, "--sweep", h + "=1,2"}, {"run", good, "--sweep", "source=" + h + ",x"}, {"run", good, "--sweep", "title=" + h + ",x"},
			{"run", good, "--profile", h}, {"run", good, "--seed", h}, {"run", good, "--format", h}, {"run", good, "-o", "/dev/null/" + h},
			{"run", good, "--pcap", "/dev/null/" + h}, {"run", good, "--fault", h}, {"run", good, "--fault", write("faults: [{do: " + q + "}]\n")}, {"run", good, "--fault", write(h)},
			{"run", write("name: x\n" + q + ": 1\n")}, {"run", write(h)}, {"run", write("name: x\nlink: " + q + "\ntraffic: [{messages: 1}]\n")},
			{"run", write("name: x\nprofile: " + q + "\ntraffic: [{messages: 1}]\n")}, {"run", write("name: x\nset: {" + q + ": 1}\ntraffic: [{messages: 1}]\n")},
			{"validate", h}, {"validate", write(h)}, {"validate", write(check("a.rate_mps"))}, {"validate", write(check(q))},
		} {
			for _, format := range []string{"table", "json", "csv"} {
				full := args
				if args[0] == "run" || args[0] == "validate" {
					full = append([]string{args[0], "--format", format}, args[1:]...)
				} else if format != "table" {
					continue
				}
				dir := t.TempDir()
				if args[0] == "run" && len(args) > 2 && args[2] != "-o" && format == "csv" {
					full = append(full, "-o", dir)
				}
				_, out := rdmasim(t, full...)
				clean(t, strings.Join(full, " "), out)
				names, err := filepath.Glob(filepath.Join(dir, "*[vgn]")) // CSV, SVG and JSON; PNG holds no text
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range names {
					if text, err := os.ReadFile(n); err != nil {
						t.Error(err)
					} else if filepath.Ext(n) != ".png" {
						clean(t, strings.Join(full, " ")+": "+filepath.Base(n), string(text))
					}
				}
			}
		}
	}
}

// A number stays a number in a CSV file, and what only looks like one does not become a formula.
func TestCellsOfASweep(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(name, []byte("name: x\ntraffic: [{messages: 10}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := rdmasim(t, "run", name, "--format", "csv", "--sweep", "source=-1,+1.5,=1+1,@x,-x,+1+1,-")
	if code != 0 {
		t.Fatal(out)
	}
	for _, want := range []string{"\n-1,", "\n+1.5,", "\n'=1+1,", "\n'@x,", "\n'-x,", "\n'+1+1,", "\n'-,"} {
		if !strings.Contains(out, want) {
			t.Errorf("no cell %q in\n%s", want, out)
		}
	}
}

// A CSV has no place for what is to be said of its figures.
func TestNotesBesideACSV(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(name, []byte("name: x\ntraffic: [{name: a, messages: 10}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, stderr strings.Builder
	code := program.Execute(t.Context(), []string{"run", name, "--format", "csv"}, &out, &stderr)
	if code != 0 || !strings.HasPrefix(stderr.String(), "Load a: ") || strings.Contains(out.String(), "Load a: ") {
		t.Errorf("exit %d\n%s%s", code, out.String(), stderr.String())
	}
}

func TestNotesBesideACSVOfFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("short tests run no whole check")
	}
	var out, stderr strings.Builder
	code := program.Execute(t.Context(), []string{"validate", "../../fixtures/validation/06-window.yaml", "--format", "csv"}, &out, &stderr)
	if code != 0 || !strings.Contains(stderr.String(), "note: 6a: known miss: ") || strings.Contains(out.String(), "6a: known miss") {
		t.Errorf("exit %d\n%s%s", code, out.String(), stderr.String())
	}
}
