//go:build linux && amd64

package vfiouser

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxPath is the longest path of a socket (sockaddr_un).
const maxPath = 107

// patience is how long a client waits for one to end that has gone already, and how long one that
// is refused has to say its first word.
const patience = time.Second

// Listener is a socket on which a device waits for clients, one after the other.
type Listener struct {
	path  string
	l     *net.UnixListener
	made  os.FileInfo // the file of the socket
	lives sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	current *net.UnixConn // the client; nil: none
	done    chan struct{} // closed when it has gone
}

// Listen makes the socket. One that is there and on which nobody listens is replaced, as its
// process has ended without removing it; anything else of that name is left alone, which is an
// error.
func Listen(path string) (*Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("socket %s: the path has %d bytes, and the system allows %d", path, len(path), maxPath)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, cause(err))
	}
	l.SetUnlinkOnClose(false)
	made, err := os.Lstat(path)
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("socket %s: %w", path, cause(err))
	}
	return &Listener{path: path, l: l, made: made}, nil
}

func removeStale(path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket %s: %w", path, cause(err))
	case st.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %s: there is a file of that name that is not a socket; name another or remove it", path)
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("socket %s: another process listens there; name another", path)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("socket %s: %w", path, cause(err))
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("socket %s, on which nobody listens: %w", path, cause(err))
	}
	return nil
}

// cause is the errno in an error, whose text names the path again.
func cause(err error) error {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return err
}

// Serve serves clients until Close. One that comes while another is connected is refused with
// EBUSY, and the first is not disturbed.
func (l *Listener) Serve(d Device, lay *Layout) {
	l.ServeStream(lay.logf, func(c *net.UnixConn) error { return serve(c, d, lay) }, refuse)
}

// ServeStream is Serve for a protocol of its own: talk talks to a client until that has gone, and
// refuse to one that comes meanwhile. Both close the connection.
func (l *Listener) ServeStream(logf func(string, ...any), talk func(*net.UnixConn) error, refuse func(*net.UnixConn)) {
	for {
		c, err := l.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors left, or the client has gone already
			logf("socket %s: %v", l.path, cause(err))
			time.Sleep(patience / 10)
			continue
		}
		if !l.free() {
			logf("socket %s: a second client is refused, as one is connected", l.path)
			l.lives.Go(func() { refuse(c) })
			continue
		}
		l.begin(c, logf, talk)
	}
}

// free waits a little for the client before to end, if it has not yet.
func (l *Listener) free() bool {
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	if done == nil {
		return true
	}
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

func (l *Listener) begin(c *net.UnixConn, logf func(string, ...any), talk func(*net.UnixConn) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return
	}
	done := make(chan struct{})
	l.current, l.done = c, done
	l.lives.Go(func() {
		defer close(done)
		if err := talk(c); err != nil {
			logf("socket %s: %v", l.path, err)
		}
	})
}

// refuse answers the first message of a client with EBUSY.
func refuse(c *net.UnixConn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	x := &connection{c: c, oob: make([]byte, oobSize)}
	m, err := x.receive()
	m.closeFiles()
	if err == nil {
		_ = x.reply(&m, nil, syscall.EBUSY)
	}
}

// Close disconnects the client, waits until all that it gave is given back, and removes the socket,
// unless another has taken its name.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	if l.current != nil {
		_ = l.current.Close()
	}
	l.mu.Unlock()
	err := l.l.Close()
	if st, serr := os.Lstat(l.path); serr == nil && os.SameFile(st, l.made) {
		err = errors.Join(err, os.Remove(l.path))
	}
	l.lives.Wait()
	return err
}
