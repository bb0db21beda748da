package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce/oracle"
)

// judgedFlows judges a capture by flags.
func judgedFlows(t *testing.T, args ...string) []oracle.Flow {
	t.Helper()
	_, out, errs := judgeFile(t, append([]string{"--format", "json"}, args...)...)
	var j struct {
		Runs []struct{ Flows []oracle.Flow }
	}
	if err := json.Unmarshal([]byte(out), &j); err != nil || len(j.Runs) != 1 {
		t.Fatalf("%v: %d runs\n%s", err, len(j.Runs), errs)
	}
	return j.Runs[0].Flows
}

// The recordings of Soft-RoCE, of which it is known what was lost.
func TestAccountOfRecordedLosses(t *testing.T) {
	for name, want := range map[string]string{
		"drop_ack":       "timeout, answer, 0x000100, packets 1, try 2",
		"drop_middle":    "sequence NAK of frame 4, request, lost or late, 0x000101, packets 2, try 2",
		"drop_read_resp": "timeout, answer, 0x000101, packets 1, try 2",
		"rnr": "RNR NAK of frame 2, nothing: no receive, or no page, 0x000100, packets 1, try 2; RNR NAK of frame 4, nothing: no receive, or no page, 0x000100, packets 1, try 3; " +
			"RNR NAK of frame 6, nothing: no receive, or no page, 0x000100, packets 1, try 4; RNR NAK of frame 8, nothing: no receive, or no page, 0x000100, packets 1, try 5",
		"write": "",
	} {
		var got []string
		for _, f := range judgedFlows(t, "--complete", filepath.Join("../../fixtures/captures/rxe/6.1", name+".pcap")) {
			for _, r := range f.Retransmissions {
				cause := string(r.Cause)
				if r.NAK > 0 {
					cause = fmt.Sprintf("%s of frame %d", cause, r.NAK)
				}
				got = append(got, fmt.Sprintf("%s, %s, %#06x, packets %d, try %d", cause, r.Lost, r.PSN, r.Packets, r.Sending))
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "; "), want)
		}
	}
}

// What was lost is told by the frames that come before and after: with losses in one direction
// only, no account names the other one.
func TestAccountNamesTheDirection(t *testing.T) {
	sure := map[string]int{}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		direction := []string{"requests", "responses"}[seed%2]
		verb := []string{"write", "send", "read"}[r.IntN(3)]
		text := fmt.Sprintf("name: s\ntraffic: [{verb: %s, messages: 60, window: %d, payload: %d, mtu: 1024, ack_timeout: 8, recv_depth: 128}]\nfaults: [{do: drop, direction: %s, iteration: 1, per_million: 30000}]\n",
			verb, 1+r.IntN(8), 1+r.IntN(6000), direction)
		for _, f := range judgedFlows(t, captureOf(t, text)) {
			packets := 0
			for _, e := range f.Retransmissions {
				packets += e.Packets
				switch {
				case direction == "requests" && e.Lost == oracle.AnswerLost, direction == "responses" && (e.Lost == oracle.RequestLost || e.Lost == oracle.RequestLate):
					t.Errorf("seed %d: frame %d: %s, lost %s, and only %s were dropped\n%s", seed, e.Frame, e.Cause, e.Lost, direction, text)
				case e.Lost != oracle.LostUnknown:
					sure[direction]++
				}
			}
			if packets != f.Resent {
				t.Errorf("seed %d: the account has %d packets, %d were sent again", seed, packets, f.Resent)
			}
		}
	}
	if sure["requests"] < 10 || sure["responses"] < 5 {
		t.Errorf("what was lost is told of few: %v", sure)
	}
}

// A request that only comes late is not called lost.
func TestAccountOfLateRequests(t *testing.T) {
	late := 0
	for _, f := range judgedFlows(t, captureOf(t, "name: s\ntraffic: [{verb: write, messages: 60, window: 8, payload: 4096, mtu: 1024, ack_timeout: 8}]\nfaults: [{do: reorder, direction: requests, iteration: 1, per_million: 50000}]\n")) {
		for _, e := range f.Retransmissions {
			if e.Lost == oracle.RequestLost {
				t.Errorf("frame %d: %s, lost %s, and nothing was lost", e.Frame, e.Cause, e.Lost)
			}
			if e.Lost == oracle.RequestLate {
				late++
			}
		}
	}
	if late == 0 {
		t.Error("no request came late")
	}
}

// The sentence says whether the ends behaved.
func TestAccountSaysWhetherBothEndsBehaved(t *testing.T) {
	for args, want := range map[string]string{
		"--complete drop_ack":       "1 retransmission, 67.864 ms waited; both ends kept every rule that was judged",
		"--complete drop_read_resp": "1 retransmission, 67.662 ms waited; broken: responder OR-081",
		"drop_read_resp":            "no rule is certainly broken, inconclusive: responder OR-081",
	} {
		words := strings.Fields(args)
		words[len(words)-1] = filepath.Join("../../fixtures/captures/rxe/6.1", words[len(words)-1]+".pcap")
		if _, out, _ := judgeFile(t, words...); !strings.Contains(out, want) {
			t.Errorf("%s: %q is missing in\n%s", args, want, out)
		}
	}
}
