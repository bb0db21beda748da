package main

import (
	"fmt"
	"strings"
	"testing"
)

// NAKs with SACK are of no public form: a capture of them says so, and which flag judges it. Of
// every scheme the judge accepts what the simulator sends.
func TestWireOfRepeatSchemes(t *testing.T) {
	for _, c := range []struct{ scheme, sender string }{{"single", "selective-repeat"}, {"by-operation", "selective-repeat"}, {"sack", "selective-ack"}} {
		for _, mix := range []string{"{verb: write}, {verb: send}, {verb: read}", "{verb: write}", "{verb: faa}, {verb: read}"} {
			payload := "16KiB"
			if strings.Contains(mix, "faa") {
				payload = "8"
			}
			capture := captureOf(t, fmt.Sprintf("name: schemes\nset: {hca.selective_repeat: true, hca.repeat_scheme: %s}\nlink: switch\n"+
				"traffic: [{mix: [%s], payload: %s, mtu: 1024, window: 16, messages: 300}]\nfaults: [{do: drop, per_million: 8000}]\n", c.scheme, mix, payload))
			if code, out, errs := judgeFile(t, "--sender", c.sender, capture); code != exitOK || !strings.Contains(out, " 0 violations") {
				t.Errorf("%s, %s: exit %d\n%.2000s%s", c.scheme, mix, code, out, errs)
			}
			if c.scheme != "sack" {
				continue
			}
			if code, out, _ := judgeFile(t, capture); code != exitFailed || !strings.Contains(out, "this capture needs --sender selective-ack") {
				t.Errorf("%s without a flag: exit %d\n%.2000s", mix, code, out)
			}
			if _, out, _ := judgeFile(t, "--sender", "selective-repeat", capture); !strings.Contains(out, "reserved opcode: opcode 0x1b") {
				t.Errorf("%s as another sender: %.2000s", mix, out)
			}
		}
	}
}
