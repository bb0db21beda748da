package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// loadsOf parses a scenario with these loads.
func loadsOf(t *testing.T, head string, loads ...string) (*Scenario, error) {
	t.Helper()
	return ParseScenario("s.yaml", []byte("name: x\n"+head+"traffic:\n  - "+strings.Join(loads, "\n  - ")+"\n"))
}

// hostsOf is who posts to whom, in the order of the loads.
func hostsOf(s *Scenario) (all []string) {
	for i := range s.Traffic {
		all = append(all, fmt.Sprintf("%d>%d", s.Traffic[i].From, *s.Traffic[i].To))
	}
	return all
}

func TestWhoPostsToWhom(t *testing.T) {
	for _, c := range []struct{ head, load, want, link string }{
		{"", "{clients: 3}", "0>3 1>3 2>3", "switch"},
		{"", "{clients: 1}", "0>1", "cable"},
		{"", "{from: 0..2}", "0>3 1>3 2>3", "switch"},
		{"", "{from: 1..3}", "1>4 2>4 3>4", "switch"},
		{"hosts: 4\n", "{from: 1..3}", "1>0 2>0 3>0", "switch"},
		{"", "{pattern: incast, from: 2..4, to: 1}", "2>1 3>1 4>1", "switch"},
		{"", "{from: 5, clients: 2}", "5>7 6>7", "switch"},
		{"", "{to: 1..3}", "0>1 0>2 0>3", "switch"},
		{"", "{from: 0..1, to: 1..2}", "0>1 0>2 1>2", "switch"},
		{"", "{pattern: all-to-all, clients: 3}", "0>1 0>2 1>0 1>2 2>0 2>1", "switch"},
		{"hosts: 3\n", "{pattern: all-to-all}", "0>1 0>2 1>0 1>2 2>0 2>1", "switch"},
		{"", "{pattern: permutation, clients: 4}", "0>1 1>2 2>3 3>0", "switch"},
		{"", "{pattern: permutation, clients: 2}", "0>1 1>0", "cable"},
		{"hosts: 4\nlink: cable\n", "{from: 2, to: 3}", "2>3", "cable"},
	} {
		s, err := loadsOf(t, c.head, c.load)
		if err != nil {
			t.Errorf("%s: %v", c.load, err)
			continue
		}
		if got := strings.Join(hostsOf(s), " "); got != c.want || s.Link != c.link {
			t.Errorf("%s%s: %s by %s, want %s by %s", c.head, c.load, got, s.Link, c.want, c.link)
		}
		for i := range s.Traffic {
			if h := max(s.Traffic[i].From, *s.Traffic[i].To); h >= s.Hosts {
				t.Errorf("%s: host %d of %d", c.load, h, s.Hosts)
			}
		}
	}
}

func TestClientsThatCannotBe(t *testing.T) {
	for _, c := range []struct{ head, load, want string }{
		{"", "{clients: 0}", "s.yaml:3:15: 0 is below 1"},
		{"", "{clients: 1024}", "s.yaml:3:15: 1024 is above 1023"},
		{"", "{from: 5..2}", `s.yaml:3:12: "5..2" runs backwards: write 2..5`},
		{"", "{from: 0..1024}", `s.yaml:3:12: "0..1024" is not a host`},
		{"", "{from: 1..}", `s.yaml:3:12: "1.." is not a host`},
		{"", "{from: -1}", `s.yaml:3:12: "-1" is not a host`},
		{"", "{from: 1024}", `s.yaml:3:12: "1024" is not a host`},
		{"", "{from: [0, 1]}", "a host such as 3, or several such as 0..15"},
		{"", "{from: 1020, clients: 5}", "need hosts up to 1024"},
		{"", "{from: 0..62, clients: 62}", "clients is 62, and from names 63 hosts"},
		{"", "{pattern: incast}", "pattern incast of how many hosts?"},
		{"", "{pattern: permutation}", "pattern permutation of how many hosts?"},
		{"", "{pattern: all-to-all, clients: 1}", "needs two hosts"},
		{"", "{pattern: all-to-all, clients: 3, to: 1}", "leave to out"},
		{"", "{pattern: incast, clients: 3, to: 3..4}", "has one target"},
		{"hosts: 3\n", "{clients: 3}", "s.yaml:4:5: the clients and targets of the load need hosts 0 to 3, and hosts is 3: give hosts: 4, leave hosts out, or name fewer clients"},
		{"link: cable\n", "{clients: 3}", "no cable joins them"},
		{"link: loopback\n", "{clients: 3}", "the scenario has hosts 0 to 0"},
	} {
		if _, err := loadsOf(t, c.head, c.load); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: %v, want %q", c.head, c.load, err, c.want)
		}
	}
}

