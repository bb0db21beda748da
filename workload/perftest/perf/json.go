package perf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// jsonRow is the result of one size as an object: members in order, as perftest names them.
type jsonRow []member

type member struct {
	key   string
	value string // as JSON
}

func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

func text(s string) string {
	b, _ := json.Marshal(s) // of a string there is no error
	return string(b)
}

func whole64(v uint64) string { return strconv.FormatUint(v, 10) }

func bandwidthRow(size, iters uint64, peak, average, rate float64, fine bool, output int) jsonRow {
	digits := 2
	if fine {
		digits = 6
	}
	switch output {
	case OutputBandwidth:
		return jsonRow{{"bw_avg", fixed(average, 6)}}
	case OutputRate:
		return jsonRow{{"msgRate_avg", fixed(rate, 6)}}
	}
	return jsonRow{{"MsgSize", whole64(size)}, {"n_iterations", whole64(iters)}, {"BW_peak", fixed(peak, digits)}, {"BW_average", fixed(average, digits)}, {"MsgRate", fixed(rate, 6)}}
}

func latencyRow(size, iters uint64, s *summary, output int) jsonRow {
	if output == OutputLatency {
		return jsonRow{{"avg_lat", fixed(s.average, 6)}}
	}
	return jsonRow{{"MsgSize", whole64(size)}, {"n_iterations", whole64(iters)}, {"t_min", fixed(s.least, 2)}, {"t_max", fixed(s.most, 2)}, {"t_typical", fixed(s.typical, 2)},
		{"t_avg", fixed(s.average, 2)}, {"t_stdev", fixed(s.deviation, 2)}, {"percentile_99", fixed(s.p99, 2)}, {"percentile_99.9", fixed(s.p999, 2)}}
}

func latencyTimedRow(size, iters uint64, average, perSecond float64, output int) jsonRow {
	if output == OutputLatency {
		return jsonRow{{"t_avg", fixed(average, 6)}}
	}
	return jsonRow{{"MsgSize", whole64(size)}, {"n_iterations", whole64(iters)}, {"t_avg", fixed(average, 2)}, {"tps_average", fixed(perSecond, 2)}}
}

// writeJSON puts the report so far in its file, if it is asked for. As in perftest, results is that
// of the last size; all_results, which perftest has not, has those of all sizes where there are
// several. A test with -a that ends early leaves a report that says so.
func (e *End) writeJSON(r jsonRow) error {
	if !e.o.JSON || e.env.WriteJSON == nil {
		return nil
	}
	e.rows = append(e.rows, r)
	if err := e.env.WriteJSON(e.o.JSONFile, e.document()); err != nil {
		return &StepError{Step: stepReport, Err: fmt.Errorf("%s: %w", e.o.JSONFile, err), Hint: "give another file with --out_json_file", Words: fmt.Sprintf("failed to open %s\n", e.o.JSONFile)}
	}
	return nil
}

func (e *End) document() []byte {
	var b bytes.Buffer
	b.WriteString("{\n\"test_info\": {\n")
	fmt.Fprintf(&b, "\"test\": %s", text(strings.ReplaceAll(e.o.title(), " ", "_")))
	if e.o.Events {
		fmt.Fprintf(&b, ",\n\"Test with events\": \"Using_%s_comp%d\"", e.dev.Name(), e.o.Vector)
	}
	for _, s := range e.settings() {
		switch v := s.value.(type) {
		case string:
			fmt.Fprintf(&b, ",\n%q: %s", s.key, text(v))
		case int:
			fmt.Fprintf(&b, ",\n%q: %d", s.key, v)
		}
	}
	b.WriteString("\n},\n\"results\": ")
	e.rows[len(e.rows)-1].write(&b)
	if len(e.rows) > 1 {
		b.WriteString(",\n\"all_results\": [\n")
		for i, r := range e.rows {
			if i > 0 {
				b.WriteString(",\n")
			}
			r.write(&b)
		}
		b.WriteString("\n]")
	}
	if e.o.Method == AllSizes && len(e.rows) < len(e.sizes()) {
		b.WriteString(",\n\"incomplete\": true")
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

func (r jsonRow) write(b *bytes.Buffer) {
	b.WriteString("{\n")
	for i, m := range r {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(b, "%q: %s", m.key, m.value)
	}
	b.WriteString("\n}")
}
