package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/workload/perftest"
)

// setup is what a measurement was made with. Equal ones must give equal results.
type setup struct {
	op                              string // a verb of scenarios
	latency                         bool
	threads, qps                    int // qps of each thread
	window, postlist, signal, reads int
	recvDepth                       int
	size                            uint64
	inline                          bool
	mtu                             int
	link                            string // of perftest: Ethernet or IB
}

// measurement is a number that was measured on a card.
type measurement struct {
	setup
	at    string  // file and line
	value float64 // messages/s, or ns
	class string  // what it determines; "" for a check
}

// unit is that of what is printed.
func (m *measurement) unit() string {
	if m.latency {
		return "ns"
	}
	return "M/s"
}

// shown is the value in its unit.
func (m *measurement) shown() float64 {
	if m.latency {
		return m.value
	}
	return m.value / 1e6
}

// name is what was measured, in words.
func (m *measurement) name() string {
	what := strings.ToUpper(m.op)
	if m.latency {
		what += " latency"
	}
	what += fmt.Sprintf(", %s", input.FormatSize(m.size))
	if m.inline {
		what += " inline"
	}
	if !m.latency {
		what += fmt.Sprintf(", %s of %s, lists of %d", plural(m.threads, "thread"), plural(m.qps, "QP"), m.postlist)
	}
	return what
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// classOf is what the measurement determines.
func (s *setup) classOf() string {
	small := s.size <= 16
	switch {
	case s.latency && small && s.op == "write" && s.inline:
		return "WRITE latency"
	case s.latency && small && s.op == "write":
		return "WRITE latency, payload fetched"
	case s.latency && small && s.op == "read":
		return "READ latency"
	case s.latency && s.op == "faa":
		return "atomic latency"
	case s.latency:
	case s.op == "write" && s.size >= 32<<10 && s.threads == 1:
		return "bandwidth"
	case s.op == "read" && small && s.threads >= 4:
		return "all cores, READs"
	case s.op != "write" || !small || !s.inline:
	case s.threads >= 4 && s.postlist >= 8:
		return "all cores, WRITEs"
	case s.threads > 1:
	case s.qps == 1 && s.postlist >= 8:
		return "one queue pair"
	case s.qps >= 4 && s.postlist >= 8:
		return "one core, lists"
	case s.qps >= 4 && s.postlist == 1:
		return "one core"
	}
	return ""
}

// measured is what a folder has.
type measured struct {
	all     []*measurement
	unused  []string // what was read and says nothing that is used, with the reason
	files   int
	records int
}

// mostMeasured bounds the files of a folder: more are no measurements of half an hour.
const mostMeasured = 2000

// readMeasured reads all files of a folder. Those of a folder in it are of programs that ran at the
// same time: their rates add.
func readMeasured(ctx context.Context, dir string) (*measured, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type().IsRegular() && !strings.HasPrefix(d.Name(), "."):
			names = append(names, path)
		}
		if len(names) > mostMeasured {
			return fmt.Errorf("%s has more than %d files: give the folder of one card's measurements", dir, mostMeasured)
		}
		return nil
	})
	if err != nil {
		return nil, experiment.Usagef("--from: %w", err)
	}
	if len(names) == 0 {
		return nil, experiment.Usagef("--from: %s has no files; docs/calibrate.md says how to measure", dir)
	}
	m := &measured{}
	together := map[string][]*measurement{}
	for _, name := range names {
		if filepath.Ext(name) == ".json" {
			if err := m.record(ctx, name); err != nil {
				return nil, err
			}
			continue
		}
		src, err := input.ReadFile(ctx, name)
		if err != nil {
			return nil, experiment.Usagef("--from: %w", err)
		}
		runs, err := perftest.Parse(name, src)
		if err != nil {
			return nil, experiment.Usagef("%w", err)
		}
		m.files++
		var got []*measurement
		for _, r := range runs {
			got = append(got, m.take(r)...)
		}
		switch sub := filepath.Dir(name); {
		case filepath.Clean(sub) == filepath.Clean(dir):
			m.all = append(m.all, got...)
		case len(got) > 1:
			return nil, experiment.Usagef("%s: %s has another result of the same file: each file in a subfolder holds the output of one program, and all of them ran at the same time", got[1].at, got[0].at)
		case len(got) == 1:
			together[sub] = append(together[sub], got...)
		}
	}
	for _, sub := range keysOf(together) {
		sum, err := addUp(sub, together[sub])
		if err != nil {
			return nil, err
		}
		m.all = append(m.all, sum)
	}
	return m, m.merge()
}

