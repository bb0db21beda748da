package remotewire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// fake is a wire that says what was asked of it.
type fake struct {
	asked  []string
	frames []verbs.WireFrame
	writes []verbs.MMIOWrite
	fails  error
	resets int
}

func (f *fake) note(format string, a ...any) error {
	f.asked = append(f.asked, fmt.Sprintf(format, a...))
	return f.fails
}

func (f *fake) Reset() ([]uint64, bool)             { f.resets++; return []uint64{7, 1<<63 + 1}, true }
func (f *fake) StartTap() error                     { return f.note("tap") }
func (f *fake) StopTap() ([]verbs.WireFrame, error) { return f.frames, f.note("stop") }
func (f *fake) Inject(r verbs.WireRule) error       { return f.note("rule %+v", r) }
func (f *fake) ClearRules() []int                   { _ = f.note("clear"); return []int{3, 0} }
func (f *fake) SetLink(g uint64, up bool) error     { return f.note("link %d %v", g, up) }
func (f *fake) ConfigureSubnet(c verbs.SubnetConfig) error {
	return f.note("subnet %+v", c)
}

func (f *fake) Has() []string                       { return []string{"ecn"} }
func (f *fake) StartLog() error                     { return f.note("log") }
func (f *fake) StopLog() ([]verbs.MMIOWrite, error) { return f.writes, f.note("logged") }
func (f *fake) Tear(g uint64, n, keep int) error    { return f.note("tear %d %d %d", g, n, keep) }
func (f *fake) FailNext(g uint64, qpn uint32, s, v uint8) error {
	return f.note("fail %d %d %d %d", g, qpn, s, v)
}
func (f *fake) Counters(g uint64) (map[string]uint64, error) {
	return map[string]uint64{"rx": 1<<63 + 1}, f.note("counters %d", g)
}
func (f *fake) Clock() (time.Duration, error) { return time.Hour + 1, f.note("clock") }
func (f *fake) Address(g uint64, ip netip.Addr, add bool) error {
	return f.note("address %d %v %v", g, ip, add)
}

// serve lets a test talk to a server.
func serve(t *testing.T, f *fake) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(theirs, f) }()
	t.Cleanup(func() {
		_ = ours.Close()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the server: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("waited a minute for the server to notice the end of the stream")
		}
	})
	return ours
}

func TestThereAndBack(t *testing.T) {
	f := &fake{}
	for i := range 40 { // more than a line holds
		f.frames = append(f.frames, verbs.WireFrame{At: time.Duration(i), Data: bytes.Repeat([]byte{byte(i)}, 4096), InfiniBand: i%2 == 0, Acted: verbs.WireDrop})
	}
	c, err := New(serve(t, f), []uint64{1<<63 + 1, 7})
	if err != nil || !c.Subnet || f.resets != 1 {
		t.Fatalf("%v, subnet %v, %d resets", err, c.Subnet, f.resets)
	}
	rule := verbs.WireRule{Match: verbs.WireMatchPSN, PSN: 5, Action: verbs.WireEdit, Edits: []verbs.ByteEdit{{Offset: 3, Value: 9}}, Delay: time.Hour}
	subnet := verbs.SubnetConfig{GIDPrefix: 1<<63 + 5, PKeys: []uint16{0x7fff}}
	err = errors.Join(c.StartTap(nil), c.Inject(nil, rule), c.SetLink(nil, 1, 1, false), c.SetLink(nil, 0, 1, true), c.ConfigureSubnet(nil, subnet))
	met, err2 := c.ClearRules(nil)
	frames, err3 := c.StopTap(nil)
	if err = errors.Join(err, err2, err3); err != nil || !reflect.DeepEqual(met, []int{3, 0}) || !reflect.DeepEqual(frames, f.frames) {
		t.Errorf("%v, rules %v, %d frames", err, met, len(frames))
	}
	want := []string{"tap", fmt.Sprintf("rule %+v", rule), "link 7 false", fmt.Sprintf("link %d true", uint64(1<<63+1)), fmt.Sprintf("subnet %+v", subnet), "clear", "stop"}
	if !reflect.DeepEqual(f.asked, want) {
		t.Errorf("asked\n%q, want\n%q", f.asked, want)
	}
	for _, x := range [][2]int{{2, 1}, {-1, 1}, {0, 2}} {
		if err := c.SetLink(nil, x[0], x[1], true); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("link of %v: %v", x, err)
		}
	}
	if err := c.Reset(); err != nil || f.resets != 2 {
		t.Errorf("reset: %v, %d", err, f.resets)
	}
	f.fails = fmt.Errorf("no room: %w", syscall.ENOSPC)
	if err := c.Inject(nil, rule); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a refusal: %v", err)
	}
	if got, err := c.StopTap(nil); !errors.Is(err, syscall.ENOSPC) || len(got) != len(frames) {
		t.Errorf("a recording that is not whole: %d frames, %v", len(got), err)
	}
}

