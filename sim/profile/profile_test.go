package profile

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/uar"
)

func load(t testing.TB, name string) *Profile {
	t.Helper()
	p, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStoredProfilesLoad(t *testing.T) {
	want := []string{"connect-ib", "connectx-4", "connectx-4-ib", "connectx-4lx", "connectx-5", "connectx-5-ib", "connectx-6", "connectx-6dx", "connectx-7", "generic-roce", "thunderx2"}
	if got := List(); !slices.Equal(got, want) {
		t.Errorf("profiles %v, want %v", got, want)
	}
	for _, n := range stored() {
		if _, f, err := read(n); err != nil || f.Partial == slices.Contains(want, n) {
			t.Errorf("%s: %v, and List takes it for a whole profile: %v", n, err, slices.Contains(want, n))
		}
	}
	hashes := map[string]string{}
	for _, n := range List() {
		p := load(t, n)
		for _, v := range p.Values() {
			if v.Source == "" || (v.Source == Assumed || v.Source == Fitted || v.Source == Hypothesis) && v.Reason == "" {
				t.Errorf("%s: %s has no source", n, v.Key)
			}
			if err := p.Clone().Set(v.Key, v.Text); err != nil {
				t.Errorf("%s: what %s is printed as cannot be read: %v", n, v.Key, err)
			}
		}
		if other := hashes[p.Hash()]; other != "" {
			t.Errorf("%s and %s have the same hash", n, other)
		}
		hashes[p.Hash()] = n
	}
}

func TestValues(t *testing.T) {
	p := load(t, "connectx-5")
	if p.CPU.LineTransfer != 30*sim.Nanosecond || p.PCIe.Bandwidth != 113_700_000_000 || p.PCIe.WriteHeader != 20 ||
		p.HCA.CoreClockKHz != 156_250 || p.HCA.UAR.BFConflict != uar.ConflictSerialize || p.Kernel.Generation != kernel.Dynamic ||
		p.HCA.NackReact != [2]sim.Time{3 * sim.Microsecond, 2200 * sim.Nanosecond} || p.Kernel.PCIDevice != 0x1017 || p.HCA.BARSize != 32<<20 ||
		p.HCA.Commands.CreateMkeyEntry != 10*sim.Nanosecond || !p.Provider.ScatterToCQE || p.Switch.Buffer != 1<<20 {
		t.Errorf("%+v", p)
	}
	if p.Get("hca.pus") != "16" || p.Get("hca.puss") != "" || Default != p.Name {
		t.Error("Get")
	}
	for key, text := range map[string]string{
		"hca.bar_size": "32MiB", "hca.core_clock": "156.25MHz", "kernel.pci_device": "0x1017", "uar.bf_conflict": "serialize",
		"hca.pus": "16", "hca.pu_service": "100ns", "hca.roce_adder": "0ps", "provider.independent_td": "false", "link.bandwidth": "100Gbps",
		"cpu.no_wc": "183ns", "cpu.wc_line": "16.5ns", "hca.nack_react_read": "2.2us", "hca.log_max_qp_size": "15",
	} {
		if v, ok := p.Lookup(key); !ok || v.Text != text {
			t.Errorf("%s is %q, want %q", key, v.Text, text)
		}
	}
	ib := load(t, "connect-ib")
	cpu := p.CPU
	cpu.WCLine = 8500 * sim.Picosecond // its own; the rest is the host's
	if v, _ := ib.Lookup("pcie.posted_latency"); v.Text != "130ns" || ib.PCIe.WriteHeader != 26 || ib.CPU != cpu {
		t.Errorf("connect-ib does not take what it extends: %+v", v)
	}
}

// The words of a type's tag are in the order of its constants.
func TestWordsMatchUnits(t *testing.T) {
	for key, want := range map[string][]string{
		"uar.bf_conflict":   {uar.ConflictNone: "none", uar.ConflictSerialize: "serialize", uar.ConflictRefetch: "refetch"},
		"kernel.generation": {kernel.Dynamic: "dynamic", kernel.Static: "static"},
		"kernel.mkey_cache": {kernel.LastKeyFirst: "lifo", kernel.FirstKeyFirst: "fifo", kernel.NoKeyAgain: "none"},
	} {
		if got := Words(key); !slices.Equal(got, want) {
			t.Errorf("words of %s: %v, want %v", key, got, want)
		}
	}
}

// No two fields have the same key, and every key for which a kind is given exists.
func TestKeys(t *testing.T) {
	keys := new(Profile).Keys()
	seen := map[string]bool{}
	for _, k := range keys {
		if seen[k] || strings.Contains(k, "__") || strings.ToLower(k) != k {
			t.Errorf("key %q", k)
		}
		seen[k] = true
	}
	for k := range words {
		if !seen[k] {
			t.Errorf("words are given for %s, which does not exist", k)
		}
	}
}

func TestSet(t *testing.T) {
	p := load(t, "connectx-5")
	base, hash := p.Clone(), p.Hash()
	for _, a := range []string{"uar.bf_conflict=refetch", "pcie.read_latency=450ns", "kernel.generation = static", "provider.independent_td=true", "hca.pus=0x8"} {
		if err := p.Assign(a); err != nil {
			t.Error(err)
		}
	}
	if p.HCA.UAR.BFConflict != uar.ConflictRefetch || p.PCIe.ReadLatency != 450*sim.Nanosecond || p.Kernel.Generation != kernel.Static || !p.Provider.IndependentTD || p.HCA.PUs != 8 {
		t.Errorf("%+v", p)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if p.Hash() == hash || base.Hash() != hash || base.HCA.PUs != 16 {
		t.Error("an override changes the hash, and not that of a clone")
	}
	if v, _ := p.Lookup("uar.bf_conflict"); v.Source != Override || !v.Hypothesis {
		t.Errorf("%+v", v)
	}
	if hs := p.Hypotheses(); !slices.Contains(hs, "uar.bf_conflict=refetch") || !slices.Contains(hs, "provider.independent_td_max=256") {
		t.Errorf("hypotheses %v", hs)
	} else if slices.ContainsFunc(hs, func(h string) bool { return strings.HasPrefix(h, "hca.rnr_damming") || strings.HasPrefix(h, "odp.") }) {
		t.Errorf("of hypotheses %v some are off", hs)
	}
	for _, a := range []string{"hca.rnr_damming=true", "odp.ask_again=1us", "hca.flush_on_destroy=false"} {
		if err := p.Assign(a); err != nil {
			t.Error(err)
		}
		if on := slices.Contains(p.Hypotheses(), a); on == strings.HasSuffix(a, "false") {
			t.Errorf("%s: hypotheses %v", a, p.Hypotheses())
		}
	}
	for a, want := range map[string]string{
		"pcie.read_latncy=1ns":      `unknown parameter "pcie.read_latncy" (did you mean "pcie.read_latency"?)`,
		"uar.bf_conflict=serialise": `(did you mean "serialize"?)`,
		"pcie.read_latency":         `is not key=value`,
		"pcie.read_latency=450":     `has no unit`,
		"pcie.bandwidth=100ns":      `not one of bps, kbps`,
		"hca.pus=many":              `not a whole number`,
		"hca.pus=-1":                `not a whole number`,
		"hca.log_max_qp=300":        `too large`,
		"hca.scatter_to_cqe=yes":    `not true or false`,
	} {
		if err := p.Assign(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", a, err, want)
		}
	}
	p = base
	if err := p.Set("hca.pus", "0"); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), "hca.pus: ") {
		t.Errorf("no processing units: %v", err)
	}
}