// addUp is the measurement that programs made together.
func addUp(dir string, parts []*measurement) (*measurement, error) {
	sum := *parts[0]
	for _, p := range parts[1:] {
		switch {
		case p.latency || sum.latency:
			return nil, experiment.Usagef("%s: latencies of programs that run together are not used: move the file out of %s", p.at, dir)
		case p.setup != parts[0].setup:
			return nil, experiment.Usagef("%s: the files of a subfolder come from programs that ran together with the same options, and %s has other options", p.at, parts[0].at)
		}
		sum.value += p.value
	}
	sum.threads, sum.at = len(parts), dir
	sum.class = sum.classOf()
	return &sum, nil
}

// take turns a test into measurements.
func (m *measured) take(r *perftest.Run) (got []*measurement) {
	skip := func(why string) {
		m.unused = append(m.unused, fmt.Sprintf("%s:%d: %s", r.File, r.Line, why))
	}
	verb := map[string]string{perftest.Write: "write", perftest.WriteImm: "write_imm", perftest.Send: "send", perftest.Read: "read", perftest.FetchAdd: "faa", perftest.CmpSwap: "cas"}[r.Op]
	switch {
	case !r.Sender:
		skip("the end that serves says nothing that the other does not")
		return nil
	case verb == "":
		skip(r.Op + " is no verb of scenarios")
		return nil
	case r.Connection != "RC":
		skip(r.Connection + ": only reliable connections are used")
		return nil
	case r.Bidirectional, r.Events, r.SRQ:
		skip("tests in both directions, with events or with an SRQ are not used")
		return nil
	}
	for _, row := range r.Rows {
		if row.RateError > 0.05 || row.TypicalError > 0.05 {
			m.unused = append(m.unused, fmt.Sprintf("%s:%d: it has too few digits", r.File, row.Line))
			continue
		}
		s := setup{op: verb, latency: r.Latency, threads: 1, qps: r.QPs, size: row.Size, inline: uint64(r.Inline) >= row.Size, mtu: r.MTU, reads: r.OutReads, link: r.Link}
		x := &measurement{setup: s, at: fmt.Sprintf("%s:%d", r.File, row.Line), value: row.Typical}
		if !r.Latency {
			x.value = row.Rate
			x.window, x.postlist, x.signal, x.recvDepth = max(1, r.TxDepth), max(1, r.PostList), min(max(1, r.CQModeration), max(1, r.TxDepth)), r.RxDepth
		}
		x.class = x.classOf()
		got = append(got, x)
	}
	return got
}

// mostSize is the largest message (IBA volume 1, 9.7.1).
const mostSize = 1 << 31

// record takes what a conform record has: the bandwidth by size of PERF-004, one queue pair with 64
// WRITEs under way.
func (m *measured) record(ctx context.Context, name string) error {
	run, err := report.ReadFile(ctx, name)
	if err != nil {
		if src, rerr := input.ReadFile(ctx, name); rerr == nil && strings.Contains(string(src), `"test_info"`) {
			m.unused = append(m.unused, name+": perftest's JSON does not name its units; the output itself is read")
			return nil
		}
		return experiment.Usagef("--from: %w", err)
	}
	if err := run.Measured(); err != nil {
		return experiment.Usagef("--from: %s: %w", name, err)
	}
	m.files++
	found := false
	for i := range run.Cases {
		c := &run.Cases[i]
		if c.ID != "PERF-004" {
			continue
		}
		for _, o := range c.Observations {
			var size uint64
			gbps, bad := strconv.ParseFloat(fmt.Sprint(o.Got), 64)
			if n, err := fmt.Sscanf(o.Step, "%d bytes, Gb/s", &size); n != 1 || err != nil || bad != nil || !(gbps > 0) || math.IsInf(gbps, 1) || size == 0 || size > mostSize {
				continue
			}
			found = true
			x := &measurement{setup: setup{op: "write", threads: 1, qps: 1, window: 64, postlist: 1, signal: 8, size: size, mtu: 1024}, at: name + ": PERF-004, " + o.Step, value: gbps * 1e9 / 8 / float64(size)}
			x.class = x.classOf()
			m.all = append(m.all, x)
		}
	}
	if !found {
		m.unused = append(m.unused, name+": this record has no bandwidths of PERF-004: run conform with --label-filter PERF")
	} else {
		m.records++
	}
	return nil
}

// contradict is by how much two results of one measurement may be apart.
const contradict = 0.2

