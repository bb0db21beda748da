package mutants

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// matrixSchema names the format of a matrix.
const matrixSchema = "rdmasim/mutant-matrix/1"

// matrixFile is the committed matrix, which --update of conform mutants writes.
const matrixFile = "mutants/matrix.json"

// Matrix says for pairs of a mutant and a case whether the case kills the mutant.
type Matrix struct {
	Schema  string      `json:"schema"`
	Profile string      `json:"profile"`
	Seed    uint64      `json:"seed"`
	Cases   []string    `json:"cases"` // the columns
	Mutants []MatrixRow `json:"mutants"`
}

// MatrixRow is what is known of one mutant.
type MatrixRow struct {
	Name  string   `json:"name"`
	Kills []string `json:"kills"` // the cases that kill it
	// Crashes are cases that ended by no assertion on it, but by a crash, a hang or a limit; a case
	// that was left out behind a dozen of them is counted here too.
	Crashes []string `json:"crashes,omitempty"`
	// Untried are the columns with which it has not run; in a file neighbours are one word, as
	// DEV-001..DEV-025.
	Untried []string `json:"untried,omitempty"`
}

// ranges joins neighbours among the columns, and apart undoes it.
func (m *Matrix) ranges(ids []string) (out []string) {
	for i := 0; i < len(ids); {
		at := slices.Index(m.Cases, ids[i])
		n := 1
		for i+n < len(ids) && at+n < len(m.Cases) && ids[i+n] == m.Cases[at+n] {
			n++
		}
		word := ids[i]
		if n > 1 {
			word += ".." + ids[i+n-1]
		}
		out = append(out, word)
		i += n
	}
	return out
}

func (m *Matrix) apart(words []string) (out []string, err error) {
	for _, w := range words {
		first, last, more := strings.Cut(w, "..")
		if !more {
			last = first
		}
		i, k := slices.Index(m.Cases, first), slices.Index(m.Cases, last)
		if i < 0 || k < i {
			return nil, fmt.Errorf("untried %q names no cases of the matrix", w)
		}
		out = append(out, m.Cases[i:k+1]...)
	}
	return out, nil
}

func newMatrix(c *Config) *Matrix {
	return &Matrix{Schema: matrixSchema, Profile: c.Identity, Seed: c.Seed}
}

// ReadMatrix returns the committed matrix, fixtures/mutants/matrix.json.
func ReadMatrix() (*Matrix, error) {
	text, err := fixtures.Read(matrixFile)
	if err != nil {
		return nil, err
	}
	return parseMatrix("fixtures/"+matrixFile, text)
}

