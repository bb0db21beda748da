package outfile

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// File is an output that is being written. It is created before the run, so that a path that
// cannot be written is known at once, and put in place as a whole when the run has ended.
type File struct {
	path  string // as the caller named it
	place string // path behind its links; empty: f is not a regular file (a pipe, /dev/stdout) and is written as it is
	name  string // temporary name; empty: f has none
	f     *os.File
	ctx   context.Context // ends the writes to a pipe
	stop  func() bool
	fail  Fail
	lost  error // that of the first Write that failed
}

const (
	// patience is how long the reader of a pipe may take for the next piece when the context has
	// ended.
	patience = time.Second
	// piece is what is written to a pipe in one call: its size by default (pipe(7)).
	piece = 64 << 10
)

// errReaderStopped is the end of a write to a pipe that nobody reads any more.
var errReaderStopped = errors.New("its reader has stopped reading, and the run was interrupted")

// Create prepares an output at path. While it waits for the reader of a named pipe, the end of ctx
// ends it.
func Create(ctx context.Context, path string) (*File, error) {
	if path == Standard {
		return nil, fmt.Errorf("%s: %w", path, ErrStandard)
	}
	f := &File{path: path, place: path, ctx: ctx, fail: failOf(ctx), stop: func() bool { return true }}
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() == fs.ModeSymlink { // also one to what is not there yet
		f.place = resolved(path)
	} else if place, err := filepath.EvalSymlinks(path); err == nil {
		f.place = place
	}
	err := f.call(OpOpen, f.open)
	if err != nil && !errors.Is(err, ErrInterrupted) {
		err = fmt.Errorf("%s cannot be written: %w", path, err)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	if n, ok := descriptor(f.path); ok {
		return f.openDescriptor(n)
	}
	st, err := os.Stat(f.path)
	switch {
	case err == nil && st.IsDir():
		return errors.New("it is a directory")
	case err == nil && !st.Mode().IsRegular():
		return f.openDirect(f.path)
	case errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELOOP): // a file without a name would take it until it gets one
		return cause(err)
	}
	return f.openTemporary()
}

var descriptors = regexp.MustCompile(`^(?:/dev/fd|/proc/self/fd)/([0-9]+)$`)

