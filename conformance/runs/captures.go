package runs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// JoinCaptures writes the captures ID.pcapng of the cases in dir as one capture (pcapng, one
// section). Each case keeps interfaces of its own, which are named after it, because time begins
// again with each case. A case without a capture is left out; from that of a killed case the
// complete packets are taken.
func JoinCaptures(w io.Writer, dir string, cases []report.Case) error {
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
	if len(interfaces) == 0 { // no case has a link: a capture without frames is a file all the same
		interfaces = []pcap.Interface{{Name: "none", LinkType: pcap.LinkTypeEthernet}}
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

// LeftAny reports whether dir has a file whose name ends in suffix.
func LeftAny(dir, suffix string) bool {
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	return err != nil || len(names) > 0
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

// JoinTraces writes the timelines ID.trace of the cases in dir as one (Trace Event JSON). The
// processes of each case are named after it and numbered apart. It holds one event in memory at a
// time, because timelines of the whole suite have millions.
func JoinTraces(w io.Writer, dir string, cases []report.Case) error {
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`) // an error stays until Flush
	base, sep := int64(0), "\n"
	var unwritten error
	for _, c := range cases {
		top := base
		err := eachEvent(filepath.Join(dir, c.ID+".trace"), func(e traceEvent) error {
			pid, err := e.move(c.ID, base)
			if err != nil {
				return err
			}
			top = max(top, pid)
			line, err := json.Marshal(e)
			if err != nil {
				return err
			}
			_, _ = out.WriteString(sep)
			_, unwritten = out.Write(line)
			sep = ",\n"
			return unwritten
		})
		if unwritten != nil {
			return unwritten
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
		base = top + 1
	}
	_, _ = out.WriteString("\n]}\n")
	return out.Flush()
}

// traceEvent is an event of a timeline: its members, as they are written.
type traceEvent map[string]json.RawMessage

// move puts the event of a case into a process whose number is beyond base, and returns that
// number. If the event names its process, the case's ID comes first.
func (e traceEvent) move(id string, base int64) (int64, error) {
	pid := base
	if raw, ok := e["pid"]; ok {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("pid of an event: %w", err)
		}
		pid += n
	}
	e["pid"] = strconv.AppendInt(nil, pid, 10)
	var args struct {
		Name string `json:"name"`
	}
	if string(e["name"]) != `"process_name"` || json.Unmarshal(e["args"], &args) != nil {
		return pid, nil
	}
	args.Name = id + " " + args.Name
	raw, err := json.Marshal(args)
	e["args"] = raw
	return pid, err
}

// eachEvent reads Trace Event JSON in its object or its array form. If the case was killed, it
// reads the events that are complete.
func eachEvent(path string, f func(traceEvent) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	dec := json.NewDecoder(file)
	err = findEvents(dec)
	for err == nil && dec.More() {
		var e traceEvent
		if err = dec.Decode(&e); err == nil {
			err = f(e)
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// findEvents reads up to the first event. It returns io.EOF if there is no list of events.
func findEvents(dec *json.Decoder) error {
	if first, err := dec.Token(); err != nil || first == json.Delim('[') {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		if key == "traceEvents" {
			_, err = dec.Token()
			return err
		}
		var other json.RawMessage
		if err := dec.Decode(&other); err != nil {
			return err
		}
	}
	return io.EOF
}
