package main

import (
	"fmt"
	"strings"
	"testing"
)

// Our own captures of an incast break no rule, whose switch drops so much that NAKs and ACKs come
// while older ones are still being acted upon, and while a retransmission is under way.
func TestWireOfAnIncast(t *testing.T) {
	for _, c := range []struct {
		sender    string
		selective bool
	}{{"selective-repeat", true}, {"go-back-n", false}} {
		text := fmt.Sprintf("name: incast\nhosts: 7\nlink: switch\nset: {hca.selective_repeat: %v}\ntraffic:\n", c.selective)
		for i, load := range []string{
			"verb: write, payload: 16KiB, messages: 100", "verb: read, payload: 16KiB, messages: 100", "verb: faa, messages: 100",
			"verb: send, payload: 2KiB, recv_depth: 4, messages: 100", "verb: send, transport: ud, payload: 2KiB, messages: 400",
			"verb: write, transport: uc, payload: 16KiB, messages: 400",
		} {
			text += fmt.Sprintf("  - {name: load %d, from: %d, to: 0, %s}\n", i, i+1, load)
		}
		code, out, errs := judgeFile(t, captureOf(t, text), "--sender", c.sender)
		if code != exitOK || !strings.Contains(out, " 0 violations") {
			t.Errorf("%s: exit %d\n%.3000s%s", c.sender, code, out, errs)
		}
	}
}