// TestBench: what is asked of devices comes there, and their answers back.
func TestBench(t *testing.T) {
	f := &fake{}
	for i := range 3 * writesEach / 2 { // more than an answer has
		f.writes = append(f.writes, verbs.MMIOWrite{At: time.Duration(i), Kind: verbs.MMIOBlueFlame, QPN: uint32(i), Data: []byte{byte(i)}})
	}
	c, err := New(serve(t, f), []uint64{7, 1<<63 + 1})
	if err != nil || !c.Bench || !reflect.DeepEqual(c.Has, []string{"ecn"}) {
		t.Fatal("no bench", err)
	}
	ip := netip.MustParseAddr("10.0.0.9")
	err = errors.Join(c.StartLog(), c.Tear(1, 2, 16), c.FailNext(0, 5, 6, 7), c.Address(0, ip, true), c.Address(1, ip, false))
	writes, err2 := c.StopLog()
	counters, err3 := c.Counters(1)
	clock, err4 := c.Clock()
	if err = errors.Join(err, err2, err3, err4); err != nil || !reflect.DeepEqual(writes, f.writes) || counters["rx"] != 1<<63+1 || clock != time.Hour+1 {
		t.Errorf("%v, %d writes, counters %v, clock %v", err, len(writes), counters, clock)
	}
	want := []string{"log", "tear 9223372036854775809 2 16", "fail 7 5 6 7", "address 7 10.0.0.9 true", "address 9223372036854775809 10.0.0.9 false", "logged", "counters 9223372036854775809", "clock"}
	if !reflect.DeepEqual(f.asked, want) {
		t.Errorf("asked\n%q, want\n%q", f.asked, want)
	}
	if _, err := c.Counters(2); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("counters of a host that is not there: %v", err)
	}
	f.fails = fmt.Errorf("no room: %w", syscall.ENOSPC)
	if w, err := c.StopLog(); !errors.Is(err, syscall.ENOSPC) || len(w) != len(writes) {
		t.Errorf("a log that is not whole: %d writes, %v", len(w), err)
	}
}

// TestNoBench: a wire whose devices are real has no bench, and says so.
func TestNoBench(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() { _ = Serve(theirs, struct{ Wire }{&fake{}}) }()
	c, err := New(ours, []uint64{7})
	if err != nil || c.Bench {
		t.Fatal("a bench", err)
	}
	defer c.Close()
	if err := c.StartLog(); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Error(err)
	}
	if _, err := c.StopLog(); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Error(err)
	}
}

func TestDeviceElsewhere(t *testing.T) {
	if _, err := New(serve(t, &fake{}), []uint64{7, 8}); !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "0x0000000000000008") {
		t.Error(err)
	}
}

// script is a stream whose other side was written before.
type script struct {
	io.Reader
	bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)  { return s.Reader.Read(p) }
func (s *script) Write(p []byte) (int, error) { return s.Buffer.Write(p) }
func (s *script) Close() error                { return nil }

