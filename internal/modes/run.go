package modes

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// Mode is how a program is run. No mode may change a result.
type Mode struct {
	Lockstep bool // each step is an event
	Watched  bool // a capture and a timeline are recorded
}

// String returns the text form.
func (m Mode) String() string {
	s := "ahead"
	if m.Lockstep {
		s = "lockstep"
	}
	if m.Watched {
		s += ", watched"
	}
	return s
}

// Artefact is one thing that a run leaves, as lines.
type Artefact struct {
	Name  string
	Lines []string
}

// Record is all that a run leaves.
type Record struct {
	Artefacts []Artefact
	Events    uint64
}

var profiles = struct {
	sync.Mutex
	loaded map[string]*profile.Profile
}{loaded: map[string]*profile.Profile{}}

// load reads a profile once.
func load(name string) (*profile.Profile, error) {
	profiles.Lock()
	defer profiles.Unlock()
	if p := profiles.loaded[name]; p != nil {
		return p.Clone(), nil
	}
	p, err := profile.Load(name)
	if err != nil {
		return nil, err
	}
	profiles.loaded[name] = p
	return p.Clone(), nil
}

// config is the testbed of a program.
func (p *Program) config() (testbed.Config, error) {
	prof, err := load(p.Profile)
	if err != nil {
		return testbed.Config{}, err
	}
	for _, a := range p.Set {
		if err := prof.Assign(a); err != nil {
			return testbed.Config{}, err
		}
	}
	c := testbed.Config{Seed: p.Seed, Profile: prof, OutOfBand: 20 * sim.Microsecond, Switched: p.Switched, NoTap: p.NoTap, MaxEvents: 20_000_000}
	for h := range p.Hosts {
		c.Hosts = append(c.Hosts, testbed.HostConfig{Name: fmt.Sprint("host", h), Cores: p.Cores, Memory: 1 << 30, Devices: 1})
	}
	if p.Faults != "" {
		if c.Faults, err = fault.Parse("faults", []byte(p.Faults)); err != nil {
			return c, err
		}
	}
	return c, c.Validate()
}

// Run runs a program. An error says that it cannot be run at all.
func (p *Program) Run(m Mode) (*Record, error) {
	c, err := p.config()
	if err != nil {
		return nil, err
	}
	return p.run(c, m)
}

// run is Run with the testbed that config made, which runs do not change.
func (p *Program) run(c testbed.Config, m Mode) (*Record, error) {
	var capture bytes.Buffer
	if c.Lockstep = m.Lockstep; m.Watched {
		c.Trace, c.Pcap = true, &capture
	}
	tb, err := testbed.New(c)
	if err != nil {
		return nil, err
	}
	b := &bed{p: p, tb: tb, threads: make([]log, len(p.Threads)), runners: make([]*runner, len(p.Threads))}
	end := runBody(tb, b)
	r := &Record{Events: tb.Events()}
	r.add("setup", b.main.lines)
	for i := range b.threads {
		r.add(fmt.Sprintf("thread %d", i), b.threads[i].lines)
		if x := b.runners[i]; x != nil {
			for k, l := range x.beside {
				r.add(fmt.Sprintf("thread %d, beside it %d", i, k), l.lines)
			}
		}
	}
	r.add("end", []string{end, tb.Engine().Now().String()})
	r.add("memory", b.memory)
	var counters []string
	for _, c := range tb.Counters() {
		counters = append(counters, fmt.Sprintf("%s %s %d", c.Unit, c.Name, c.Value))
	}
	r.add("counters", append(counters, tb.EventsDone()...))
	if err := tb.Close(); err != nil {
		return nil, err
	}
	if m.Watched {
		r.add("capture", hexLines(capture.Bytes()))
		var trace bytes.Buffer
		if err := tb.WriteTrace(&trace); err != nil {
			return nil, err
		}
		r.add("timeline", strings.Split(trace.String(), "\n"))
	}
	return r, nil
}

// runBody runs the program to its end, and says how it ended. A panic of the simulator is
// an end as well: the modes must agree on it.
func runBody(tb *testbed.Testbed, b *bed) (end string) {
	defer func() {
		if v := recover(); v != nil {
			end = fmt.Sprint("panic: ", v)
			if p, ok := v.(*sim.ProgramPanic); ok {
				end = fmt.Sprintf("panic of %s at %v: %v", p.Program, p.At, p.Value)
			}
		}
	}()
	if err := tb.Run(10*time.Second, b.body); err != nil {
		return err.Error()
	}
	return "done"
}

func (r *Record) add(name string, lines []string) {
	r.Artefacts = append(r.Artefacts, Artefact{name, lines})
}

// hexLines makes bytes comparable line by line.
func hexLines(b []byte) (lines []string) {
	for at := 0; at < len(b); at += 64 {
		l := append(strconv.AppendInt([]byte("0x"), int64(at), 16), ": "...)
		lines = append(lines, string(hex.AppendEncode(l, b[at:min(at+64, len(b))])))
	}
	return lines
}

// log is what a thread saw.
type log struct{ lines []string }

func (l *log) add(t verbs.Thread, format string, a ...any) {
	l.lines = append(l.lines, fmt.Sprintf("%d ps: ", int64(provider.Of(t).P.Now()))+fmt.Sprintf(format, a...))
}
