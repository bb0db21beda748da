//go:build linux && amd64

package exec

import (
	"fmt"
	"sync"
)

// maxReasons is how many different reasons of refused calls are said: a program can make up numbers
// that they contain.
const maxReasons = 1000

// refusals says the reason of a refused call once.
type refusals struct {
	logf func(format string, args ...any)
	mu   sync.Mutex
	said map[string]bool
}

// of is what says the reasons, nil: nobody wants to know.
func (r *refusals) of(logf func(format string, args ...any)) func(format string, args ...any) {
	if logf == nil {
		return nil
	}
	r.logf, r.said = logf, map[string]bool{}
	return r.say
}

func (r *refusals) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.mu.Lock()
	known := r.said[text] || len(r.said) >= maxReasons
	r.said[text] = true
	r.mu.Unlock()
	if !known {
		r.logf("%s", text)
	}
}
