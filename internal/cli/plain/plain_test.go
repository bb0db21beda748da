package plain

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// Hostile texts: escape sequences, a bell, 8-bit control sequences, another direction, characters
// that nobody sees, and a byte that is not of UTF-8.
var hostile = []string{"\x1b[2J", "\a", "\u009b31m", "\x9b31m", "a\u202eb", "\u2066x\u2069", "a\u200bb", "\ufeff", "\r", "\x00", "\x7f", "\U000e0041", "\u2028", "\xff"}

func dirty(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return !shown(r) && r != '\n' && r != '\t' })
}

func TestText(t *testing.T) {
	for _, s := range hostile {
		if got := Text("x" + s + "y"); dirty(got) || !strings.HasPrefix(got, "x") || !strings.HasSuffix(got, "y") {
			t.Errorf("%q becomes %q", s, got)
		}
	}
	for in, want := range map[string]string{"": "", "Größe ≤ 2": "Größe ≤ 2", "a\n\tb": "a\n\tb", "\x1b": `\u001b`, "\x9b": `\x9b`, "\U000e0041": `\udb40\udc41`, "\ufffd": "\ufffd"} {
		if got := Text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := Message("a\nb\x1b"); got != "a\n  b\\u001b" {
		t.Errorf("a message is %q", got)
	}
	if got := Line("a\n\tb"); got != `a\u000a\u0009b` {
		t.Errorf("a line is %q", got)
	}
}

func TestCell(t *testing.T) {
	for in, want := range map[string]string{"": "", "x": "x", "-1": "-1", "+1.5e3": "+1.5e3", "-Inf": "-Inf", "=1+1": "'=1+1", "-1+1": "'-1+1", "+x": "'+x",
		"@x": "'@x", "-": "'-", "\t=1": `\u0009=1`, "a\nb": `a\u000ab`, "=HYPERLINK(\"x\")": "'=HYPERLINK(\"x\")"} {
		if got := Cell(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// Cleaned JSON says what it said, however it is cut.
func TestWriterKeepsJSON(t *testing.T) {
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(hostile[:12]); err != nil {
		t.Fatal(err)
	}
	for step := 1; step < 5; step++ {
		var out bytes.Buffer
		w := NewWriter(&out)
		for at := 0; at < plain.Len(); at += step {
			if _, err := w.Write(plain.Bytes()[at:min(at+step, plain.Len())]); err != nil {
				t.Fatal(err)
			}
		}
		var a, b any
		if err := errors.Join(json.Unmarshal(plain.Bytes(), &a), json.Unmarshal(out.Bytes(), &b)); err != nil {
			t.Fatalf("%v in %q", err, out.String())
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) || dirty(out.String()) {
			t.Errorf("in steps of %d: %q becomes %q", step, plain.String(), out.String())
		}
	}
}

func FuzzWriter(f *testing.F) {
	for _, s := range hostile {
		f.Add([]byte("x"+s), 1)
	}
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		var whole, parts bytes.Buffer
		if _, err := NewWriter(&whole).Write(p); err != nil {
			t.Fatal(err)
		}
		w := NewWriter(&parts)
		cut = max(0, min(cut, len(p)))
		_, err := w.Write(p[:cut])
		_, err2 := w.Write(p[cut:])
		if err != nil || err2 != nil || whole.String() != parts.String() {
			t.Errorf("%q, cut at %d: %q, %q", p, cut, whole.String(), parts.String())
		}
		if dirty(strings.ReplaceAll(whole.String(), "\ufffd", "")) {
			t.Errorf("%q becomes %q", p, whole.String())
		}
	})
}

// What is one is not many.
func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 cases": Count(0, "case"), "1 case": Count(1, "case"), "2 cases": Count(2, "case"),
		"1 miss": Count(uint64(1), "miss"), "12 known misses": Count(int64(12), "known miss"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
