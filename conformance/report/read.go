package report

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// maxRecord bounds a record that is read: the whole catalogue needs about 1 MB.
const maxRecord = 64 << 20

// ReadFile reads the record of a run that WriteJSON of this version or an older one wrote, packed
// by gzip or not. A wait for a FIFO ends with ctx.
func ReadFile(ctx context.Context, name string) (*Run, error) {
	f, err := input.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(name, f)
}

// Read reads a record, packed or not, of a name for messages.
func Read(name string, f io.Reader) (*Run, error) {
	in, err := unpacked(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRecord+1))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = input.ErrCut
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxRecord {
		return nil, fmt.Errorf("%s: longer than %d bytes, which no record is", name, maxRecord)
	}
	r := &Run{}
	if err := input.JSON(text, r); err != nil { // 64-bit values of observations are equal to those that came from a worker
		return nil, fmt.Errorf("%s is not the record of a run: %w", name, err)
	}
	if err := r.upgrade(); err != nil {
		return nil, fmt.Errorf("%s has %w", name, err)
	}
	first := map[string]int{}
	for i, c := range r.Cases {
		if c.ID == "" {
			return nil, fmt.Errorf("%s: case %d has no id", name, i+1)
		}
		if !c.Outcome.Known() {
			return nil, fmt.Errorf("%s: case %d, %q, has the outcome %q, which is not one of %v", name, i+1, c.ID, c.Outcome, outcomes)
		}
		if at, twice := first[c.ID]; twice {
			return nil, fmt.Errorf("%s: %s appears twice, as case %d and as case %d; remove one, or run it again", name, c.ID, at+1, i+1)
		}
		first[c.ID] = i
	}
	return r, nil
}

// unpacked is the content of a file, decompressed if its first bytes are those of gzip,
// whatever its name is.
func unpacked(f io.Reader) (io.Reader, error) {
	in := bufio.NewReader(f)
	if magic, err := in.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return in, nil
	}
	return gzip.NewReader(in)
}
