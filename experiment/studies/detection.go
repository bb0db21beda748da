package studies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
)

func detection() *experiment.Experiment {
	return &experiment.Experiment{
		Name:    "detection",
		Title:   "how long until a program knows that its peer is dead, and what it sees, by cause, ACK timeout and retry count",
		Profile: "connectx-6",
		Params: []experiment.Param{
			{Key: "cause", Default: "all", Allowed: append([]string{"all"}, causeNames()...), Help: causeHelp()},
			{Key: "timeout", Default: "all", Allowed: codes(31), Help: "code of the queue pair's ACK timeout, 4.096 us x 2^timeout; all: 14 and 20 for each cause, and more of them for qp-gone"},
			{Key: "retry_cnt", Default: "all", Allowed: codes(7), Help: "retries after timeouts and NAKs; all: 7 for each cause, and fewer for qp-gone"},
			{Key: "rnr_retry", Default: "6", Min: 0, Max: 7, Help: "retries after RNR NAKs, of cause no-receive; 7 would be without end"},
			{Key: "min_rnr_timer", Default: "12", Min: 0, Max: 31, Help: "code of the time that an RNR NAK asks for; 12 is 0.64 ms"},
			{Key: "floor", Default: "profile", Allowed: []string{"profile", "true", "false"}, Help: "the least ACK timeout of the device: false is min_ack_timeout_limit_disabled=1 of register ROCE_ACCL"},
			{Key: "payload", Default: "8", Min: 1, Max: 1 << 20, Help: "bytes of the request that nobody answers; the path MTU is 4096"},
			{Key: "after_us", Default: "0", Min: 0, Max: 1_000_000, Help: "us from the post of the request to its cause; 0: the cause comes first"},
			{Key: "lost", Default: "0", Min: 0, Max: 1000, Help: "switch-loss: request packets that are lost; 0: all of them"},
			{Key: "peer_qps", Default: "400", Min: 0, Max: 10_000, Help: "killed: further queue pairs of the peer, which the kernel destroys too"},
		},
		Columns: []string{"cause", "timeout", "retry_cnt", "floor", "formula_ms", "detection_ms", "completion_ms", "transmissions", "adaptive", "regular", "status", "vendor_err", "landed_bytes"},
		More:    experiment.More{Kinds: []string{"cause"}, Lead: []string{"cause", "timeout", "retry_cnt"}, Columns: shownCounters},
		Plots: []chart.Plot{{File: "detection", Title: "From a WRITE that nobody answers to RETRY_EXC_ERR", X: "timeout", Y: "detection_ms", XLabel: "ACK timeout code", YLabel: "ms",
			Series: "series", Only: map[string]any{"row": "schedule"}, LogY: true, Least: true}},
		Many: true, Run: runDetection,
	}
}

