package agent

import (
	"io"
	"strings"
	"testing"
)

// endless is a reply without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestRepliesAreBounded(t *testing.T) {
	var v any
	e := &endless{}
	err := NewReplies(io.MultiReader(strings.NewReader(`{"Text":"`), e)).Next(&v)
	if err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") || e.read > 2*maxReply {
		t.Errorf("%v after %d bytes", err, e.read)
	}
	const each = maxReply / 3
	text := `"` + strings.Repeat("x", each) + `"`
	r := NewReplies(strings.NewReader(strings.Repeat(text, 5))) // each is short enough
	for range 5 {
		var s string
		if err := r.Next(&s); err != nil || len(s) != each {
			t.Fatalf("%d bytes, %v", len(s), err)
		}
	}
	if err := r.Next(&v); err != io.EOF {
		t.Errorf("%v at the end", err)
	}
}
