package studies

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// detected runs detection with settings and returns its rows.
func detected(t *testing.T, profile string, set ...string) *experiment.Result {
	t.Helper()
	res, err := detection().Execute(t.Context(), experiment.Request{Seed: 1, Profile: profile, Set: set}, nil)
	if err != nil {
		t.Fatalf("%v: %v", set, err)
	}
	return res
}

func tries(timeout, retries int, more ...string) []string {
	return append([]string{"timeout=" + strconv.Itoa(timeout), "retry_cnt=" + strconv.Itoa(retries)}, more...)
}

// TestDetectionAsPublished holds `rdmasim run detection` on connectx-6 to what was published of
// ConnectX-6 (harness/ack_timeout and experiments/225-client of
// github.com/unionxic/rdma-fault-characterization): times within 1 %, counts exactly where they are
// one number.
func TestDetectionAsPublished(t *testing.T) {
	const off = "floor=false"
	for _, c := range []struct {
		figure        string // and where it is from
		set           []string
		ms            float64
		least, most   int // adaptive
		regular       int
		transmissions int // 0: it follows from the others
	}{
		{figure: "detection, timeout 10 (ack_timeout, table of timeouts)", set: tries(10, 7), ms: 3661.5, least: 4, most: 7, regular: 6},
		{figure: "detection, timeout 12", set: tries(12, 7), ms: 3661.5, least: 4, most: 7, regular: 6},
		{figure: "detection, timeout 14", set: tries(14, 7), ms: 3661.5, least: 4, most: 7, regular: 6},
		{figure: "detection, timeout 15", set: tries(15, 7), ms: 3661.5, least: 4, most: 7, regular: 6},
		{figure: "detection, timeout 16", set: tries(16, 7), ms: 3661.5, least: 4, most: 7, regular: 6},
		{figure: "detection, timeout 17", set: tries(17, 7), ms: 7151.7, least: 5, most: 7, regular: 6},
		{figure: "detection, timeout 20", set: tries(20, 7), ms: 59766, least: 10, most: 11, regular: 6},
		{figure: "last adaptive one, timeout 14 (at retry_cnt 1 it ends there)", set: tries(14, 1), ms: 440, most: 7},
		{figure: "last adaptive one, timeout 17", set: tries(17, 1), ms: 977, most: 7},
		{figure: "last adaptive one, timeout 20", set: tries(20, 1), ms: 8225, most: 11},
		{figure: "first regular one, timeout 14 (at retry_cnt 2 it ends there)", set: tries(14, 2), ms: 977, least: 4, most: 7, regular: 1},
		{figure: "first regular one, timeout 17", set: tries(17, 2), ms: 1782.7, least: 5, most: 7, regular: 1},
		{figure: "first regular one, timeout 20", set: tries(20, 2), ms: 16815, least: 10, most: 11, regular: 1},
		{figure: "spacing, timeout 14 (of the formula: first regular one and R-2 more)", set: tries(14, 6), ms: 977 + 4*536.9, least: 4, most: 7, regular: 5},
		{figure: "spacing, timeout 17", set: tries(17, 6), ms: 1782.7 + 4*1073.8, least: 5, most: 7, regular: 5},
		{figure: "spacing, timeout 20", set: tries(20, 6), ms: 16815 + 4*8590, least: 10, most: 11, regular: 5},
		{figure: "retry_cnt 0: 2,051 ms, 8 transmissions", set: tries(14, 0), ms: 2051, least: 5, most: 5, regular: 3, transmissions: 8},
		{figure: "no floor: 9.5 ms at timeout 8, R+1 transmissions", set: tries(8, 7, off), ms: 9.5, regular: 9, transmissions: 8},
	} {
		t.Run(c.figure, func(t *testing.T) {
			rows := detected(t, "connectx-6", append(c.set, "cause=qp-gone")...).Rows
			if len(rows) != 1 {
				t.Fatalf("%d rows", len(rows))
			}
			r := &rows[0]
			ms, _ := r.Float("detection_ms")
			if ms < 0.99*c.ms || ms > 1.01*c.ms {
				t.Errorf("%.1f ms, want %.1f", ms, c.ms)
			}
			adaptive, _ := r.Get("adaptive").(int)
			again := adaptive + max(0, c.regular-1)
			if c.transmissions != 0 {
				again = c.transmissions - 1
			}
			if adaptive < c.least || adaptive > c.most {
				t.Errorf("%d adaptive retransmissions, want %d to %d", adaptive, c.least, c.most)
			}
			expect(t, r, map[string]any{"regular": c.regular, "transmissions": again + 1, "status": "RETRY_EXC_ERR", "vendor_err": "0x81", "landed_bytes": 0,
				"requester_req_cqe_error": 1, "requester_req_transport_retries_exceeded": 1, "requester_roce_slow_restart_cnps": again, "requester_rp_cnp_handled": again,
				"responder_np_cnp_sent": 0, "requester_packet_seq_err": 0, "requester_implied_nak_seq_err": 0, "requester_roce_adp_retrans_to": 0, "responder_out_of_sequence": 0,
				"responder_duplicate_request": 0, "responder_resp_cqe_error": 0})
		})
	}
}

