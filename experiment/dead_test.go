package experiment

import (
	"errors"
	"strings"
	"testing"
)

// TestLoadsThatDie: a load whose frames are lost ends, its note says when and how, and hw_counters
// have what the card counts.
func TestLoadsThatDie(t *testing.T) {
	const lost = "faults: [{do: drop, direction: requests, flow: 1, skip: 1}]"
	const gone = "links: [{port: host1/mlx5_0, at: 400us, to: down}]"
	for _, c := range []struct {
		faults string
		set    []string
		note   string
		counts map[string]float64
	}{
		{lost, nil, "load stream ended at 3662 ms: RETRY_EXC_ERR, 12 transmissions (", map[string]float64{"local_ack_timeout_err": 6, "roce_adp_retrans": 6, "req_transport_retries_exceeded": 1}},
		{gone, nil, "RETRY_EXC_ERR, 12 transmissions (", map[string]float64{"local_ack_timeout_err": 6, "roce_adp_retrans": 6}},
		{lost, []string{"traffic.0.retry_cnt=2"}, "load stream ended at 977.9 ms: RETRY_EXC_ERR, 7 transmissions (", map[string]float64{"local_ack_timeout_err": 1, "roce_adp_retrans": 6}},
		{lost, []string{"traffic.0.retry_cnt=0"}, "load stream ended at 2052 ms: RETRY_EXC_ERR, 8 transmissions (", map[string]float64{"local_ack_timeout_err": 3, "roce_adp_retrans": 5}},
		{lost, []string{"traffic.0.retry_cnt=0", "traffic.0.rnr_retry=7", "traffic.0.ack_timeout=31"}, "RETRY_EXC_ERR, 8 transmissions (", nil},
		{lost, []string{"traffic.0.ack_timeout=31"}, "load stream ended at 123", nil},
		{lost, []string{"traffic.0.ack_timeout=0"}, "ack_timeout is 0, so that nothing repeats what is lost: 1 to 31 do", map[string]float64{"local_ack_timeout_err": 0}},
		{lost, []string{"traffic.0.spread=4", "traffic.0.signal_every=1", "traffic.0.postlist=1"}, "load stream ended at 3662 ms: RETRY_EXC_ERR, 12 transmissions (", nil},
		{lost, []string{"traffic.0.measure=latency", "traffic.0.verb=send", "traffic.0.messages=3"}, "load stream ended at 3662 ms: RETRY_EXC_ERR, 12 transmissions (", nil},
		{lost, []string{"hca.roce_accl=false", "hca.roce_adp_retrans_en=false", "hca.roce_slow_restart_en=false"}, "load stream ended at 537.5 ms: RETRY_EXC_ERR, 8 transmissions (", map[string]float64{"local_ack_timeout_err": 8}},
		{"faults: [{do: drop, direction: requests, flow: 1, packet: 50, iteration: 1}]", nil, "", map[string]float64{"packet_seq_err": 1, "req_cqe_error": 0}},
	} {
		res, err := faulty(t, c.faults, "", c.set...)
		if err != nil {
			t.Errorf("%v: %v", c.set, err)
			continue
		}
		notes := strings.Join(res.Notes, "\n")
		if !strings.Contains(notes, c.note) || (c.note == "") == strings.Contains(notes, "ended at") {
			t.Errorf("%s, %v: no note %q in\n%s", c.faults, c.set, c.note, notes)
		}
		if strings.Contains(c.note, "RETRY_EXC_ERR") && counted(res, "host0/mlx5_0/hw_counters/req_cqe_error") == 0 {
			t.Errorf("%v: req_cqe_error does not move", c.set)
		}
		for name, want := range c.counts {
			if got := counted(res, "host0/mlx5_0/hw_counters/"+name); got != want {
				t.Errorf("%v: %s is %v, want %v", c.set, name, got, want)
			}
		}
	}
}

// TestRefusedReceives: without a receive, and with retries that end, the error of the run says when
// and after how many transmissions.
func TestRefusedReceives(t *testing.T) {
	for retries, want := range map[string]string{"0": "RNR_RETRY_EXC_ERR, 1 transmission (", "2": "RNR_RETRY_EXC_ERR, 3 transmissions (", "6": "RNR_RETRY_EXC_ERR, 7 transmissions ("} {
		x, err := OpenScenario(t.Context(), "stream.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Execute(t.Context(), Request{Seed: 1, Set: []string{"traffic.0.verb=send", "traffic.0.receive=none", "traffic.0.duration=20ms", "traffic.0.rnr_retry=" + retries}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "load stream ended at ") {
			t.Errorf("rnr_retry %s: %v, want %q", retries, err, want)
		}
	}
}

// TestRetriesOfALoad: what is not a code or a count is refused where it is given, with what is
// allowed.
func TestRetriesOfALoad(t *testing.T) {
	for set, want := range map[string]string{
		"traffic.0.retry_cnt=8": "8 is above 7: 0 to 7 is allowed", "traffic.0.retry_cnt=-1": "-1 is below 0: 0 to 7 is allowed",
		"traffic.0.rnr_retry=8": "8 is above 7: 0 to 7 is allowed", "traffic.0.ack_timeout=32": "32 is above 31: 0 to 31 is allowed", "traffic.0.retry_cnt=seven": "is not a",
	} {
		_, err := faulty(t, "faults: [{do: drop, skip: 1}]", "", set)
		var u *UsageError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a usage error with %q", set, err, want)
		}
	}
}
