package studies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

func onDemandPaging() *experiment.Experiment {
	return &experiment.Experiment{
		Name:    "odp",
		Title:   "what on-demand paging costs: cold, prefetched and under memory pressure, against pinning, copying and a cache of registrations",
		Profile: "connectx-5",
		Params: []experiment.Param{
			{Key: "scenario", Default: "all", Allowed: []string{"warmup", "remap", "thrash", "incast", "all"}, Help: "warmup: the first passes over a buffer; remap: memory that moves between two sends; thrash: a working set around the size of memory; incast: several senders into buffers that nobody has touched"},
			{Key: "message_kib", Default: "64", Min: 4, Max: 4096, Help: "KiB of each message, in whole pages"},
			{Key: "buffer_mib", Default: "8", Min: 1, Max: 1024, Help: "warmup: MiB that are sent"},
			{Key: "passes", Default: "3", Min: 1, Max: 1000, Help: "warmup: how often"},
			{Key: "window", Default: "16", Min: 1, Max: 1024, Help: "outstanding messages; also the slots of the bounce buffer"},
			{Key: "cache_mib", Default: "8", Min: 1, Max: 1024, Help: "warmup: MiB that the cache of registrations keeps pinned"},
			{Key: "copy_gbps", Default: "80", Min: 1, Max: 10000, Help: "how fast a core copies to a bounce buffer, in Gb/s (assumed)", Assumed: true},
			{Key: "memory_mib", Default: "16", Min: 1, Max: 1024, Help: "thrash: MiB of physical memory that the program's pages may take"},
			{Key: "swap_mib", Default: "64", Min: 0, Max: 4096, Help: "thrash: MiB of swap"},
			{Key: "senders", Default: "8", Min: 1, Max: 32, Help: "incast: hosts that send to one"},
			{Key: "messages", Default: "16", Min: 1, Max: 1000, Help: "incast: messages of each, every one into a buffer of its own"},
			{Key: "gap_us", Default: "100", Min: 0, Max: 100000, Help: "incast: us between the two messages of a pair"},
			{Key: "read_qps", Default: "64", Min: 1, Max: 1024, Help: "incast: queue pairs over which the receiver reads 64 bytes each, into the same cold pages"},
			{Key: "pfc", Default: "true", Allowed: []string{"true", "false"}, Help: "incast: flow control of the links; without it a full switch drops packets, which hides what the page faults do"},
		},
		Columns: []string{"scenario", "series", "ratio", "rnr_timer_ms", "time_us", "register_us", "setup_us", "first_pass_gbps", "goodput_gbps", experiment.LimitedBy, experiment.Confirmed, "faults_per_s", "page_faults", "fault_us",
			"efficiency_percent", "refault_percent", "majflt", "thrashing", "pinned_kib", "registrations", "right_bytes", "second_send_us", "send", "send_us", "rnr_naks", "sent_again_percent", "timeouts",
			"dammed", "sequence_naks", "asked_again", "queues_done", "error"},
		More: experiment.More{Kinds: []string{"warmup", "remap", "thrash", "incast", "incast-pairs", "incast-reads"}, Lead: []string{"scenario", "series", "ratio", "rnr_timer_ms"}, Columns: slices.Concat(pagingCounters(), newerCounters, stageKeys)},
		Plots: []chart.Plot{
			{File: "odp-warmup", Title: "Goodput while a buffer is sent for the first time, and again", X: "time_us", Y: "goodput_gbps", XLabel: "us since the data is in memory", YLabel: "Gb/s", Series: "series", Only: map[string]any{"row": "warmup-time"}, LogX: true},
			{File: "odp-faults", Title: "Page faults of the device meanwhile", X: "time_us", Y: "faults_per_s", XLabel: "us since the data is in memory", YLabel: "page faults/s", Series: "series", Only: map[string]any{"row": "warmup-time"}, LogX: true, Least: true},
			{File: "odp-remap", Title: "Sends before and after munmap and mmap", X: "send", Y: "send_us", XLabel: "send", YLabel: "us", Series: "series", Only: map[string]any{"row": "remap-send"}, Words: sendsOfRemap, Least: true},
			{File: "odp-thrash", Title: "Goodput of a working set beside memory", X: "ratio", Y: "goodput_gbps", XLabel: "working set / memory", YLabel: "Gb/s", Series: "series", Only: map[string]any{"row": "thrash"}, LogX: true},
			{File: "odp-incast", Title: "Senders into buffers that nobody has touched", X: "rnr_timer_ms", Y: "goodput_gbps", XLabel: "RNR timer of the receiver, ms", YLabel: "Gb/s", Series: "series", Only: map[string]any{"row": "incast"}, LogX: true},
			{File: "odp-damming", Title: "Two messages at a time, and packet damming", X: "rnr_timer_ms", Y: "goodput_gbps", XLabel: "RNR timer of the receiver, ms", YLabel: "Gb/s", Series: "series", Only: map[string]any{"row": "incast-pairs"}, LogX: true},
			{File: "odp-flood", Title: "READs of many queue pairs into a page, and packet flood", X: "queues_done", Y: "time_us", XLabel: "queue pairs whose READ has completed", YLabel: "us", Series: "series", Only: map[string]any{"row": "incast-read"}, LogX: true, Least: true},
		},
		Many: true, Run: runODP, Confirms: true,
	}
}

