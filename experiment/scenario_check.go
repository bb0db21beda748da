package experiment

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// mostLoads bounds the loads of a scenario: of a host's threads there are no more.
const mostLoads = 1024

// CheckIn checks a scenario that is a part of a file, and fills in its defaults. Errors name the
// place in doc.
func (s *Scenario) CheckIn(file string, doc *input.Doc) error {
	s.file, s.doc = file, doc
	return s.check()
}

// checkAttributes reports what loads ask for and the library of the profile does not have. It comes
// when all settings have been made.
func (s *Scenario) checkAttributes() error {
	for i := range s.Traffic {
		if t := &s.Traffic[i]; t.TD == "independent" {
			if prof, err := s.LoadProfile(); err != nil || prof.Provider.IndependentTD {
				return err
			}
			return s.doc.Errorf("traffic."+strconv.Itoa(t.at)+".td", "td: independent asks for an attribute that no released library has: set provider.independent_td to true for one with the proposal")
		}
	}
	return nil
}

// check reports what decoding alone cannot see.
func (s *Scenario) check() error {
	if len(s.Traffic) > mostLoads {
		return s.doc.Errorf("traffic", "%d loads are more than the %d that a scenario may have", len(s.Traffic), mostLoads)
	}
	if s.Completions != nil {
		return s.checkKernel()
	}
	if len(s.Traffic) == 0 {
		return s.doc.Errorf("traffic", "traffic has no load: give one, such as {verb: write, duration: 200us}")
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	if err := s.checkGiven(); err != nil {
		return err
	}
	s.keepGiven()
	groups, err := s.clients()
	if err != nil {
		return err
	}
	s.defaults()
	if err := s.expand(groups); err != nil {
		return err
	}
	if _, err := s.LoadProfile(); err != nil {
		at := "set"
		if e := (*profileError)(nil); errors.As(err, &e) {
			at = e.at
		}
		return s.doc.Errorf(at, "%v", err)
	}
	if _, err := fault.NewPlan(s.doc, s.Faults); err != nil {
		return err
	}
	for i := range s.Traffic {
		t := &s.Traffic[i]
		at := "traffic." + strconv.Itoa(t.at)
		if err := s.checkEnv(at, t.Env); err != nil {
			return err
		}
		if t.From >= s.Hosts || *t.To >= s.Hosts {
			return s.doc.Errorf(at+".to", "from %d to %d: the scenario has hosts 0 to %d", t.From, *t.To, s.Hosts-1)
		}
		if s.Link == "loopback" && t.From != *t.To {
			return s.doc.Errorf(at+".to", "with link: loopback, from and to are the same host")
		}
		if s.Link == "cable" && t.From != *t.To && t.From^1 != *t.To {
			return s.doc.Errorf(at+".to", "from %d to %d: no cable joins them, for cables join hosts 0 and 1, 2 and 3 and so on: give link: switch", t.From, *t.To)
		}
		for _, c := range t.Cores {
			if c < 0 || c >= s.Cores {
				return s.doc.Errorf(at+".cores", "core %d: the hosts have cores 0 to %d", c, s.Cores-1)
			}
		}
		if len(t.Cores) == 0 && t.Threads > s.Cores {
			return s.doc.Errorf(at+".threads", "%d threads on %d cores: name the cores that they run on with cores, or give the hosts more", t.Threads, s.Cores)
		}
		l := t.load()
		if err := l.Validate(); err != nil {
			return s.doc.Errorf(at, "%v", err)
		}
	}
	return nil
}

// checkKernel is check for completions in place of traffic.
func (s *Scenario) checkKernel() error {
	if err := s.checkNames(); err != nil {
		return err
	}
	if err := s.onlyCompletions(); err != nil {
		return err
	}
	s.keepGiven()
	c := *s.Completions // the given one keeps what it left out
	c.defaults()
	s.Completions = &c
	s.Cores = cmp.Or(s.Cores, 16)
	s.Profile = cmp.Or(s.Profile, profile.Default)
	if _, err := s.LoadProfile(); err != nil {
		return s.doc.Errorf("profile", "%v", err)
	}
	return s.checkCompletions()
}

// checkGiven reports values that contradict each other, before defaults fill in the others. A
// payload of 0 is a message without payload.
func (s *Scenario) checkGiven() error {
	for i := range s.Traffic {
		t := &s.Traffic[i]
		at := "traffic." + strconv.Itoa(i)
		if t.Payload == 0 && s.doc != nil && s.doc.Has(at+".payload") {
			t.bare = true
		}
		switch {
		case t.Empty && t.Payload > 0:
			return s.doc.Errorf(at+".empty", "empty is true and payload is %s: leave one out, or let payload be 0", input.FormatSize(uint64(t.Payload)))
		case t.Verb != "" && len(t.Mix) > 0:
			return s.doc.Errorf(at+".mix", "the load has a mix, and verb is %s: leave one out", t.Verb)
		case t.Messages == 0 && t.Duration == 0 && s.doc != nil && s.doc.Has(at+".duration"):
			return s.doc.Errorf(at+".duration", "duration is 0: give the time that is counted, such as 200us, or messages")
		case t.Duration > 0 && t.Duration < 1000:
			return s.doc.Errorf(at+".duration", "duration is less than 1ns: give the time that is counted, such as 200us")
		}
	}
	return nil
}

// keepGiven keeps the scenario as it is.
func (s *Scenario) keepGiven() {
	g := *s
	g.Traffic = slices.Clone(s.Traffic)
	s.given = &g
}

func (s *Scenario) defaults() {
	def := func(v *int, d int) {
		*v = cmp.Or(*v, d)
	}
	s.Link = cmp.Or(s.Link, "cable")
	if s.Link == "loopback" {
		def(&s.Hosts, 1)
	}
	def(&s.Hosts, 2)
	def(&s.Cores, 16)
	s.Profile = cmp.Or(s.Profile, profile.Default)
	for i := range s.Traffic {
		t := &s.Traffic[i]
		t.Name = cmp.Or(t.Name, s.loadName(i))
		if t.To == nil {
			to := min(1, s.Hosts-1)
			t.To = &to
		}
		for _, d := range []struct {
			v *int
			d int
		}{{&t.Threads, 1}, {&t.Contexts, 1}, {&t.PDs, 1}, {&t.QPs, 1}, {&t.QPSharing, 1}, {&t.Window, 128},
			{&t.Postlist, 1}, {&t.SignalEvery, 1}, {&t.RecvDepth, 128}, {&t.RecvPost, 1}, {&t.RdAtomic, 16}} {
			def(d.v, d.d)
		}
		def(&t.MRs, t.regions())
		t.TD = cmp.Or(t.TD, "none")
		if t.Verb == "" {
			t.Verb = "write"
			if t.Transport == "ud" {
				t.Verb = "send"
			}
		}
		if t.Payload == 0 && !t.Empty && !t.bare {
			t.Payload = 2
			if t.atomic() {
				t.Payload = 8
			}
		}
		t.MRSize = cmp.Or(t.MRSize, max(4096, 2*uint64(t.Payload)+64))
		t.PageSize = cmp.Or(t.PageSize, "4KiB")
		t.MTU = cmp.Or(t.MTU, "1024")
		if t.Messages == 0 && t.Duration == 0 {
			t.Duration = 200_000_000
		}
	}
}
