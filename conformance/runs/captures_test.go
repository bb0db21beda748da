package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
)

const twoEvents = `{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"host0"}},
{"ph":"X","pid":1,"tid":1,"ts":0.000001,"dur":1,"name":"post","args":{"arg":9007199254740993}}
]}
`

// A worker that is killed while it writes a case's timeline leaves a part of it. The events that
// are complete stay, and the timelines of the other cases do.
func TestTimelinesOfKilledCases(t *testing.T) {
	dir := t.TempDir()
	write := func(id, text string) {
		if err := os.WriteFile(filepath.Join(dir, id+".trace"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("RC-001", twoEvents)
	for cut := range len(twoEvents) + 1 {
		write("RC-002", twoEvents[:cut])
		var b bytes.Buffer
		if err := JoinTraces(&b, dir, []report.Case{{ID: "DEV-001"}, {ID: "RC-002"}, {ID: "RC-001"}}); err != nil {
			t.Fatalf("after %d bytes: %v", cut, err)
		}
		var got struct {
			TraceEvents []struct {
				PID  int
				Args struct{ Name string }
			}
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("after %d bytes: %v in\n%s", cut, err, b.String())
		}
		want := 2
		for _, line := range strings.SplitAfter(twoEvents, "}}")[:2] {
			if cut >= strings.Index(twoEvents, line)+len(line) {
				want++
			}
		}
		if n := len(got.TraceEvents); n != want {
			t.Fatalf("after %d bytes: %d events, want %d:\n%s", cut, n, want, b.String())
		}
		first, last := got.TraceEvents[0], got.TraceEvents[want-2]
		if last.Args.Name != "RC-001 host0" || want > 2 && (first.Args.Name != "RC-002 host0" || first.PID == last.PID) {
			t.Fatalf("after %d bytes:\n%s", cut, b.String())
		}
		if !strings.Contains(b.String(), "9007199254740993") {
			t.Fatalf("a number is not as it was written:\n%s", b.String())
		}
	}
}

// Timelines of the whole suite take gigabytes, which are never in memory together.
func TestTimelinesAreNotHeldInMemory(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "RC-001.trace"))
	if err != nil {
		t.Fatal(err)
	}
	b := bufio.NewWriter(f)
	fmt.Fprint(b, `{"traceEvents":[`)
	for i := range 100_000 {
		fmt.Fprintf(b, "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,\"name\":\"post\",\"args\":{\"arg\":%d}},\n", i, i)
	}
	fmt.Fprint(b, `{"ph":"X","pid":1}]}`)
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w := &heapWriter{}
	before := w.heap()
	if err := JoinTraces(w, dir, []report.Case{{ID: "RC-001"}}); err != nil {
		t.Fatal(err)
	}
	if used := int64(w.most) - int64(before); used > 2<<20 {
		t.Errorf("%.1f MiB in use while a timeline of %.1f MiB is written", float64(used)/(1<<20), float64(w.written)/(1<<20))
	}
}

// heapWriter measures the memory in use at every MiB that it is given.
type heapWriter struct {
	written, next int
	most          uint64
}

func (w *heapWriter) Write(p []byte) (int, error) {
	if w.written += len(p); w.written >= w.next {
		w.most, w.next = max(w.most, w.heap()), w.next+1<<20
	}
	return len(p), nil
}

func (w *heapWriter) heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
