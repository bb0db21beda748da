package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/input/commands"
	"github.com/rdmasim/rdmasim/plain"
	"github.com/rdmasim/rdmasim/report"
)

// again is the command that runs a case of a run again, with all that stood before conform: variables that
// the driver reads, rdmasim exec or vm with its flags, the lab.
func (o *runOptions) again(run *report.Run, id string) string {
	words := driverVariables(run)
	if worker := os.Getenv("CONFORM_HW"); worker != "" && o.target == "hw" {
		if len(words) == 0 {
			words = []string{"env"}
		}
		words = append(words, "CONFORM_HW="+commands.Quoted(worker))
	}
	switch guest := os.Getenv(commands.GuestVariable); {
	case run.Environment[report.KeyBelow] == "rdmasim exec":
		words = append(execPrefix(ancestors()), words...)
	case guest != "" && o.target == "hw": // any other guest on rdmasim pci is a machine of its own
		words = append([]string{guest}, words...)
	case o.target == "hw" && o.wire != "" && os.Getenv("LAB_WIRE") != "":
		words = append([]string{"scripts/lab", "--kernel", labKernel(run.Environment[report.KeyKernel]), "--"}, words...)
	}
	words = append(words, commands.Quoted(calledAs(os.Args[0])), "--target="+commands.Quoted(o.target))
	add := func(given bool, flag string, value any) {
		if given {
			words = append(words, flag, commands.Quoted(fmt.Sprint(value)))
		}
	}
	add(o.target == "sim", "--profile", o.profile)
	if o.target == "hw" {
		add(o.device != "", "--device", o.device)
		add(o.port > 0, "--port", o.port)
		add(o.gidIndex >= 0, "--gid-index", o.gidIndex)
		add(o.wire != "" && o.wire != os.Getenv("LAB_WIRE"), "--wire", o.wire)
		add(o.peer != "", "--peer", o.peer)
		add(o.peerKey != "", "--peer-key", o.peerKey)
		for _, b := range o.baselines {
			add(true, "--baseline", b)
		}
	}
	add(o.mutant != "", "--mutant", o.mutant)
	add(o.fault != "", "--fault", o.fault)
	for _, l := range o.ledgers {
		add(true, "--ledger", l)
	}
	add(o.repeat > 1, "--repeat", o.repeat)
	add(o.wall > 0, "--wall-limit", o.wall)
	if o.full {
		words = append(words, "--full")
	}
	if o.lockstep {
		words = append(words, "--lockstep")
	}
	return plain.Line(fmt.Sprintf("%s --seed %d --label-filter %s -v", strings.Join(words, " "), run.Seed, commands.Quoted(id)))
}

// driverVariable is the name of a variable that records have. That of another, such as LD_PRELOAD, or what is no name, would run
// something else where it is pasted.
var driverVariable = regexp.MustCompile(`^(?:MLX|MLX5|IBV|RDMAV)_[A-Za-z0-9_]*$`)

// driverVariables are the words that set the variables of the driver, and of where it is found, as a run had them.
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

// calledAs is the program as the command line named it, also one built with a tag (conform-hw), unless go run or a test built it for this time only.
func calledAs(arg0 string) string {
	if base := filepath.Base(arg0); base != "conform" && !strings.HasPrefix(base, "conform-") || strings.Contains(arg0, string(filepath.Separator)+"go-build") {
		return "conform"
	}
	return arg0
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

// execPrefix is the part of the nearest supervisor's command line that ends with --.
func execPrefix(above [][]string) []string {
	for _, c := range above {
		if end := slices.Index(c, "--"); end > 0 && slices.Contains(c[:end], "exec") {
			var out []string
			for _, w := range c[:end+1] {
				out = append(out, commands.Quoted(w))
			}
			return out
		}
	}
	return []string{"rdmasim", "exec", "--"}
}

// ancestors are the command lines of the processes above this one, the nearest first.
func ancestors() (out [][]string) {
	for pid := os.Getppid(); pid > 1; {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			return out
		}
		out = append(out, strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"))
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return out
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 {
			return out
		}
		pid = 0
		if _, err := fmt.Sscan(fields[1], &pid); err != nil {
			return out
		}
	}
	return out
}
