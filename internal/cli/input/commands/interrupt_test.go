package commands

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// An interrupt that is sent twice is one: the results so far are written.
func TestInterruptThatIsSentTwice(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	EndOnSecondInterrupt(ctx)
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond) // without the wait the second one would end this test
	}
}
