//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// What the supervisor has to say on stderr it says beside its other work: the reader, a terminal
// that is stopped or a pipe that nobody empties, may take as long as it likes, and neither programs
// nor the end of a session wait for it.

// maxUnsaid is how many lines may wait to be said. Later ones are left out, and counted.
const maxUnsaid = 1 << 16

// lastWords is how long a session that was asked to end goes on saying what it has to say.
const lastWords = time.Second

// speaker says lines in order.
type speaker struct {
	mu      sync.Mutex
	lines   []func() // not said yet
	leftOut int
	quiet   chan struct{} // closed when all is said; nil: it is
}

// stderr is the one of this process.
var stderr speaker

// say prints a line on stderr, soon.
func say(format string, args ...any) {
	text := fmt.Sprintf("rdmasim exec: "+format+"\n", args...)
	stderr.later(func() { fmt.Fprint(os.Stderr, text) })
}

// sayLater is logf that does not wait.
func sayLater(logf func(format string, args ...any)) func(format string, args ...any) {
	if logf == nil {
		return nil
	}
	return func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		stderr.later(func() { logf("%s", text) })
	}
}

func (p *speaker) later(line func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) >= maxUnsaid {
		p.leftOut++
		return
	}
	p.lines = append(p.lines, line)
	if p.quiet == nil {
		p.quiet = make(chan struct{})
		go p.speak()
	}
}

// speak says what there is to say.
func (p *speaker) speak() {
	for {
		p.mu.Lock()
		lines, n := p.lines, p.leftOut
		p.lines, p.leftOut = nil, 0
		if len(lines) == 0 {
			close(p.quiet)
			p.quiet = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		for _, line := range lines {
			line()
		}
		if n > 0 {
			fmt.Fprintf(os.Stderr, "rdmasim exec: %d lines are left out here: stderr was not read in time\n", n)
		}
	}
}

// finish waits until all is said, but not long after somebody asks for the end, or has asked for
// it.
func (p *speaker) finish(signals <-chan os.Signal, asked bool) {
	p.mu.Lock()
	quiet := p.quiet
	p.mu.Unlock()
	if quiet == nil {
		return
	}
	if !asked {
		select {
		case <-quiet:
			return
		case <-signals:
		}
	}
	select {
	case <-quiet:
	case <-time.After(lastWords):
	}
}
