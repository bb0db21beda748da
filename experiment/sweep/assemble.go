package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// mostRows bounds the rows that are kept in memory, for a table and for pictures. Files have all of
// them.
const mostRows = 10_000

// mostKept is how many runs a sweep may have whose results are kept in memory.
const mostKept = 2_000

// Answer is what a sweep gives, read from the store.
type Answer struct {
	// Result is the answer as an experiment has it. Its rows are there only if Whole.
	Result *experiment.Result
	// Whole says that Result has all rows: there are not too many.
	Whole  bool
	Failed int
	rows   rowSet // the answer: of several seeds, means with intervals
	runs   rowSet // one row for each seed
	r      *prepared
	out    *Outcome
	store  *store.Store
	kept   map[store.Address]*result
}

// mostLookedAt bounds the points whose loads are looked at.
const mostLookedAt = 200

// Places are the points of a scenario's sweep with the places of their loads: all points, or some
// from all over a large sweep. Points that cannot be run, as the answer says, are left out.
func (a *Answer) Places() (all []experiment.Placed) {
	points := a.r.n / a.r.Seeds
	looked := min(points, mostLookedAt)
	for i := range looked {
		n := i
		if looked > 1 {
			n = i * (points - 1) / (looked - 1)
		}
		pt, _ := a.r.point(n * a.r.Seeds)
		if places, err := a.r.prep.Places(pt); err == nil {
			all = append(all, experiment.Placed{Name: experiment.PointName(pt), Places: places})
		}
	}
	return all
}

// cell is a point of the grid with the results of its seeds that are there.
type cell struct {
	settings []experiment.Setting
	runs     []*result
}

// cells reads the points in their order.
func (a *Answer) cells() iter.Seq2[cell, error] {
	return func(yield func(cell, error) bool) {
		for i := 0; i < a.r.n; i += a.r.Seeds {
			pt, _ := a.r.point(i)
			c := cell{settings: pt}
			for k := range a.r.Seeds {
				if a.out.state[i+k] != done {
					continue
				}
				res, err := a.read(a.out.addresses[i+k])
				if err != nil {
					yield(c, fmt.Errorf("%s: %w", a.r.pointName(i+k), err))
					return
				}
				c.runs = append(c.runs, res)
			}
			if len(c.runs) > 0 && !yield(c, nil) {
				return
			}
		}
	}
}

// read is a result. Each file of an answer reads all of them: those of a small sweep are kept in
// memory.
func (a *Answer) read(at store.Address) (*result, error) {
	if res := a.kept[at]; res != nil {
		return res, nil
	}
	res, err := a.load(at)
	if err == nil && a.r.n <= mostKept {
		a.kept[at] = res
	}
	return res, err
}

