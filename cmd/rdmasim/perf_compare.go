package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/workload/perftest"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
)

// comparison is a stored result of perftest, and what this run prints, to be put beside it.
type comparison struct {
	file    string
	rows    []perftest.Row
	latency bool
	printed bytes.Buffer
}

// openComparison reads the file of --compare: an output of perftest, or its JSON. There may be
// none.
func openComparison(ctx context.Context, f *perfFlags, o *perf.Options) (*comparison, error) {
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
	if err := c.fits(o); err != nil {
		return nil, usagef("perf: --compare: %w", err)
	}
	return c, nil
}

// fits says whether what is stored can stand beside what a test prints.
func (c *comparison) fits(o *perf.Options) error {
	switch {
	case o.Output != perf.FullOutput:
		return fmt.Errorf("it needs the table of a test: leave --output out")
	case o.Test.Latency != c.latency:
		return fmt.Errorf("%s has %s, and this test measures %s", c.file, kindOf(c.latency), kindOf(o.Test.Latency))
	}
	for i := range c.rows {
		if v := c.value(&c.rows[i]); !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("%s has %g for %d bytes, where a number above 0 is needed", c.file, v, c.rows[i].Size)
		}
	}
	return nil
}

// value is what is compared.
func (c *comparison) value(r *perftest.Row) float64 {
	if c.latency {
		return r.Typical
	}
	return r.Rate
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
	for i, r := range doc.All {
		row := perftest.Row{Size: r.Size, Rate: r.Rate * 1e6, Typical: r.Typical * 1e3}
		row.Typical = cmp.Or(row.Typical, r.Average*1e3)
		latency := row.Rate == 0
		if r.Size == 0 || latency && row.Typical == 0 {
			return fmt.Errorf("%s: results has no MsgSize with a MsgRate or t_typical", c.file)
		}
		if i > 0 && latency != c.latency {
			return fmt.Errorf("%s: some of its results are latencies, and some rates", c.file)
		}
		c.latency = latency
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
	unit, scale := "message rate, Mpps", 1e6
	if c.latency {
		unit, scale = "t_typical, usec", 1e3
	}
	fmt.Fprintf(w, "\nSide by side, %s:\n", unit)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "  #bytes\t%s\t%s\tratio\n", here, c.file)
	none := true
	for i := range runs[0].Rows {
		mine := &runs[0].Rows[i]
		for k := range c.rows {
			if c.rows[k].Size == mine.Size {
				a, b := c.value(mine)/scale, c.value(&c.rows[k])/scale
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
