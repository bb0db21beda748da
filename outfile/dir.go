package outfile

import (
	"os"
	"path/filepath"
	"regexp"
)

// Dir is a temporary folder. It is locked as long as the process that made it lives.
type Dir struct {
	Path string
	lock *os.File
}

// TempDir makes a folder in the system's temporary folder; its name is prefix, "-" and a number. Folders with
// this prefix that killed processes of this user left are removed first.
func TempDir(prefix string) (*Dir, error) {
	sweepDirs(prefix)
	for {
		path, err := os.MkdirTemp("", prefix+"-*")
		if err != nil {
			return nil, err
		}
		f, err := os.Open(path)
		if err != nil {
			_ = os.Remove(path)
			return nil, err
		}
		if lock(f) {
			return &Dir{path, f}, nil
		}
		_ = f.Close()
	}
}

func sweepDirs(prefix string) {
	ours := regexp.MustCompile("^" + regexp.QuoteMeta(prefix) + "-[0-9]+$")
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return // what cannot be read has nothing that we could remove
	}
	for _, e := range entries {
		if path := filepath.Join(os.TempDir(), e.Name()); ours.MatchString(e.Name()) && e.IsDir() && abandoned(path) {
			_ = os.RemoveAll(path)
		}
	}
}

// Remove removes the folder with what is in it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.Path)
	_ = d.lock.Close()
	return err
}

// RemoveOrphan removes a folder of TempDir if the process that made it has ended. Other processes that do
// so too, or still write to the folder, may slow it down.
func RemoveOrphan(path string) {
	for range 100 {
		if !abandoned(path) { // or it is gone
			return
		}
		if os.RemoveAll(path) == nil {
			return
		}
	}
}
