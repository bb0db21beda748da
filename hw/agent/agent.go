package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/internal/cli/workers"
)

// Server is an agent.
type Server struct {
	// Node describes the agent's device to the other end, as JSON.
	Node json.RawMessage
	// Player makes the command of a player process.
	Player func() *exec.Cmd
	// Log gets a line for each connection and for each one that is refused.
	Log func(format string, a ...any)
}

// request is the first line of a client: the environment of the player.
type request struct {
	Env map[string]string `json:"env"`
}

// hello is the first line of a server, to whom has shown the key.
type hello struct {
	Node json.RawMessage `json:"node,omitempty"`
	// Refused is why no player is started.
	Refused string `json:"refused,omitempty"`
}

// Listener is where an agent listens.
type Listener struct {
	net.Listener
	config *tls.Config // what a connection has to show; nil if the listener itself lets in only who may
}

// Listen opens "unix:PATH", which only this user may connect to, or "tcp:HOST:PORT", for
// which a key is needed.
func Listen(address string, key *Key) (*Listener, error) {
	network, where, ok := strings.Cut(address, ":")
	switch {
	case ok && network == "unix":
		// Between bind and chmod the mask keeps others out.
		old := unix.Umask(0o177)
		l, err := net.Listen("unix", where)
		unix.Umask(old)
		if err != nil {
			return nil, err
		}
		return &Listener{Listener: &sameUserListener{l}}, nil
	case ok && network == "tcp":
		if key == nil {
			return nil, errors.New("an agent on TCP needs a key: whoever connects starts processes on this machine")
		}
		config, err := key.config()
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", where)
		if err != nil {
			return nil, err
		}
		return &Listener{l, config}, nil
	}
	return nil, fmt.Errorf("address %q: want unix:PATH or tcp:HOST:PORT", address)
}

// sameUserListener accepts connections of processes of this user and of root.
type sameUserListener struct{ net.Listener }

func (o *sameUserListener) Accept() (net.Conn, error) {
	for {
		c, err := o.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if peer, err := credentials(c); err == nil && (peer.Uid == 0 || int(peer.Uid) == os.Getuid()) {
			return c, nil
		}
		_ = c.Close()
	}
}

func credentials(c net.Conn) (*unix.Ucred, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("no Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, credErr
}

// Serve accepts connections until ctx ends; each has one player process, which ends with it. If
// descriptors run out, connections that have not shown the key are closed, and it goes on.
func (s *Server) Serve(ctx context.Context, l *Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	strangers, players := shares(descriptorLimit())
	v := &serving{Server: s, config: l.config, gate: &gate{most: strangers}, room: make(chan struct{}, players), quiet: &quiet{log: s.Log}}
	defer v.quiet.rest()
	var all sync.WaitGroup
	defer all.Wait()
	failures := 0 // in a row
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return nil
		case err == nil:
			failures = 0
			raw := v.enter(c) // in the order in which they came
			all.Go(func() { v.serve(ctx, c, raw) })
		case exhausted(err):
			if v.gate.shed(1) == 0 {
				v.quiet.tell(time.Now(), "no connection can be accepted for now: %v", err)
				sleep(ctx, 100*time.Millisecond)
			}
		default: // mostly of one connection, such as one that has gone again
			if failures++; failures > maxFailures {
				return err
			}
			sleep(ctx, 10*time.Millisecond)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serving is a server at work.
type serving struct {
	*Server
	config *tls.Config
	gate   *gate
	room   chan struct{} // has an element for each connection that has shown the key
	quiet  *quiet
}

// enter takes a connection in as a stranger. On a listener that demands no key there are none, and
// it returns nil.
func (s *serving) enter(c net.Conn) *stranger {
	if s.config == nil {
		return nil
	}
	return s.gate.enter(c)
}

// serve carries one connection.
func (s *serving) serve(ctx context.Context, c net.Conn, raw *stranger) {
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	known, err := s.admit(ctx, c, raw)
	if err != nil {
		s.quiet.tell(time.Now(), "%s refused: %v", c.RemoteAddr(), err)
		return
	}
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
		err = s.begin(ctx, known)
	default:
		err = fmt.Errorf("%d players run here already: end some, or try again later", cap(s.room))
		_ = json.NewEncoder(known).Encode(hello{Refused: err.Error()})
	}
	if err != nil {
		s.Log("%s refused: %v", c.RemoteAddr(), err)
	}
}

// admit lets a connection show the key. On a listener that demands none it has nothing to show.
func (s *serving) admit(ctx context.Context, c net.Conn, raw *stranger) (net.Conn, error) {
	deadline := time.Now().Add(handshakeTimeout)
	if raw == nil {
		return c, c.SetDeadline(deadline)
	}
	known := tls.Server(raw, s.config)
	err := c.SetDeadline(deadline)
	if err == nil {
		err = known.HandshakeContext(ctx)
	}
	if s.gate.leave(raw) {
		return nil, errCrowd
	}
	if err != nil {
		return nil, err
	}
	raw.left = -1
	return known, c.SetDeadline(time.Now().Add(handshakeTimeout))
}

// begin starts a player for a connection that has shown the key, and returns when both have ended.
// Its error says why nothing was started.
func (s *serving) begin(ctx context.Context, c net.Conn) error {
	if err := json.NewEncoder(c).Encode(hello{Node: s.Node}); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c, maxRequest)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("no request: %w", err)
	}
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("no request: %w", err)
	}
	for k := range r.Env {
		if !strings.HasPrefix(k, "MLX5_") {
			return fmt.Errorf("variable %q: only those of the driver (MLX5_*) are set for a player", k)
		}
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	p, err := s.start(c, r.Env)
	if err != nil {
		return err
	}
	s.Log("%s: player %d starts", c.RemoteAddr(), p.Cmd.Process.Pid)
	go func() {
		_, _ = io.Copy(p.In, in) // ends with the connection, and so does the player
		p.Kill()
	}()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	_ = p.Wait() // how it ended is in its state
	s.Log("%s: player %d ends: %v", c.RemoteAddr(), p.Cmd.Process.Pid, p.Cmd.ProcessState)
	return nil
}