// A value that contradicts another one, which the user has not named, is refused by the keys of
// both, in the units of a profile.
func TestValuesThatContradictOthers(t *testing.T) {
	for a, want := range map[string]string{
		"hca.pu_service=1s":         "hca.requester_latency: 140ns, less than hca.pu_service (1s), which includes it: change both",
		"uar.bf_conflict_cost=0ns":  "uar.bf_conflict_cost: 0ps: want a time above 0 for serialize",
		"uar.bf_lines=9":            "uar.bf_lines: 9, not 1 to 4",
		"uar.bf_busy=0ns":           "uar.bf_busy: 0ps: want a time above 0",
		"hca.requester_latency=1ns": "hca.requester_latency: 1ns, less than hca.pu_service (100ns), which includes it: change both",
		"hca.flush_poll=2s":         "hca.flush_poll: 2s, not in 1ns..1s",
	} {
		p := load(t, "connectx-5")
		if err := p.Assign(a); err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", a, err, want)
		}
	}
}

// Values from which no host or device can be made are refused, at their key.
func TestValuesOfNoMachine(t *testing.T) {
	for _, a := range []string{
		"cpu.wc_buffers=1025", "cpu.wc_buffers=4294967295", "pcie.posted_credits=65537", "pcie.posted_credits=9223372036854775807",
		"kernel.cache_line=2147483648", "kernel.cache_line=8192", "kernel.cache_line=96", "uar.bf_busy=0ns", "uar.bf_timeout=0ns", "hca.cqe_version=2",
	} {
		p := load(t, "connectx-5")
		if err := p.Assign(a); err != nil {
			t.Fatal(err)
		}
		key, _, _ := strings.Cut(a, "=")
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), key+": ") {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const head = "name: mine\ntitle: t\nextends: connectx-5\n"
	for _, c := range []struct{ src, want string }{
		{head + "hca:\n  pu_servce: {value: 1ns, source: x}\n", `p.yaml:5:`},
		{head + "hca:\n  pu_servce: {value: 1ns, source: x}\n", `unknown field "pu_servce" in hca (did you mean "pu_service"?); allowed: `},
		{head + "hcaa:\n  pus: {value: 1, source: x}\n", `p.yaml:4:1: unknown field "hcaa" (did you mean "hca"?)`},
		{head + "hca:\n  pus: {value: 1}\n", `field "source" is missing`},
		{head + "hca:\n  pus: {value: 1, source: \"\"}\n", `hca.pus has no source`},
		{head + "hca:\n  pus: {value: 1, source: assumed}\n", `p.yaml:5:27: hca.pus: a value whose source is assumed needs a reason`},
		{head + "hca:\n  pu_service: {value: 100, source: x}\n", `p.yaml:5:23: hca.pu_service: time "100" has no unit: one of ps, ns, us, ms, s`},
		{head + "hca:\n  pus: {value: 5000, source: x}\n", `p.yaml:5:16: hca.pus: 5000, not in 1..1024`},
		{head + "cpu:\n  cache_line: {value: 96B, source: x}\n", `p.yaml:5:23: cpu.cache_line: cache line of 96 bytes`},
		{"name: mine\ntitle: t\nextends: connectx-55\n", `p.yaml:3:10: unknown profile "connectx-55" (did you mean "connectx-5"?)`},
		{"name: mine\ntitle: t\nhca:\n  pus: {value: 5, source: x}\n", `p.yaml:4:6: section hca has no value for log_max_qp (a count), `},
		{"name: mine\ntitle: t\nhca:\n  pus: {value: 5, source: x}\n", `section cpu has no value for line_transfer (a time), `},
	} {
		_, err := Parse("p.yaml", []byte(c.src))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.src, err, c.want)
		}
	}
	_, err := Parse("p.yaml", []byte(head+"hca:\n  a: {value: 1, source: x}\n  b: {value: 1, source: x}\n"))
	if err == nil || strings.Count(err.Error(), "p.yaml:") != 2 {
		t.Errorf("two complaints at once: %v", err)
	}
	if p, err := Parse("p.yaml", []byte(head+"hca:\n  pus: {value: 8, source: mine}\n")); err != nil || p.HCA.PUs != 8 || p.Name != "mine" {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"connectx5", "x86-host"} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "profiles are connect-ib, connectx-4, connectx-4-ib, connectx-4lx, connectx-5, connectx-5-ib, connectx-6, connectx-6dx, connectx-7, generic-roce, thunderx2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestShow(t *testing.T) {
	var b bytes.Buffer
	p := load(t, "connectx-5")
	if err := p.Show(&b); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{"connectx-5: ", "hash " + p.Hash(), "pcie.read_latency", "400ns", "hypothesis: 20 % lost"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if n := strings.Count(out, "\n"); n != len(p.Keys())+4 {
		t.Errorf("%d lines for %d values", n, len(p.Keys()))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("hca:\n  pus: {value: 8, source: mine}\n")
	f.Add("cpu: {no_wc: {value: 1.5us, source: assumed, reason: r}}\nuar:\n  bf_conflict: {value: none, source: x}\n")
	f.Fuzz(func(t *testing.T, body string) {
		p, err := Parse("f.yaml", []byte("name: n\ntitle: t\nextends: connectx-5\n"+body))
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		q := load(t, "connectx-5")
		for _, v := range p.Values() {
			if err := q.Set(v.Key, v.Text); err != nil {
				t.Fatal(err)
			}
		}
		if q.Hash() != p.Hash() {
			t.Fatal("values do not survive their text")
		}
	})
}

// No value is cited from memory anew: whoever finds its source takes the words away, and lowers the
// number.
func TestValuesFromMemory(t *testing.T) {
	keys := map[string]bool{}
	for _, n := range List() {
		for _, v := range load(t, n).Values() {
			if said := v.Source + v.Reason; strings.Contains(said, "cited from memory") {
				keys[v.Key+": "+said] = true
			}
		}
	}
	if len(keys) != 23 {
		t.Errorf("%d values are cited from memory, and docs/fidelity.md says 23: %v", len(keys), keys)
	}
}