// expect compares values of a row.
func expect(t *testing.T, r *table.Row, want map[string]any) {
	t.Helper()
	for key, v := range want {
		if got := r.Get(key); got != v {
			t.Errorf("%s is %v, want %v", key, got, v)
		}
	}
}

// TestDetectionByCause holds each cause to what the same publication has of it, on the parts that
// were measured: status and vendor byte (harness/README.md), counters of both sides
// (225-client/05_counter_mapping), and who notices at all (harness/live_peer).
func TestDetectionByCause(t *testing.T) {
	quiet := map[string]any{"responder_resp_cqe_error": 0, "responder_resp_remote_access_errors": 0, "responder_resp_local_length_error": 0, "responder_req_cqe_error": 0}
	silence := map[string]any{"status": "RETRY_EXC_ERR", "vendor_err": "0x81", "regular": 6, "requester_req_cqe_error": 1, "responder_rx_write_requests": 0}
	refusal := map[string]any{"status": "REM_ACCESS_ERR", "vendor_err": "0x88", "requester_req_cqe_error": 1, "requester_req_remote_access_errors": 1, "responder_rx_write_requests": 1,
		"regular": 0, "adaptive": 0, "transmissions": 1}
	for _, name := range []string{"connectx-5", "connectx-6"} {
		for _, c := range []struct {
			cause       string
			least, most float64 // ms; 0: it is not detected
			want        map[string]any
		}{
			{"qp-gone", 3625, 3699, silence},
			{"killed", 3625, 3699, silence},
			{"killed-region-first", 0.001, 2.2, refusal},
			{"stopped", 0, 0, map[string]any{"status": "SUCCESS", "vendor_err": nil, "landed_bytes": 8, "requester_req_cqe_error": 0, "detection_ms": nil}},
			{"region-gone", 1.08, 2.2, refusal},
			{"no-receive", 0.001, 100, map[string]any{"status": "RNR_RETRY_EXC_ERR", "vendor_err": "0x87", "requester_req_cqe_error": 1, "responder_out_of_buffer": 7, "transmissions": 7, "regular": 0}},
			{"link-down", 3625, 3699, silence},
			{"switch-loss", 3625, 3699, silence},
		} {
			t.Run(name+", "+c.cause, func(t *testing.T) {
				r := &detected(t, name, tries(14, 7, "cause="+c.cause)...).Rows[0]
				if ms, ok := r.Float("detection_ms"); ok != (c.most > 0) || ms < c.least || ms > c.most {
					t.Errorf("%v ms, want %v to %v", r.Get("detection_ms"), c.least, c.most)
				}
				expect(t, r, quiet)
				expect(t, r, c.want)
			})
		}
	}
}

