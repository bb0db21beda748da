package sim

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Spans collects a timeline. A nil *Spans records nothing, so a unit writes
//
//	if e.Spans != nil { e.Spans.Span(track, "fetch", start, end, qpn) }
//
// and pays one comparison when no timeline is asked for.
type Spans struct {
	tracks []string
	spans  []span
}

type span struct {
	track      int32
	name       string
	start, end Time
	arg        uint64
}

// Track names a line of the timeline ("host0/core 3", "mlx5_0/PU 2") and returns
// its number. What comes before the first slash groups the lines.
func (s *Spans) Track(name string) int32 {
	s.tracks = append(s.tracks, name)
	return int32(len(s.tracks) - 1)
}

// Span records that track did name from start to end; arg is shown with it.
func (s *Spans) Span(track int32, name string, start, end Time, arg uint64) {
	s.spans = append(s.spans, span{track, name, start, end, arg})
}

// Each calls f with each span, in the order of their recording.
func (s *Spans) Each(f func(track, name string, start, end Time, arg uint64)) {
	for i := range s.spans {
		x := &s.spans[i]
		f(s.tracks[x.track], x.name, x.start, x.end, x.arg)
	}
}

// WriteJSON writes the timeline as Trace Event JSON ("complete" events; ts and dur
// in microseconds with picosecond digits, exact decimals), which Perfetto and
// chrome://tracing open. Spans are ordered by start, then by when they were
// recorded, so that equal runs give equal bytes.
func (s *Spans) WriteJSON(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")
	sep := "\n"
	group := make(map[string]int)
	pids := make([]int, len(s.tracks))
	for tid, name := range s.tracks {
		process, thread, ok := strings.Cut(name, "/")
		if !ok {
			thread = process
		}
		pid, seen := group[process]
		if !seen {
			pid = len(group) + 1
			group[process] = pid
			writeMeta(b, sep, "process_name", pid, 0, process)
			sep = ",\n"
		}
		pids[tid] = pid
		writeMeta(b, sep, "thread_name", pid, tid+1, thread)
	}
	order := make([]int, len(s.spans))
	for i := range order {
		order[i] = i
	}
	// Programs that run ahead record their spans early: the order in the file is that
	// of the spans' times and tracks, not of their recording.
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := &s.spans[x], &s.spans[y]
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.track, b.track), cmp.Compare(a.end, b.end),
			strings.Compare(a.name, b.name), cmp.Compare(a.arg, b.arg))
	})
	quoted := make(map[string]string) // there are few names
	for _, i := range order {
		x := &s.spans[i]
		name, ok := quoted[x.name]
		if !ok {
			name = quote(x.name)
			quoted[x.name] = name
		}
		b.WriteString(sep)
		sep = ",\n"
		b.Write(x.append(b.AvailableBuffer(), pids[x.track], name))
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

// append appends the event of a span.
func (x *span) append(b []byte, pid int, name string) []byte {
	b = strconv.AppendInt(append(b, `{"ph":"X","pid":`...), int64(pid), 10)
	b = strconv.AppendInt(append(b, `,"tid":`...), int64(x.track)+1, 10)
	b = appendFixed(append(b, `,"ts":`...), int64(x.start), int64(Microsecond))
	b = appendFixed(append(b, `,"dur":`...), int64(x.end-x.start), int64(Microsecond))
	b = append(append(b, `,"name":`...), name...)
	b = strconv.AppendUint(append(b, `,"args":{"arg":`...), x.arg, 10)
	return append(b, "}}"...)
}

// writeMeta names a process or a thread of the timeline.
func writeMeta(b *bufio.Writer, sep, what string, pid, tid int, name string) {
	b.WriteString(sep + `{"ph":"M","pid":` + strconv.Itoa(pid) + `,"tid":` + strconv.Itoa(tid) +
		`,"name":"` + what + `","args":{"name":` + quote(name) + `}}`)
}

func quote(s string) string {
	q, err := json.Marshal(s)
	if err != nil {
		panic("sim: " + err.Error()) // a string always marshals
	}
	return string(q)
}
