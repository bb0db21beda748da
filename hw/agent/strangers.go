package agent

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of connections that have not shown the key. They are apart from those of connections that
// have, so that no number of strangers takes a place from these.
const (
	maxStrangers     = 256              // connections, fewer if the process may have few descriptors
	maxStrangerBytes = 16 << 10         // bytes of one handshake; one with the key has less than 2 KiB
	handshakeTimeout = 10 * time.Second // of a handshake as a whole, and again of the request after it
)

// maxFailures is after how many errors of accept in a row, other than of resources, an agent gives
// up.
const maxFailures = 100

// Limits of connections that have shown the key.
const (
	maxPlayers = 64       // connections, each with its player
	maxRequest = 64 << 10 // bytes of a request
)

// Descriptors that a process has beside those of its connections, and those of a player's
// connection.
const (
	ownDescriptors    = 32
	playerDescriptors = 8
)

// shares divides the descriptors that this process may open between strangers and players.
func shares(descriptors uint64) (strangers, players int) {
	strangers = int(min(maxStrangers, max(4, descriptors/4)))
	left := int64(min(descriptors, 1<<20)) - int64(strangers) - ownDescriptors
	return strangers, int(min(maxPlayers, max(1, left/playerDescriptors)))
}

func descriptorLimit() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return l.Cur
}

// exhausted reports whether an error says that descriptors or memory of the system are used up,
// which passes.
func exhausted(err error) bool {
	return slices.ContainsFunc([]error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM}, func(e error) bool { return errors.Is(err, e) })
}

var (
	errCrowd = errors.New("closed before it had shown the key, to make room for others")
	errBytes = fmt.Errorf("it has sent %d bytes without showing the key", maxStrangerBytes)
)

// stranger is a connection that has not shown the key. It closes itself when it has sent too much.
type stranger struct {
	net.Conn
	from    string // its address without the port
	left    int    // bytes that it may still send; -1 after the handshake
	evicted bool
}

func (s *stranger) Read(p []byte) (int, error) {
	if s.left < 0 {
		return s.Conn.Read(p)
	}
	if s.left == 0 {
		return 0, errBytes
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// gate holds the strangers, in the order in which they came.
type gate struct {
	mu    sync.Mutex
	most  int
	queue []*stranger
}

// enter takes a connection in. If all places are taken, it gets that of the connection which has
// waited longest among those from the address that has most of them: who floods displaces himself.
func (g *gate) enter(c net.Conn) *stranger {
	s := &stranger{Conn: c, from: host(c.RemoteAddr()), left: maxStrangerBytes}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) >= g.most {
		g.evict()
	}
	g.queue = append(g.queue, s)
	return s
}

func host(a net.Addr) string {
	if h, _, err := net.SplitHostPort(a.String()); err == nil {
		return h
	}
	return a.String()
}

// evict closes one connection; its descriptor is free afterwards.
func (g *gate) evict() {
	n := map[string]int{}
	for _, s := range g.queue {
		n[s.from]++
	}
	most := 0
	for _, s := range g.queue {
		most = max(most, n[s.from])
	}
	for i, s := range g.queue {
		if n[s.from] == most {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			s.evicted = true
			_ = s.Conn.Close()
			return
		}
	}
}

// leave takes a connection out, and reports whether it was evicted before.
func (g *gate) leave(s *stranger) (evicted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.queue {
		if g.queue[i] == s {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			break
		}
	}
	return s.evicted
}

// shed closes up to n connections, and returns how many.
func (g *gate) shed(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n = min(n, len(g.queue))
	for range n {
		g.evict()
	}
	return n
}

// Lines about strangers in the log: so many in so long, and then how many more there were.
const (
	strangerLines = 20
	strangerTime  = time.Minute
)

// quiet bounds what strangers can make the log grow by.
type quiet struct {
	mu      sync.Mutex
	log     func(format string, a ...any)
	since   time.Time
	lines   int
	skipped int
}

func (q *quiet) tell(now time.Time, format string, a ...any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.since) >= strangerTime {
		q.rest()
		q.since, q.lines = now, 0
	}
	if q.lines++; q.lines > strangerLines {
		q.skipped++
		return
	}
	q.log(format, a...)
}

// rest says how many lines were left out.
func (q *quiet) rest() {
	if q.skipped > 0 {
		q.log("%d more lines about refused connections are left out", q.skipped)
	}
	q.skipped = 0
}