// TestAnswersToOthers: what an earlier client has left in the stream is passed over.
func TestAnswersToOthers(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		defer theirs.Close()
		r := bufio.NewReader(theirs)
		_, _ = r.ReadString('\n')
		line, err := r.ReadString('\n')
		var q question
		if err != nil || q.parse([]byte(line)) != nil {
			t.Errorf("%q, %v", line, err)
		}
		fmt.Fprintf(theirs, "half an answer\n{\"id\":1,\"frames\":[]}\n%s\n{\"id\":%d,\"ports\":[7]}\n", strings.Repeat("x", maxAnswer+5), q.ID)
	}()
	if c, err := New(ours, []uint64{7}); err != nil || c.Subnet {
		t.Error(err)
	}
}

func TestStreamThatEnds(t *testing.T) {
	if _, err := New(&script{Reader: strings.NewReader("{}\n")}, nil); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestNonsense: each line gets an answer, a long one too, and the conversation goes on.
func TestNonsense(t *testing.T) {
	f := &fake{}
	c := serve(t, f)
	r := bufio.NewReaderSize(c, maxAnswer)
	for _, line := range []string{"?", "{}", `{"do":"fly"}`, `{"do":"inject"}`, `{"do":"subnet"}`, `{"do":"tap","and":1}`, `{"do":"tap"} 7`, strings.Repeat("x", 3*maxQuestion)} {
		go func() { fmt.Fprintln(c, line) }()
		answered, err := r.ReadString('\n')
		if err != nil || !strings.Contains(answered, `"error"`) {
			t.Errorf("%.40q: %q, %v", line, answered, err)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("asked %q", f.asked)
	}
	go func() { fmt.Fprint(c, "{\"do\":\"tap\",\n\n") }()
	if answered, err := r.ReadString('\n'); err != nil || !strings.Contains(answered, `"error"`) {
		t.Errorf("half a question: %q, %v", answered, err)
	}
	if _, err := New(c, nil); err != nil || f.resets != 1 {
		t.Errorf("%v, %d resets", err, f.resets)
	}
}

// FuzzServe: whatever a guest says, each line that is not empty is answered by lines that the
// client can read, and what it has changed is undone at the end.
func FuzzServe(f *testing.F) {
	f.Add([]byte("\n{\"id\":1,\"do\":\"hello\"}\n{\"id\":2,\"do\":\"tap\"}\n{\"id\":3,\"do\":\"frames\"}\n"))
	f.Add([]byte(`{"id":18446744073709551615,"do":"inject","rule":{"Match":65535,"PSN":4294967295,"Action":4,"Delay":9223372036854775807,"Edits":[{"Offset":-1}]}}` + "\n"))
	f.Add([]byte(`{"do":"link","port":1,"up":true}` + "\n" + `{"do":"subnet","subnet":{"PKeys":[1,2],"Reregister":true}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := &fake{frames: []verbs.WireFrame{{Data: b}}}
		s := &script{Reader: bytes.NewReader(b)}
		if err := Serve(s, w); err != nil {
			t.Fatal(err)
		}
		whole := b[:bytes.LastIndexByte(b, '\n')+1]
		questions := 0
		for line := range bytes.Lines(whole) {
			if len(line) > 1 {
				questions++
			}
		}
		answers := 0
		for line := range bytes.Lines(s.Bytes()) {
			answers++
			if len(line) > maxAnswer {
				t.Errorf("an answer of %d bytes", len(line))
			}
		}
		if answers != questions || w.resets == 0 {
			t.Errorf("%d answers to %d questions, %d resets", answers, questions, w.resets)
		}
	})
}

// FuzzAnswer: whatever a server says, the client ends, and takes for an answer only what is one.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("{\"id\":1}\n{\"id\":2,\"more\":true,\"frames\":[{}]}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &Client{s: &script{Reader: bytes.NewReader(b)}}
		c.r = bufio.NewReaderSize(c.s, maxAnswer)
		_, err := c.StopTap(nil)
		answered := false
		for line := range bytes.Lines(b) {
			var a answer
			answered = answered || json.Unmarshal(line, &a) == nil && a.ID == 1 && !a.More
		}
		if err == nil && !answered {
			t.Error("an answer to nothing")
		}
	})
}
