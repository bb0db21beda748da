package perf

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// A peer that holds a connection and says nothing is not waited for without end, where it has
// nothing to compute.
func TestSilentPeer(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	s := stream{a}
	if err := s.limit(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := s.Receive(nil, make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := s.limit(0); err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, _ = b.Write([]byte("1234"))
	}()
	if err := s.Receive(nil, make([]byte, 4)); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	// The step is named, whoever makes the error.
	_ = b.Close()
	e := &End{o: &Options{}, env: &Env{}, ch: s}
	var step *StepError
	err := e.step(verbs.UnimplementedThread{}, stepVersions, func() error { _, err := e.swap(nil, []byte("x")); return err })
	if !errors.As(err, &step) || step.Step != stepVersions {
		t.Errorf("%v", err)
	}
}
