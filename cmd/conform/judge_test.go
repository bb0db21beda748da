package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/studies"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

const recorded = "../../fixtures/captures/rxe/7.2/"

func judgeFile(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = program.Execute(context.Background(), append([]string{"wire"}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// captureOf runs a scenario and returns the name of its capture.
func captureOf(t *testing.T, text string) string {
	t.Helper()
	capture, err := captured(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return capture
}

// captured is captureOf of a scenario that may fail.
func captured(t *testing.T, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	scenario, capture := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "out.pcapng")
	if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := studies.Open(t.Context(), scenario)
	if err != nil {
		return "", err
	}
	_, err = x.Execute(t.Context(), experiment.Request{Seed: 1, Pcap: capture}, nil)
	return capture, err
}

func TestWireJudges(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{recorded + "send_multi.pcap"}, exitOK, []string{"10.9.0.1 > 10.9.0.2 QP", "OR-023", "5 frames, 5 of RDMA: 0 violations"}},
		{[]string{recorded + "drop_read_resp.pcap"}, exitOK, []string{"OR-081 inconclusive", "1 violation more if the capture has every frame"}},
		{[]string{"--complete", recorded + "drop_read_resp.pcap"}, exitFailed, []string{"OR-081 violation", "READ Response Middle"}},
		{[]string{"--complete", "--timeout", "14", recorded + "drop_ack.pcap"}, exitOK, []string{"0 violations", "1 request sent again before the ACK timeout", "--exact-timer"}},
		{[]string{"--complete", "--timeout", "14", "--notes", recorded + "drop_ack.pcap"}, exitOK, []string{"OR-041 note", "may retransmit adaptively"}},
		{[]string{"--complete", "--timeout", "14", "--exact-timer", recorded + "drop_ack.pcap"}, exitFailed, []string{"OR-041 violation"}},
		{[]string{"--complete", "--timeout", "14", "--exact-timer", "--tolerance", "4ms", recorded + "drop_ack.pcap"}, exitOK, []string{"0 violations"}},
		{[]string{"--rules"}, exitOK, []string{"OR-001", "OR-110"}},
	} {
		code, out, errs := judgeFile(t, tc.args...)
		if code != tc.code {
			t.Errorf("%v: exit %d, want %d: %s%s", tc.args, code, tc.code, out, errs)
		}
		for _, w := range tc.want {
			if !strings.Contains(out, w) {
				t.Errorf("%v: no %q in\n%s", tc.args, w, out)
			}
		}
	}
}

func TestWireJSON(t *testing.T) {
	code, out, _ := judgeFile(t, "--complete", "--format", "json", recorded+"drop_read_resp.pcap")
	var j struct {
		Frames  int
		Summary map[string]int
		Runs    []struct {
			Whole    bool
			Flows    []struct{ Flow string }
			Verdicts []struct {
				Rule, Kind, Flow, Text string
				Frame                  int
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &j); err != nil {
		t.Fatal(err)
	}
	if code != exitFailed || j.Frames != 7 || j.Summary["violation"] != 1 || len(j.Runs) != 1 || !j.Runs[0].Whole || len(j.Runs[0].Flows) != 2 {
		t.Errorf("exit %d, %+v", code, j)
	}
}

// TestWireManyVerdicts: of a capture that breaks a rule in each frame of two runs, the first
// verdicts are printed and the rest is counted.
func TestWireManyVerdicts(t *testing.T) {
	frame, err := os.ReadFile(recorded + "send_only.pcap")
	if err != nil {
		t.Fatal(err)
	}
	_, packets, err := pcap.Read(bytes.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	p, err := roce.Parse(packets[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	p.BTH().SetDestQP(0xFFFFFF) // OR-020; and all but the first of a run are sent again, OR-041
	roce.PutICRC(packets[0].Data[p.Len()-roce.ICRCSize:], p.ComputeICRC())
	name := filepath.Join(t.TempDir(), "many.pcapng")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pcap.NewWriter(f, oracle.Application, "one a", "two a")
	for i := range 2 * oracle.MostVerdicts {
		if err == nil {
			err = w.Write(i%2, int64(i), packets[0].Data, "")
		}
	}
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	const violations = 2*oracle.MostVerdicts + 2*(oracle.MostVerdicts-1)
	code, out, errs := judgeFile(t, name)
	if code != exitFailed || strings.Count(out, "OR-020 violation    frame") != oracle.MostVerdicts ||
		!strings.Contains(out, fmt.Sprintf("OR-020 violation    and %d more, which are not listed", oracle.MostVerdicts)) ||
		!strings.Contains(out, fmt.Sprintf(": %d violations", violations)) {
		t.Errorf("exit %d, %s\n%s", code, errs, out[max(0, len(out)-1000):])
	}
	_, out, _ = judgeFile(t, "--format", "json", name)
	var j struct {
		Summary map[string]int
	}
	if !strings.Contains(out, fmt.Sprintf(`"count": %d`, oracle.MostVerdicts)) || !strings.Contains(out, `"left_out"`) {
		t.Error("JSON does not say what is left out")
	}
	if err := json.Unmarshal([]byte(out), &j); err != nil || j.Summary["violation"] != violations {
		t.Errorf("%v, summary %v", err, j.Summary)
	}
}

// TestWireBrokenFile: what can be read of a broken capture is judged, and the break
// is named.
func TestWireBrokenFile(t *testing.T) {
	whole, err := os.ReadFile(recorded + "send_multi.pcap")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	code, out, errs := judgeFile(t, write("cut.pcap", whole[:len(whole)-20]))
	if code != exitUsage || !strings.Contains(out, "4 frames, 4 of RDMA") || !strings.Contains(errs, "broken capture at byte") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	for name, b := range map[string][]byte{"text.pcap": []byte("no capture at all"), "empty.pcap": nil} {
		if code, out, errs := judgeFile(t, write(name, b)); code != exitUsage || out != "" || !strings.Contains(errs, "not a pcap or pcapng file") {
			t.Errorf("%s: exit %d\n%s\n%s", name, code, out, errs)
		}
	}
	for _, args := range [][]string{{}, {"--mtu", "1000", "x"}, {"--sender", "go-back", "x"}, {"--format", "xml", "x"}, {"--retry-cnt", "9", "x"}, {"--timeout", "40", "x"}} {
		if code, _, _ := judgeFile(t, args...); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
