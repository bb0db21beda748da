package store

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Entry is a result in a store.
type Entry struct {
	Path  string
	Model string // version that made it
	Size  int64
	Time  time.Time
}

// Read is its text.
func (e *Entry) Read() ([]byte, error) {
	return read(e.Path, filepath.Base(filepath.Dir(e.Path))+strings.TrimSuffix(filepath.Base(e.Path), ".json"), true)
}

// Of reports whether the result is of a version of the model: its folder says so, whatever became
// of the file in it.
func (e *Entry) Of(model string) bool {
	return filepath.Base(filepath.Dir(filepath.Dir(e.Path))) == folderOf(model)
}

// Entries are the results in a folder, of all versions of the model, by their path.
func Entries(dir string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		models := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // another process removed it
			}
			if err != nil {
				return err
			}
			if d.IsDir() || !strings.HasSuffix(path, ".json") || strings.Count(strings.TrimPrefix(path, dir), string(filepath.Separator)) != 3 {
				return nil
			}
			st, err := d.Info()
			if err != nil {
				return nil // as above
			}
			folder := filepath.Dir(filepath.Dir(path))
			if _, known := models[folder]; !known {
				text, _ := readFile(filepath.Join(folder, modelFile)) // without it, nobody knows the version
				models[folder] = strings.TrimSpace(string(text))
			}
			if !yield(Entry{path, models[folder], st.Size(), st.ModTime()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// Collect removes results that drop says so of, what killed processes left, and folders that are
// empty then.
func Collect(dir string, drop func(*Entry) bool) (n int, bytes int64, err error) {
	for e, err := range Entries(dir) {
		if err != nil {
			return n, bytes, err
		}
		if !drop(&e) {
			continue
		}
		if err := os.Remove(e.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, bytes, err
		}
		n++
		bytes += e.Size
	}
	return n, bytes, tidy(dir)
}

// Jobs is the folder of what jobs on a cluster need and leave: of each a folder.
const Jobs = "jobs"

// CollectJobs removes the folders of jobs in which nothing has changed for so long, and says how
// many.
func CollectJobs(dir string, unchanged time.Duration) (n int, err error) {
	folders, err := os.ReadDir(filepath.Join(dir, Jobs))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, f := range folders {
		path := filepath.Join(dir, Jobs, f.Name())
		if time.Since(newest(path)) < unchanged {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return n, err
		}
		n++
	}
	_ = os.Remove(filepath.Join(dir, Jobs)) // unless something is in it
	return n, err
}

// newest is when something in a folder was changed last.
func newest(dir string) (t time.Time) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if st, err := d.Info(); err == nil && st.ModTime().After(t) {
			t = st.ModTime()
		}
		return nil
	})
	return t
}

// abandonedAfter is how old a file is that a process writes and has not put in place: that takes it
// milliseconds.
const abandonedAfter = time.Hour

func tidy(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() && path != dir {
			folders = append(folders, path)
		}
		if st, err := d.Info(); err == nil && strings.HasPrefix(d.Name(), temporary) && time.Since(st.ModTime()) > abandonedAfter {
			_ = os.Remove(path)
		}
		return nil
	})
	for i := len(folders) - 1; i >= 0; i-- { // those within others come behind them
		if entries, err := os.ReadDir(folders[i]); err == nil && len(entries) == 1 && entries[0].Name() == modelFile {
			_ = os.Remove(filepath.Join(folders[i], modelFile))
		}
		_ = os.Remove(folders[i]) // unless something is in it
	}
	return err
}