// descriptor is the number of an open file of this process that a path names.
func descriptor(path string) (int, bool) {
	switch path = filepath.Clean(path); path {
	case StandardPath:
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	m := descriptors.FindStringSubmatch(path)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// openDescriptor writes to a file that is open. A pipe is opened again, since a change of its mode
// would be one for all processes that have it.
func (f *File) openDescriptor(n int) error {
	path := fmt.Sprintf("/proc/self/fd/%d", n)
	if st, err := os.Stat(path); err == nil && st.Mode().Type() == fs.ModeNamedPipe {
		return f.openDirect(path)
	}
	fd, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3) //nolint:gosec // the number of a descriptor
	if err != nil {
		return err
	}
	f.f, f.place = os.NewFile(uintptr(fd), f.path), "" //nolint:gosec // the same
	return nil
}

// openDirect opens what is no regular file. That of a pipe waits for its reader.
func (f *File) openDirect(path string) (err error) {
	f.place = ""
	for {
		f.f, err = os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if !errors.Is(err, unix.ENXIO) {
			break
		}
		if st, serr := os.Stat(path); serr != nil || st.Mode().Type() != fs.ModeNamedPipe {
			break
		}
		select { // the kernel tells nobody that a reader has come, except who waits in open
		case <-f.ctx.Done():
			return fmt.Errorf("%w while %s was opened: it is a pipe, and nobody reads it", ErrInterrupted, f.path)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err == nil {
		f.stop = context.AfterFunc(f.ctx, f.limitWrite)
	}
	return err
}

// limitWrite ends a write that makes no progress after a while.
func (f *File) limitWrite() { _ = f.f.SetWriteDeadline(time.Now().Add(patience)) } // an error: it never blocks

// openTemporary makes the file that Commit puts in place: without a name where the file system
// allows it.
func (f *File) openTemporary() error {
	f.sweep()
	dir := filepath.Dir(f.place)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err == nil {
		f.f = os.NewFile(uintptr(fd), f.path)         //nolint:gosec // the number of a descriptor
		if _, err := os.Lstat(f.proc()); err == nil { // /proc is there, which gives it a name
			lock(f.f)
			return nil
		}
		_ = f.f.Close()
		return f.openNamed()
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return f.openNamed()
}

// openNamed makes the temporary file under a name, for file systems that need one.
func (f *File) openNamed() error {
	for {
		name := f.temporary()
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		if lock(file) {
			f.f, f.name = file, name
			return nil
		}
		_ = file.Close()
	}
}

// suffix ends the names of temporary files.
const suffix = ".part"

// temporary is a new name for the file until it is in place.
func (f *File) temporary() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return filepath.Join(filepath.Dir(f.place), fmt.Sprintf("%s%x%s", f.prefix(), b, suffix))
}

// mostBase is as much of the output's name as a temporary one has, so that it is no longer than a
// name may be (255 bytes).
const mostBase = 200

// prefix begins the temporary names of the file.
func (f *File) prefix() string {
	base := filepath.Base(f.place)
	return "." + base[:min(len(base), mostBase)] + "."
}

// sweep removes the temporary files of this output that killed programs left.
func (f *File) sweep() {
	dir := filepath.Dir(f.place)
	random := regexp.MustCompile(`^[0-9a-f]{16}$`)
	ours := func(name string) bool { // the name need not be UTF-8
		rest, mine := strings.CutPrefix(name, f.prefix())
		rest, part := strings.CutSuffix(rest, suffix)
		return mine && part && random.MatchString(rest)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // what cannot be read has nothing that we could remove
	}
	for _, e := range entries {
		if name := filepath.Join(dir, e.Name()); ours(e.Name()) && e.Type().IsRegular() && abandoned(name) {
			_ = os.Remove(name)
		}
	}
}

// Check reports whether an output can be prepared at path, without a trace of it. The reader of a
// named pipe does not notice.
func Check(ctx context.Context, path string) error {
	if path == Standard {
		return fmt.Errorf("%s: %w", path, ErrStandard)
	}
	if !filepath.IsAbs(path) {
		if err := CheckFolder(); err != nil {
			return fmt.Errorf("%s cannot be written: %w", path, err)
		}
	}
	if st, err := os.Stat(path); err == nil && !st.IsDir() && !st.Mode().IsRegular() {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return fmt.Errorf("%s cannot be written: %w", path, err)
		}
		return nil
	}
	f, err := Create(ctx, path)
	if err == nil {
		f.Abort()
	}
	return err
}

// Regular reports whether the output is a regular file.
func (f *File) Regular() bool { return f.place != "" }

// Path is the output's path, behind links if it is a regular file.
func (f *File) Path() string { return cmp.Or(f.place, f.path) }

// Write adds to the output before Commit, for content that is too large to keep in memory.
// After an error Commit fails too, whether or not its caller has looked.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.write(p)
	f.lost = cmp.Or(f.lost, err)
	return n, err
}

func (f *File) write(p []byte) (int, error) {
	if err := f.fail(OpWrite, f.path); err != nil {
		n, _ := f.f.Write(p[:len(p)/2])
		return n, err
	}
	done := 0
	for first := true; first || done < len(p); first = false {
		end := len(p)
		if f.place == "" {
			end = min(end, done+piece)
			if f.ctx.Err() != nil {
				f.limitWrite()
			}
		}
		n, err := f.f.Write(p[done:end])
		done += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return done, errReaderStopped
		}
		if err != nil {
			return done, cause(err)
		}
	}
	return done, nil
}

// Commit writes the output with fill, behind what Write wrote, makes it durable and puts it in
// place.
func (f *File) Commit(fill func(io.Writer) error) error {
	err := fill(f)
	err = cmp.Or(err, f.lost) // part of it is missing
	if err == nil {
		err = f.finish()
	}
	if err != nil {
		f.Abort()
		return fmt.Errorf("%s cannot be written: %w", f.path, err)
	}
	return nil
}

func (f *File) finish() error {
	if f.place == "" {
		return f.close()
	}
	if err := f.call(OpSync, f.f.Sync); err != nil {
		return err
	}
	if f.name == "" {
		if err := f.call(OpLink, f.link); err != nil {
			return err
		}
	}
	if err := f.call(OpRename, func() error { return os.Rename(f.name, f.place) }); err != nil {
		return err
	}
	f.name = ""
	if err := f.close(); err != nil {
		return err
	}
	return f.call(OpSyncDir, func() error { return syncDir(filepath.Dir(f.place)) })
}

// call makes a call to the file system, unless a test lets it fail.
func (f *File) call(op Operation, do func() error) error { return f.fail.call(op, f.path, do) }

// proc is the path of the open file itself.
func (f *File) proc() string { return fmt.Sprintf("/proc/self/fd/%d", f.f.Fd()) }

// link names a file that has no name.
func (f *File) link() error {
	name := f.temporary()
	err := unix.Linkat(unix.AT_FDCWD, f.proc(), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	if err == nil {
		f.name = name
	}
	return err
}

func (f *File) close() error {
	f.stop()
	return f.call(OpClose, f.f.Close)
}

// Abort discards the output and leaves the file at its path as it was.
func (f *File) Abort() {
	f.stop()
	if f.name != "" {
		_ = os.Remove(f.name)
		f.name = ""
	}
	_ = f.f.Close()
}
