package studies

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

// The working set of a row is the one that its ratio says, for every size of messages: pinned
// memory is as large as it, and more than memory cannot be pinned.
func TestWorkingSetIsTheRatio(t *testing.T) {
	for i, set := range [][]string{{"memory_mib=1", "message_kib=512"}, {"memory_mib=3", "message_kib=300"}, {"memory_mib=1", "message_kib=4"}} {
		if testing.Short() && i > 0 {
			break
		}
		res := odpRows(t, append(set, "scenario=thrash", "window=1")...)
		memory := 1024.0
		if set[0] == "memory_mib=3" {
			memory *= 3
		}
		for _, r := range rowsOf(res, "thrash", "pinned") {
			ratio := value(t, r, "ratio")
			if ratio > 1 {
				if r.Get("error") != "ENOMEM" {
					t.Errorf("%v: %v times memory: %v", set, ratio, r)
				}
				continue
			}
			if got := value(t, r, "pinned_kib"); got != ratio*memory {
				t.Errorf("%v: %v times memory are %v KiB", set, ratio, got)
			}
		}
		for _, r := range rowsOf(res, "thrash", "on demand") {
			if ratio := value(t, r, "ratio"); value(t, r, "num_odp_mr_pages") > ratio*memory/4 || ratio > 1 && value(t, r, "majflt") == 0 {
				t.Errorf("%v: %v times memory: %v", set, ratio, r)
			}
		}
	}
}

// Bounce buffers are memory too: they leave less for the working set, and cannot be larger than
// memory.
func TestBounceBuffersTakeMemory(t *testing.T) {
	for window, want := range map[int]string{1024: "ENOMEM", 256: "ENOMEM", 192: "thrashing", 128: "fits"} {
		res := odpRows(t, "scenario=thrash", "memory_mib=1", "message_kib=4", fmt.Sprint("window=", window))
		r := rowsOf(res, "thrash", bouncing)[0] // half of memory
		got := fmt.Sprint(r.Get("error"))
		if r.Get("error") == nil {
			got = map[bool]string{true: "thrashing", false: "fits"}[value(t, r, "majflt") > 0]
		}
		if got != want {
			t.Errorf("%d bounce buffers of 4 KiB beside 512 KiB in 1 MiB: %s, want %s", window, got, want)
		}
		if r := rowsOf(res, "thrash", "on demand")[0]; r.Get("error") != nil || value(t, r, "majflt") != 0 {
			t.Errorf("on demand, %d outstanding: %v", window, r)
		}
	}
}

// Without swap a working set of all of memory fits, and a page more does not.
func TestThrashWithoutSwap(t *testing.T) {
	res := odpRows(t, "scenario=thrash", "memory_mib=1", "message_kib=32", "swap_mib=0")
	for series, most := range map[string]float64{"on demand": 1, "pinned": 1, bouncing: 0.5} { // of which the ring takes half
		for _, r := range rowsOf(res, "thrash", series) {
			if ratio := value(t, r, "ratio"); (r.Get("error") == nil) != (ratio <= most) || r.Get("error") == nil && value(t, r, "majflt") != 0 {
				t.Errorf("%s, %v times memory: %v", series, ratio, r)
			}
		}
	}
}