// TestWhatLands: of a long WRITE that is cut off in its middle a prefix of whole packets lands; one
// lost packet costs one wait.
func TestWhatLands(t *testing.T) {
	for _, us := range []int{10, 30, 35} {
		r := &detected(t, "connectx-6", tries(14, 7, "cause=link-down", "payload=1048576", fmt.Sprint("after_us=", us))...).Rows[0]
		if n, _ := r.Get("landed_bytes").(int); n == 0 || n >= 1<<20 || n%4096 != 0 {
			t.Errorf("after %d us: %v bytes landed", us, r.Get("landed_bytes"))
		}
		expect(t, r, map[string]any{"status": "RETRY_EXC_ERR"})
	}
	r := &detected(t, "connectx-6", tries(14, 7, "cause=switch-loss", "lost=1")...).Rows[0]
	expect(t, r, map[string]any{"status": "SUCCESS", "adaptive": 1, "transmissions": 2, "landed_bytes": 8, "detection_ms": nil})
	if ms, _ := r.Float("completion_ms"); ms < 20.9*0.99 || ms > 20.9*1.01 {
		t.Errorf("it took %v ms, want 20.9", ms)
	}
}

// TestDetectionWithoutFloor: at any timeout the error comes R+1 timeouts after a first count that
// sends nothing, which was seen at 0.51 to 1.16 timeouts.
func TestDetectionWithoutFloor(t *testing.T) {
	for _, timeout := range []int{1, 14, 20, 31} {
		for _, retries := range []int{0, 3, 7} {
			r := &detected(t, "connectx-6", tries(timeout, retries, "cause=qp-gone", "floor=false")...).Rows[0]
			ms, _ := r.Float("detection_ms")
			n := formula(timeout, 0).Seconds() * 1e3
			if least := n * (float64(retries) + 1.51); ms < least || ms > n*(float64(retries)+2.16)+0.01 {
				t.Errorf("timeout %d, retry_cnt %d: %v ms", timeout, retries, ms)
			}
			expect(t, r, map[string]any{"transmissions": retries + 1, "adaptive": 0, "regular": retries + 2, "floor": false})
		}
	}
}

// TestDetectionAtTheEnds: each code of timeout and retry count gives a row, or a refusal that says
// what is allowed.
func TestDetectionAtTheEnds(t *testing.T) {
	for _, name := range []string{"connectx-6", "connectx-4", "generic-roce"} {
		for _, timeout := range []int{1, 30, 31} {
			for _, retries := range []int{0, 7} {
				r := &detected(t, name, tries(timeout, retries, "cause=qp-gone")...).Rows[0]
				if ms, ok := r.Float("detection_ms"); !ok || ms <= 0 {
					t.Errorf("%s, timeout %d, retry_cnt %d: %v ms", name, timeout, retries, r.Get("detection_ms"))
				}
			}
		}
	}
	r := &detected(t, "connectx-6", tries(0, 0, "cause=region-gone")...).Rows[0]
	expect(t, r, map[string]any{"status": "REM_ACCESS_ERR", "formula_ms": nil})
	for set, want := range map[string]string{
		"timeout=0":                        "timeout=0: without an ACK timer",
		"timeout=0 cause=killed":           "give a timeout of 1 to 31",
		"timeout=32":                       `"32" is not one of`,
		"retry_cnt=8":                      `"8" is not one of`,
		"retry_cnt=0 rnr_retry=7":          "rnr_retry=7: 7 means to retry without end",
		"rnr_retry=8":                      "a whole number from 0 to 7",
		"cause=no-receive after_us=5":      "leave after_us out",
		"cause=dead":                       `"dead" is not one of all, qp-gone`,
		"hca.roce_accl=false":              "roce_accl",
		"hca.first_fault=true floor=false": "hca.roce_adp_retrans_en must be true and hca.min_ack_timeout_limit_disabled false",
		"hca.min_ack_timeout_limit_disabled=true floor=true": "give --set floor=",
	} {
		_, err := detection().Execute(context.Background(), experiment.Request{Seed: 1, Set: strings.Fields(set)}, nil)
		var bad *experiment.UsageError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a usage error with %q", set, err, want)
		}
	}
}