// start starts a player. Strangers make room if descriptors are used up.
func (s *serving) start(c net.Conn, env map[string]string) (*workers.Process, error) {
	for room := playerDescriptors; ; room *= 2 {
		cmd := s.Player()
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		cmd.Stdout = c
		cmd.WaitDelay = handshakeTimeout // a child of the player that holds its output
		p, err := workers.Start(cmd, workers.NewHead(0), false)
		if err == nil || !exhausted(err) || s.gate.shed(room) == 0 {
			return p, err
		}
	}
}

// Conn is a player on the agent's machine: what is written is its standard input, what is
// read its standard output. Close ends it without waiting for that.
type Conn struct {
	net.Conn
	in *bufio.Reader
	// Node is how the agent describes its device.
	Node json.RawMessage
}

// Read reads what the player writes.
func (c *Conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// End kills the player and returns when it has ended, within the time of a handshake.
func (c *Conn) End() error {
	defer func() { _ = c.Close() }()
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	if err := half.CloseWrite(); err != nil {
		return nil // it has ended
	}
	if err := c.SetReadDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, c.in); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the player does not end: %w", err)
	}
	return nil
}

// Dial starts a player with an environment on the machine of an agent.
func Dial(address string, key *Key, env map[string]string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	network, where, _ := strings.Cut(address, ":")
	var c net.Conn
	var err error
	switch {
	case network == "unix":
		c, err = (&net.Dialer{}).DialContext(ctx, "unix", where)
	case network == "tcp" && key == nil:
		return nil, errors.New("an agent on TCP needs a key")
	case network == "tcp":
		config, configErr := key.config()
		if configErr != nil {
			return nil, configErr
		}
		c, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", where)
	default:
		return nil, fmt.Errorf("address %q: want unix:PATH or tcp:HOST:PORT", address)
	}
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", address, err)
	}
	out := &Conn{Conn: c, in: bufio.NewReaderSize(c, maxRequest)}
	if err := out.begin(env); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("agent %s: %w", address, err)
	}
	return out, nil
}

func (c *Conn) begin(env map[string]string) error {
	if err := c.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		// In TLS 1.3 a client learns with its first read that the server refused its certificate.
		return fmt.Errorf("it refuses this client (do both ends have the same key?): %w", err)
	}
	var h hello
	if err := json.Unmarshal(line, &h); err != nil {
		return fmt.Errorf("it does not answer as an agent does: %w", err)
	}
	if h.Refused != "" {
		return fmt.Errorf("it starts no player: %s", h.Refused)
	}
	c.Node = h.Node
	if err := json.NewEncoder(c.Conn).Encode(request{env}); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}
