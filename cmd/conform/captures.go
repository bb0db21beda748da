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
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// joinCaptures writes the captures of the cases into one section. Its interfaces are those of all
// cases and named after them, because time begins again with each case.
func joinCaptures(w io.Writer, dir string, cases []report.Case) error {
	var interfaces []pcap.Interface
	first := map[string]int{} // interface of a case's first port
	for _, c := range cases {
		r, err := eachPacket(dir, c.ID, func(pcap.Packet) error { return nil })
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		first[c.ID] = len(interfaces)
		interfaces = append(interfaces, r.Interfaces...)
	}
	if len(interfaces) == 0 {
		return nil
	}
	out, err := pcap.NewWriter(w, "rdmasim")
	if err != nil {
		return err
	}
	for _, i := range interfaces {
		typ := uint16(pcap.LinkTypeEthernet)
		if i.LinkType != typ {
			typ = pcap.LinkTypeInfiniBand
		}
		if _, err := out.AddInterfaceOf(i.Name, typ); err != nil {
			return err
		}
	}
	for _, c := range cases {
		_, err := eachPacket(dir, c.ID, func(p pcap.Packet) error {
			return out.Write(first[c.ID]+p.Interface, p.Time, p.Data, p.Comment)
		})
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// eachPacket reads the capture of a case; the reader is nil if the case left none. If the case was
// killed, it reads the packets that are complete.
func eachPacket(dir, id string, f func(pcap.Packet) error) (*pcap.Reader, error) {
	file, err := os.Open(filepath.Join(dir, id+".pcapng"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	r, err := pcap.NewReader(file)
	if errors.Is(err, pcap.ErrNotCapture) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		p, err := r.Next()
		var broken *pcap.BrokenError
		if err == io.EOF || errors.As(err, &broken) {
			return r, nil
		}
		if err == nil {
			err = f(p)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
	}
}

// joinTraces merges the timelines of the cases into one. The processes of each case are named after
// it and have numbers of their own.
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