// All of a buffer is sent when it is no multiple of a message, at the rates that it has otherwise.
func TestWarmupSendsAllOfTheBuffer(t *testing.T) {
	set := []string{"scenario=warmup", "buffer_mib=7", "message_kib=4096", "passes=2"}
	res := odpRows(t, set...)
	pages := 7.0 * 256
	for _, series := range []string{"cold", "cold, unprivileged", "cold, whole address space"} {
		r := rowsOf(res, "warmup", series)[0]
		if got := value(t, r, "page_faults"); got != pages || value(t, r, "num_page_faults") != 2 || value(t, r, "efficiency_percent") != 50 {
			t.Errorf("%s: %v", series, r)
		}
	}
	for series, key := range map[string]string{"prefetched": "page_prefetch", "pinned": "pinned_kib", "pin-down-cache": "pinned_kib"} {
		want := pages
		if key == "pinned_kib" {
			want *= 4
		}
		if got := value(t, rowsOf(res, "warmup", series)[0], key); got != want {
			t.Errorf("%s: %s is %v, want %v", series, key, got, want)
		}
	}
	for _, series := range warmupSeries() { // bytes by the rate and the time of each sample
		bits, before := 0.0, 0.0
		for _, r := range rowsOf(res, "warmup-time", series.name) {
			at := value(t, r, "time_us")
			bits, before = bits+value(t, r, "goodput_gbps")*1000*(at-before), at
		}
		if want := 2 * 7.0 * (8 << 20); !series.unprivileged && math.Abs(bits-want) > want/1e9 {
			t.Errorf("%s: %v bits are sent, want %v", series.name, bits, want)
		}
	}
	small := odpRows(t, "scenario=warmup", "buffer_mib=7", "message_kib=1024", "passes=2")
	big, exact := value(t, rowsOf(res, "warmup", "pinned")[0], "goodput_gbps"), value(t, rowsOf(small, "warmup", "pinned")[0], "goodput_gbps")
	if math.Abs(big/exact-1) > 0.02 {
		t.Errorf("pinned: %v Gb/s, and %v with messages that divide the buffer", big, exact)
	}
}

// The cache of registrations never pins more than it may, and has fewer messages outstanding where
// it holds fewer.
func TestCacheStaysWithinItsSize(t *testing.T) {
	for _, c := range []struct {
		message, window, holds int
	}{{64, 16, 0}, {64, 32, 16}, {300, 16, 3}, {1024, 16, 1}, {1024, 1, 0}} {
		res := odpRows(t, "scenario=warmup", "buffer_mib=3", "cache_mib=1", "passes=2", fmt.Sprint("message_kib=", c.message), fmt.Sprint("window=", c.window))
		r := rowsOf(res, "warmup", "pin-down-cache")[0]
		if got := value(t, r, "pinned_kib"); got > 1024 || got < 900 {
			t.Errorf("%+v: %v KiB are pinned", c, got)
		}
		if said := noted(res, fmt.Sprintf("holds %d messages of %d KiB", c.holds, c.message)); said != (c.holds > 0) || noted(res, "a cache of 1 MiB holds") != said {
			t.Errorf("%+v: %v", c, res.Notes)
		}
	}
}

// What a core copies takes as long as its rate says, also where one message is no whole number of
// nanoseconds.
func TestCopyTime(t *testing.T) {
	for _, rate := range []uint64{1, 80, 3000, 10000} {
		s := &sending{copyGbps: rate}
		sum := 0.0
		for range 1000 {
			sum += float64(s.copyTime(4096))
		}
		if want := 1000 * 4096 * 8 / float64(rate); sum > want || sum < want-1 {
			t.Errorf("%d Gb/s: %v ns, want %v", rate, sum, want)
		}
	}
}

// Settings that cannot be carried out are refused before anything runs, also in a run of all
// scenarios, and the message says which.
func TestOnDemandRefusesFirst(t *testing.T) {
	x, err := Find("odp")
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"message_kib=4096 cache_mib=1":                                "cache_mib=1 is less",
		"message_kib=4096 buffer_mib=3":                               "buffer_mib=3 is less",
		"message_kib=4096 memory_mib=7":                               "memory_mib=7",
		"senders=32 messages=1000 message_kib=4096":                   "128000 MiB of receive buffers",
		"scenario=incast senders=32 messages=1000 message_kib=1024":   "32000 MiB of receive buffers",
		"scenario=thrash memory_mib=1 message_kib=516":                "50 % is less than one message of 516 KiB",
		"scenario=warmup message_kib=1028 cache_mib=1 buffer_mib=100": "cache_mib=1 is less",
	} {
		runs := 0
		_, err := x.Execute(t.Context(), experiment.Request{Set: strings.Fields(set), Seed: 1}, func(int, int, string) { runs++ })
		if bad := (*experiment.UsageError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || runs > 0 {
			t.Errorf("%s: %d runs, then %v", set, runs, err)
		}
	}
}
