package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/sim/kernel/completion/oracle"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// largeAreas have five mutants at least, every other area with cases two, but for that of drawn
// programs.
var largeAreas = []string{"RC", "QPS", "CQ", "SRQ", "MR", "MW", "ATOM", "WIRE", "ERR", "ODP", "XRC", "BF", "TD", "UAR"}

// facts are what driver and device rely on in each other, and the mutants of it.
var facts = []struct {
	fact    string
	mutants []string
}{
	{"The offset in a UAR page says what a register write is: arm of a CQ, doorbell or push, and of which register and half",
		[]string{"every-third-arm-lost", "second-half-unread", "second-register-unread"}},
	{"8 bytes are a doorbell, whole blocks a push that is executed; one that is torn falls back to the queue in memory",
		[]string{"torn-push-lost", "inline-data-cut"}},
	{"A doorbell names a queue and an index, and counts for all requests up to it; the record says how many there are",
		[]string{"doorbell-for-one-request", "record-after-doorbell", "send-counts-as-receive", "wqe-of-another-qp"}},
	{"Stores to a write-combining page leave late, unless they are flushed", []string{"register-unflushed"}},
	{"A post takes the lock of its queue, and that of a register that others ring", []string{"shared-register-unlocked", "domain-keeps-its-locks", "lock-rule-of-another-time"}},
	{"The halves of a register are used in turn, by all queues and by doorbells as by pushes", []string{"one-half-only", "halves-of-each-queue"}},
	{"The owner bit says in which pass an entry was written; an entry without room fails the CQ", []string{"owner-bit-stuck", "overrun-unreported", "overrun-always-ignored"}},
	{"An arm reports one event, for an entry at or behind its consumer index, solicited or in error if it asks for that",
		[]string{"events-without-arm", "arm-looks-forward-only", "solicited-unheard", "arm-narrows"}},
	{"A side of a QP that has met an absent page stands still until the driver has answered; an error ends the QP",
		[]string{"paged-request-overtakes-answer", "answer-to-the-other-side", "lost-pages-awaited", "lost-target-awaited"}},
	{"An XRC request names an SRQ of the target's domain; receives are checked against its PD and complete to its CQ",
		[]string{"xrc-srq-of-any-domain", "xrc-any-srq-number", "xrc-receive-key-of-the-qp", "xrc-completion-to-the-qp"}},
	{"An SRQ is a list through its WQEs, whatever their order in the ring", []string{"srq-in-order-of-its-ring"}},
	{"Receives have no doorbell: the device reads the record when it needs one", []string{"receive-record-read-once"}},
}

// holes are the kinds of defect that a suite misses most easily, and mutants of each.
var holes = []struct {
	kind    string
	mutants []string
}{
	{"Limits: one below, at, one above", []string{"srq-limit-one-below", "srq-limit-one-above", "moderation-one-early", "moderation-one-late", "path-mtu-one-down", "path-mtu-one-up",
		"key-one-byte-shorter", "key-one-byte-longer", "first-psn-one-late", "one-retry-less", "datagram-above-mtu-taken", "reads-above-the-device", "cq-size-promised-twice"}},
	{"Each bit of a word", []string{"retry-count-without-bit-0", "rnr-retry-without-bit-1", "ack-timeout-without-bit-4", "qkey-in-its-low-half", "qkey-in-its-high-half",
		"pkey-in-its-low-byte", "psn-of-23-bits", "privilege-from-another-bit", "half-compared", "parent-takes-any-bit"}},
	{"Each transition of a QP, with each attribute", []string{"any-transition", "transition-needs-nothing", "transition-takes-all", "table-rc-rts-rts-bit-15-needed", "table-xrcrecv-rtr-err-bit-20-optional"}},
	{"Duplicates after something newer", []string{"newer-atomic-hides-older", "newer-read-hides-older", "duplicate-keeps-nak", "replay-of-any-range", "duplicate-executed"}},
	{"Responses that nobody asked for", []string{"ghost-acknowledges", "stale-response-taken", "read-data-for-an-atomic", "atomic-answer-for-a-read"}},
	{"A queue entry used again after a partial arrival", []string{"receive-filled-from-its-middle", "receive-lost-with-its-message", "gap-unnoticed"}},
	{"Objects destroyed with events pending", []string{"event-of-a-dead-qp", "event-of-a-dead-srq", "error-of-a-dead-cq", "event-of-a-dead-cq", "qp-destroyed-before-acks", "destroy-without-acks"}},
	{"Completions that compress", []string{"mini-entry-of-another-length", "mini-entry-of-another-index"}},
	{"Sums that pass 32 bits", []string{"write-within-4-gib", "read-within-4-gib", "gather-within-4-gib", "landing-within-4-gib", "scatter-within-4-gib", "addition-in-two-halves"}},
	{"Orders of free lists and of those who wait", []string{"last-freed-register-first", "oldest-free-key-first", "freed-domain-forgotten", "old-library-with-a-list", "srq-in-order-of-its-ring",
		"last-waiting-queue-first", "newest-event-first"}},
	{"A log in the order that it judges", []string{"record-after-doorbell", "register-unflushed", "torn-push-lost", "receive-record-read-once", "consumer-index-unwritten"}},
}