// Clients of one host get cores of their own, as long as there are some, and then the result says
// so.
func TestClientsHaveCoresOfTheirOwn(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 7))
	tries := 200
	if testing.Short() {
		tries = 20
	}
	for range tries {
		n, threads := 2+rng.IntN(6), 1+rng.IntN(3)
		verb := []string{"write", "send", "read"}[rng.IntN(3)]
		s, err := loadsOf(t, fmt.Sprintf("cores: %d\n", 4+rng.IntN(40)), fmt.Sprintf("{pattern: all-to-all, clients: %d, threads: %d, verb: %s}", n, threads, verb))
		if err != nil {
			t.Fatal(err)
		}
		used, shared := map[place]bool{}, false
		for i := range s.Traffic {
			for _, core := range s.Traffic[i].Cores {
				at := place{s.Traffic[i].From, core}
				shared = shared || used[at]
				used[at] = true
			}
		}
		if said := len(s.sharedCores()) > 0; shared && !said {
			t.Errorf("%d hosts, %d threads, %s, %d cores: shared, and the result does not say so", n, threads, verb, s.Cores)
		}
		if shared && verb != "send" && (n-1)*threads <= s.Cores {
			t.Errorf("%d hosts, %d threads, %s: shared, with %d cores", n, threads, verb, s.Cores)
		}
	}
}

