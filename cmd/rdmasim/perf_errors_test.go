package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload/perftest"
	"github.com/rdmasim/rdmasim/workload/perftest/exchange"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
)

// bench is a simulated test whose ends a test holds in its hands.
type bench struct {
	tb   *testbed.Testbed
	envs [2]*perf.Env // of the client and of the server
	outs [2]bytes.Buffer
	errs [2]error
}

func newBench(t *testing.T, set ...string) *bench {
	t.Helper()
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	p = p.Clone()
	for _, s := range set {
		key, value, _ := strings.Cut(s, "=")
		if err := p.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	tb, err := testbed.New(testbed.Default(p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tb.Close() })
	b := &bench{tb: tb}
	for i := range b.envs {
		b.envs[i] = &perf.Env{Out: &b.outs[i], Err: &b.outs[i], Random: random(1, uint64(i))}
	}
	return b
}

func options(t *testing.T, test, line string) *perf.Options {
	t.Helper()
	kind, err := perf.ParseTest(test)
	if err != nil {
		t.Fatal(err)
	}
	o, err := perf.Parse(kind, test, strings.Fields(line))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// one runs one end, whose peer is not simulated, and says what it has left.
func (b *bench) one(t *testing.T, o *perf.Options) {
	t.Helper()
	err := b.tb.Run(time.Hour, func(th verbs.Thread) {
		proc, err := b.tb.Hosts()[0].NewProcess(th, nil)
		if err != nil {
			t.Error(err)
			return
		}
		th.Join(proc.Start(th, "end", -1, func(th verbs.Thread) { b.errs[0] = perf.New(o, b.envs[0]).Run(th) }))
		b.nothingLeft(t, th, o)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// nothingLeft says that no end has left anything; librdmacm keeps a context of the device.
func (b *bench) nothingLeft(t *testing.T, th verbs.Thread, o *perf.Options) {
	t.Helper()
	for host := range 2 {
		counts, err := b.tb.ResourceCounts(th, host)
		if err != nil {
			t.Error(err)
		}
		for what, n := range counts {
			if o.SideCM && (what == "ctx" && n == 1 || what == "pd" && n == 1 || what == "uar") {
				continue
			}
			if n != 0 {
				t.Errorf("host %d has %d %s left\n%s\n%s", host, n, what, &b.outs[0], &b.outs[1])
			}
		}
	}
}

// says holds the words of perftest and our sentence of a failure to what they must contain.
func says(t *testing.T, err error, want ...string) {
	t.Helper()
	var s *perf.StepError
	if !errors.As(err, &s) {
		t.Fatalf("%v is no failure of a step", err)
	}
	for _, w := range want {
		if !strings.Contains(s.Words+err.Error(), w) {
			t.Errorf("%q is missing in %q %q", w, s.Words, err)
		}
	}
}

// A server that is not there, a port that another program has, and a program that is no perftest.
func TestPerfPeersThatAreNone(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	taken := options(t, "write_bw", "-n 5")
	taken.Port, taken.SourceIP = port, "127.0.0.1"
	b := newBench(t)
	b.envs[0].Connect = func() (perf.Channel, error) {
		accept, stop, err := perf.Listen(taken)
		if err != nil {
			return nil, err
		}
		defer stop()
		return accept()
	}
	b.one(t, taken)
	says(t, b.errs[0], "Couldn't listen to port", `step "connect"`, "address already in use", "choose another with -p")

	l.Close()
	client := options(t, "write_bw", "-n 5 127.0.0.1")
	client.Port = port
	b = newBench(t)
	b.envs[0].Connect = func() (perf.Channel, error) { return perf.Dial(t.Context(), client) }
	b.one(t, client)
	says(t, b.errs[0], "Couldn't connect to 127.0.0.1:", `step "connect"`, "connection refused", "start the server first")

	for _, c := range []struct{ first, want string }{
		{"5.50", "versions before 5.70"}, {"SSH-2.0-OpenSSH_9.2\r\n", "another program answers at this port"}, {"", "the peer has closed the connection"}, {"6.2", "the peer has closed the connection"},
	} {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c2, err := l.Accept()
			if err != nil {
				return
			}
			defer c2.Close()
			_, _ = io.ReadFull(c2, make([]byte, exchange.VersionSize))
			m := []byte(c.first)
			if len(m) > 3 {
				m = append(m, make([]byte, exchange.VersionSize)...)[:exchange.VersionSize]
			}
			_, _ = c2.Write(m)
		}()
		client.Port = l.Addr().(*net.TCPAddr).Port
		b := newBench(t)
		b.envs[0].Connect = func() (perf.Channel, error) { return perf.Dial(t.Context(), client) }
		b.one(t, client)
		says(t, b.errs[0], `step "versions and system data"`, c.want)
		l.Close()
	}
}

// A perftest that was built without mlx5dv has shorter parameters: a server answers in kind, and a
// client says what to do.
func TestPerfWithoutMlx5dv(t *testing.T) {
	system := [][]byte{exchange.EncodeVersion("6.29"), exchange.EncodeInt(4096), exchange.EncodeInt(64), exchange.EncodeMTU(verbs.MTU1024)}
	swap := func(c net.Conn, first bool, mine []byte) []byte {
		theirs := make([]byte, len(mine))
		for _, write := range []bool{first, !first} {
			if write {
				_, _ = c.Write(mine)
			} else if _, err := io.ReadFull(c, theirs); err != nil {
				return nil
			}
		}
		return theirs
	}
	peer := func(c net.Conn, first bool) []byte {
		for _, m := range system {
			swap(c, first, m)
		}
		p := exchange.Parameters{Verb: 2, Test: 1, Size: 65536, Iters: 7, QPs: 1, Duration: 5, Format: 1}
		return swap(c, first, p.Encode()[:exchange.PlainParametersSize])
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		got <- peer(c, false)
	}()
	client := options(t, "write_bw", "-n 7 127.0.0.1")
	client.Port = l.Addr().(*net.TCPAddr).Port
	b := newBench(t)
	b.envs[0].Connect = func() (perf.Channel, error) { return perf.Dial(t.Context(), client) }
	b.one(t, client)
	says(t, b.errs[0], `step "compare parameters"`, "was built without mlx5dv", "make it the client")
	<-got

	server := options(t, "write_bw", "-n 5")
	server.SourceIP, server.Port = "127.0.0.1", 0
	b = newBench(t)
	b.envs[0].Connect = func() (perf.Channel, error) {
		server.Port = freePortOf(t)
		accept, _, err := perf.Listen(server)
		if err != nil {
			return nil, err
		}
		go func() {
			c, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(server.Port)))
			if err != nil {
				return
			}
			defer c.Close()
			got <- peer(c, true)
		}()
		return accept()
	}
	b.one(t, server)
	says(t, b.errs[0], `step "compare parameters"`, "iters mismatch: local=5, remote=7")
	if m := <-got; len(m) != exchange.PlainParametersSize {
		t.Errorf("the server has answered with %d bytes", len(m))
	} else if p, err := exchange.DecodeParameters(m); err != nil || p.Iters != 5 {
		t.Errorf("%+v %v", p, err)
	}
}

// freePortOf is a port that nobody listens to.
func freePortOf(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// cut is a channel that breaks after some messages.
type cut struct {
	perf.Channel
	left *int
}

func (c cut) spend() error {
	if *c.left--; *c.left < 0 {
		_ = c.Close()
		return io.EOF
	}
	return nil
}

func (c cut) Send(t verbs.Thread, b []byte) error {
	if err := c.spend(); err != nil {
		return err
	}
	return c.Channel.Send(t, b)
}

func (c cut) Receive(t verbs.Thread, b []byte) error {
	if err := c.spend(); err != nil {
		return err
	}
	return c.Channel.Receive(t, b)
}

// pair runs both ends; the client's channel goes through edit.
func (b *bench) pair(t *testing.T, o *perf.Options, edit func(perf.Channel) perf.Channel, also func(th verbs.Thread, procs [2]verbs.Process, chs [2]perf.Channel)) {
	t.Helper()
	client, server := perf.Pipe(20 * time.Microsecond)
	err := b.tb.Run(time.Hour, func(th verbs.Thread) {
		var ths [2]verbs.Thread
		var procs [2]verbs.Process
		for i, x := range []struct {
			o  *perf.Options
			ch perf.Channel
		}{{o, edit(client)}, {o.Server(), server}} {
			proc, err := b.tb.Hosts()[i].NewProcess(th, nil)
			if err != nil {
				t.Error(err)
				return
			}
			b.envs[i].Connect = func() (perf.Channel, error) { return x.ch, nil }
			procs[i] = proc
			ths[i] = proc.Start(th, []string{"client", "server"}[i], -1, func(th verbs.Thread) {
				b.errs[i] = perf.New(x.o, b.envs[i]).Run(th)
				_ = x.ch.Close()
			})
		}
		if also != nil {
			also(th, procs, [2]perf.Channel{client, server})
		}
		for _, x := range ths {
			th.Join(x)
		}
		b.nothingLeft(t, th, o)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whenever the connection breaks, both ends end, say at which step, and leave nothing.
func TestPerfConnectionBreaks(t *testing.T) {
	for _, c := range []struct{ test, line string }{{"write_bw", "-n 5 -q 2 s"}, {"send_lat", "-n 5 s"}} {
		for k := 0; ; k++ {
			left := k
			b := newBench(t)
			b.pair(t, options(t, c.test, c.line), func(ch perf.Channel) perf.Channel { return cut{ch, &left} }, nil)
			if left >= 0 { // the test is over before the channel breaks
				if k < 16 || b.errs[0] != nil || b.errs[1] != nil {
					t.Errorf("%s: %d messages, and %v, %v", c.test, k, b.errs[0], b.errs[1])
				}
				break
			}
			says(t, b.errs[0], "the peer has closed the connection", "see the peer's own output for the reason")
			if b.errs[1] != nil { // a server that had the last message has not noticed
				says(t, b.errs[1], "step ")
			}
			if testing.Short() {
				k += 4
			}
		}
	}
}

// A peer that is killed at any time: the other end says at which step, and neither leaves anything.
func TestPerfPeerIsKilled(t *testing.T) {
	for _, line := range []string{"-R -n 4000 -q 2 s", "-z -n 4000 s", "-n 4000 s"} {
		for k, at := range []time.Duration{300 * time.Microsecond, 700 * time.Microsecond, 1500 * time.Microsecond, 5 * time.Millisecond} {
			if testing.Short() && k%2 == 0 {
				continue
			}
			for victim := range 2 {
				b := newBench(t)
				o := options(t, "write_bw", line)
				var server netip.Addr
				listens, gone := false, false
				b.envs[1].Listening = func(a netip.Addr) { server, listens = a, true }
				b.envs[0].Server = func(th verbs.Thread) (netip.Addr, error) {
					for !listens && !gone {
						th.Sleep(10 * time.Microsecond)
					}
					return server, nil
				}
				b.envs[1-victim].PeerGone = func() bool { return gone }
				b.pair(t, o, func(ch perf.Channel) perf.Channel { return ch }, func(th verbs.Thread, procs [2]verbs.Process, chs [2]perf.Channel) {
					th.Sleep(at)
					procs[victim].Kill(th)
					_ = chs[victim].Close() // as the kernel does with a socket
					gone = true
				})
				if b.errs[1-victim] == nil {
					t.Errorf("%s: end %d is killed after %v, and the other end has not noticed\n%s", line, victim, at, &b.outs[1-victim])
					continue
				}
				says(t, b.errs[1-victim], "step ")
			}
		}
	}
}

// --run_infinitely prints a row each -D seconds until the user ends it, and the server says that it
// was ended; -D counts its sample.
func TestPerfForATime(t *testing.T) {
	b := newBench(t, "link.bandwidth=1Gbps")
	b.envs[0].Interrupted = func() bool { return strings.Count(b.outs[0].String(), "\n 65536 ") >= 3 }
	b.pair(t, options(t, "write_bw", "--run_infinitely -D 1 s"), func(ch perf.Channel) perf.Channel { return ch }, nil)
	if b.errs[0] != nil || b.errs[1] != nil || strings.Count(b.outs[0].String(), "\n 65536 ") != 3 || !strings.Contains(b.outs[1].String(), " Client closed connection\n") {
		t.Errorf("%v %v\n%s\n%s", b.errs[0], b.errs[1], &b.outs[0], &b.outs[1])
	}
	b = newBench(t, "link.bandwidth=1Gbps")
	b.pair(t, options(t, "write_bw", "-D 3 -f 1 s"), func(ch perf.Channel) perf.Channel { return ch }, nil)
	runs, err := perftest.Parse("out", b.outs[0].Bytes())
	if err != nil || b.errs[0] != nil || b.errs[1] != nil {
		t.Fatalf("%v %v %v\n%s", err, b.errs[0], b.errs[1], &b.outs[0])
	}
	if row := runs[0].Rows[0]; row.Iterations < 1800 || row.Iterations > 1908 { // those of one second: 1 Gb/s is 1907
		t.Errorf("%d messages of 64 KiB in a second of 1 Gb/s", row.Iterations)
	}
}