// killersOf are the cases that notice a mutant, by the committed matrix; those that are named as
// likely come first.
func killersOf(known *Matrix, name string) (ids []string) {
	r := known.row(name)
	if r == nil {
		return nil
	}
	for _, m := range mutant.All() {
		if m.Name == name {
			for _, id := range m.Killers {
				if slices.Contains(r.Kills, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	for _, id := range r.Kills {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Each kind of hole has mutants that exist, and a case kills each.
func TestEveryKindOfHoleIsClosed(t *testing.T) {
	_, known, _, _ := committed(t)
	for _, h := range holes {
		for _, name := range h.mutants {
			if len(killersOf(known, name)) == 0 {
				t.Errorf("%s: no case kills %s, by fixtures/%s", h.kind, name, matrixFile)
			}
		}
	}
}

// Each fact of the interface has a mutant that exists and is killed.
func TestEveryFactHasAMutant(t *testing.T) {
	explained, err := ReadSurvivors()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range facts {
		for _, name := range f.mutants {
			if !slices.ContainsFunc(mutant.All(), func(m mutant.Mutant) bool { return m.Name == name }) {
				t.Errorf("%s: there is no mutant %s", f.fact, name)
			}
			if explained.Reason(name) != "" {
				t.Errorf("%s: mutant %s survives", f.fact, name)
			}
		}
	}
}

// Each area of the catalogue that has cases has mutants, and at most one in twenty survives of all.
func TestEveryAreaHasMutants(t *testing.T) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	cases, names := map[string]int{}, map[string]bool{}
	for _, i := range items {
		cases[i.Entry.Area]++
	}
	mutants := map[string]int{}
	for _, m := range mutant.All() {
		if names[m.Name] {
			t.Errorf("two mutants have the name %s", m.Name)
		}
		names[m.Name] = true
		mutants[m.Area]++
		if m.Counted() {
			checkCounted(t, m)
			continue
		}
		if cases[m.Area] == 0 {
			t.Errorf("mutant %s is of area %q, which has no cases", m.Name, m.Area)
		}
		for _, id := range m.Killers {
			if !slices.ContainsFunc(items, func(i conformance.Item) bool { return i.Entry.ID == id }) {
				t.Errorf("mutant %s: there is no case %s", m.Name, id)
			}
		}
	}
	for area, n := range cases {
		least := 2
		if slices.Contains(largeAreas, area) {
			least = 5
		} else if area == "RAND" {
			least = 0 // its programs are of all areas, and kill their mutants
		}
		if mutants[area] < least {
			t.Errorf("area %s has %d cases and %d mutants; it needs %d", area, n, mutants[area], least)
		}
	}
	explained, err := ReadSurvivors()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(explained.Survivors); n*20 > len(mutant.All()) {
		t.Errorf("%d of %d mutants survive: more than one in twenty", n, len(mutant.All()))
	}
}

// checkCounted holds a counted mutant to probes that exist.
func checkCounted(t *testing.T, m mutant.Mutant) {
	t.Helper()
	for _, name := range m.Killers {
		if !slices.ContainsFunc(oracle.Probes(), func(p oracle.Probe) bool { return p.Name == name }) {
			t.Errorf("mutant %s: there is no probe %s", m.Name, name)
		}
	}
}

// areasPage is the part of docs/mutants.md about areas, facts and survivors.
func areasPage(t *testing.T, explained *Survivors, known *Matrix) []byte {
	t.Helper()
	_, _, _, items := committed(t)
	var page bytes.Buffer
	all, by, must, idle := mutant.All(), known.killers(), 0, known.idle(items)
	var areas []string
	for _, m := range all {
		if !slices.Contains(areas, m.Area) {
			areas = append(areas, m.Area)
		}
	}
	for _, i := range items {
		if mustKill(i.Entry) {
			must++
		}
	}
	slices.Sort(areas)
	fmt.Fprintf(&page, "\n## Areas\n\n%d mutants, of which %d are killed: the mutants of KCQ, the kernel's completion models, by counts, all others by cases.\n"+
		"%d of %d cases of strength E or S kill a mutant, on profile %s or the one that rows.yaml names.\n", len(all), len(all)-len(explained.Survivors), must-len(idle), must, known.Profile)
	untried := 0
	for _, r := range known.Mutants {
		untried += len(r.Untried)
	}
	if untried > 0 {
		fmt.Fprintf(&page, "%d of %d pairs of a mutant and a case have not run yet: `bin/conform mutants --matrix --untried --update fixtures/mutants/matrix.json`.\n", untried, len(known.Cases)*len(known.Mutants))
	}
	page.WriteString("\n| area | mutants | survive | cases | that kill none | most kills of a case |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, a := range areas {
		n, survive, cases, none, most := 0, 0, 0, 0, 0
		for _, m := range all {
			if m.Area != a {
				continue
			}
			n++
			if explained.Reason(m.Name) != "" {
				survive++
			}
		}
		for _, i := range items {
			if i.Entry.Area != a {
				continue
			}
			cases++
			most = max(most, len(by[i.Entry.ID]))
			if len(by[i.Entry.ID]) == 0 {
				none++
			}
		}
		fmt.Fprintf(&page, "| %s | %d | %d | %d | %d | %d |\n", a, n, survive, cases, none, most)
	}
	page.WriteString("\n## What driver and device rely on\n\n| fact | mutants |\n| --- | --- |\n")
	for _, f := range facts {
		fmt.Fprintf(&page, "| %s | %s |\n", f.fact, strings.Join(f.mutants, ", "))
	}
	page.WriteString("\n## Kinds of hole\n\nThe holes that a suite most easily has; each kind has mutants, and a case kills each.\n\n| kind | mutants | for example |\n| --- | --- | --- |\n")
	for _, h := range holes {
		example := h.mutants[0]
		if ids := killersOf(known, example); len(ids) > 0 {
			example += ", killed by " + ids[0]
		}
		fmt.Fprintf(&page, "| %s | %d | %s |\n", h.kind, len(h.mutants), example)
	}
	page.WriteString("\n## Survivors\n\n")
	for i, s := range explained.Survivors {
		if i > 0 {
			page.WriteString(",\n")
		}
		page.WriteString(s.Name)
	}
	page.WriteString(".\n")
	machinePage(t, &page)
	return page.Bytes()
}

// machinePage is the part of docs/mutants.md about a sample that scripts/mutate has judged.
func machinePage(t *testing.T, page *bytes.Buffer) {
	t.Helper()
	var r struct {
		Seed            uint64
		Sites, Programs int
		Profiles        []string
		Incomplete      bool
		Mutants         []struct{ Package, Kind, Fate string }
	}
	text, err := os.ReadFile("../../fixtures/mutants/machine.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || r.Incomplete || len(r.Mutants) == 0 {
		t.Fatalf("fixtures/mutants/machine.json: %v, incomplete %t, %d mutants; scripts/mutate --output writes it", err, r.Incomplete, len(r.Mutants))
	}
	fates := []string{"killed", "crashed", "not noticed", "same", "equivalent", "not reached"}
	table := func(head string, of func(i int) string) {
		fmt.Fprintf(page, "\n| %s | %s |\n|%s\n", head, strings.Join(fates, " | "), strings.Repeat(" --- |", len(fates)+1))
		var names []string
		counts := map[string]int{}
		for i, m := range r.Mutants {
			if !slices.Contains(fates, m.Fate) {
				t.Fatalf("fixtures/mutants/machine.json: fate %q of mutant %d", m.Fate, i)
			}
			if !slices.Contains(names, of(i)) {
				names = append(names, of(i))
			}
			counts[of(i)+"/"+m.Fate]++
			counts[m.Fate]++
		}
		for _, name := range names {
			fmt.Fprintf(page, "| %s |", name)
			for _, f := range fates {
				fmt.Fprintf(page, " %d |", counts[name+"/"+f])
			}
			page.WriteString("\n")
		}
		if head == "package" {
			detected, all := counts["killed"]+counts["crashed"], len(r.Mutants)-counts["equivalent"]
			fmt.Fprintf(page, "\n%d of %d are detected (%.0f %%), equivalent ones apart.\n", detected, all, 100*float64(detected)/float64(all))
		}
	}
	fmt.Fprintf(page, "\n## Mutants by machine\n\n`scripts/mutate` drew %d of %d places with seed %d. The cases that reach them, and %d drawn programs each,\n"+
		"judged them on %s. Equivalent: no byte of 2,000 programs and\ntheir frames changes, although some reach them.\n",
		len(r.Mutants), r.Sites, r.Seed, r.Programs, strings.Join(r.Profiles, ", "))
	table("package", func(i int) string { return r.Mutants[i].Package })
	table("kind", func(i int) string { return r.Mutants[i].Kind })
}