// codes are the values of a parameter that is a code of 0 to most, or all.
func codes(most int) []string {
	all := []string{"all"}
	for i := range most + 1 {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// What is run unless a timeout or a retry count is given: the usual defaults for each cause, and a
// grid for a peer that answers nothing.
var (
	usualTimeouts = []int{14, 20}
	gridTimeouts  = []int{8, 10, 12, 14, 15, 16, 17, 18, 20, 22}
	gridRetries   = []int{7, 3, 2, 1, 0}
)

// usualRetries is the retry count with the usual timeouts: the default of most programs, and the
// most that there is.
const usualRetries = 7

// failures are the points that are asked for.
func failures(e *experiment.Env) (all []failure) {
	chosen := causes
	if name := e.String("cause"); name != "all" {
		chosen = slices.DeleteFunc(slices.Clone(causes), func(c cause) bool { return c.name != name })
	}
	given := func(key string, otherwise []int) []int {
		if e.String(key) == "all" {
			return otherwise
		}
		return []int{e.Int(key)}
	}
	grid := func(kind string, c *cause, floor string, timeouts, retries []int) {
		for _, r := range retries {
			for _, t := range timeouts {
				all = append(all, failure{Env: e, kind: kind, cause: c, timeout: t, retries: r, floor: floor})
			}
		}
	}
	floor := e.String("floor")
	if e.String("timeout") != "all" || e.String("retry_cnt") != "all" {
		for i := range chosen {
			grid("cause", &chosen[i], floor, given("timeout", gridTimeouts), given("retry_cnt", gridRetries))
		}
		return all
	}
	for i := range chosen {
		grid("cause", &chosen[i], floor, usualTimeouts, []int{usualRetries})
	}
	if c := &chosen[0]; c.name == "qp-gone" {
		grid("schedule", c, floor, gridTimeouts, gridRetries)
		if e.Profile.HCA.RoCEAccl && floor == "profile" && !e.Profile.HCA.MinAckTimeoutLimitDisabled {
			grid("schedule", c, "false", gridTimeouts, []int{usualRetries})
		}
	}
	return all
}

func runDetection(env *experiment.Env) error {
	all := failures(env)
	for i := range all {
		if err := all[i].check(); err != nil {
			return err
		}
	}
	var last *profile.Profile
	for i := range all {
		x := &all[i]
		if err := env.Step(i, len(all), x.name()); err != nil {
			return err
		}
		row, err := x.run()
		if err != nil {
			return err
		}
		env.Emit(row)
		last = x.prof
	}
	detectionNotes(env, last)
	return env.Step(len(all), len(all), "done")
}

// check refuses what would wait for ever, and a profile that cannot be.
func (x *failure) check() (err error) {
	if x.timeout == 0 && x.cause.silent {
		return experiment.Usagef("timeout=0: without an ACK timer a request that nobody answers waits for ever, and %s ends by nothing else: give a timeout of 1 to 31", x.cause.name)
	}
	if x.cause.name == "no-receive" && x.Int("rnr_retry") == 7 {
		return experiment.Usagef("rnr_retry=7: 7 means to retry without end, so that no-receive is never reported: give 0 to 6, or another cause")
	}
	if x.after() > 0 && x.cause.name == "no-receive" {
		return experiment.Usagef("after_us=%s: that no receive is posted must be so before the request: leave after_us out with no-receive", x.String("after_us"))
	}
	x.prof, err = x.profile()
	return err
}

// profile is that of the run: on Ethernet where the device has it and the user did not choose, with
// the floor that is asked for.
func (x *failure) profile() (*profile.Profile, error) {
	p := x.Profile.Clone()
	if v, _ := p.Lookup("hca.link_layer"); v.Source != profile.Override && p.HCA.LinkLayers.Has(hca.Ethernet) {
		if err := p.Set("hca.link_layer", "ethernet"); err != nil {
			return nil, err
		}
	}
	if x.floor != "profile" {
		if err := varies(x.Env, "hca.min_ack_timeout_limit_disabled", "give --set floor="); err != nil {
			return nil, err
		}
		if err := p.Set("hca.min_ack_timeout_limit_disabled", strconv.FormatBool(x.floor == "false")); err != nil {
			return nil, err
		}
	}
	if err := p.Validate(); err != nil {
		return nil, experiment.Usagef("%w", err)
	}
	return p, nil
}

// hasFloor says whether short ACK timeouts act as a longer one.
func hasFloor(p *hca.Params) bool {
	if p.RoCEAccl && p.LinkLayer == hca.Ethernet {
		return !p.MinAckTimeoutLimitDisabled
	}
	return p.AckTimeoutFloor > 0
}

// series is the line of a row in the picture.
func (x *failure) series() string {
	s := fmt.Sprintf("retry_cnt %d", x.retries)
	if x.floor == "false" {
		s += ", no floor"
	}
	return s
}

// formula is what the specification suggests: the timeout, as often as there are transmissions.
func formula(timeout, retries int) time.Duration {
	return time.Duration(roce.AckTimeout(uint8(timeout))) * time.Duration(retries+1)
}

func detectionNotes(env *experiment.Env, p *profile.Profile) {
	n := env.Note
	n("detection_ms is the time from the post of a WRITE (no-receive: of a SEND) to its completion in error; completion_ms to one without. formula_ms is (retry_cnt+1) x 4.096 us x 2^timeout. transmissions are its request packets, adaptive is how much roce_adp_retrans grew, regular local_ack_timeout_err.")
	switch h := &p.HCA; {
	case h.LinkLayer == hca.InfiniBand && h.IBAckTimer == hca.IBTimerExact:
		n("What cards do on InfiniBand is not published: the timer is exact here (hca.ib_ack_timer, assumed).")
	case h.RoCEAccl:
		n("Measured on ConnectX-6, firmware 20.43 (github.com/unionxic/rdma-fault-characterization, 2026): the waits of a peer that answers nothing, its vendor bytes and its counters, and the 1.1 ms of region-gone. Modelled: link-down and switch-loss, which are silence to the requester as well, other firmware and parts, and of retry_cnt 0 what lies between its first and last transmission.")
		var known []string
		for _, code := range usualTimeouts {
			if least, _, most, ok := hca.FirstFaultShift(uint8(code)); ok && !h.FirstFault {
				known = append(known, fmt.Sprintf("%d to %+d ms at timeout %d", least/1e9, most/1e9, code))
			}
		}
		if len(known) > 0 {
			n("These are faults that follow one another in a process. The first fault of a new process is reported earlier or later, by %s (measured as an interval; hca.first_fault=true takes its typical value).", strings.Join(known, " and "))
		}
	case h.AckTimeoutFloor > 0:
		n("The profile has no register ROCE_ACCL: its timer is that of the specification, with no timeout below %v (hca.ack_timeout_floor).", h.AckTimeoutFloor)
	default:
		n("The profile has no register ROCE_ACCL: its timer is that of the specification.")
	}
	n("killed: the kernel destroys what the process has from the newest to the oldest. If the queue pair goes before the region, nobody answers; if the region goes first (killed-region-first) and the queue pair outlives the silence after a deregistration, it refuses.")
}
