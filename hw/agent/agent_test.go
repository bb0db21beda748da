package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) log(format string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, fmt.Sprintf(format, a...))
}

func (l *lines) wait(t *testing.T, word string) {
	t.Helper()
	for range 30000 { // five minutes: only when it hangs
		l.mu.Lock()
		for _, s := range l.text {
			if strings.Contains(s, word) {
				l.mu.Unlock()
				return
			}
		}
		l.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the log never says %q: %q", word, l.text)
}

func (l *lines) count(word string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.text {
		if strings.Contains(s, word) {
			n++
		}
	}
	return n
}

func key(t *testing.T, text string) *Key {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := ReadKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ended waits for the result of an agent whose context or listener has ended.
func ended(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("waited a minute for the agent to end")
		return nil
	}
}

// serve runs an agent whose player is a shell command.
func serve(t *testing.T, address string, k *Key, shell string) (string, *lines) {
	t.Helper()
	l, err := Listen(address, k)
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	s := &Server{Node: json.RawMessage(`{"device":"x"}`), Log: log.log, Player: func() *exec.Cmd { return exec.Command("/bin/sh", "-c", shell) }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := ended(t, done); err != nil {
			t.Error(err)
		}
	})
	if strings.HasPrefix(address, "unix:") {
		return address, log
	}
	return "tcp:" + l.Addr().String(), log
}

func TestPlayerOverAnAgent(t *testing.T) {
	k := key(t, strings.Repeat("k", 64))
	for _, tt := range []struct {
		address string
		key     *Key
	}{{"tcp:127.0.0.1:0", k}, {"unix:" + filepath.Join(t.TempDir(), "s"), nil}} {
		address, log := serve(t, tt.address, tt.key, `echo "$MLX5_SHUT_UP_BF"; exec cat`)
		c, err := Dial(address, tt.key, map[string]string{"MLX5_SHUT_UP_BF": "1"})
		if err != nil {
			t.Fatal(err)
		}
		if string(c.Node) != `{"device":"x"}` {
			t.Errorf("node %s", c.Node)
		}
		in := bufio.NewReader(c)
		if s, err := in.ReadString('\n'); err != nil || s != "1\n" {
			t.Fatalf("environment: %q, %v", s, err)
		}
		if _, err := io.WriteString(c, "hello\n"); err != nil {
			t.Fatal(err)
		}
		if s, err := in.ReadString('\n'); err != nil || s != "hello\n" {
			t.Fatalf("echo: %q, %v", s, err)
		}
		if err := c.End(); err != nil {
			t.Fatal(err)
		}
		if n := log.count("ends"); n != 1 {
			t.Errorf("%d players have ended", n)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	k := key(t, strings.Repeat("k", 64))
	touched := filepath.Join(t.TempDir(), "touched")
	address, log := serve(t, "tcp:127.0.0.1:0", k, "touch '"+touched+"'")
	host := strings.TrimPrefix(address, "tcp:")

	if _, err := Dial(address, key(t, strings.Repeat("x", 64)), nil); err == nil {
		t.Error("another key is let in")
	}
	log.wait(t, "refused") // by the client, which wants proof too

	config, err := key(t, strings.Repeat("x", 64)).config()
	if err != nil {
		t.Fatal(err)
	}
	config.VerifyConnection = nil // a client that believes anybody
	if c, err := tls.Dial("tcp", host, config); err == nil {
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	log.wait(t, errStranger.Error())

	raw, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Write(append([]byte("GET / HTTP/1.0\r\n\r\n"), make([]byte, 100)...)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, raw)
	_ = raw.Close()
	log.wait(t, "does not look like a TLS handshake")

	if _, err := os.Stat(touched); err == nil {
		t.Error("a stranger started a player")
	}
	c, err := Dial(address, k, nil) // it lives
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
	if _, err := os.Stat(touched); err != nil {
		t.Error("the right key starts nothing")
	}
}

// TestReplay sends again what a client with the key sent.
func TestReplay(t *testing.T) {
	k := key(t, strings.Repeat("k", 64))
	address, log := serve(t, "tcp:127.0.0.1:0", k, "echo started; exec cat")
	heard := overhear(t, strings.TrimPrefix(address, "tcp:"))
	c, err := Dial("tcp:"+heard.addr, k, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := bufio.NewReader(c).ReadString('\n'); err != nil || s != "started\n" {
		t.Fatalf("%q, %v", s, err)
	}
	_ = c.Close()
	log.wait(t, "ends")

	raw, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp:"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = raw.Write(heard.bytes())
	_, _ = io.Copy(io.Discard, raw)
	_ = raw.Close()
	log.wait(t, "refused")
	if n := log.count("starts"); n != 1 {
		t.Errorf("%d players: what was overheard starts one", n)
	}
}

type ear struct {
	addr string
	mu   sync.Mutex
	sent []byte
}

func (e *ear) bytes() []byte { e.mu.Lock(); defer e.mu.Unlock(); return e.sent }

func (e *ear) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, p...)
	return len(p), nil
}

// overhear is a proxy that keeps what clients send.
func overhear(t *testing.T, to string) *ear {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	e := &ear{addr: l.Addr().String()}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", to)
		if err != nil {
			_ = c.Close()
			return
		}
		go func() { _, _ = io.Copy(c, s); _ = c.Close() }()
		_, _ = io.Copy(io.MultiWriter(s, e), c)
		_ = s.Close()
	}()
	return e
}

func TestBadStarts(t *testing.T) {
	if _, err := Listen("tcp:127.0.0.1:0", nil); err == nil || !strings.Contains(err.Error(), "needs a key") {
		t.Errorf("TCP without a key: %v", err)
	}
	if _, err := Listen("127.0.0.1:0", nil); err == nil || !strings.Contains(err.Error(), "unix:PATH") {
		t.Errorf("no network: %v", err)
	}
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(open, []byte(strings.Repeat("k", 64)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(short, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{open: "can be read by others", short: "at least 32", filepath.Join(dir, "none"): "no such file"} {
		if _, err := ReadKey(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(name), err, want)
		}
	}
	k := key(t, strings.Repeat("k", 64))
	address, log := serve(t, "tcp:127.0.0.1:0", k, "echo no")
	c, err := Dial(address, k, map[string]string{"LD_PRELOAD": "x"})
	if err == nil {
		if b, _ := io.ReadAll(c); len(b) != 0 {
			t.Errorf("a player with LD_PRELOAD says %q", b)
		}
		_ = c.Close()
	}
	log.wait(t, `variable "LD_PRELOAD"`)
}
