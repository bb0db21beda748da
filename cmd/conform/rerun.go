package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// againAs is the command that runs cases as the run of a record did, as far as the record says how,
// with this program.
func againAs(run *report.Run, filter string) string { return (&runOptions{}).again(run, filter) }

// again is the command that runs cases as the run of a record did, with all that stood before
// conform: variables that the driver reads, rdmasim exec or vm with its flags, the lab. The options
// say what the record does not have: where its files lie, and, if they are those of the run, that
// this program's environment is the run's. A record may be a stranger's: each word of it is quoted.
func (o *runOptions) again(run *report.Run, filter string) string {
	here := o.target == "hw"
	words := driverVariables(run)
	if worker := os.Getenv("CONFORM_HW"); worker != "" && here {
		if len(words) == 0 {
			words = []string{"env"}
		}
		words = append(words, "CONFORM_HW="+commands.Quoted(worker))
	}
	switch guest := os.Getenv(commands.GuestVariable); {
	case run.Environment[report.KeyBelow] == "rdmasim exec":
		words = append([]string{commands.Shell(session(run, here))}, words...)
		if here && os.Getenv("LAB_WIRE") != "" {
			words = append(inLab(run), words...)
		}
	case guest != "" && here: // any other guest on rdmasim pci is a machine of its own
		words = append([]string{guest}, words...)
	case here && o.wire != "" && labWire() != "":
		words = append(inLab(run), words...)
	}
	words = append(words, commands.Quoted(calledAs(os.Args[0])), "--target="+commands.Quoted(run.Target.Kind))
	add := func(given bool, flag string, value any) {
		if given {
			words = append(words, flag, commands.Quoted(fmt.Sprint(value)))
		}
	}
	add(run.Target.Kind == "sim", "--profile", o.profileOf(run))
	add(run.Target.Kind != "sim" && run.Target.Device != "", "--device", run.Target.Device)
	words = append(words, recordedFlags(run)...)
	add(o.peerKey != "", "--peer-key", o.peerKey)
	for _, b := range o.baselines {
		add(true, "--baseline", b)
	}
	add(run.Environment[mutantKey] != "", "--mutant", run.Environment[mutantKey])
	fault := cmp.Or(o.fault, fileName(run.Environment[faultsKey]))
	add(fault != "", "--fault", fault)
	for _, l := range o.ledgers {
		add(true, "--ledger", l)
	}
	add(o.wall > 0, "--wall-limit", o.wall)
	if o.lockstep {
		words = append(words, "--lockstep")
	}
	return plain.Line(fmt.Sprintf("%s --seed %d --label-filter %s -v", strings.Join(words, " "), run.Seed, commands.Quoted(filter)))
}

// profileOf is the value of --profile of a run: a name, or a file, of which the record has no
// folder.
func (o *runOptions) profileOf(run *report.Run) string {
	switch name := fileName(run.Environment[profileKey]); {
	case name == "":
		return run.Target.Profile
	case o.sim.text != "":
		return o.profile
	default:
		return name
	}
}

// Entries of a record's environment that say how the run was made, if not as by default.
const (
	mutantKey = "mutant"
	faultsKey = "faults" // name of the file without its folder, a comma and the hash of its text
	flagsKey  = "flags"  // of the command, as a shell reads them: --repeat=3 --full
)

// mayBeRecorded are the flags of flagsKey. That --lockstep changes nothing is what it is for.
var mayBeRecorded = regexp.MustCompile(`^--(?:port|gid-index|wire|peer|role|repeat|full)(?:=|$)`)

// flagsOf are the flags that decide what a run shows, and that its record does not have otherwise.
func (o *runOptions) flagsOf() string {
	var words []string
	add := func(given bool, flag string, value any) {
		if given {
			words = append(words, fmt.Sprintf("--%s=%v", flag, value))
		}
	}
	if o.target == "hw" {
		add(o.port > 0, "port", o.port)
		add(o.gidIndex >= 0, "gid-index", o.gidIndex)
		add(o.wire != "" && o.wire != labWire(), "wire", o.wire)
		add(o.peer != "", "peer", o.peer)
		add(o.role == roleResponder, "role", o.role)
	}
	add(o.repeat > 1, "repeat", o.repeat)
	if o.full {
		words = append(words, "--full")
	}
	return commands.Shell(words)
}

// recordedFlags are the words of flagsKey, but for those that no conform writes.
func recordedFlags(run *report.Run) (words []string) {
	all, _ := commands.Words(run.Environment[flagsKey])
	for _, w := range all {
		if mayBeRecorded.MatchString(w) {
			words = append(words, commands.Quoted(w))
		}
	}
	return words
}

// session is the command of rdmasim exec of a run, up to the program: here with the name by which
// rdmasim was called.
func session(run *report.Run, here bool) []string {
	words, ok := commands.Words(run.Environment[report.KeySession]) // a record of an older version has none
	if here {
		words, ok = commands.Words(os.Getenv(commands.SessionVariable))
	}
	if !ok || len(words) < 3 || words[1] != "exec" || slices.Index(words, "--") != len(words)-1 {
		return []string{"rdmasim", "exec", "--"}
	}
	if !here {
		words[0] = "rdmasim"
	}
	return words
}

// driverVariable is the name of a variable that records have. That of another, such as LD_PRELOAD,
// or what is no name, would run something else where it is pasted.
var driverVariable = regexp.MustCompile(`^(?:MLX|MLX5|IBV|RDMAV)_[A-Za-z0-9_]*$`)

// driverVariables are the words that set the variables of the driver, and of where it is found, as
// a run had them.
func driverVariables(run *report.Run) (words []string) {
	if path := run.Environment[report.KeyLibraryPath]; path != "" {
		words = append(words, "LD_LIBRARY_PATH="+commands.Quoted(path))
	}
	for _, k := range slices.Sorted(maps.Keys(run.Environment)) {
		if name, ok := strings.CutPrefix(k, report.KeyEnv); ok && driverVariable.MatchString(name) {
			words = append(words, name+"="+commands.Quoted(run.Environment[k]))
		}
	}
	if len(words) > 0 {
		words = append([]string{"env"}, words...)
	}
	return words
}

// undescribed puts into a record what this program knows of a run whose worker ended before it
// could say what it runs on, so that the command which runs it again is whole.
func (o *runOptions) undescribed(run *report.Run) {
	run.Target.Device = o.device
	if os.Getenv(commands.SessionVariable) != "" {
		run.Environment[report.KeyBelow] = "rdmasim exec"
	}
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		run.Environment[report.KeyLibraryPath] = path
	}
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); driverVariable.MatchString(name) {
			run.Environment[report.KeyEnv+name] = value
		}
	}
}

// calledAs is the program as the command line named it, also one built with a tag (conform-hw),
// unless go run or a test built it for this time only.
func calledAs(arg0 string) string {
	if base := filepath.Base(arg0); base != "conform" && !strings.HasPrefix(base, "conform-") || strings.Contains(arg0, string(filepath.Separator)+"go-build") {
		return "conform"
	}
	return arg0
}

// inLab are the words that run a command in the lab of a run.
func inLab(run *report.Run) []string {
	return []string{"scripts/lab", "--kernel", labKernel(run.Environment[report.KeyKernel]), "--"}
}

// labKernel is the value of scripts/lab --kernel for a release.
func labKernel(release string) string {
	for _, k := range []string{"6.1", "6.12"} {
		if strings.HasPrefix(release, k+".") {
			return k
		}
	}
	return "newest"
}
