package main

import (
	"fmt"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce/oracle"
)

// otherRules are flags of wire that were not given, and change the rules.
type otherRules struct {
	flags string
	more  bool // several flags
	opts  oracle.Options
}

// others lists what a capture may need besides the flags that were given: selective repeat of
// either kind, unless --sender was given, only of our own captures, paging of any, or both.
func (o *wireOptions) others(own bool, opts oracle.Options) []otherRules {
	const odp = "--odp"
	selective := []string{"selective-repeat", "selective-ack"}
	var out []otherRules
	add := func(flags, sender string, paging, more bool) {
		alt := opts
		if sender != "" {
			alt.Sender = senders[sender]
		}
		alt.ODP = alt.ODP || paging
		out = append(out, otherRules{flags, more, alt})
	}
	repeat := own && !o.chosen
	if repeat {
		for _, s := range selective {
			add("--sender "+s, s, false, false)
		}
	}
	if !opts.ODP {
		add(odp, "", true, false)
	}
	if repeat && !opts.ODP {
		for _, s := range selective {
			add(odp+" --sender "+s, s, true, true)
		}
	}
	return out
}

// hint says which flags would leave none of the violations in all runs together, or at most half of
// them, and how many. It is empty where no flags would; none says that nothing remains.
func hint(runs []oracle.Capture, violations int, others []otherRules) (text string, none bool) {
	var best *otherRules
	left := violations/2 + 1
	for i := range others {
		// Of equals the first is taken, which has fewer flags.
		if n := countAll(runs, others[i].opts, left); n < left {
			best, left = &others[i], n
		}
	}
	if best == nil || violations == 0 {
		return "", false
	}
	it := "it"
	if best.more {
		it = "them"
	}
	if left == 0 {
		return fmt.Sprintf("this capture needs %s: %s without %s, none with %s", best.flags, plain.Count(violations, "violation"), it, it), true
	}
	return fmt.Sprintf("this capture seems to need %s: %s without %s, %d with %s", best.flags, plain.Count(violations, "violation"), it, left, it), false
}

// countAll counts the violations in all runs by other rules. It stops at enough.
func countAll(runs []oracle.Capture, opts oracle.Options, enough int) int {
	opts.Kept = &oracle.Kept{}
	n := 0
	for _, c := range runs {
		if n >= enough {
			break
		}
		n += oracle.Judge(c, opts).Count(oracle.Violation)
	}
	return n
}
