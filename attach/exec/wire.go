//go:build linux && amd64

package exec

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pci/vfiouser"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// maxSocket is the longest path of a socket (sockaddr_un).
const maxSocket = 107

// wireSocket is where programs of the session reach the wire: in its work folder, which the janitor
// removes. Empty: the name of that folder is too long for a socket.
func (s *started) wireSocket() string {
	if p := filepath.Join(s.work.Path, "wire"); len(p) <= maxSocket {
		return p
	}
	return ""
}

// wireEnv is the variable that tells programs of the wire.
func (s *started) wireEnv() []string {
	if p := s.wireSocket(); p != "" {
		return []string{remotewire.SocketEnv + "=" + p}
	}
	return nil
}

// serveWire lets programs of the session's user watch and disturb the wire, one at a time, until
// stop.
func (s *session) serveWire() (stop func(), err error) {
	path := s.started.wireSocket()
	if path == "" {
		s.logf("programs have no access to the wire: the path of a socket in %s would be longer than the %d bytes that the system allows; TMPDIR names another place",
			plain.Line(os.TempDir()), maxSocket)
		return func() {}, nil
	}
	l, err := vfiouser.Listen(path)
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("wire: %w", err)
	}
	w := &sessionWire{s: s, addresses: map[benchAddress]bool{}}
	w.Remote = &network.Remote{Tester: s.m.net.NewTester(), Enter: s.eng.enterSettled, Settle: func() { s.eng.do(s.eng.settle) }}
	if s.m.guests != nil {
		w.Remote.Quiet = network.GuestQuiet
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.ServeStream(s.logf, func(c *net.UnixConn) error { return network.Talk(c, w) }, func(c *net.UnixConn) { _ = c.Close() })
	}()
	return func() {
		_ = l.Close() // the janitor removes what is left
		<-done
		s.eng.do(s.ports.close)
	}, nil
}

// logf says something to whoever asked for the reasons of refusals.
func (s *session) logf(format string, a ...any) {
	if s.cfg.Logf != nil {
		s.cfg.Logf(format, a...)
	}
}

// settling is how many rounds of work are waited for before a tester's next step.
const settling = 4096

// settle carries out what programs have stored to registers, and what devices do at once of it. It
// runs on the engine's thread.
func (e *engine) settle() {
	e.reap()
	for range settling {
		rung := e.poll()
		if !e.pace.Advance(instantsPerLook, false) && !rung {
			break
		}
	}
	e.streams.Flush()
}

// enterSettled is enter after settle: what a program has posted before it asks for something of the
// wire has left its device, as it has on a real one.
func (e *engine) enterSettled() (leave func()) { return e.enterAfter(e.settle) }
