package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Journal keeps the cases of a run beside its report until that is written. Its methods do nothing for nil: a
// run without a report that is a file.
type Journal struct {
	*report.Journal
	path   string
	failed bool
}

// OpenJournal makes the journal of a report. A case on hardware may have taken minutes, and the card may not
// do it again: each is made durable. Those of the simulator can be run again, and are made durable once a second.
func OpenJournal(ctx context.Context, of string, hardware bool) (*Journal, error) {
	path, sync := of+report.JournalSuffix, time.Second
	if hardware {
		sync = 0
	}
	j, err := report.OpenJournal(ctx, path, sync)
	if errors.Is(err, outfile.ErrLocked) {
		return nil, fmt.Errorf("another run writes %s and its journal %s: wait for its end, or give --report another name", of, path)
	}
	if err != nil {
		return nil, err
	}
	return &Journal{Journal: j, path: path}, nil
}

// Begin writes the record of the run, whose cases have not run yet. It returns an error once: the run may go on without
// a journal, because its report may still be written.
func (j *Journal) Begin(run *report.Run) error {
	if j == nil {
		return nil
	}
	return j.first(j.Journal.Begin(run))
}

// Add writes a case that has finished. It returns an error once, as Begin does.
func (j *Journal) Add(c report.Case) error {
	if j == nil {
		return nil
	}
	return j.first(j.Journal.Add(c))
}

func (j *Journal) first(err error) error {
	if err == nil || j.failed {
		return nil
	}
	j.failed = true
	return err
}

// Failed reports whether a case is missing in the journal.
func (j *Journal) Failed() bool { return j != nil && j.failed }

// Remove ends a journal whose report is in place.
func (j *Journal) Remove() error {
	if j == nil {
		return nil
	}
	return j.Journal.Remove()
}

// Drop ends a journal that nobody needs.
func (j *Journal) Drop() {
	if j != nil && j.Remove() == nil {
		j.Journal = nil
	}
}

// Leave ends a journal without a report. It stays if it has cases.
func (j *Journal) Leave() {
	switch {
	case j == nil || j.Journal == nil:
	case j.Cases() > 0:
		j.Close()
	default:
		j.Drop()
	}
}

// Path returns the path of the journal.
func (j *Journal) Path() string { return j.path }

// Where says where the cases of a run without a report are; empty: they are nowhere, or in the report.
func (j *Journal) Where() string {
	if j == nil || j.Journal == nil || j.Cases() == 0 {
		return ""
	}
	if _, gone := os.Stat(j.path); gone != nil { // the report is written
		return ""
	}
	what := "its cases are"
	if j.failed {
		what = fmt.Sprintf("only %s of the run, those before the journal failed, are", plain.Count(j.Cases(), "case"))
	}
	return what + " in " + j.path
}

// Recovery is a journal that Recover has read. Nobody else writes it until it is closed.
type Recovery struct {
	report.Recovered
	log *outfile.Log
}

// Recover reads the journal of a run that was killed, to write its record to the file into. The error says that the run
// still goes on, that the journal has no case or is damaged, or that into is not the record of an interrupted run.
func Recover(ctx context.Context, path, into string) (*Recovery, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	log, err := outfile.OpenLog(ctx, path)
	if errors.Is(err, outfile.ErrLocked) {
		return nil, fmt.Errorf("the run that writes %s has not ended", path)
	}
	if err != nil {
		return nil, err
	}
	back, err := report.ReadJournal(path, log.Reader())
	if err == nil {
		err = replaceable(ctx, into)
	}
	if err != nil {
		log.Close()
		return nil, err
	}
	return &Recovery{back, log}, nil
}

// Close leaves the journal at its path.
func (r *Recovery) Close() { r.log.Close() }

// Remove removes the journal, whose record is written.
func (r *Recovery) Remove() error { return r.log.Remove() }

// replaceable refuses a file that is anything but an incomplete record.
func replaceable(ctx context.Context, path string) error {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil // nothing is there that could be lost; who creates it says what is wrong
	}
	if old, err := report.ReadFile(ctx, path); err != nil || !old.Incomplete {
		return fmt.Errorf("%s exists, and is not the record of an interrupted run: give the recovered record another name with --report FILE.json", path)
	}
	return nil
}
