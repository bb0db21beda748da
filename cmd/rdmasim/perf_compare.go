package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/input"
	"github.com/rdmasim/rdmasim/perftest"
)

// comparison is a stored result of perftest, and what this run prints, to be put beside it.
type comparison struct {
	file    string
	rows    []perftest.Row
	latency bool
	printed bytes.Buffer
}

// openComparison reads the file of --compare: an output of perftest, or its JSON. There may be none.
func openComparison(ctx context.Context, f *perfFlags) (*comparison, error) {
	if f.compare == "" {
		return nil, nil
	}
	b, err := input.ReadFile(ctx, f.compare)
	if err != nil {
		return nil, usagef("perf: --compare: %w", err)
	}
	c := &comparison{file: f.compare}
	if t := bytes.TrimSpace(b); len(t) > 0 && t[0] == '{' {
		err = c.readJSON(t)
	} else {
		err = c.readText(b)
	}
	if err != nil {
		return nil, usagef("perf: --compare: %w", err)
	}
	return c, nil
}

func (c *comparison) readText(b []byte) error {
	runs, err := perftest.Parse(c.file, b)
	if err != nil {
		return err
	}
	c.latency = runs[0].Latency
	for _, r := range runs {
		if r.Latency == c.latency {
			c.rows = append(c.rows, r.Rows...)
		}
	}
	return nil
}

// readJSON reads the rows of a report. Those of perftest before 6.07 are no JSON.
func (c *comparison) readJSON(b []byte) error {
	type result struct {
		Size    uint64  `json:"MsgSize"`
		Rate    float64 `json:"MsgRate"`
		Typical float64 `json:"t_typical"`
		Average float64 `json:"t_avg"`
	}
	var doc struct {
		Results result   `json:"results"`
		All     []result `json:"all_results"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	if len(doc.All) == 0 {
		doc.All = []result{doc.Results}
	}
	for _, r := range doc.All {
		row := perftest.Row{Size: r.Size, Rate: r.Rate * 1e6, Typical: r.Typical * 1e3}
		if row.Typical == 0 {
			row.Typical = r.Average * 1e3
		}
		if c.latency = row.Rate == 0; r.Size == 0 || c.latency && row.Typical == 0 {
			return fmt.Errorf("%s: results has no MsgSize with a MsgRate or t_typical", c.file)
		}
		c.rows = append(c.rows, row)
	}
	return nil
}

// tee also keeps what is printed, where there is something to compare it with.
func (c *comparison) tee(w io.Writer) io.Writer {
	if c == nil {
		return w
	}
	return io.MultiWriter(w, &c.printed)
}

// print prints both results side by side.
func (c *comparison) print(w io.Writer, here string) error {
	if c == nil {
		return nil
	}
	runs, err := perftest.Parse("this run", c.printed.Bytes())
	if err != nil {
		return fmt.Errorf("perf: --compare: %w", err)
	}
	if runs[0].Latency != c.latency {
		return fmt.Errorf("perf: --compare: %s has %s, and this test measures %s", c.file, kindOf(c.latency), kindOf(runs[0].Latency))
	}
	unit, scale := "message rate, Mpps", 1e6
	value := func(r *perftest.Row) float64 { return r.Rate }
	if c.latency {
		unit, scale = "t_typical, usec", 1e3
		value = func(r *perftest.Row) float64 { return r.Typical }
	}
	fmt.Fprintf(w, "\nSide by side, %s:\n", unit)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "  #bytes\t%s\t%s\tratio\n", here, c.file)
	none := true
	for i := range runs[0].Rows {
		mine := &runs[0].Rows[i]
		for k := range c.rows {
			if c.rows[k].Size == mine.Size {
				a, b := value(mine)/scale, value(&c.rows[k])/scale
				fmt.Fprintf(tw, "  %d\t%.4g\t%.4g\t%.3f\n", mine.Size, a, b, a/b)
				none = false
			}
		}
	}
	if none {
		return fmt.Errorf("perf: --compare: %s has no size that this run has measured", c.file)
	}
	return tw.Flush()
}

func kindOf(latency bool) string {
	if latency {
		return "latencies"
	}
	return "rates"
}
