package remotewire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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

// FuzzServe: whatever a guest says, each line that is not empty is answered by lines that the client can read, and what it
// has changed is undone at the end.
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
