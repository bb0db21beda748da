package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// JournalSchema names the format of a journal.
const JournalSchema = "rdmasim/conform-journal/1"

// JournalSuffix is what the name of a journal adds to that of the report.
const JournalSuffix = ".journal"

// Journal holds what a run has so far, so that a run that is killed is not lost. Its first line is
// the record of a run without a finished case, and each other line a case that has finished.
type Journal struct {
	log    *outfile.Log
	sync   time.Duration // the most time between two cases that are made durable; 0: each is
	synced time.Time
	cases  int
	broken bool // a line could not be written, and none after it
}

// UnrecoveredError says that a journal has cases of a run that did not end.
type UnrecoveredError struct {
	Path  string
	Cases int
}

// Error returns the message.
func (e *UnrecoveredError) Error() string {
	return fmt.Sprintf("%s has %s of a run that was killed: conform recover %s makes a record of them, or remove the file", e.Path, plain.Count(e.Cases, "case"), e.Path)
}

// OpenJournal makes the journal at path. A journal of another run that has cases is left alone; the
// error is then an UnrecoveredError, or wraps outfile.ErrLocked if that run still goes on.
func OpenJournal(ctx context.Context, path string, sync time.Duration) (*Journal, error) {
	log, err := outfile.OpenLog(ctx, path)
	if err != nil {
		return nil, err
	}
	n, err := journalLines(log.Reader())
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case n > 1:
		err = &UnrecoveredError{path, n - 1}
	default:
		err = log.Reset()
	}
	if err != nil {
		log.Close()
		return nil, err
	}
	return &Journal{log: log, sync: sync}, nil
}

// errNoJournal says that a file is none of ours, so that nothing is known about what it is worth.
var errNoJournal = errors.New("it does not begin as a journal does: move it elsewhere if you need it, or remove it")

// journalLines counts the lines of a journal. Of a file that does not begin as one it returns
// errNoJournal.
func journalLines(in io.Reader) (n int, err error) {
	lines := bufio.NewReader(io.LimitReader(in, maxRecord))
	for err == nil {
		var text []byte
		text, err = lines.ReadBytes('\n')
		if n == 0 && !beginsJournal(text) {
			return 0, errNoJournal
		}
		if len(text) > 0 {
			n++
		}
	}
	return n, nil
}

// beginsJournal reports whether a text is the beginning of a journal, or what a kill has left of
// it.
func beginsJournal(text []byte) bool {
	head := fmt.Appendf(nil, "{\"schema\":%q", JournalSchema)
	text = bytes.TrimRight(text, "\x00") // a loss of power leaves zeros
	most := min(len(head), len(text))
	return bytes.Equal(text[:most], head[:most])
}

// Begin writes the record of the run, whose cases have not run yet.
func (j *Journal) Begin(run *Run) error {
	if err := j.append("run", run, true); err != nil {
		j.broken = true
		return err
	}
	return j.log.SyncName()
}

// Add writes a case that has finished. After an error the journal takes no more.
func (j *Journal) Add(c Case) error {
	durable := time.Since(j.synced) >= j.sync
	if durable {
		j.synced = time.Now()
	}
	err := j.append("case", c, durable)
	if j.broken = j.broken || err != nil; !j.broken {
		j.cases++
	}
	return err
}

// append writes a line: what it has, and a sum over it.
func (j *Journal) append(key string, value any, durable bool) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return j.log.Append(fmt.Appendf(nil, "{\"schema\":%q,\"sum\":\"%08x\",%q:%s}\n", JournalSchema, crc32.ChecksumIEEE(text), key, text), durable)
}

// Cases returns how many cases the journal has.
func (j *Journal) Cases() int { return j.cases }

// Close leaves the journal at its path.
func (j *Journal) Close() { j.log.Close() }

// Remove removes the journal.
func (j *Journal) Remove() error { return j.log.Remove() }

// Recovered is what the journal of a run had.
type Recovered struct {
	Run      *Run   // marked as incomplete
	Finished int    // how many of its cases have finished
	Torn     string // says that the last line was written in part and is left out; empty: it was not
}

