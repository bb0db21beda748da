package studies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// explain says how to read the rows, and where the times of a page fault are from.
func (x *odpRun) explain() {
	n := x.Out.Note // once, also in a sweep
	n("page_faults are the pages that the driver has made present for faults (num_page_fault_pages, and page_faults of rdma statistic show mr); num_page_faults are the faults, each of a whole message. efficiency is the share of the pages sent that needed no fault.")
	n("A fault has four parts, each the mean of a row: device_us until the driver's handler has the event (device and firmware), driver_us to find the pages, update_us to change the device's table, resume_us until the queue pair goes on (firmware). Of what they are made:")
	for _, key := range []string{"odp.report", "odp.report_page", "odp.resume", "kernel.page_fault", "kernel.page_fault_page", "kernel.page_update", "kernel.page_update_page",
		"kernel.invalidate", "kernel.invalidate_page", "kernel.minor_fault", "kernel.major_fault", "kernel.interrupt"} {
		n("%s", x.Profile.WithSource(key))
	}
	n("How many faults firmware serves at once is not published. That any number go on side by side, one for each side of a queue pair, is a hypothesis.")
}

// of finds the row of a series.
func of(rows []table.Row, series string) *table.Row {
	for i := range rows {
		if rows[i].Get("series") == series {
			return &rows[i]
		}
	}
	return &table.Row{}
}

// num is a value of a row as a table has it.
func num(r *table.Row, key string) string { return table.Short(r.Get(key)) }

// times is how many times a value of a is that of b.
func times(a, b *table.Row, key string) string {
	p, _ := a.Float(key)
	q, _ := b.Float(key)
	if q == 0 {
		return "-"
	}
	return table.Short(table.Rounded(p / q))
}

func (x *odpRun) concludeWarmup(rows []table.Row) {
	n := x.Note
	cold, pin, pre, ahead := of(rows, "cold"), of(rows, "pinned"), of(rows, "prefetched"), of(rows, "prefetched ahead")
	copied, cache, low, lowCold := of(rows, "bounce-buffer"), of(rows, "pin-down-cache"), of(rows, "pinned, unprivileged"), of(rows, "cold, unprivileged")
	e, fails := low.Get("error").(string)
	switch {
	case lowCold.Get("error") != nil:
		n("warmup: with an RLIMIT_MEMLOCK of %d KiB and no privilege the queues alone are too large, which the kernel pins whatever the data is in: give a smaller window.", memlockDefault>>10)
	case fails:
		n("warmup: with an RLIMIT_MEMLOCK of %d KiB and no privilege, pinning the buffer fails with %s; on demand it is sent at %s Gb/s, as with privileges.", memlockDefault>>10, e, num(lowCold, "goodput_gbps"))
	default:
		n("warmup: the buffer fits into an RLIMIT_MEMLOCK of %d KiB.", memlockDefault>>10)
	}
	n("warmup: time begins when the data is in memory. Regions on demand and the bounce buffer, which need not know where the data will be, are registered before (register_us); pinned memory and prefetches come after (setup_us), and count.")
	n("warmup: cold, each message of %d KiB waits for a fault of %s us: the first pass runs at %s Gb/s, where a pinned buffer has %s with its registration.", x.message>>10, num(cold, "fault_us"), num(cold, "first_pass_gbps"), num(pin, "first_pass_gbps"))
	n("warmup: to prefetch all of it takes %s us, against %s to register it: the first pass has %s Gb/s; asked for a window of messages ahead, without waiting, %s. Where a program knows what it will send, prefetching is what makes on-demand paging as fast as pinning; it has to be told again after each change of the memory.",
		num(pre, "setup_us"), num(pin, "setup_us"), num(pre, "first_pass_gbps"), num(ahead, "first_pass_gbps"))
	n("warmup: a bounce buffer needs %s KiB of pinned memory and no page fault, and never gets faster than a core copies: %s Gb/s, %d Gb/s being assumed for the copy (copy_gbps). A cache of registrations has %s Gb/s in the first pass, with one registration for each message, and %s over all.",
		num(copied, "pinned_kib"), num(copied, "goodput_gbps"), x.copyGbps, num(cache, "first_pass_gbps"), num(cache, "goodput_gbps"))
	if fault, ok := cold.Float("fault_us"); ok {
		if all, ok := pre.Float("setup_us"); ok {
			messages := float64(uint64(x.Int("buffer_mib"))<<20) / float64(x.message)
			n("warmup: a prefetch pays as soon as one of %d messages that are prefetched is sent.", int(fault*messages/all))
		}
	}
	if holds := x.cache().holds(x.message); holds < x.window {
		n("warmup: a cache of %d MiB holds %d messages of %d KiB, and a message needs its region until it has completed: the pin-down-cache has %d outstanding, not %d.", x.Int("cache_mib"), holds, x.message>>10, holds, x.window)
	}
	n("warmup: over %s passes cold has %s of the goodput of pinned memory.", x.String("passes"), times(cold, pin, "goodput_gbps"))
}

