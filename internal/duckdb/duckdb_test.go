// Package duckdb reads the tables that sweeps write with DuckDB, which none of us wrote. It is a
// module of its own, since DuckDB is large and needs cgo: make duckdb runs it.
package duckdb

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

const question = `name: q
traffic: [{name: writes, threads: 2, qps_per_thread: 2, spread: 8, window: 8, messages: 200}]
`

// rdmasim is the program, which RDMASIM names.
func rdmasim(t *testing.T, args ...string) {
	t.Helper()
	program := os.Getenv("RDMASIM")
	if program == "" {
		t.Skip("needs RDMASIM, the program to test, as make duckdb sets it")
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// Parquet, CSV and JSON Lines have the same table, with types and units: what DuckDB computes of
// each is the same, and the means that the answer has are those that DuckDB computes of the single
// runs.
func TestDuckDBReadsWhatSweepsWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "q.yaml")
	if err := os.WriteFile(file, []byte(question), 0o600); err != nil {
		t.Fatal(err)
	}
	rdmasim(t, "run", file, "--store", filepath.Join(dir, "store"), "--sweep", "traffic.0.payload=64B,1KiB", "--sweep", "uar.bf_busy=10ns,1.5us", "--seeds", "4", "-o", dir)
	rdmasim(t, "results", "export", "--store", filepath.Join(dir, "store"), "--format", "parquet", "-o", filepath.Join(dir, "all.parquet"))
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ask := func(query string) string {
		t.Helper()
		rows, err := db.Query(query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer func() { _ = rows.Close() }()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			var line []string
			for _, v := range values {
				line = append(line, fmt.Sprint(*v.(*any)))
			}
			lines = append(lines, strings.Join(line, " "))
		}
		return strings.Join(lines, "\n")
	}
	table := func(name string) string { return "'" + filepath.Join(dir, name) + "'" }
	// 4 points of 4 seeds with one load of two threads.
	const summary = `select count(*), sum("traffic.0.payload_bytes")::BIGINT, sum("uar.bf_busy_ns")::DOUBLE, round(sum(rate_mps), 3), count(distinct seed), min("row") from `
	want := ask(summary + table("q-runs.parquet"))
	if !strings.HasPrefix(want, fmt.Sprintf("%d %d %d ", 16*3, 8*3*(64+1024), 8*3*(10+1500))) {
		t.Errorf("the Parquet file: %s", want)
	}
	for _, name := range []string{"q-runs.csv", "q-runs.jsonl", "all.parquet"} {
		if got := ask(summary + table(name)); got != want {
			t.Errorf("%s: %s, and the Parquet file: %s", name, got, want)
		}
	}
	const means = `select "traffic.0.payload_bytes", "uar.bf_busy_ns", round(avg(rate_mps), 2) from %s where "row" = 'traffic' group by all order by all`
	if got, want := ask(fmt.Sprintf(means, table("q.parquet"))), ask(fmt.Sprintf(means, table("q-runs.parquet"))); got != want {
		t.Errorf("means of the answer:\n%s\nmeans of the runs:\n%s", got, want)
	}
	const types = `select column_name, column_type from (describe select * from %s) where column_name in ('traffic.0.payload_bytes', 'rate_mps', 'name', 'seed', 'rate_mps_ci95') order by 1`
	if got := ask(fmt.Sprintf(types, table("q-runs.parquet"))); got != "name VARCHAR\nrate_mps DOUBLE\nseed BIGINT\ntraffic.0.payload_bytes BIGINT" {
		t.Errorf("types:\n%s", got)
	}
	if got := ask("select count(*) from " + table("q.parquet") + " where rate_mps_ci95 >= 0"); got != "12" {
		t.Errorf("%s rows with an interval", got)
	}
}
