// Package plain makes text harmless for what shows it: a terminal, a spreadsheet that opens a CSV
// file, an XML reader. Strings of records, scenarios, devices and command lines reach all of these,
// and whoever wrote them need not be who reads them.
package plain

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// shown reports whether a character is text: no control character, no character that changes the
// direction or place of others (U+202E), and none that cannot be seen.
func shown(r rune) bool { return unicode.IsPrint(r) && r != unicode.ReplacementChar }

// Text is s with everything but printable characters, newlines and tabs written as JSON would:
// \u001b is an escape character. JSON remains the same JSON.
func Text(s string) string { return clean(s, "\n\t") }

// Line is Text in one line: for a name or a message among others, which could otherwise pass for
// lines of its own.
func Line(s string) string { return clean(s, "") }

// Message is Text as one message: its later lines are indented, so that none passes for a message
// of its own.
func Message(s string) string { return strings.ReplaceAll(Text(s), "\n", "\n  ") }

func clean(s, keep string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !shown(r) }) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && strings.HasPrefix(s[i:], string(utf8.RuneError)):
			b.WriteRune(r)
		case r == utf8.RuneError: // a byte that is not of UTF-8
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case shown(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			b.WriteString(escape(r))
		}
	}
	return b.String()
}

// escape is a character as JSON spells it, with two of UTF-16 if it needs them.
func escape(r rune) string {
	four := func(r rune) string { return `\u` + strconv.FormatUint(uint64(r)|0x10000, 16)[1:] }
	if r < 0x10000 {
		return four(r)
	}
	r -= 0x10000
	return four(0xd800+r>>10) + four(0xdc00+r&0x3ff)
}

// Cell is a field of a CSV file: Line, behind an apostrophe where a spreadsheet would take it for a
// formula. Numbers stay numbers.
func Cell(s string) string {
	s = Line(s)
	if s == "" || !strings.ContainsRune("=+-@", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}

// Writer cleans what goes through it as Text does. Characters may be spread over calls; those at
// the end come out when they are whole. Several goroutines may write.
type Writer struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // of a character
}

// NewWriter makes a Writer in front of to.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// To is what is written to.
func (w *Writer) To() io.Writer { return w.to }

// Write writes p. It reports as written what was taken, so that a full disk is seen by the next
// call at the latest.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	end := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if c := text[len(text)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-i:]) {
				end = len(text) - i
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.to, Text(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
