package outfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Log is a file that grows by whole lines, for what must not be lost when the program is killed or
// the machine loses power. It is locked as long as the process that opened it lives.
type Log struct {
	path   string
	f      *os.File
	fail   Fail
	broken bool // the last line may be torn
}

// ErrLocked says that a living process has opened the log.
var ErrLocked = errors.New("another process writes it")

// OpenLog opens the log at path to add to it, and creates it if it is not there.
func OpenLog(ctx context.Context, path string) (*Log, error) {
	l := &Log{path: path, fail: failOf(ctx)}
	if err := l.call(OpOpen, l.open); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	for {
		f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		err = unix.Fstat(int(f.Fd()), &st)
		switch {
		case err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG:
			err = errors.New("it is not a regular file")
		case errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK):
			err = ErrLocked
		}
		if err != nil {
			_ = f.Close()
			return err
		}
		// Who had it may have removed it before the lock.
		if unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink > 0 {
			l.f = f
			return nil
		}
		_ = f.Close()
	}
}

// call makes a call to the file system, unless a test lets it fail, and names the log in its error.
func (l *Log) call(op Operation, do func() error) error {
	if err := l.fail.call(op, l.path, do); err != nil {
		return fmt.Errorf("%s cannot be written: %w", l.path, err)
	}
	return nil
}

// Reader reads the log from its beginning.
func (l *Log) Reader() io.Reader { return io.NewSectionReader(l.f, 0, 1<<62) }

// Reset empties the log.
func (l *Log) Reset() error { return l.call(OpWrite, func() error { return l.f.Truncate(0) }) }

// Append adds a line, which ends with a newline and has no other. It outlives this process at once,
// and if durable is set a loss of power too. After an error the log takes no more lines.
func (l *Log) Append(line []byte, durable bool) error {
	if l.broken {
		return nil // the first error said it
	}
	err := l.call(OpWrite, func() error { return nil })
	if err != nil {
		_ = l.atEnd(line[:len(line)/2]) // as a disk without room does
	} else if werr := l.atEnd(line); werr != nil {
		err = fmt.Errorf("%s cannot be written: %w", l.path, cause(werr))
	}
	if err == nil && durable {
		err = l.call(OpSync, l.f.Sync)
	}
	l.broken = err != nil
	return err
}

// atEnd writes behind what the file has. It names the place, where O_APPEND would leave it to the
// file system: a guest that caches the writes of a folder of its host (9p of Linux 6.12) sends
// whole pages, and a host that appends them has their beginnings twice.
func (l *Log) atEnd(text []byte) error {
	st, err := l.f.Stat()
	if err != nil {
		return err
	}
	_, err = l.f.WriteAt(text, st.Size())
	return err
}

// SyncName makes the name of the log durable.
func (l *Log) SyncName() error {
	return l.call(OpSyncDir, func() error { return syncDir(filepath.Dir(l.path)) })
}

// Close closes the log and leaves it at its path.
func (l *Log) Close() { _ = l.f.Close() } // Append has reported what could not be written

// Remove removes the log.
func (l *Log) Remove() error {
	err := l.call(OpRemove, func() error { return os.Remove(l.path) })
	l.Close()
	return err
}
