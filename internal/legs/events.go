package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is a line of go test -json: see go doc test2json and, for the builds, go help buildjson.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	FailedBuild string
}

// test is a test of which there is no result yet.
type test struct {
	output    []string
	parent    bool // has tests within
	failChild bool // one of them failed
	order     int
}

// outcomes reads what a command prints, passes it on in the form that people read, and keeps the
// results of tests.
type outcomes struct {
	out     io.Writer
	module  string // path of the module, which names in the output lack
	leg     string
	record  *record
	alone   func(testKey) string
	open    map[testKey]*test
	builds  map[string][]string // output of builds that may fail, by import path
	failed  map[string]bool     // packages with a failed test
	started int
}

// read takes a command's standard output, to its end.
func (o *outcomes) read(from io.Reader) error {
	lines := bufio.NewReaderSize(from, 1<<16)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			o.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// skippedLine is how a script says that a part of it cannot run here.
var skippedLine = regexp.MustCompile(`^([\w./-]+): skipped: (.+)\n?$`)

func (o *outcomes) line(line string) {
	if strings.HasPrefix(line, "{") {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" && (e.Package != "" || e.ImportPath != "") {
			o.event(e)
			return
		}
	}
	if m := skippedLine.FindStringSubmatch(line); m != nil {
		o.skip(testKey{Package: m[1]}, m[2])
	}
	io.WriteString(o.out, line)
}

func (o *outcomes) event(e event) {
	key := testKey{o.short(e.Package), e.Test}
	switch e.Action {
	case "build-output":
		o.builds[e.ImportPath] = append(o.builds[e.ImportPath], e.Output)
	case "build-fail":
		fmt.Fprint(o.out, strings.Join(o.builds[e.ImportPath], ""))
	case "run":
		o.started++
		o.open[key] = &test{order: o.started}
		if up, ok := o.parent(key); ok {
			up.parent = true
		}
	case "output":
		if t := o.open[key]; t != nil {
			if !strings.HasPrefix(e.Output, "=== ") {
				t.output = append(t.output, e.Output)
			}
		} else if e.Test == "" && e.Output != "PASS\n" && !strings.HasPrefix(e.Output, "=== ") {
			io.WriteString(o.out, strings.ReplaceAll(e.Output, o.module+"/", ""))
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			if e.Action == "fail" {
				o.packageFailed(key, e.FailedBuild)
			}
			return
		}
		o.ended(key, e.Action)
	}
}

// ended takes the result of a test. Of a test with tests within, those count.
func (o *outcomes) ended(key testKey, result string) {
	t := o.open[key]
	if t == nil {
		t = &test{}
	}
	delete(o.open, key)
	switch result {
	case "skip":
		o.skip(key, reason(t.output))
		return
	case "pass":
		if !t.parent {
			o.record.Passed++
		}
	case "fail":
		io.WriteString(o.out, strings.Join(t.output, ""))
		if up, ok := o.parent(key); ok {
			up.failChild = true
		}
		if !t.failChild {
			o.fail(key)
		}
	}
	o.record.Ran = append(o.record.Ran, key)
}

func (o *outcomes) skip(key testKey, why string) {
	o.record.Skipped++
	o.record.Skips = append(o.record.Skips, skip{key, why})
}

func (o *outcomes) fail(key testKey) {
	o.record.Failed++
	// Packages run at the same time: the first by name is the same in every run.
	if o.record.First == nil || o.failed[o.record.First.Package] && key.Package < o.record.First.Package {
		o.record.First = &failure{key, o.alone(key)}
	}
	o.failed[key.Package] = true
}

// packageFailed finds what a failed package failed by: its build, a test that has said so, one that
// had not ended when the package did (by a crash or at the limit of time), or itself.
func (o *outcomes) packageFailed(key testKey, build string) {
	var last testKey
	var found *test
	for k, t := range o.open {
		if k.Package == key.Package && !t.parent && (found == nil || t.order > found.order) {
			last, found = k, t
		}
	}
	for k := range o.open {
		if k.Package == key.Package && k != last {
			delete(o.open, k)
		}
	}
	switch {
	case build != "":
		o.fail(key)
	case found != nil:
		o.ended(last, "fail")
	case !o.failed[key.Package]:
		o.fail(key)
	}
}

func (o *outcomes) parent(key testKey) (*test, bool) {
	i := strings.LastIndexByte(key.Test, '/')
	if i < 0 {
		return nil, false
	}
	t := o.open[testKey{key.Package, key.Test[:i]}]
	return t, t != nil
}

func (o *outcomes) short(path string) string {
	path, _, _ = strings.Cut(path, " ") // of a test's own variant of a package
	if path == o.module {
		return "."
	}
	return strings.TrimPrefix(path, o.module+"/")
}

var location = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: `)

// reason is the sentence of a skip: the last thing that the test logged, without the place.
func reason(output []string) string {
	var words []string
	for _, line := range output {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "--- SKIP"):
		case location.MatchString(line):
			words = []string{strings.TrimSpace(location.ReplaceAllString(line, ""))}
		case len(words) > 0:
			words = append(words, strings.TrimSpace(line))
		}
	}
	if len(words) == 0 {
		return "it does not say why"
	}
	return strings.TrimSpace(strings.Join(words, " "))
}
