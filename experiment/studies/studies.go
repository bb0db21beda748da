// Package studies has the named experiments: questions that take several runs and their comparison.
package studies

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// All are the named experiments, by name.
func All() []*experiment.Experiment {
	all := []*experiment.Experiment{uarSharing(), uarFactorial(), bfregMap(), onDemandPaging(), xrcLifetimes(), experiment.CompletionModels(), detection()}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// Find returns the experiment of a name, or an error with the nearest one.
func Find(name string) (*experiment.Experiment, error) {
	var names []string
	for _, x := range All() {
		if x.Name == name {
			return x, nil
		}
		names = append(names, x.Name)
	}
	if own, err := fixtures.List("scenarios"); err == nil && slices.Contains(own, name+".yaml") {
		return nil, experiment.Usagef("%q is a scenario: did you mean %s.yaml?", name, name)
	}
	return nil, experiment.Usagef("unknown experiment %q%s; rdmasim list shows all of them, and the path of a scenario ends in .yaml", name, input.Suggest(name, names))
}

// Open finds an experiment by name, or makes one of a scenario file: a path, or the
// file name of a scenario that comes with the program.
func Open(ctx context.Context, name string) (*experiment.Experiment, error) {
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return experiment.OpenScenario(ctx, name)
	}
	return Find(name)
}
