// Command mutate makes mutants of the simulator by machine and has the suite judge them: every case
// that reaches one, and drawn programs. All mutants of a sample are compiled into one program, each
// asleep until its number is set, so that a mutant costs a run and no build. scripts/mutate runs
// it; docs/mutants.md shows what it found.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// rooms are the packages that mutants are made of, with those below them.
var rooms = []string{"sim/hca", "sim/mkey", "sim/odp", "sim/uar", "sim/kernel", "sim/provider", "sim/link", "roce"}

// target is the package that the simulated device consists of, with all that it imports: what is
// not in it, no case can reach.
const target = "./conformance/target/simulator"

// suite is the program that judges them.
const suite = "./cmd/conform"

// judges are packages below rooms that belong to those who watch and disturb the device: a judge
// does not notice its own faults.
var judges = []string{"roce/fault", "roce/ladder", "roce/oracle", "roce/pcap"}

// result is the file that a run leaves.
type result struct {
	Seed       uint64    `json:"seed"`
	Sites      int       `json:"sites"` // all places for mutants
	Sample     int       `json:"sample"`
	Profiles   []string  `json:"profiles"` // of the suite
	Programs   int       `json:"programs"` // drawn on each profile for each mutant that they come to
	Incomplete bool      `json:"incomplete,omitempty"`
	Mutants    []verdict `json:"mutants"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := command(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	sample := flags.Int("sample", 1000, "judge `N` mutants, drawn by --seed from all; 0: all")
	seed := flags.Uint64("seed", 1, "`SEED` of the draw")
	programs := flags.Int("programs", 1000, "draw `N` programs for each mutant")
	profiles := flags.String("profiles", "connectx-5,connectx-5-ib,generic-roce", "run the suite on these `PROFILES`, until it notices the mutant on one")
	jobs := flags.Int("jobs", runtime.NumCPU(), "judge `N` mutants at once")
	shard := flags.String("shard", "0/1", "judge one part of the sample: `i/n` with i from 0, such as of an array job")
	output := flags.String("output", "out/mutate.json", "write each mutant and its fate to this `FILE`")
	list := flags.Bool("list", false, "print the sample and judge nothing")
	only := flags.String("packages", "", "take the mutants of these packages only, such as `sim/hca,sim/mkey` (with all below them)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	var part, parts int
	if n, err := fmt.Sscanf(*shard+" ", "%d/%d ", &part, &parts); n != 2 || err != nil || parts < 1 || part < 0 || part >= parts {
		return fmt.Errorf("--shard %s: want i/n with i from 0 to n-1, such as 0/4", *shard)
	}
	if *sample < 0 || *jobs < 1 || *programs < 1 {
		return fmt.Errorf("--sample must be at least 0, --jobs and --programs at least 1")
	}
	root, module, err := moduleRoot()
	if err != nil {
		return err
	}
	patterns, err := chosen(root, module, *only)
	if err != nil {
		return err
	}
	all, sources, err := load(root, patterns)
	if err != nil {
		return err
	}
	some := draw(all, *sample, *seed)
	if *list {
		for _, s := range some {
			fmt.Fprintln(stdout, s)
		}
		return nil
	}
	dir := filepath.Join(root, "out", "mutate")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := outfile.Create(ctx, *output)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	defer file.Abort()
	work, err := os.MkdirTemp(dir, "work")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	say := func(s string) { fmt.Fprintln(stderr, "mutate:", s) }
	program, kept, refused, err := compile(root, module, suite, work, some, sources, say)
	if err != nil {
		return err
	}
	for _, r := range refused {
		say("does not compile, left out: " + r)
	}
	j := &judge{program: program, dir: work, programs: *programs, mutants: len(kept)}
	for _, profile := range strings.Split(*profiles, ",") {
		say("runs the suite without a mutant on " + profile)
		if err := j.survey(ctx, profile); err != nil {
			return err
		}
	}
	var mine []int
	for n := range kept {
		if n%parts == part {
			mine = append(mine, n)
		}
	}
	verdicts := make([]*verdict, len(mine))
	var mu sync.Mutex
	err = each(ctx, *jobs, len(mine), func(i int) error {
		v, err := j.try(ctx, mine[i], kept[mine[i]])
		if err == nil && ctx.Err() == nil {
			mu.Lock()
			verdicts[i] = &v
			mu.Unlock()
		}
		return err
	}, func(done, all int) {
		if done%20 == 0 || done == all {
			say(fmt.Sprintf("mutants judged: %d of %d", done, all))
		}
	})
	r := result{Seed: *seed, Sites: len(all), Sample: len(mine), Profiles: strings.Split(*profiles, ","), Programs: *programs}
	for _, v := range verdicts {
		if v == nil {
			r.Incomplete = true
			continue
		}
		r.Mutants = append(r.Mutants, *v)
	}
	report(stdout, r)
	return errors.Join(err, file.Commit(func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", " ")
		return encoder.Encode(r)
	}))
}

// moduleRoot is the folder and the path of the module around the working directory.
func moduleRoot() (root, module string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}").Output()
	if err != nil {
		return "", "", fmt.Errorf("go list -m: %w; run scripts/mutate in the sources", err)
	}
	root, module, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return root, module, nil
}

// chosen are the packages that mutants are made of: those of the device that are in rooms, or below
// the names that the user gives.
func chosen(root, module, only string) ([]string, error) {
	names := rooms
	if only != "" {
		names = strings.Split(only, ",")
	}
	list := exec.Command("go", "list", "-deps", target)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -deps %s: %w", target, err)
	}
	below := func(path string, all []string) bool {
		return slices.ContainsFunc(all, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
	}
	var packages []string
	used := map[string]bool{}
	for path := range strings.Lines(string(out)) {
		room, ours := strings.CutPrefix(strings.TrimSpace(path), module+"/")
		if !ours || below(room, judges) {
			continue
		}
		for _, name := range names {
			if below(room, []string{name}) {
				used[name] = true
				packages = append(packages, "./"+room)
			}
		}
	}
	for _, name := range names {
		if !used[name] {
			return nil, fmt.Errorf("--packages: %q is no package of the simulated device, nor a folder of some; name folders such as sim/hca", name)
		}
	}
	return packages, nil
}

// draw takes n of all, in their order.
func draw(all []site, n int, seed uint64) []site {
	if n == 0 || n >= len(all) {
		return all
	}
	picked := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n]
	slices.Sort(picked)
	some := make([]site, 0, n)
	for _, i := range picked {
		some = append(some, all[i])
	}
	return some
}

// report prints the tables by package and by kind.
func report(w io.Writer, r result) {
	table := func(head string, keys []string, of func(verdict) string) {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(tw, "%s\tmutants\t%s\n", head, strings.Join(fates, "\t"))
		for _, k := range append(keys, "all") {
			counts, n := map[string]int{}, 0
			for _, v := range r.Mutants {
				if k == "all" || of(v) == k {
					counts[v.Fate]++
					n++
				}
			}
			if n == 0 {
				continue
			}
			fmt.Fprintf(tw, "%s\t%d", k, n)
			for _, f := range fates {
				fmt.Fprintf(tw, "\t%d", counts[f])
			}
			fmt.Fprintln(tw)
		}
		tw.Flush()
		fmt.Fprintln(w)
	}
	var packages []string
	for _, v := range r.Mutants {
		if !slices.Contains(packages, v.Package) {
			packages = append(packages, v.Package)
		}
	}
	table("package", packages, func(v verdict) string { return v.Package })
	table("kind", slices.Clone(kinds), func(v verdict) string { return v.Kind })
	detected, equivalent := 0, 0
	for _, v := range r.Mutants {
		if v.Fate == alike {
			equivalent++
		}
		if v.Fate == killed || v.Fate == crashed {
			detected++
		}
	}
	if n := len(r.Mutants) - equivalent; n > 0 {
		fmt.Fprintf(w, "%d of %d mutants are detected (%.1f %%), beside %d that are equivalent, of %d places, seed %d\n",
			detected, n, 100*float64(detected)/float64(n), equivalent, r.Sites, r.Seed)
	}
	if r.Incomplete {
		fmt.Fprintln(w, "incomplete: the run was interrupted")
	}
}