func (x *odpRun) concludeRemap(rows []table.Row) {
	var wrong, right []string
	for i := range rows {
		name := fmt.Sprint(rows[i].Get("series"))
		if rows[i].Get("right_bytes") == true {
			right = append(right, name)
		} else {
			wrong = append(wrong, name)
		}
	}
	x.Note("remap: a program sends a buffer, unmaps it, maps fresh memory at the same address, fills it and sends again. The fresh bytes arrive with: %s.", list(right))
	x.Note("remap: the bytes from before the munmap arrive with: %s. Such a region goes on naming pages that the program has no more, and no call fails.", list(wrong))
	x.Note("remap: setup_us is what munmap, mmap and filling take, the invalidation of the device's pages included; second_send_us is the send after it, with its page fault or its registration.")
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "; ")
}

func (x *odpRun) concludeThrash(rows []table.Row) {
	for _, w := range thrashSeries() {
		var from, failed *table.Row
		for i := range rows {
			r := &rows[i]
			if r.Get("series") == w.name && r.Get("thrashing") == true && from == nil {
				from = r
			}
			if _, bad := r.Get("error").(string); bad && r.Get("series") == w.name && failed == nil {
				failed = r
			}
		}
		fits := of(rows, w.name) // the first is the smallest
		switch {
		case from != nil:
			x.Note("thrash: THRASHING with %s from a working set of %s times memory on: %s %% of the pages that are sent come back from swap first, and goodput falls from %s to %s Gb/s.", w.name, num(from, "ratio"), num(from, "refault_percent"), num(fits, "goodput_gbps"), num(from, "goodput_gbps"))
		case failed == nil:
			x.Note("thrash: no thrashing with %s.", w.name)
		}
		if failed != nil {
			x.Note("thrash: %s cannot have %s times memory: %s.", w.name, num(failed, "ratio"), failed.Get("error"))
		}
	}
	x.Note("thrash: a run is called thrashing when at least %d %% of the pages that it sends have to be read from swap first (refault_percent). Messages are drawn at random. Pages go in the order in which they came or were last touched by a core; what the device reads does not count as a use, since it leaves no mark in the page tables. Pages come from swap one by one, without reading ahead (majflt, those of the program itself and of the handlers of faults).", thrashingFrom)
}

func (x *odpRun) concludeIncast(rows []table.Row) {
	for i := range rows {
		if r := &rows[i]; r.Get("series") == "cold" && r.Get("error") != nil {
			x.Note("incast: cold, with an RNR timer of %s ms: a message failed with %s.", num(r, "rnr_timer_ms"), r.Get("error"))
		} else if r.Get("series") == "cold" {
			x.Note("incast: cold, with an RNR timer of %s ms: %s Gb/s, %s RNR NAKs for %s faults, and %s %% more packets than are needed.", num(r, "rnr_timer_ms"), num(r, "goodput_gbps"), num(r, "rnr_naks"), num(r, "num_page_faults"), num(r, "sent_again_percent"))
		}
	}
	pre := of(rows, "prefetched")
	x.Note("incast: prefetched receive buffers have %s Gb/s, pinned ones %s.", num(pre, "goodput_gbps"), num(of(rows, "pinned"), "goodput_gbps"))
	if x.String("pfc") == "true" && slices.ContainsFunc(rows, func(r table.Row) bool { return r.Get("timeouts") != uint64(0) }) {
		x.Note("incast: the switch has dropped packets, which timeouts repaired: before it pauses %d senders, each may fill link.pfc_xoff of switch.buffer. Have fewer senders, or give --set switch.buffer=4MiB.", x.Int("senders"))
	}
	x.Note("incast: a short timer asks again long before the pages are there, and each time packets are sent for nothing; a long one waits long after they are. That a page fault of a responder uses the queue pair's own min_rnr_timer is a hypothesis, which no public source contradicts.")
	x.Note("incast: that a receiver which is not ready stalls other queue pairs of its device is published too, without the time: --set hca.rnr_stall=60ms adds it, as a hypothesis (check 14 of rdmasim validate).")
}
