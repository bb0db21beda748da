package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// File is a report that is being written. It is created before the run, so that a path that
// cannot be written is known at once, and put in place as a whole when the run has ended.
type File struct {
	path string
	tmp  *os.File
	// direct: the path is not a regular file (a pipe, /dev/stdout) and is written as it is.
	direct bool
}

// Create prepares a report at path.
func Create(path string) (*File, error) {
	if st, err := os.Stat(path); err == nil {
		if st.IsDir() {
			return nil, fmt.Errorf("%s cannot be written: it is a directory", path)
		}
		if !st.Mode().IsRegular() {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return nil, fmt.Errorf("report: %w", err)
			}
			return &File{path: path, tmp: f, direct: true}, nil
		}
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		var at *os.PathError // whose path is the name of the temporary file
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return &File{path: path, tmp: tmp}, nil
}

// Write adds to the report before Commit, for content that is too large to keep in memory.
func (f *File) Write(p []byte) (int, error) { return f.tmp.Write(p) }

// Commit writes the report with fill, behind what Write wrote, makes it durable and puts it in place.
func (f *File) Commit(fill func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			f.Abort()
			err = fmt.Errorf("report %s: %w", f.path, err)
		}
	}()
	if err := fill(f.tmp); err != nil {
		return err
	}
	if f.direct {
		return f.tmp.Close()
	}
	if err := f.tmp.Chmod(0o644); err != nil {
		return err
	}
	if err := f.tmp.Sync(); err != nil {
		return err
	}
	if err := f.tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.tmp.Name(), f.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

// Abort discards the report and leaves the file at its path as it was.
func (f *File) Abort() {
	_ = f.tmp.Close()
	if !f.direct {
		_ = os.Remove(f.tmp.Name())
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
