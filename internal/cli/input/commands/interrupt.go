package commands

import (
	"context"
	"os"
	"os/signal"
	"time"
)

// A user who presses a key again waits for longer; timeout -s INT sends the signal to its program
// and at once to the group.
const sameInterrupt = 500 * time.Millisecond

// endOnInterruptAfter lets an interrupt end the program, whatever hangs in it, when ctx has ended
// for so long.
func endOnInterruptAfter(ctx context.Context, d time.Duration) {
	context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { signal.Reset(os.Interrupt) }) })
}