func parseMatrix(file string, text []byte) (*Matrix, error) {
	m := &Matrix{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(m)
	switch {
	case err == io.EOF:
		err = errors.New("it is empty")
	case err == io.ErrUnexpectedEOF:
		err = errors.New("it ends in the middle")
	case err == nil && m.Schema != matrixSchema:
		err = fmt.Errorf("schema %q: want %q", m.Schema, matrixSchema)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a matrix of mutants: %w: move %s away, and conform mutants --matrix --update %s makes a new one", file, err, file, file)
	}
	for i := range m.Mutants {
		r, err := &m.Mutants[i], error(nil)
		if r.Untried, err = m.apart(r.Untried); err != nil {
			return nil, fmt.Errorf("%s: mutant %s: %w", file, r.Name, err)
		}
	}
	return m, nil
}

// openMatrix reads the matrix at a path of the user's, or starts one where there is no file.
func openMatrix(ctx context.Context, c *Config) (*Matrix, error) {
	text, err := input.ReadFile(ctx, c.Update)
	if errors.Is(err, fs.ErrNotExist) {
		return newMatrix(c), nil
	}
	if err != nil {
		return nil, err
	}
	m, err := parseMatrix(c.Update, text)
	if err != nil {
		return nil, err
	}
	if m.Profile != c.Identity || m.Seed != c.Seed {
		return nil, fmt.Errorf("%s has profile %s and seed %d, and this run %s and %d: give another --update, or --profile %s --seed %d",
			c.Update, m.Profile, m.Seed, c.Identity, c.Seed, m.Profile, m.Seed)
	}
	return m, nil
}

func (m *Matrix) row(name string) *MatrixRow {
	for i := range m.Mutants {
		if m.Mutants[i].Name == name {
			return &m.Mutants[i]
		}
	}
	return nil
}

// tried says whether a pair is known.
func (m *Matrix) tried(name, id string) bool {
	r := m.row(name)
	return r != nil && slices.Contains(m.Cases, id) && !slices.Contains(r.Untried, id)
}

// kills says whether the case is known to kill the mutant.
func (m *Matrix) kills(name, id string) bool {
	r := m.row(name)
	return r != nil && slices.Contains(r.Kills, id)
}

// merge puts what a run has found in the place of what was known of its pairs, and drops mutants
// and cases that are gone. The order of both is that of the lists.
func (m *Matrix) merge(mutants []mutant.Mutant, items []conformance.Item, ran map[string]*fate) {
	old := *m
	m.Cases, m.Mutants = nil, nil
	for _, i := range items {
		m.Cases = append(m.Cases, i.Entry.ID)
	}
	for _, mu := range mutants {
		r := MatrixRow{Name: mu.Name, Kills: []string{}}
		was, f := old.row(mu.Name), ran[mu.Name]
		for _, id := range m.Cases {
			known := old.tried(mu.Name, id)
			switch {
			case f != nil && f.tried[id]:
				add(&r.Kills, id, slices.Contains(f.kills, id))
				add(&r.Crashes, id, slices.Contains(f.crashes, id))
			case known:
				add(&r.Kills, id, slices.Contains(was.Kills, id))
				add(&r.Crashes, id, slices.Contains(was.Crashes, id))
			default:
				r.Untried = append(r.Untried, id)
			}
		}
		m.Mutants = append(m.Mutants, r)
	}
}

func add(list *[]string, id string, yes bool) {
	if yes {
		*list = append(*list, id)
	}
}

// WriteJSON writes the matrix with one line for each mutant, so that a change to a mutant is a
// change to a line.
func (m *Matrix) WriteJSON(w io.Writer) error {
	var b bytes.Buffer
	line := func(v any) []byte {
		text, _ := json.Marshal(v) // strings and lists of them
		return text
	}
	fmt.Fprintf(&b, "{\n \"schema\": %q,\n \"profile\": %q,\n \"seed\": %d,\n \"cases\": %s,\n \"mutants\": [", m.Schema, m.Profile, m.Seed, line(m.Cases))
	for i, r := range m.Mutants {
		if i > 0 {
			b.WriteByte(',')
		}
		r.Untried = m.ranges(r.Untried)
		fmt.Fprintf(&b, "\n  %s", line(r))
	}
	b.WriteString("\n ]\n}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// killers are, for each case, the mutants that it kills.
func (m *Matrix) killers() map[string][]string {
	by := map[string][]string{}
	for _, r := range m.Mutants {
		for _, id := range r.Kills {
			by[id] = append(by[id], r.Name)
		}
	}
	return by
}

// idle are the rows that must kill and kill none.
func (m *Matrix) idle(items []conformance.Item) []string {
	by := m.killers()
	var idle []string
	for _, i := range items {
		if id := i.Entry.ID; mustKill(i.Entry) && len(by[id]) == 0 {
			idle = append(idle, id)
		}
	}
	return idle
}

// drawn says whether a pair is one of every n, always the same ones, whatever other mutants and
// cases there are.
func drawn(name, id string, n int) bool {
	h := fnv.New32a()
	io.WriteString(h, name+" "+id) // a hash has no error
	sum := h.Sum32()
	return (sum^sum>>16)%uint32(n) == 0
}

// sample is a fixed part of the kills of the matrix: one of so many, of cases that take long or run
// elsewhere one in ten times so many, and for each case of strength E or S one that it is known to
// kill. A pair of which the matrix says no kill proves nothing, and does not run.
type sample struct {
	every  int
	known  *Matrix
	rows   *rows
	proofs map[string]string // case: the mutant on which it must fail
}

func newSample(every int, known *Matrix, rows *rows, items []conformance.Item, mutants []mutant.Mutant) *sample {
	s := &sample{every: every, known: known, rows: rows, proofs: map[string]string{}}
	by := known.killers()
	for _, i := range items {
		if id := i.Entry.ID; mustKill(i.Entry) {
			s.proofs[id] = proof(id, by[id], mutants)
		}
	}
	return s
}

// proof is the mutant on which a case shows that it notices something: one that names it under
// Killers, or else the one which the fewest cases kill. It is of the mutants that run.
func proof(id string, killed []string, mutants []mutant.Mutant) string {
	best := ""
	for _, m := range mutants {
		if !slices.Contains(killed, m.Name) {
			continue
		}
		if slices.Contains(m.Killers, id) {
			return m.Name
		}
		best = cmp.Or(best, m.Name)
	}
	return best
}

// has says whether the pair is in the sample.
func (s *sample) has(m mutant.Mutant, id string) bool {
	if !s.known.kills(m.Name, id) {
		return false
	}
	n := s.every
	if s.rows.seldom(id) {
		n *= 10
	}
	return s.proofs[id] == m.Name || drawn(m.Name, id, n)
}

// judge lists the pairs of the sample of which the committed matrix says that the case kills, and
// which it does not.
func (s *sample) judge(ran map[string]*fate) []string {
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(ran)) {
		f := ran[name]
		for _, id := range slices.Sorted(maps.Keys(f.tried)) {
			if s.known.kills(name, id) && !slices.Contains(f.kills, id) {
				findings = append(findings, fmt.Sprintf("%s does not kill %s any more: look at what the case asserts; if it is right, "+
					"conform mutants --matrix --filter %s --label-filter %s --update fixtures/%s", id, name, name, id, matrixFile))
			}
		}
	}
	return findings
}
