package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// CheckWritable reports before a run starts that path could not be written at its
// end. A folder is made.
func CheckWritable(path string, folder bool) error {
	if folder {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return usage("output folder: %w", err)
		}
		path = filepath.Join(path, ".probe")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".rdmasim-*")
	if err != nil {
		return usage("cannot write %s: %w", path, err)
	}
	f.Close()
	return os.Remove(f.Name())
}

// WriteFile puts data at path whole or not at all: write, fsync, rename.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".rdmasim-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// WriteFolder writes the result as JSON and CSV, and its plots as SVG and PNG, to a
// folder, and returns the names of the files.
func (r *Result) WriteFolder(dir string) ([]string, error) {
	var names []string
	put := func(name string, data []byte) error {
		names = append(names, name)
		return WriteFile(filepath.Join(dir, name), data)
	}
	for _, f := range []string{"json", "csv"} {
		var b bytes.Buffer
		if err := r.Write(&b, f); err != nil {
			return names, err
		}
		if err := put(r.Name+"."+f, b.Bytes()); err != nil {
			return names, err
		}
	}
	for i := range r.Plots {
		png, svg, err := r.Plots[i].Draw(r.Rows)
		if err != nil {
			r.Note("%v", err)
			continue
		}
		if err := put(r.Plots[i].File+".png", png); err != nil {
			return names, err
		}
		if err := put(r.Plots[i].File+".svg", svg); err != nil {
			return names, err
		}
	}
	return names, nil
}