// merge joins measurements of one setup, and refuses those that contradict each other.
func (m *measured) merge() error {
	var merged []*measurement
	count := map[setup]int{}
	first := map[setup]*measurement{}
	link := ""
	for _, x := range m.all {
		if x.link != "" && link != "" && x.link != link {
			return experiment.Usagef("%s: the link is %s here, and %s elsewhere: give the measurements of one port", x.at, x.link, link)
		}
		link = cmp.Or(link, x.link)
		f := first[x.setup]
		if f == nil {
			c := *x
			first[x.setup], count[x.setup] = &c, 1
			merged = append(merged, &c)
			continue
		}
		if math.Abs(x.value-f.value) > contradict*math.Min(x.value, f.value) {
			return experiment.Usagef("%s: %s is %s %s here, and %s %s in %s: measure again, on a machine that does nothing else, and keep one",
				x.at, x.name(), table.Short(x.shown()), x.unit(), table.Short(f.shown()), f.unit(), f.at)
		}
		n := float64(count[x.setup])
		f.value = (f.value*n + x.value) / (n + 1)
		count[x.setup]++
	}
	m.all = merged
	if len(merged) == 0 {
		return experiment.Usagef("--from: nothing in it can be used: %s", strings.Join(m.unused, "; "))
	}
	return nil
}

// of is the measurement of a class, of the least size; nil if there is none.
func (m *measured) of(class string) *measurement {
	var best *measurement
	for _, x := range m.all {
		if x.class == class && (best == nil || x.size < best.size) {
			best = x
		}
	}
	return best
}

// largest is the measurement of bandwidth with the highest goodput.
func (m *measured) largest() *measurement {
	var best *measurement
	for _, x := range m.all {
		if x.class == "bandwidth" && (best == nil || x.goodput() > best.goodput()) {
			best = x
		}
	}
	return best
}

// goodput is in bits per second.
func (m *measurement) goodput() float64 { return m.value * float64(m.size) * 8 }

// checks are measurements that nothing is fitted to, as many as are worth a run.
func (m *measured) checks(used []*measurement) []*measurement {
	const most, size = 8, 4096
	var all []*measurement
	for _, x := range m.all {
		if !slices.Contains(used, x) && x.size <= size && len(all) < most {
			all = append(all, x)
		}
	}
	return all
}

// scenario is the measurement as a file of rdmasim validate, whose only figure is what was
// measured.
func (m *measurement) scenario(id, base string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "check: 1\ntitle: %s\nsource: measured here\nscenario:\n  name: card\n  profile: %s\n  cores: %d\n  traffic:\n    - {name: load, verb: %s, payload: %dB, ",
		strconv.Quote(m.name()), base, max(16, m.threads), m.op, m.size)
	if m.inline {
		b.WriteString("inline: true, ")
	}
	fmt.Fprintf(&b, "mtu: %d, ", m.mtu)
	if m.reads > 0 {
		fmt.Fprintf(&b, "rd_atomic: %d, ", min(m.reads, 128))
	}
	metric := "latency_ns_p50"
	if m.latency {
		b.WriteString("measure: latency, messages: 200, window: 16, warmup: 40us}\n")
	} else {
		metric = "rate_mps"
		// Enough messages for a rate, and time to fill all windows first.
		each := float64(m.threads*m.qps*m.window) / m.value
		fmt.Fprintf(&b, "threads: %d, contexts: %d, qps_per_thread: %d, window: %d, postlist: %d, signal_every: %d, warmup: %dns, duration: %dns, recv_postlist: 16",
			m.threads, m.threads, m.qps, m.window, m.postlist, m.signal, int(math.Min(4*each*1e9+1e5, 2e6)), int(math.Min(4*each*1e9+2e5, 4e6)))
		if m.recvDepth > 0 {
			fmt.Fprintf(&b, ", recv_depth: %d", max(m.recvDepth, 16))
		}
		b.WriteString("}\n")
	}
	fmt.Fprintf(&b, "runs:\n  run: {}\nfigures:\n  - {id: %s, name: %s, value: run.%s, expected: %s, unit: %s, tolerance: 5%%, kind: fitted}\n",
		id, strconv.Quote(m.name()), metric, strconv.FormatFloat(table.Rounded(m.shown()), 'f', -1, 64), m.unit())
	return []byte(b.String())
}

// checkFolder returns an error if dir is not a folder, before anything is read.
func checkFolder(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return experiment.Usagef("--from: %w", err)
	}
	if !st.IsDir() {
		return experiment.Usagef("--from: %s is not a folder of measurements", dir)
	}
	return nil
}
