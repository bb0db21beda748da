// Package browser opens pages that our programs write in a headless Chromium, looks at them as a
// reader does, and fails a test for what such a page must never do: run into an error of its
// script, or ask for anything but itself. It is for tests.
package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Need is the variable that, set to 1, makes a missing browser a failure; make test sets it.
const Need = "RDMASIM_NEED_BROWSER"

// programs are the names that a Chromium without a window goes by, the smallest first.
var programs = []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// hang is how long the browser may take for an answer before it is taken to hang.
const hang = 5 * time.Minute

// Find returns the path of a browser, or ends the test.
func Find(t testing.TB) string {
	t.Helper()
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv(Need) == "1" {
		t.Fatalf("no Chromium is here and %s is set: scripts/tools installs chromium-headless-shell", Need)
	}
	t.Skipf("no Chromium is here: what a reader sees of the page is not checked (%s=1 makes this a failure)", Need)
	return ""
}

// Page is a page in a browser.
type Page struct {
	t        testing.TB
	in       io.Writer
	out      *bufio.Reader
	calls    int
	session  string
	loaded   bool
	problems []string
	timer    *time.Timer
}

// Open opens a file in a window of a size in pixels. The browser ends with the test, which fails if
// the page's script has run into an error, or the page has asked for another address.
func Open(t testing.TB, file string, wide, high int) *Page {
	t.Helper()
	path := Find(t)
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	fromUs, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, toUs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir()}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // which root cannot have; the page is our own
	}
	cmd := exec.Command(path, append(args, "about:blank")...)
	cmd.ExtraFiles = []*os.File{fromUs, toUs}             // descriptors 3 and 4, as the pipe of the protocol wants them
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its processes end with it
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	_, _ = fromUs.Close(), toUs.Close()
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	p := &Page{t: t, in: in, out: bufio.NewReader(out), timer: time.AfterFunc(hang, kill)}
	t.Cleanup(func() {
		_, _ = io.WriteString(in, `{"id":0,"method":"Browser.close"}`+"\x00") // if it does not hear, the timer ends it
		_, _ = io.Copy(io.Discard, p.out)                                     // until it has closed its end
		_ = cmd.Wait()
		kill()
		p.timer.Stop()
		_, _ = in.Close(), out.Close()
		for _, problem := range p.problems {
			t.Errorf("%s: %s", file, problem)
		}
	})
	p.attach(wide, high)
	p.call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	for !p.loaded {
		p.read()
	}
	return p
}

// attach makes a page of its own and asks for its events.
func (p *Page) attach(wide, high int) {
	var target struct {
		ID string `json:"targetId"`
	}
	p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct {
		ID string `json:"sessionId"`
	}
	p.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &session)
	p.session = session.ID
	for _, domain := range []string{"Page.enable", "Runtime.enable", "Network.enable", "Log.enable"} {
		p.call(domain, nil, nil)
	}
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": wide < 600}, nil)
}

// message is one of the protocol, an answer or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// call sends a command and waits for its answer.
func (p *Page) call(method string, params, result any) {
	p.t.Helper()
	p.timer.Reset(hang)
	p.calls++
	command := map[string]any{"id": p.calls, "method": method}
	if params != nil {
		command["params"] = params
	}
	if p.session != "" {
		command["sessionId"] = p.session
	}
	text, err := json.Marshal(command)
	if err == nil {
		_, err = p.in.Write(append(text, 0))
	}
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	for {
		m := p.read()
		if m.ID != p.calls {
			continue
		}
		if m.Error != nil {
			p.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				p.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

// read takes the next message, and notes what an event says.
func (p *Page) read() message {
	p.t.Helper()
	text, err := p.out.ReadBytes(0)
	if err != nil {
		p.t.Fatalf("the browser has ended or hangs: %v", err)
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		p.t.Fatalf("the browser says %.200q: %v", text, err)
	}
	var event struct {
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
		Entry struct {
			Level, Text string
		} `json:"entry"`
		Details json.RawMessage `json:"exceptionDetails"`
	}
	if m.Method != "" {
		_ = json.Unmarshal(m.Params, &event) // of other events the fields are missing
	}
	switch m.Method {
	case "Page.loadEventFired":
		p.loaded = true
	case "Runtime.exceptionThrown":
		p.problems = append(p.problems, fmt.Sprintf("its script fails: %s", event.Details))
	case "Network.requestWillBeSent":
		if u := event.Request.URL; len(u) < 5 || u[:5] != "file:" && u[:5] != "about" && u[:5] != "data:" {
			p.problems = append(p.problems, "it asks for "+u)
		}
	case "Log.entryAdded":
		if event.Entry.Level == "error" {
			p.problems = append(p.problems, event.Entry.Text)
		}
	}
	return m
}

// Eval is the value of an expression of JavaScript in the page, put into value as JSON has it.
func (p *Page) Eval(expression string, value any) {
	p.t.Helper()
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	if out.Exception != nil {
		p.t.Fatalf("%s: %s %s", expression, out.Exception.Text, out.Exception.Exception.Description)
	}
	if value == nil {
		return
	}
	if err := json.Unmarshal(out.Result.Value, value); err != nil {
		p.t.Fatalf("%s is %s: %v", expression, out.Result.Value, err)
	}
}

// Picture is what the window shows, as PNG.
func (p *Page) Picture() []byte {
	p.t.Helper()
	var shot struct {
		Data []byte `json:"data"`
	}
	p.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	return shot.Data
}
