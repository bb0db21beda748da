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

// Journal keeps the finished cases of a run in a file beside its report until the report is
// written. The methods declared here, but for Path, do nothing on a nil *Journal, which stands for
// a run whose report is not a file.
type Journal struct {
	*report.Journal
	path   string
	failed bool
}

// OpenJournal creates the journal of the report file of. On hardware each case is made durable
// (fsync), because it may have taken minutes, and the card may not repeat it; on the simulator that
// happens once a second. The error says if another run writes the same report.
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

// Begin writes the record of the run before its cases. Only the first error of the journal is
// returned: the run may go on without it, because its report may still be written.
func (j *Journal) Begin(run *report.Run) error {
	if j == nil {
		return nil
	}
	return j.first(j.Journal.Begin(run))
}

// Add writes a finished case. Only the first error of the journal is returned, as by Begin.
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

// Failed reports whether writing has failed, so that cases are missing in the journal.
func (j *Journal) Failed() bool { return j != nil && j.failed }

// Remove ends and removes a journal whose report is in place.
func (j *Journal) Remove() error {
	if j == nil {
		return nil
	}
	return j.Journal.Remove()
}

// Drop ends and removes a journal that is not needed.
func (j *Journal) Drop() {
	if j != nil && j.Remove() == nil {
		j.Journal = nil
	}
}

// Leave ends a journal without a report: the file stays if it has cases.
func (j *Journal) Leave() {
	switch {
	case j == nil || j.Journal == nil:
	case j.Cases() > 0:
		j.Close()
	default:
		j.Drop()
	}
}

// Path returns the file name of the journal.
func (j *Journal) Path() string { return j.path }

// Where returns a clause that says which file has the cases of a run without a report, or "" if
// none has, or the report has them.
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

// Recovery is a journal that Recover has read. It is locked until Close or Remove.
type Recovery struct {
	report.Recovered
	log *outfile.Log
}

// Recover reads the journal at path, of a run that was killed, to write its record to the file
// into. The error says that the run still goes on, that the journal has no case or is damaged, or
// that into exists and is not the record of an interrupted run.
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

// Close releases the journal and leaves it in place.
func (r *Recovery) Close() { r.log.Close() }

// Remove removes the journal, after its record was written.
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
