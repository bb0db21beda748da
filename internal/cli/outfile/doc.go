// Package outfile writes the files that commands leave behind. A file is put in place as a whole
// when it is complete and durable, or not at all; a log grows by whole lines. What a killed program
// leaves has no name where the file system allows it, and otherwise the next program removes it:
// each temporary file and folder is locked by the process that uses it, and the kernel releases the
// lock when that process ends. Opening a named pipe and writing to it end soon after the context
// does.
package outfile

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrInterrupted is wrapped by the error of Create when the context ended while it waited for the
// reader of a pipe.
var ErrInterrupted = errors.New("interrupted")

// Operation is a kind of call to the file system that may fail.
type Operation string

// The operations.
const (
	OpOpen    Operation = "open"
	OpWrite   Operation = "write"
	OpSync    Operation = "sync"
	OpLink    Operation = "link"
	OpRename  Operation = "rename"
	OpClose   Operation = "close"
	OpSyncDir Operation = "sync of the folder"
	OpRemove  Operation = "remove"
)

// failKey finds a Fail in a context.
type failKey struct{}

// Fail is asked before each operation on an output. Its error takes the operation's place; a write
// that fails has written half of its bytes.
type Fail func(op Operation, path string) error

// WithFail makes operations fail, for tests of what commands do then.
func WithFail(ctx context.Context, f Fail) context.Context {
	return context.WithValue(ctx, failKey{}, f)
}

func failOf(ctx context.Context) Fail {
	if f, ok := ctx.Value(failKey{}).(Fail); ok {
		return f
	}
	return func(Operation, string) error { return nil }
}

// call makes a call, unless it is to fail.
func (f Fail) call(op Operation, path string, do func() error) error {
	if err := f(op, path); err != nil {
		if op == OpClose {
			_ = do() // a close that fails has closed the file
		}
		return err
	}
	return cause(do())
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// cause is the error without the path that the os package put before it: it may be that of a
// temporary file.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// lock locks a file or folder that this process uses, and reports whether it is still there:
// whoever removes what killed programs left may have found it before the lock.
func lock(f *os.File) bool {
	// A file system without locks has nobody who removes what is locked by nobody.
	_ = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink > 0
}

// abandoned reports whether no process has locked what the path names. The file must be this
// user's, and no link.
func abandoned(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid() {
		return false
	}
	return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == nil
}
