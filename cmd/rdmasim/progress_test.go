package main

import (
	"bytes"
	"testing"
	"time"
)

// Without a terminal a run tells every ten seconds how far it is, and one that is over sooner tells
// nothing.
func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	report := progressLines(&out, func() time.Time { return now })
	for s := range 25 {
		now = time.Unix(int64(s), 0)
		report(4*s, 100, "x\ny")
	}
	report(100, 100, "done")
	if want := "rdmasim: 40 % done: x\\u000ay\nrdmasim: 80 % done: x\\u000ay\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
