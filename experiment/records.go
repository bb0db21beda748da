package experiment

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// origin are the columns by which a line of --format jsonl says what its row is from.
var origin = []string{"experiment", "version", "profile", "profile_hash", "seed"}

// Records are the rows of an earlier run, and their origin as far as the file states it.
type Records struct {
	File string
	// Name to Seed are "" where the records do not say.
	Name, Version, Profile, ProfileHash, Seed string
	Incomplete                                bool
	Rows                                      []table.Row
	// Lines says that the records are lines of --format jsonl, whose columns have the names of
	// files.
	Lines bool
}

// what the origin of records is, in the order of origin.
func (r *Records) origin() []*string {
	return []*string{&r.Name, &r.Version, &r.Profile, &r.ProfileHash, &r.Seed}
}

// ReadRecords reads the result of an earlier run: NAME.json of -o or --format json, or the lines of
// --format jsonl. Errors name file, line and column.
func ReadRecords(ctx context.Context, file string) (*Records, error) {
	text, err := input.ReadUpTo(ctx, file, mostRecords)
	if err != nil {
		return nil, err
	}
	r := &Records{File: file}
	if begin := bytes.TrimLeft(text, " \t\r\n"); len(begin) == 0 || begin[0] != '{' {
		return nil, r.bad(text, int64(len(text)-len(begin)), errors.New("it has no records: an earlier run writes them with -o DIR (NAME.json) or --format jsonl"))
	}
	var whole struct {
		Name        *string           `json:"name"`
		Version     string            `json:"version"`
		Profile     string            `json:"profile"`
		ProfileHash string            `json:"profile_hash"`
		Seed        uint64            `json:"seed"`
		Complete    bool              `json:"complete"`
		Rows        []json.RawMessage `json:"rows"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&whole); err == nil && whole.Rows != nil && whole.Name != nil {
		if rest := text[dec.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
			at := dec.InputOffset() + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n")))
			return nil, r.bad(text, at, errors.New("a second result begins here: compare with one at a time"))
		}
		r.Name, r.Version, r.Profile, r.ProfileHash, r.Incomplete = *whole.Name, whole.Version, whole.Profile, whole.ProfileHash, !whole.Complete
		r.Seed = strconv.FormatUint(whole.Seed, 10)
		from := 0
		for _, row := range whole.Rows {
			at := from + max(0, bytes.Index(text[from:], row))
			if err := r.add(row); err != nil {
				return nil, r.bad(text, int64(at), err)
			}
			from = at + len(row)
		}
		return r, nil
	}
	r.Lines = true
	return r, r.lines(text)
}

// mostRecords bounds a file of records.
const mostRecords = 256 << 20

// lines reads rows, one a line. All are of one origin; what a line says of it is no figure.
func (r *Records) lines(text []byte) error {
	at := 0
	var places []int64
	for line := range bytes.Lines(text) {
		if row := bytes.TrimSpace(line); len(row) > 0 {
			place := int64(at + len(line) - len(bytes.TrimLeft(line, " \t")))
			if err := r.add(row); err != nil {
				return r.bad(text, place, err)
			}
			places = append(places, place)
		}
		at += len(line)
	}
	swept := r.profileSwept()
	for i := range r.Rows {
		if err := r.take(&r.Rows[i], i == 0, swept); err != nil {
			return r.bad(text, places[i], err)
		}
	}
	return nil
}

// profileSwept reports whether the profile is a setting of the rows: they differ in it and are of
// one answer.
func (r *Records) profileSwept() bool {
	for i := range r.Rows {
		if r.Rows[i].Get("profile") != r.Rows[0].Get("profile") && r.Rows[i].Get("profile_hash") == r.Rows[0].Get("profile_hash") {
			return true
		}
	}
	return false
}

// take takes the origin of a row out of it.
func (r *Records) take(row *table.Row, first, swept bool) error {
	var rest table.Row
	for _, k := range row.Keys() {
		i := slices.Index(origin, k)
		if i < 0 || k == "profile" && swept {
			rest.Set(k, row.Get(k))
			continue
		}
		says, has := table.Text(row.Get(k)), r.origin()[i]
		if first {
			*has = says
		} else if says != *has {
			what := map[string]string{"profile_hash": "profile values"}
			return fmt.Errorf("this record has %s %s, and the first has %s: compare with records that share one %s", cmp.Or(what[k], k), says, *has, cmp.Or(what[k], k))
		}
	}
	*row = rest
	return nil
}

// add adds a row.
func (r *Records) add(text []byte) error {
	row, err := table.DecodeRow(text)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("it is not JSON (%w): --against takes NAME.json of -o, or the lines of --format jsonl", err)
	case err != nil:
		return fmt.Errorf("it is no record: %w", err)
	case len(row.Keys()) == 0:
		return errors.New("it is no record: it has no columns")
	}
	r.Rows = append(r.Rows, row)
	return nil
}

// bad is an error at a place of the file.
func (r *Records) bad(text []byte, at int64, err error) error {
	before := text[:min(at, int64(len(text)))]
	line, col := 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("%s:%d:%d: %w", r.File, line, col, err)
}

// writeJSONL writes an object a row, which says what it is from.
func (r *Result) writeJSONL(w io.Writer) error {
	for i := range r.Rows {
		var row table.Row
		r.Origin(&row, nil)
		for _, k := range r.Rows[i].Keys() {
			row.Set(k, r.Rows[i].Get(k))
		}
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// Origin adds to a row the origin of the result (name, version, profile, seed), except those that
// has lists as columns.
func (r *Result) Origin(row *table.Row, has []string) {
	for i, v := range []any{r.Name, r.Version, r.Profile, r.ProfileHash, r.Seed} {
		if k := origin[i]; !slices.Contains(has, k) && (k != "seed" || r.Seeds <= 1) {
			row.Set(k, v)
		}
	}
}

// differences are what records and a result are not both of, in words.
func (r *Records) differences(res *Result) (out []string) {
	if r.Version == "" {
		return []string{"it names no version and profile"}
	}
	for _, d := range []struct{ what, old, now string }{{"version", r.Version, res.Version}, {"profile", r.Profile, res.Profile},
		{"values of the profile", r.ProfileHash, res.ProfileHash}, {"seed", r.Seed, strconv.FormatUint(res.Seed, 10)}} {
		if d.old != d.now && (d.old != "" || d.what != "seed" && d.what != "profile") {
			out = append(out, fmt.Sprintf("%s: %s then, %s now", d.what, d.old, d.now))
		}
	}
	if r.Incomplete {
		out = append(out, "the earlier run is incomplete")
	}
	if !res.Complete {
		out = append(out, "this run is incomplete")
	}
	return out
}