// odpRun is a run of the experiment.
type odpRun struct {
	experiment.Parts
	message  uint64
	window   int
	copyGbps int
}

func runODP(env *experiment.Env) error {
	if env.Profile.HCA.ODP.RC == 0 { // queue pairs of the runs are RC
		return experiment.Usagef("profile %s has no on-demand paging: odp.rc is 0", env.Profile.Name)
	}
	x := &odpRun{Parts: experiment.Parts{Env: env}, message: uint64(env.Int("message_kib")) << 10, window: env.Int("window"), copyGbps: env.Int("copy_gbps")}
	if x.message%odpPage != 0 {
		return experiment.Usagef("message_kib=%d: a message is a whole number of pages of 4 KiB", env.Int("message_kib"))
	}
	return x.Do([]experiment.Part{
		{Name: "warmup", Runs: len(warmupSeries()), Check: x.checkWarmup, Run: x.warmup},
		{Name: "remap", Runs: len(remapSeries()), Run: x.remap},
		{Name: "thrash", Runs: len(ratios) * len(thrashSeries()), Check: x.checkThrash, Run: x.thrash},
		{Name: "incast", Runs: len(rnrTimers) * (len(incastSeries) + len(pairSeries) + len(floodSeries)), Check: x.checkIncast, Run: x.incast},
	}, x.explain)
}

const odpPage = 4096

// bed is a testbed in a run, with the counters from when it was built.
type bed struct {
	*experiment.Bed
	before  []testbed.Reading
	regions map[string]uint64 // what regions had counted by then
}

// mark has the counters count from now on.
func (b *bed) mark(t verbs.Thread, regions []verbs.MR) {
	b.before, b.regions = b.TB.Counters(), regionCounters(t, regions)
}

// regionCounters are the sums of what regions have counted, by the kernel's names. A kernel before
// 5.5 has none.
func regionCounters(t verbs.Thread, regions []verbs.MR) map[string]uint64 {
	all := map[string]uint64{}
	for _, mr := range regions {
		counters, err := mr.Counters(t)
		if err != nil {
			continue
		}
		for _, c := range counters {
			all[c.Name] += c.Value
		}
	}
	return all
}

// on runs body on hosts.
func on(x *experiment.Env, name string, hosts []testbed.HostConfig, change func(*testbed.Config), body func(t verbs.Thread, b *bed) error) error {
	return within(x, 0, name, hosts, change, body)
}

// within is on with a limit of its own.
func within(x *experiment.Env, limit time.Duration, name string, hosts []testbed.HostConfig, change func(*testbed.Config), body func(t verbs.Thread, b *bed) error) error {
	return x.Build(limit, name, hosts, change, func(t verbs.Thread, b *experiment.Bed) error { return body(t, &bed{Bed: b, before: b.TB.Counters()}) })
}

