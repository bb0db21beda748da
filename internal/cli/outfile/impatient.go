package outfile

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// impatient is a writer that does not wait for its reader for long when its context has ended.
type impatient struct {
	ctx context.Context
	w   io.Writer
	mu  sync.Mutex // one write at a time, also of those that are not waited for any more

	stopped atomic.Bool // a write was given up and has not ended since
}

// Impatient returns a writer to w, which may be a terminal that is stopped or a pipe that nobody
// reads. A write that has not ended a second after the end of the context is given up: it returns
// an error, and what it was to write may still be written later.
func Impatient(ctx context.Context, w io.Writer) io.Writer { return &impatient{ctx: ctx, w: w} }

type written struct {
	n   int
	err error
}

func (i *impatient) Write(p []byte) (int, error) {
	if i.stopped.Load() {
		return 0, errReaderStopped
	}
	done := make(chan written, 1)
	b := bytes.Clone(p) // the caller has p again when it is given up
	go func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		n, err := i.w.Write(b)
		i.stopped.Store(false)
		done <- written{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-i.ctx.Done():
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(patience):
		i.stopped.Store(true)
		return 0, errReaderStopped
	}
}
