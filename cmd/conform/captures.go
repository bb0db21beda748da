package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rdmasim/rdmasim/report"
)

// joinCaptures puts the captures of the cases one after the other: a pcapng file may
// hold several sections. A case without frames, or that was not run, has none.
func joinCaptures(w io.Writer, dir string, cases []report.Case) error {
	for _, c := range cases {
		err := copyFile(w, filepath.Join(dir, c.ID+".pcapng"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}

// joinTraces merges the timelines of the cases into one, each case a process of its
// own named by its ID: process numbers count up over the cases.
func joinTraces(w io.Writer, dir string, cases []report.Case) error {
	out := struct {
		TraceEvents     []map[string]any `json:"traceEvents"`
		DisplayTimeUnit string           `json:"displayTimeUnit"`
	}{TraceEvents: []map[string]any{}, DisplayTimeUnit: "ns"}
	base := int64(0)
	for _, c := range cases {
		events, err := readTrace(filepath.Join(dir, c.ID+".trace"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
		top := base
		for _, e := range events {
			pid := base
			if n, ok := e["pid"].(json.Number); ok {
				v, err := n.Int64()
				if err != nil {
					return fmt.Errorf("%s: %w", c.ID, err)
				}
				pid += v
			}
			e["pid"] = pid
			top = max(top, pid)
			if args, ok := e["args"].(map[string]any); ok && e["name"] == "process_name" {
				args["name"] = fmt.Sprintf("%s %v", c.ID, args["name"])
			}
		}
		base = top + 1
		out.TraceEvents = append(out.TraceEvents, events...)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// readTrace reads Trace Event JSON in its object or its array form.
func readTrace(path string) ([]map[string]any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	dec := json.NewDecoder(f)
	dec.UseNumber()
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return nil, err
	}
	var object struct {
		TraceEvents []map[string]any `json:"traceEvents"`
	}
	target := any(&object)
	if raw[0] == '[' {
		target = &object.TraceEvents
	}
	inner := json.NewDecoder(bytes.NewReader(raw))
	inner.UseNumber()
	err = inner.Decode(target)
	return object.TraceEvents, err
}
