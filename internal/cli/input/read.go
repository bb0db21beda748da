package input

import (
	"context"
	"fmt"
	"io"
)

// Bounds of a file that a user writes: a device (/dev/zero) or a hostile file takes neither the
// memory nor the stack.
const (
	MostBytes = 1 << 20
	mostDepth = 100 // lists and mappings inside one another
	mostLines = 20_000
)

// ReadFile reads a file of at most MostBytes. A wait for a FIFO ends with ctx.
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	return ReadUpTo(ctx, name, MostBytes)
}

// ReadUpTo reads a file of at most so many bytes.
func ReadUpTo(ctx context.Context, name string, most int64) ([]byte, error) {
	f, err := Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s is longer than %d bytes, the most that is read", name, most)
	}
	return text, nil
}

// excess is the place and the kind of what any file does without, and the parser takes memory and
// time for: lists and mappings inside one another, and lines. It looks at characters only, so a
// text with so many brackets that nothing closes counts as well.
func excess(src []byte) (line, col int, what string) {
	line = 1
	flow, block, start := 0, 0, 0 // brackets that are open; list items that begin in this line; where it begins
	leading := true
	for i, c := range src {
		switch c {
		case '\n', '\r':
			if c == '\n' {
				line++
			}
			if line > mostLines {
				return line, 1, fmt.Sprintf("more than %d lines", mostLines)
			}
			block, start, leading = 0, i+1, true
			continue
		case '[', '{':
			flow++
		case ']', '}':
			flow = max(0, flow-1)
		case '-', '?', ':':
			if leading && (i+1 == len(src) || src[i+1] == ' ' || src[i+1] == '\t') {
				block++
			}
		}
		leading = leading && (c == ' ' || c == '\t' || c == '-' || c == '?' || c == ':')
		if flow > mostDepth || block > mostDepth && flow == 0 {
			return line, i - start + 1, fmt.Sprintf("more than %d lists and mappings are inside one another", mostDepth)
		}
	}
	return 0, 0, ""
}
