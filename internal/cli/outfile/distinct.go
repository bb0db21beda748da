package outfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Named is a file of a command line, by the flag that names it.
type Named struct{ Flag, Path string }

// Standard is what names standard output in place of a file, by convention; StandardPath is its
// path.
const Standard, StandardPath = "-", "/dev/stdout"

// ErrStandard is wrapped by the errors about an output that is named Standard. A command that can
// write the output there, and prints nothing else there, puts StandardPath in its place.
var ErrStandard = errors.New("this output cannot go to standard output: name a file, or write ./- for a file of that name")

// NotStandard returns an error if an output is named Standard.
func NotStandard(outputs ...Named) error {
	for _, out := range outputs {
		if out.Path == Standard {
			return fmt.Errorf("%s %s: %w", out.Flag, out.Path, ErrStandard)
		}
	}
	return nil
}

// IsStandard reports whether a path is that of standard output.
func IsStandard(path string) bool {
	n, ok := descriptor(path)
	return ok && n == 1
}

// Distinct returns an error if an output is named Standard, or if an output is the same file as
// another output or an input, whatever their names are. Empty paths do not count, nor does the null
// device as an output.
func Distinct(outputs, inputs []Named) error {
	if err := NotStandard(outputs...); err != nil {
		return err
	}
	var before []place
	for _, in := range inputs {
		before = append(before, placeOf(in))
	}
	for _, out := range outputs {
		if out.Path == "" {
			continue
		}
		p := placeOf(out)
		for i := range before {
			if other := &before[i]; out.Path != os.DevNull && other.Path != "" && p.same(other) {
				return fmt.Errorf("%s and %s are one file, %s: give each its own", other.Flag, out.Flag, out.Path)
			}
		}
		before = append(before, p)
	}
	return nil
}

// place is where a path leads. It is looked up once, for a run may have a hundred outputs.
type place struct {
	Named
	st       os.FileInfo // nil: nothing is there
	resolved string
}

func placeOf(n Named) place {
	if n.Path == "" {
		return place{Named: n}
	}
	st, err := os.Stat(n.Path)
	if err != nil {
		st = nil
	}
	return place{n, st, resolved(n.Path)}
}

// same reports whether two paths lead to one file, which need not exist yet.
func (p *place) same(other *place) bool {
	if p.st != nil && other.st != nil {
		return os.SameFile(p.st, other.st)
	}
	return p.resolved == other.resolved
}

// Within reports whether a path leads to a file of a folder, and by which name. Neither need exist
// yet. An empty path leads nowhere.
func Within(path, dir string) (name string, ok bool) {
	if path == "" || dir == "" {
		return "", false
	}
	path = resolved(path)
	in, of := placeOf(Named{Path: filepath.Dir(path)}), placeOf(Named{Path: dir})
	return filepath.Base(path), in.same(&of)
}

// mostLinks is how many links in a row Linux follows.
const mostLinks = 40

// resolved is the path without links, as far as it exists. The last link may lead to a file that
// does not.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for range mostLinks {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(dir, filepath.Base(abs))
		}
		if _, err := os.Stat(abs); errors.Is(err, unix.ELOOP) { // links in a circle lead nowhere
			break
		}
		to, err := os.Readlink(abs)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(abs), to)
		}
		abs = to
	}
	return abs
}
