package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/studies"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// runnable completes what run takes: the names of experiments and of the scenarios that come with
// the program, and scenario files of the user's folder that begin with what is typed.
func runnable(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, x := range studies.All() {
		names = append(names, cobra.CompletionWithDesc(x.Name, x.Title))
	}
	if all, err := experiment.Scenarios(); err == nil {
		for _, s := range all {
			names = append(names, cobra.CompletionWithDesc(s.File, s.Title))
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, typed) })
	folder, start := filepath.Split(typed)
	at := folder
	if at == "" {
		at = "."
	}
	files, _ := os.ReadDir(at) // a folder that cannot be read has nothing to complete
	for _, f := range files {
		if n := f.Name(); strings.HasPrefix(n, start) && (strings.HasSuffix(n, ".yaml") || strings.HasSuffix(n, ".yml")) {
			names = append(names, folder+n)
		}
	}
	return names, cobra.ShellCompDirectiveDefault // where nothing matches, the shell completes folders
}

// completable is a key that --set and --sweep take, with the words that its value may be.
type completable struct {
	key, about string
	words      []string
}

// completables are the keys of an experiment or a scenario, "" for none, and of profiles.
func completables(c *cobra.Command, name string) (all []completable) {
	var ofProfile, ofScenario bool
	x, err := studies.Open(c.Context(), name)
	switch {
	case err != nil:
		ofProfile = true
	case x.OfScenario() != nil:
		ofScenario, ofProfile = true, x.OfScenario().Completions == nil
	default:
		ofProfile = !x.NoProfile
		for _, p := range x.Params {
			all = append(all, completable{p.Key, p.Help, p.Allowed})
		}
	}
	if ofScenario {
		loads, rules := x.OfScenario().Items()
		for _, k := range experiment.ScenarioKeys() {
			head, rest, _ := strings.Cut(k.Path, ".N.")
			n := map[string]int{"traffic": loads, "faults": rules}[head]
			switch {
			case k.Map, k.Path == "name", strings.HasPrefix(k.Path, "sweep."), strings.Contains(rest, ".N."), strings.HasSuffix(k.Path, "NAME"):
			case strings.HasPrefix(k.Allowed, "list"): // only a file gives a list
			case strings.HasPrefix(k.Path, "completions.") && ofProfile:
			case rest == "":
				all = append(all, completable{k.Path, k.Help, k.Words})
			default:
				for i := range n {
					all = append(all, completable{fmt.Sprintf("%s.%d.%s", head, i, rest), k.Help, k.Words})
				}
			}
		}
	}
	if ofProfile {
		for _, k := range profileKeys() {
			words := profile.Words(k)
			if words == nil && profile.Allowed(k) == "true, false" {
				words = []string{"true", "false"}
			}
			all = append(all, completable{k, profile.Allowed(k), words})
		}
	}
	return all
}

// settings completes the value of --set and --sweep: a key with its =, then the words that its
// value may be. Values of --sweep have commas between them.
func settings(sweep bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		key, value, valued := strings.Cut(typed, "=")
		var out []string
		for _, k := range completables(c, name) {
			switch {
			case !valued && strings.HasPrefix(k.key, typed):
				out = append(out, cobra.CompletionWithDesc(k.key+"=", k.about))
			case valued && k.key == key:
				before := key + "="
				if at := strings.LastIndexByte(value, ','); sweep && at >= 0 {
					before += value[:at+1]
				}
				for _, w := range k.words {
					if !strings.HasPrefix(before+w, typed) {
						continue
					}
					if given := strings.Split(strings.TrimPrefix(before, key+"="), ","); !slices.Contains(given, w) {
						out = append(out, before+w)
					}
				}
			}
		}
		if valued && !sweep {
			return out, cobra.ShellCompDirectiveNoFileComp
		}
		return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
}
