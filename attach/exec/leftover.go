//go:build linux && amd64

package exec

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/sim/kernel"
)

// releasePatience is how long the end of the last program's files is waited for.
const releasePatience = time.Second

// leftover says what the session still holds after its last program has ended: nothing, unless
// something was not given back.
func (s *session) leftover() string {
	var l string
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		s.eng.do(func() {
			s.procs.removeEnded()
			l = s.held()
		})
		if l == "" || time.Since(begin) > releasePatience {
			return l
		}
	}
}

// held lists what programs have, on the engine's thread.
func (s *session) held() string {
	var l []string
	count := func(n int, what string) {
		if n != 0 {
			l = append(l, fmt.Sprintf("%d %s", n, what))
		}
	}
	count(len(s.files.byInode), "device files and queues")
	count(len(s.files.byWatch), "watches")
	count(len(s.channels.byPipe), "channels")
	count(int(s.channels.waiters.Load()), "threads in GET_EVENT")
	count(len(s.procs.byID), "processes")
	count(len(s.eng.pages), "register pages")
	count(len(s.eng.clocks), "clock pages")
	count(s.procs.streams.Queues(), "pages of queues")
	for _, d := range s.m.devs {
		if r := d.kern.Resources(); r != (kernel.Resources{}) {
			l = append(l, fmt.Sprintf("%s %+v", d.name, r))
		}
	}
	return strings.Join(l, ", ")
}
