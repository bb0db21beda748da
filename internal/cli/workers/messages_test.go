package workers

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// endless is a message without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestMessagesAreBounded(t *testing.T) {
	const most = 1 << 20
	e := &endless{}
	_, err := Next[any](bufio.NewReader(io.MultiReader(strings.NewReader(`{"Text":"`), e)), most)
	if err == nil || !strings.Contains(err.Error(), `longer than 1 MiB and begins with "{\"Text\":\"xxx`) || e.read > 2*most {
		t.Errorf("%v after %d bytes", err, e.read)
	}
	const each = most / 3
	text := `"` + strings.Repeat("x", each) + "\"\n"
	r := bufio.NewReader(strings.NewReader(strings.Repeat(text, 5) + text[:9])) // each is short enough
	for range 5 {
		if s, err := Next[string](r, most); err != nil || len(s) != each {
			t.Fatalf("%d bytes, %v", len(s), err)
		}
	}
	if _, err := Next[string](r, most); err != io.EOF {
		t.Errorf("%v at the end", err)
	}
}

// What ends the messages is known when they have ended: a proper end is none, and nonsense is
// quoted.
func TestEndOfMessages(t *testing.T) {
	for text, want := range map[string]string{"1\n2\n3\n": "[1 2 3] <nil>", "1\n2": "[1] <nil>", "1\npears\n2\n": "[1] \"pears\\n\" in place of a message: invalid character 'p' looking for beginning of value"} {
		m := Receive[int](strings.NewReader(text))
		var got []int
		for n := range m.C {
			got = append(got, n)
		}
		if s := fmt.Sprintf("%v %v", got, m.Err()); s != want {
			t.Errorf("%q: %s, want %s", text, s, want)
		}
	}
}

// Why a worker died is its status and the first line that it wrote; one that does not end is killed
// with its children.
func TestWhyAWorkerDied(t *testing.T) {
	for script, want := range map[string]Death{
		"exit 0":                                 {Ended: true},
		"echo; echo ' fatal' >&2; exit 3":        {Ended: true, Line: "fatal"},
		"kill -9 $$":                             {Ended: true},
		"exec >&- 2>&-; sleep 1000 & sleep 1000": {},
	} {
		cmd := exec.Command("sh", "-c", script)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := Start(cmd, NewHead(0), true)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out)
		within := time.Hour
		if !want.Ended {
			within = time.Millisecond
		}
		got := p.Died(within)
		if got.Ended != want.Ended || got.Line != want.Line || (got.Err == nil) != (script == "exit 0") {
			t.Errorf("%s: %+v, want %+v", script, got, want)
		}
		if again := p.Stop(); fmt.Sprint(again) != fmt.Sprint(got.Err) {
			t.Errorf("%s: %v the second time, %v the first", script, again, got.Err)
		}
	}
}
