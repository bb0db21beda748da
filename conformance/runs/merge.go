package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
)

// Merge joins the records of all parts of a run, in any order, and judges the run as a whole: the
// result is the record that the undivided run would have had. read returns the text of the file
// names[i] and is called once for each. The errors name files that are not parts of one run, or
// that contradict each other, or say which parts are missing. Merge finds out d.Whole itself.
func Merge(items []conformance.Item, names []string, read func(i int) ([]byte, error), d Demands) (*report.Run, error) {
	var all []*report.Run
	var parts []string
	for i, name := range names {
		text, err := read(i)
		if err != nil {
			return nil, err
		}
		r, err := report.Read(name, bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		all, parts = append(all, r), append(parts, r.Environment[PartKey])
		if whole := r.Environment[WholeKey]; whole != all[0].Environment[WholeKey] {
			return nil, fmt.Errorf("%s and %s are not parts of one run: --label-filter, --repeat or --full differ", names[0], name)
		}
		delete(r.Environment, PartKey)
		if err := sameRun(all[0], r); err != nil {
			return nil, fmt.Errorf("%s and %s are not parts of one run: %w", names[0], name, err)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no part of a run was given")
	}
	delete(all[0].Environment, WholeKey)
	if err := CheckParts(names, parts); err != nil {
		return nil, err
	}
	if err := sameTwice(names, parts, all); err != nil {
		return nil, err
	}
	return join(items, parts, all, d)
}

// sameRun says what differs between the records of two parts that only one run can have.
func sameRun(a, b *report.Run) error {
	switch {
	case a.Target != b.Target:
		return fmt.Errorf("they tested %v and %v", a.Target, b.Target)
	case a.Seed != b.Seed:
		return fmt.Errorf("their seeds are %d and %d", a.Seed, b.Seed)
	}
	for _, k := range slices.Sorted(maps.Keys(a.Environment)) {
		if a.Environment[k] != b.Environment[k] {
			return fmt.Errorf("%s is %q and %q", k, a.Environment[k], b.Environment[k])
		}
	}
	if len(a.Environment) != len(b.Environment) {
		return errors.New("their environments differ")
	}
	return nil
}

// sameTwice refuses a part that is there twice and not the same: one of them would hide what the
// other saw.
func sameTwice(names, parts []string, all []*report.Run) error {
	first := map[string]int{}
	for i, p := range parts {
		k, twice := first[p]
		if !twice {
			first[p] = i
			continue
		}
		a, aerr := json.Marshal(all[k].Cases)
		b, berr := json.Marshal(all[i].Cases)
		if aerr != nil || berr != nil || !bytes.Equal(a, b) {
			return fmt.Errorf("%s and %s are both part %s, and differ: conform diff shows where; leave one out", names[k], names[i], p)
		}
	}
	return nil
}

// join makes the record of the whole run.
func join(items []conformance.Item, parts []string, all []*report.Run, d Demands) (*report.Run, error) {
	cases, from := map[string]report.Case{}, map[string]string{}
	run := *all[0]
	run.Cases, run.Findings = nil, nil
	var late []string // findings that a run adds behind those about it as a whole
	for n, r := range all {
		for _, c := range r.Cases {
			if p, twice := from[c.ID]; twice && p != parts[n] {
				return nil, fmt.Errorf("%s is in part %s and in part %s, and a run has each case in one part: run one of them again", c.ID, p, parts[n])
			}
			cases[c.ID], from[c.ID] = c, parts[n]
		}
		run.Incomplete = run.Incomplete || r.Incomplete
		for _, f := range r.Findings {
			list := &run.Findings
			if f == NoBaseline {
				list = &late
			}
			if !slices.Contains(*list, f) {
				*list = append(*list, f)
			}
		}
	}
	for _, i := range items {
		if c, ok := cases[i.Entry.ID]; ok {
			run.Cases = append(run.Cases, c)
			delete(cases, i.Entry.ID)
		}
	}
	if len(cases) > 0 {
		return nil, fmt.Errorf("this suite has no case %s: merge with the program that ran the parts", slices.Sorted(maps.Keys(cases))[0])
	}
	run.Count()
	policy, err := conformance.LoadPolicy(run.Target.Profile, run.Environment)
	if err != nil {
		return nil, err
	}
	ledger, err := conformance.LoadLedger(d.Ledgers...)
	if err != nil {
		return nil, err
	}
	d.Whole = len(run.Cases) == len(items)
	Judge(&run, policy, ledger, d)
	run.Findings = append(run.Findings, late...)
	return &run, nil
}
