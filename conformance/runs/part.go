package runs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Entries of the environment of a record of a part of a run. PartKey says which part it is: "1/4".
// WholeKey has the hash of what the whole run consists of (Hash): parts of another choice of cases
// have the same numbers.
const (
	PartKey  = "shard"
	WholeKey = "shard_of"
)

// Part is part Index, counted from 0, of a run that is divided into Parts; the zero value is the
// whole run.
type Part struct{ Index, Parts int }

// String returns the part in the form of --shard, such as "1/4".
func (p Part) String() string { return fmt.Sprintf("%d/%d", p.Index, p.Parts) }

// Of returns the items that belong to part p: every p.Parts-th, from p.Index on. The zero Part has
// all.
func Of[T any](p Part, all []T) []T {
	if p.Parts == 0 {
		return all
	}
	var some []T
	for i := p.Index; i < len(all); i += p.Parts {
		some = append(some, all[i])
	}
	return some
}

// Hash returns 16 hexadecimal digits that identify what a whole run consists of: its cases or
// mutants, and the settings that choose what is done with them.
func Hash(names []string, settings ...any) string {
	h := sha256.New()
	fmt.Fprintln(h, settings...)
	for _, n := range names {
		fmt.Fprintln(h, n)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// mostNamedParts bounds the missing parts that are named: a record says by itself how many there
// are.
const mostNamedParts = 20

// CheckParts returns an error if parts of a run are missing or belong to different divisions.
// parts[i] is the part, such as "1/4", that the file names[i] holds. A part that is there twice, as
// after a task that ran again, counts once.
func CheckParts(names, parts []string) error {
	have := map[Part]string{}
	n := 0
	for i, text := range parts {
		var p Part
		if _, err := fmt.Sscanf(text, "%d/%d", &p.Index, &p.Parts); err != nil || p.Index < 0 || p.Index >= p.Parts || p.String() != text {
			return fmt.Errorf("%s is not a part of a run that --shard wrote", names[i])
		}
		n = cmp.Or(n, p.Parts)
		if p.Parts != n {
			return fmt.Errorf("%s is a part of %d, and %s is one of %d: give the parts of one run", names[0], n, names[i], p.Parts)
		}
		have[p] = names[i]
	}
	var missing []string
	for i := 0; i < n && len(missing) < mostNamedParts; i++ {
		if p := (Part{i, n}); have[p] == "" {
			missing = append(missing, p.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	more := ""
	if left := n - len(have) - len(missing); left > 0 {
		more = fmt.Sprintf(" and %d more", left)
	}
	return fmt.Errorf("parts are missing: run --shard %s%s", strings.Join(missing, ", "), more)
}
