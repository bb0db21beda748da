//go:build linux && amd64

package exec

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// countAll notes what the counters of all devices say, for the file of Config.Counters. The order
// is that of devices, ports and folders, and in a folder that of the driver's table, so that files
// of two sessions can be compared line by line.
func (s *session) countAll() {
	s.counted = []countedFile{} // a session without counters has a file too
	for k, d := range s.m.devs {
		c := d.counters
		c.showTraffic()
		c.show()
		note := func(folder string, files []counterFile) {
			for _, f := range files {
				s.counted = append(s.counted, countedFile{folder + "/" + f.name, f.now})
			}
		}
		for port := range d.ports {
			folder := fmt.Sprintf("infiniband/%s/ports/%d/", d.name, port+1)
			note(folder+"counters", c.traffic)
			note(folder+"hw_counters", c.port)
		}
		note(fmt.Sprintf("infiniband_verbs/uverbs%d", k), c.paging)
	}
}

// countedFile is a counter by its file below /sys/class.
type countedFile struct {
	name string
	v    uint64
}

// writeCounters writes what countAll has noted: a line for each counter, or a JSON object where the
// file's name ends in .json.
func (s *session) writeCounters(w io.Writer) error {
	form, last, begin, end := "%s %d\n", "%s %d\n", "", ""
	if strings.EqualFold(filepath.Ext(s.cfg.Counters), ".json") { // the names have nothing that JSON would escape
		form, last, begin, end = "  %q: %d,\n", "  %q: %d\n", "{\n", "}\n"
	}
	b := bytes.NewBufferString(begin)
	for i, c := range s.counted {
		if i == len(s.counted)-1 {
			form = last
		}
		fmt.Fprintf(b, form, c.name, c.v)
	}
	b.WriteString(end)
	_, err := w.Write(b.Bytes())
	return err
}

// packets is a counter of packets that passed the ports of the device, after countAll.
func (d *device) packets(name string) (n uint64) {
	for _, f := range d.counters.traffic {
		if f.name == name {
			n += f.now
		}
	}
	return n
}