func (a *Answer) load(at store.Address) (*result, error) {
	text, err := a.store.Get(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its result has gone from the store meanwhile: run the same command again (%w)", err)
	}
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// answerRows are the rows of a cell.
func (a *Answer) answerRows(c *cell) []table.Row {
	var rows []table.Row
	if a.r.Seeds == 1 {
		for i := range c.runs[0].rows {
			rows = append(rows, prefixed(c.settings, &c.runs[0].rows[i]))
		}
		return rows
	}
	for _, g := range groups(c.runs) {
		row := g.merged()
		rows = append(rows, prefixed(c.settings, &row))
	}
	return rows
}

// runRows are the rows of a cell, seed by seed.
func runRows(c *cell) []table.Row {
	var rows []table.Row
	for _, r := range c.runs {
		for i := range r.rows {
			pt := prefixed(c.settings, nil)
			pt.Set("seed", r.Seed)
			rows = append(rows, join(pt, &r.rows[i]))
		}
	}
	return rows
}

func prefixed(pt []experiment.Setting, row *table.Row) table.Row {
	var full table.Row
	for _, s := range pt {
		full.Set(s.Key, s.Value)
	}
	return join(full, row)
}

func join(full table.Row, row *table.Row) table.Row {
	if row != nil {
		for _, k := range row.Keys() {
			full.Set(k, row.Get(k))
		}
	}
	return full
}

// assemble puts the answer together.
func (r *prepared) assemble(st *store.Store, out *Outcome) (*Answer, error) {
	a := &Answer{r: r, out: out, store: st, Failed: out.Failed, kept: map[store.Address]*result{}}
	res := &experiment.Result{Name: r.x.Name, Version: r.Request.Version, Seed: r.Request.Seed, Hypotheses: []string{}, Rows: []table.Row{},
		Notes: []string{}, Columns: r.x.Columns, More: r.x.More}
	if !r.Request.Threads {
		res.Hidden = r.x.Details
	}
	a.Result = res
	a.Whole = a.points() <= mostRows
	a.rows = newRowSet(&r.Grid, func(c *cell) []table.Row { return a.answerRows(c) }, a.cells)
	a.runs = newRowSet(&r.Grid, runRows, a.cells)
	notes, names, hashes, hypotheses := newNotes(), newList(), newList(), switches{}
	judge := newJudge(r)
	found := 0
	for c, err := range a.cells() {
		if err != nil {
			return nil, err
		}
		found += len(c.runs)
		for _, run := range c.runs {
			names.add(run.Profile)
			hashes.add(run.ProfileHash)
			hypotheses.add(run.Hypotheses)
			notes.add(c.settings, run)
		}
		notes.cells++
		if said := notesOf(&c); len(said) > 0 && len(res.PointNotes) < mostRows && len(c.settings) > 0 {
			res.PointNotes = append(res.PointNotes, experiment.PointNotes{Point: experiment.PointName(c.settings), Notes: said})
		}
		rows := a.answerRows(&c)
		a.rows.learn(rows)
		if r.Seeds > 1 {
			a.runs.learn(runRows(&c))
			judge.add(&c)
		}
		if a.Whole = a.Whole && len(res.Rows)+len(rows) <= mostRows; a.Whole {
			res.Rows = append(res.Rows, rows...)
		} else {
			res.Rows = nil
		}
	}
	res.Hypotheses = hypotheses.texts()
	res.Profile, res.ProfileHash = cmp.Or(names.String(), r.Request.Profile, r.x.Profile), hashes.String()
	res.Notes = append(res.Notes, notes.texts(r.Grid.Keys())...)
	res.Notes = append(res.Notes, judge.notes()...)
	if n, drawn := len(r.Grid.Sample), r.Grid.Drawn; n < drawn {
		res.Note("The %d samples are %s: several fell on one point of the grid.", drawn, plain.Count(n, "point"))
	}
	a.missing(found)
	a.present()
	return a, nil
}

// points are those with a result, each of which has a row or more.
func (a *Answer) points() int {
	n := 0
	for i := 0; i < a.r.n; i += a.r.Seeds {
		if slices.Contains(a.out.state[i:i+a.r.Seeds], done) {
			n++
		}
	}
	return n
}

// missing says which runs have no result.
func (a *Answer) missing(found int) {
	res := a.Result
	res.Complete = found == a.r.n
	if res.Complete {
		return
	}
	res.Note("%d of %s have no result.", a.r.n-found, plain.Count(a.r.n, "run"))
	for i, l := range a.out.Failures {
		if i == mostNamed {
			res.Note("%d more were lost.", a.out.Failed-mostNamed)
			break
		}
		res.Note("%s has no result: %s", l.Name, l.Reason)
	}
}

// mostNamed bounds the lost runs that a result names.
const mostNamed = 20

// present says what tables and pictures show.
func (a *Answer) present() {
	res := a.Result
	keys := a.r.Grid.Keys()
	columns := res.Columns
	if len(columns) > 0 && a.r.Seeds > 1 {
		columns = append([]string{"seeds"}, columns...)
	}
	if len(columns) > 0 {
		res.Columns = append(slices.Clone(keys), columns...)
	}
	if len(res.More.Kinds) > 0 {
		res.More.Lead = append(slices.Clone(keys), res.More.Lead...)
	}
	res.Seeds = a.r.Seeds
	if !a.Whole {
		res.Note("The answer has more than %d rows: it is in the files of -o and in --format jsonl and csv, and neither in a table nor in pictures.", mostRows)
		return
	}
	res.Plots = a.plots()
}