// ReadJournal makes the record of a run from the text of its journal. Damage other than a torn last
// line is an error with name and line.
func ReadJournal(name string, in io.Reader) (Recovered, error) {
	r := &recovery{rows: map[string]int{}, finished: map[string]int{}}
	lines := bufio.NewReader(io.LimitReader(in, maxRecord+1))
	size := 0
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF && n == 1 && !beginsJournal(text) {
			return Recovered{}, fmt.Errorf("%s:1: %w", name, errNoJournal)
		}
		if err == io.EOF && size+len(text) > maxRecord {
			err = nil
		}
		if err == io.EOF && len(text) > 0 {
			r.torn = fmt.Sprintf("%s:%d: the last line is not whole, and is left out", name, n)
		}
		if err == io.EOF {
			break
		}
		if size += len(text); err == nil && size > maxRecord {
			err = fmt.Errorf("longer than %d bytes, which no journal is", maxRecord)
		}
		if err != nil {
			return Recovered{}, fmt.Errorf("%s: %w", name, err)
		}
		if err := r.add(n, text); err != nil {
			return Recovered{}, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if len(r.finished) == 0 {
		return Recovered{Torn: r.torn}, fmt.Errorf("%s has no finished case, so there is nothing to recover: remove the file", name)
	}
	r.run.Incomplete = true
	r.run.Count()
	return Recovered{r.run, len(r.finished), r.torn}, nil
}

// recovery is the record of a run as far as its journal was read.
type recovery struct {
	run      *Run
	rows     map[string]int // index of each case of the run
	finished map[string]int // line of each finished case
	torn     string
}

func (r *recovery) add(n int, text []byte) error {
	l, err := readLine(text)
	if err == nil && (l.run != nil) != (n == 1) {
		err = errors.New("the run belongs on the first line and nowhere else")
	}
	switch {
	case err != nil && n > 1:
		return fmt.Errorf("%w; without this line the other cases can be recovered", err)
	case err != nil:
		return err
	case n == 1:
		r.run = l.run
		for i, c := range l.run.Cases {
			r.rows[c.ID] = i
		}
		return nil
	}
	i, known := r.rows[l.c.ID]
	if !known {
		return fmt.Errorf("%s is not a case of this run", l.c.ID)
	}
	if at := r.finished[l.c.ID]; at > 0 {
		return fmt.Errorf("%s is in line %d already; remove one of the two", l.c.ID, at)
	}
	r.finished[l.c.ID] = n
	r.run.Cases[i] = l.c.as(r.run.Cases[i])
	return nil
}

// as is the case with what the record of a run has of its row in the catalogue.
func (c *Case) as(row Case) Case {
	out := *c
	out.Area, out.Text, out.Strength = row.Area, row.Text, row.Strength
	if out.Observations == nil {
		out.Observations = row.Observations
	}
	return out
}

// line is a line of a journal; one of its fields is set.
type line struct {
	run *Run
	c   *Case
}

func readLine(text []byte) (line, error) {
	var raw struct {
		Schema string          `json:"schema"`
		Sum    string          `json:"sum"`
		Run    json.RawMessage `json:"run"`
		Case   json.RawMessage `json:"case"`
	}
	if err := input.JSON(text, &raw); err != nil {
		return line{}, fmt.Errorf("it is not a line of a journal: %w", err)
	}
	if raw.Schema != JournalSchema {
		return line{}, fmt.Errorf("it has the schema %q, and this program reads %q", raw.Schema, JournalSchema)
	}
	part, into, l := raw.Case, any(nil), line{}
	if raw.Run != nil {
		l.run = &Run{}
		part, into = raw.Run, l.run
	} else {
		l.c = &Case{}
		into = l.c
	}
	if sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE(part)); raw.Sum != sum {
		return line{}, fmt.Errorf("it is damaged: its sum is %s, and %s is written", sum, raw.Sum)
	}
	if err := input.JSON(part, into); err != nil {
		return line{}, err
	}
	if l.run != nil {
		if err := l.run.upgrade(); err != nil {
			return line{}, fmt.Errorf("its run has %w", err)
		}
	}
	if l.c != nil && !l.c.Outcome.Known() {
		return line{}, fmt.Errorf("%s has the outcome %q", l.c.ID, l.c.Outcome)
	}
	return l, nil
}

// ReportOfJournal is the report whose journal is at path, and whether that follows from its name.
func ReportOfJournal(path string) (string, bool) { return strings.CutSuffix(path, JournalSuffix) }
