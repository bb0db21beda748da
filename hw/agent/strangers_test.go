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
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// knock opens connections to an agent that have not shown the key. Each sends what first has for
// it, and then the rest byte by byte, as long as the test lasts.
func knock(t *testing.T, address string, n int, first func(i int) []byte) {
	t.Helper()
	var sent atomic.Int64
	for i := range n {
		c, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp:"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if b := first(i); b != nil {
			if _, err := c.Write(b); err == nil {
				sent.Add(1)
			}
		}
	}
}

// clientHello begins a handshake message of n bytes: a whole record, of which the message takes
// more than one.
func clientHello(n int) []byte {
	record := make([]byte, 5+1<<14)
	copy(record, []byte{22, 3, 1, 1 << 6, 0, 1, byte(n >> 16), byte(n >> 8), byte(n)})
	return record
}

// Connections that send nothing, or little, or what is never whole, take no place from one with the
// key.
func TestStrangersTakeNoPlace(t *testing.T) {
	k := key(t, strings.Repeat("k", 64))
	address, log := serve(t, "tcp:127.0.0.1:0", k, "echo in; exec cat")
	for round, first := range []func(i int) []byte{
		func(int) []byte { return nil },
		func(i int) []byte { return clientHello(200)[:1+i%200] },
		func(i int) []byte { return clientHello(1<<24 - 1) },
		func(i int) []byte { return []byte("\xff\xff\xff\xff{}\n") }, // 4 GiB, as some protocols begin
	} {
		knock(t, address, 1000, first)
		c, err := Dial(address, k, nil)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if s, err := bufio.NewReader(c).ReadString('\n'); err != nil || s != "in\n" {
			t.Errorf("round %d: %q, %v", round, s, err)
		}
		if err := c.End(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
	if n := log.count(""); n > strangerLines+10 {
		t.Errorf("4,000 strangers make %d lines of log", n)
	}
}

// pipes is a listener of connections without buffers, so that what the other end takes can be
// counted.
type pipes struct{ c chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.c
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p.c); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A stranger who announces a large message is read up to a limit, which is far from what TLS
// allows.
func TestStrangersAreReadLittle(t *testing.T) {
	config, err := key(t, strings.Repeat("k", 64)).config()
	if err != nil {
		t.Fatal(err)
	}
	p, log := pipes{make(chan net.Conn)}, &lines{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := &Server{Log: log.log, Player: func() *exec.Cmd { return exec.Command("/bin/false") }}
	go func() { done <- s.Serve(ctx, &Listener{p, config}) }()
	for _, size := range []int{60 << 10, 1<<24 - 1} {
		mine, theirs := net.Pipe()
		p.c <- theirs
		_ = mine.SetDeadline(time.Now().Add(time.Minute))
		taken := 0
		for taken < 1<<20 {
			n, err := mine.Write(clientHello(size))
			if taken += n; errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("waited a minute for the agent to read or close: it took %d bytes", taken)
			} else if err != nil {
				break
			}
		}
		if taken > maxStrangerBytes {
			t.Errorf("a message of %d bytes is read up to %d, want at most %d", size, taken, maxStrangerBytes)
		}
	}
	cancel()
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
}

// Who floods displaces himself, not a connection from elsewhere.
func TestFloodDisplacesItself(t *testing.T) {
	g := &gate{most: 8}
	from := func(ip string, port int) *stranger {
		c, _ := net.Pipe()
		return g.enter(addressed{c, &net.TCPAddr{IP: net.ParseIP(ip), Port: port}})
	}
	honest := from("192.0.2.1", 1)
	for i := range 1000 {
		from("192.0.2.2", i)
	}
	if len(g.queue) != 8 || g.queue[0] != honest {
		t.Errorf("of 8 places %d are taken, and the first is not the one that came first", len(g.queue))
	}
	if g.shed(6) != 6 || g.leave(honest) {
		t.Error("the flood is shed last")
	}
}

type addressed struct {
	net.Conn
	from net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.from }

// A process that may have few descriptors has places for players all the same.
func TestFewDescriptorsLeavePlacesForPlayers(t *testing.T) {
	for _, l := range []uint64{0, 8, 64, 256, 1024, 1 << 20, 1 << 63} {
		s, p := shares(l)
		if s < 4 || s > maxStrangers || p < 1 || p > maxPlayers {
			t.Errorf("%d descriptors: %d strangers, %d players", l, s, p)
		}
		if l >= 64 && uint64(s+p*playerDescriptors+ownDescriptors) > l {
			t.Errorf("%d descriptors: %d strangers and %d players need more", l, s, p)
		}
	}
	if s, p := shares(1024); s != maxStrangers || p != maxPlayers {
		t.Errorf("%d strangers and %d players of 1024 descriptors", s, p)
	}
}

// descriptorsEnv makes the test binary an agent whose descriptors run out while it serves.
const descriptorsEnv = "TEST_AGENT_DESCRIPTORS"

func TestAgentWithoutDescriptors(t *testing.T) {
	if name := os.Getenv(descriptorsEnv); name != "" {
		agentWithoutDescriptors(t, name)
		return
	}
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(strings.Repeat("k", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := ReadKey(name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAgentWithoutDescriptors$")
	cmd.Env = append(os.Environ(), descriptorsEnv+"="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	for round := range 2 {
		knock(t, address, 100, func(int) []byte { return nil })
		c, err := Dial(address, k, nil)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if s, err := bufio.NewReader(c).ReadString('\n'); err != nil || s != "in\n" {
			t.Fatalf("round %d: %q, %v", round, s, err)
		}
		if err := c.End(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

func agentWithoutDescriptors(t *testing.T, name string) {
	k, err := ReadKey(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen("tcp:127.0.0.1:0", k)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Node: json.RawMessage(`{}`), Log: func(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) },
		Player: func() *exec.Cmd { return exec.Command("/bin/sh", "-c", "echo in; exec cat") }}
	go func() {
		time.Sleep(100 * time.Millisecond) // the agent has read its limit, or reads a low one
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 40, Max: 40}); err != nil {
			panic(err)
		}
		fmt.Println("tcp:" + l.Addr().String())
	}()
	t.Fatal(s.Serve(context.Background(), l))
}

// broken is a listener whose Accept fails for a while.
type broken struct {
	pipes
	errs []error
}

func (b *broken) Accept() (net.Conn, error) {
	if len(b.errs) > 0 {
		err := b.errs[0]
		b.errs = b.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	return b.pipes.Accept()
}

// An agent outlives errors of accept, but not a listener that is gone.
func TestErrorsOfAccept(t *testing.T) {
	b := &broken{pipes: pipes{make(chan net.Conn)}, errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ECONNABORTED, syscall.EPROTO}}
	log := &lines{}
	s := &Server{Node: json.RawMessage(`{}`), Log: log.log, Player: func() *exec.Cmd { return exec.Command("/bin/sh", "-c", "echo in; exec cat") }}
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context(), &Listener{Listener: b}) }()
	mine, theirs := net.Pipe()
	select {
	case b.c <- theirs:
	case err := <-done:
		t.Fatalf("the agent has ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("waited a minute for the agent to accept a connection")
	}
	_ = mine.SetDeadline(time.Now().Add(time.Minute))
	if s, err := bufio.NewReader(mine).ReadString('\n'); err != nil || s != "{\"node\":{}}\n" {
		t.Errorf("%q, %v", s, err)
	}
	_ = mine.Close()
	_ = b.Close()
	if err := ended(t, done); !errors.Is(err, net.ErrClosed) {
		t.Errorf("without a listener: %v", err)
	}
}

// Who finds no place is told so, and the limit is that of connections with the key alone.
func TestAgentIsFull(t *testing.T) {
	address, _ := serve(t, "unix:"+filepath.Join(t.TempDir(), "s"), nil, "exec cat")
	var all []*Conn
	for range maxPlayers {
		c, err := Dial(address, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err) // the player runs
		}
	}
	if _, err := Dial(address, nil, nil); err == nil || !strings.Contains(err.Error(), "64 players run here already") {
		t.Errorf("the next is told %v", err)
	}
	for _, c := range all {
		if err := c.End(); err != nil {
			t.Error(err)
		}
	}
}

// Whoever comes last is not displaced by those who came before, in whatever order the agent gets to
// serve them.
func TestStrangersHaveTheOrderInWhichTheyCame(t *testing.T) {
	config, err := key(t, strings.Repeat("k", 64)).config()
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what began last is then served first
	const tooMany = 10
	n, _ := shares(descriptorLimit())
	n += tooMany
	p, all := pipes{make(chan net.Conn, n)}, make([]net.Conn, n)
	for i := range all {
		mine, theirs := net.Pipe()
		defer mine.Close()
		p.c <- theirs
		all[i] = mine
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := &Server{Log: (&lines{}).log, Player: func() *exec.Cmd { return exec.Command("/bin/false") }}
	go func() { done <- s.Serve(ctx, &Listener{p, config}) }()
	for _, c := range all[:tooMany-1] { // until they are displaced
		_, _ = c.Read(make([]byte, 1))
	}
	last := all[n-1]
	_ = last.SetDeadline(time.Now().Add(time.Minute))
	if err := tls.Client(last, config).HandshakeContext(ctx); err != nil {
		t.Errorf("the last of %d connections: %v", n, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
