package input

import (
	"context"
	"errors"
	"os"
	"time"
)

// File is a file that is read for no longer than a context lasts.
type File struct {
	f    *os.File
	ctx  context.Context
	stop func() bool
}

// Open opens a file to read it. Where the name is a FIFO that nobody writes to, Open waits, and
// Read does, until ctx ends; the error is then context.Canceled or another cause.
func Open(ctx context.Context, name string) (*File, error) {
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() { // there is nothing to wait for
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		return &File{f, ctx, func() bool { return true }}, nil
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(name)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		// What knows no deadline is not waited for.
		stop := context.AfterFunc(ctx, func() { _ = o.f.SetReadDeadline(time.Unix(1, 0)) })
		return &File{o.f, ctx, stop}, nil
	case <-ctx.Done():
		return nil, &os.PathError{Op: "open", Path: name, Err: context.Cause(ctx)}
	}
}

// Read reads as os.File does.
func (f *File) Read(p []byte) (int, error) {
	n, err := f.f.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &os.PathError{Op: "read", Path: f.f.Name(), Err: context.Cause(f.ctx)}
	}
	return n, err
}

// Close closes the file.
func (f *File) Close() error {
	f.stop()
	return f.f.Close()
}