// pair opens an endpoint on each of the first two hosts, and connects them.
func (b *bed) pair(t verbs.Thread, o workload.EndpointOptions) (from, to *workload.Endpoint, err error) {
	hosts := b.TB.Hosts()
	if from, err = workload.OpenEndpoint(t, hosts[0], o); err != nil {
		return nil, nil, err
	}
	o.Unprivileged = false
	if to, err = workload.OpenEndpoint(t, hosts[1], o); err != nil {
		return nil, nil, err
	}
	return from, to, from.Connect(t, 0, to, 0)
}

// grown are the counters of a host by their names, as far as they are of paging, of its device and
// of its port.
func (b *bed) grown(host int) map[string]uint64 {
	return grownOf(host, b.Grown(b.before), b.TB.Counters())
}

// grownOfAll is grown of each host.
func (b *bed) grownOfAll() (all []map[string]uint64) {
	more, now := b.Grown(b.before), b.TB.Counters()
	for host := range b.TB.Hosts() {
		all = append(all, grownOf(host, more, now))
	}
	return all
}

func grownOf(host int, more, now []testbed.Reading) map[string]uint64 {
	all := map[string]uint64{}
	prefix := fmt.Sprintf("host%d/mlx5_0/", host)
	for _, r := range more {
		if unit, ok := strings.CutPrefix(r.Unit, prefix); ok && slices.Contains([]string{"kernel", "odp", "hca"}, unit) {
			all[r.Name] = r.Value
		}
	}
	for _, r := range now { // these say what there is
		if r.Unit == prefix+"kernel" && strings.HasPrefix(r.Name, "num_odp_mr") {
			all[r.Name] = r.Value
		}
	}
	return all
}

// pagingCounters are the names of the counters of on-demand paging: the driver's of a device, of
// regions, and the device's own.
func pagingCounters() []string {
	return []string{"num_page_faults", "num_page_fault_pages", "num_invalidations", "num_invalidation_pages", "invalidations_faults_contentions",
		"num_prefetches_handled", "num_prefetch_pages", "num_failed_resolutions", "num_mrs_not_found", "num_odp_mr_pages", "num_odp_mrs",
		"page_invalidations", "page_prefetch", "odp_local_triggered_page_fault", "odp_remote_triggered_page_fault"}
}

// newerCounters are those that regions have since 6.14.
var newerCounters = []string{"page_faults_handled", "page_invalidations_handled"}

// efficiency adds the share of the pages of n bytes that needed no page fault.
func efficiency(row *table.Row, n uint64) {
	if pages, ok := row.Float("num_page_fault_pages"); ok && n > 0 {
		row.Set("efficiency_percent", 100*(1-pages*odpPage/float64(n)))
	}
}

// stageKeys are the parts of a fault, each the mean of a row's faults.
var stageKeys = []string{"device_us", "driver_us", "update_us", "resume_us"}

// count adds to a row what a host counted, and what its regions did.
func (b *bed) count(t verbs.Thread, row *table.Row, host int, regions []verbs.MR) {
	all := b.grown(host)
	for name, v := range regionCounters(t, regions) {
		all[name] = v - b.regions[name]
	}
	row.Set("page_faults", all["num_page_fault_pages"]) // what page_faults of the regions is too, where the kernel has it
	stages(row, all)
	for _, name := range pagingCounters() {
		row.Set(name, all[name])
	}
	for _, name := range newerCounters {
		if v, ok := all[name]; ok {
			row.Set(name, v)
		}
	}
}

// stages adds the mean parts of a fault.
func stages(row *table.Row, all map[string]uint64) {
	n := float64(all["sim_resumed"] + all["sim_failed"])
	if n == 0 {
		return
	}
	us := func(names ...string) float64 {
		sum := 0.0
		for _, name := range names {
			sum += float64(all[name])
		}
		return sum / n / 1e6
	}
	wait, find, update := us("sim_fault_wait_ps"), us("sim_fault_find_ps"), us("sim_fault_update_ps")
	whole := us("sim_reporting_ps", "sim_answering_ps", "sim_resuming_ps")
	resume := us("sim_resuming_ps") + wait
	row.Set("fault_us", whole).Set("device_us", whole-resume-find-update).Set("driver_us", find).Set("update_us", update).Set("resume_us", resume)
}