// An incast in one line is the same as one of a load for each client, and its totals are those of
// the rows of its clients.
func TestIncastInOneLine(t *testing.T) {
	run := func(loads ...string) *Result {
		t.Helper()
		s, err := loadsOf(t, "", loads...)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Experiment().Execute(t.Context(), Request{Seed: 3}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	of := func(res *Result, kind, key string) (all []float64) {
		for i := range res.Rows {
			if v, ok := res.Rows[i].Float(key); ok && res.Rows[i].Get("row") == kind {
				all = append(all, v)
			}
		}
		return all
	}
	const load = "payload: 8KiB, mtu: 4096, window: 4, duration: 200us"
	one := run("{name: in, clients: 4, " + load + "}")
	var each []string
	for i := range 4 {
		each = append(each, fmt.Sprintf("{from: %d, to: 4, %s}", i, load))
	}
	s, err := ParseScenario("s.yaml", []byte("name: x\nhosts: 5\nlink: switch\ntraffic:\n  - "+strings.Join(each, "\n  - ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	many, err := s.Experiment().Execute(t.Context(), Request{Seed: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rates := of(one, "client", "gbps")
	if want := of(many, "traffic", "gbps"); len(rates) != 4 || !slices.Equal(rates, want) {
		t.Errorf("clients have %v, the same loads one by one %v", rates, want)
	}
	sum := 0.0
	for _, v := range rates {
		sum += v
	}
	for _, kind := range []string{"traffic", "total"} {
		for key, want := range map[string]float64{"gbps": sum, "client_gbps_min": slices.Min(rates), "client_gbps_max": slices.Max(rates), "jain": jain(rates), "clients": 4} {
			if got := of(one, kind, key); len(got) != 1 || math.Abs(got[0]/want-1) > 1e-12 {
				t.Errorf("%s: %s is %v, want %v", kind, key, got, want)
			}
		}
	}
	if got := of(many, "total", "gbps"); len(got) != 1 || math.Abs(got[0]/sum-1) > 1e-12 {
		t.Errorf("the loads one by one have a total of %v, want %v", got, sum)
	}

	// Percentiles of a total are of all messages, and no mean of percentiles.
	timed := run("{name: in, clients: 3, payload: 32KiB, mtu: 4096, verb: send, measure: latency, duration: 1ms}", "{name: small, from: 3, verb: send, measure: latency, duration: 1ms}")
	var all, p50 []float64
	samples := 0.0
	for i := range timed.Rows {
		row := &timed.Rows[i]
		n, _ := row.Float("samples")
		if row.Get("row") == "total" {
			samples = n
			p50 = of(timed, "total", "latency_ns_p50")
		}
		if row.Get("row") == "thread" {
			m, _ := row.Float("latency_ns_mean")
			all = append(all, m*n)
		}
	}
	mean := of(timed, "total", "latency_ns_mean")
	total := 0.0
	for _, v := range all {
		total += v
	}
	if len(mean) != 1 || math.Abs(mean[0]*samples/total-1) > 1e-9 || len(p50) != 1 {
		t.Errorf("mean %v of %v samples, and the threads' sum is %v", mean, samples, total)
	}
}

// The rows of many clients are the same in each run and in lockstep.
func TestClientsAreDeterministic(t *testing.T) {
	var first []byte
	for i, lockstep := range []bool{false, false, true} {
		s, err := loadsOf(t, "", "{pattern: all-to-all, clients: 3, verb: send, payload: 4KiB, measure: latency, duration: 50us}", "{clients: 4, payload: 16KiB, duration: 50us}")
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Experiment().Execute(t.Context(), Request{Seed: 2, Lockstep: lockstep}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := json.Marshal(res.Rows)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = rows
		} else if !bytes.Equal(rows, first) {
			t.Errorf("lockstep %v:\n%s\nwant\n%s", lockstep, rows, first)
		}
	}
}

// jain is 1 where all have the same, 1/n where one has all, and does not depend on the unit.
func TestJain(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		x := make([]float64, 1+rng.IntN(20))
		for i := range x {
			x[i] = rng.ExpFloat64()
		}
		mean, sd := stat.PopMeanStdDev(x, nil)
		if got, want := jain(x), 1/(1+sd*sd/mean/mean); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v: %v, want %v", x, got, want)
		}
	}
	if jain([]float64{3, 3, 3}) != 1 || jain([]float64{0, 5, 0, 0}) != 0.25 {
		t.Error("the ends are wrong")
	}
}

// The table for people has rows of threads and clients only with --threads; other formats have them
// always.
func TestRowsOfThreadsOnRequest(t *testing.T) {
	s, err := loadsOf(t, "", "{clients: 2, threads: 2, duration: 20us}")
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{false, true} {
		res, err := s.Experiment().Execute(t.Context(), Request{Seed: 1, Threads: asked}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var people, programs bytes.Buffer
		if err := res.Write(&people, "table"); err != nil {
			t.Fatal(err)
		}
		if err := res.Write(&programs, "csv"); err != nil {
			t.Fatal(err)
		}
		shown := strings.Contains(people.String(), "\n  thread") && strings.Contains(people.String(), "\n  client")
		if hint := strings.Contains(people.String(), "--threads shows 6 more rows"); shown != asked || hint == asked {
			t.Errorf("--threads %v: shown %v, hint %v\n%s", asked, shown, hint, people.String())
		}
		if n := strings.Count(programs.String(), "\nthread,"); n != 4 {
			t.Errorf("--threads %v: CSV has %d rows of threads\n%s", asked, n, programs.String())
		}
	}
}

// Hosts beyond the 255th have addresses of their own on both links, and all messages arrive.
func TestHundredsOfHosts(t *testing.T) {
	for i, prof := range []string{"connectx-5", "connectx-5-ib"} {
		if testing.Short() && i > 0 {
			break
		}
		s, err := ParseScenario("many.yaml", []byte("name: many\nprofile: "+prof+"\ntraffic:\n  - {name: p, pattern: permutation, from: 0..299, payload: 4KiB, window: 2, messages: 4}\n"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Experiment().Execute(t.Context(), Request{Seed: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range res.Rows {
			if row := &res.Rows[i]; row.Get("row") == "total" {
				if n, _ := row.Float("messages_all"); n != 1200 || row.Get("clients") != 300 {
					t.Errorf("%s: %v messages of %v clients", prof, n, row.Get("clients"))
				}
			}
		}
	}
}
