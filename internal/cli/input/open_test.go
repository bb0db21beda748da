package input

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A FIFO that nobody writes to, or whose writer is silent, is waited for as long as the context
// lasts.
func TestReadsOfAFIFOEndWithTheContext(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, writer := range []bool{false, true} {
		if writer {
			fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = syscall.Close(fd) }()
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if text, err := ReadFile(ctx, name); !errors.Is(err, context.Canceled) {
			t.Errorf("writer %v: read %q, %v", writer, text, err)
		}
	}
}

// A file that is no FIFO is read whatever the context says: who is interrupted decides what of a
// run is left.
func TestFilesAreReadAfterTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if text, err := ReadFile(ctx, "open_test.go"); err != nil || len(text) == 0 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
	}
}
