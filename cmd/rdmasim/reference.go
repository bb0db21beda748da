package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

// parts are the parts of a scenario file, each with a page of its own, and what is above its keys.
var parts = []struct{ name, title, about string }{
	{"file", "The file", "Keys of the whole scenario. --set and --sweep take set.uar.bf_conflict as uar.bf_conflict too; rdmasim list keys lists such values."},
	{"traffic", "Loads", "traffic is a list of loads. With --set and --sweep, KEY of the first load is traffic.0.KEY."},
	{"faults", "Faults on the wire", "faults is a list of rules. A frame obeys the first rule that matches it; a key that is not given matches every frame. With --set and --sweep, KEY of the first rule is faults.0.KEY."},
	{"completions", "Completions in the kernel", "completions stands in place of traffic. With --set and --sweep, KEY is completions.KEY."},
	{"sweep", "Sweeps", "A scenario that comes with its grid needs no --sweep."},
}

// scenarioTopic is the page of help about scenario files, with a page for each part.
func scenarioTopic() *cobra.Command {
	keys := experiment.ScenarioKeys()
	c := &cobra.Command{Use: "scenario", Short: "The keys of scenario files, with ten examples"}
	whole := []string{prose("A scenario is a YAML file, which rdmasim run FILE.yaml runs. These are its keys, with what is allowed and what holds without them. " +
		"Every key can be given on the command line: --set traffic.0.threads=8 changes it, --sweep traffic.0.threads=1,2,4 runs the scenario with each value. " +
		"rdmasim help scenario PART prints a part: file, traffic, faults, completions, sweep or examples.")}
	topic := func(name, short, text string) {
		whole = append(whole, text)
		c.AddCommand(&cobra.Command{Use: name, Short: short, Long: text})
	}
	for _, p := range parts {
		text := strings.ToUpper(p.title) + "\n\n" + prose(p.about) + "\n" + strings.TrimRight(reference(p.name, keys), "\n")
		topic(p.name, "Keys of scenario files: "+strings.ToLower(p.title[:1])+p.title[1:], text)
	}
	examples := []string{"EXAMPLES"}
	for _, x := range experiment.Examples() {
		examples = append(examples, prose(x.Asks), indent(x.Text))
	}
	topic("examples", "Ten scenarios, each with the question that it answers", strings.Join(examples, "\n\n"))
	whole = append(whole, "UNITS", prose("A time has a unit: ps, ns, us, ms or s. A size has B, KiB, MiB, GiB, TiB, kB, MB, GB or none, for bytes. "+
		"A rate is such as 100Gbps, a frequency such as 156.25MHz. Fractions are allowed down to one of the smallest unit."))
	c.Long = strings.Join(whole, "\n\n")
	commands.Topic(c)
	return c
}

// prose is a text in lines of 100 columns.
func prose(text string) string { return strings.ReplaceAll(table.Wrap(text, 98), "\n  ", "\n") }

// indent makes a text one that pages keep as it is.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// reference lists the keys of a part of scenario files.
func reference(part string, keys []input.Key) string {
	var b strings.Builder
	group, width := "", 0
	shown := map[string]bool{} // what is below a map, which several keys have
	var mine []input.Key
	for _, k := range keys {
		head, rest, below := strings.Cut(k.Path, ".")
		below = below && head != "set" && slices.ContainsFunc(parts, func(p struct{ name, title, about string }) bool { return p.name == head })
		if below && head != part || !below && part != "file" {
			continue
		}
		if below {
			k.Path = strings.TrimPrefix(rest, "N.")
		}
		if last := k.Path[strings.LastIndex(k.Path, ".")+1:]; below && strings.Contains(k.Path, ".") {
			if shown[last+k.Help] {
				continue
			}
			shown[last+k.Help] = true
		}
		mine = append(mine, k)
		width = max(width, len(k.Path))
	}
	slices.SortStableFunc(mine, func(a, b input.Key) int { return firstOf(mine, a.Group) - firstOf(mine, b.Group) })
	for _, k := range mine {
		if k.Group != group || b.Len() == 0 {
			if group = k.Group; group != "" {
				fmt.Fprintf(&b, "\n  %s\n", strings.ToUpper(group[:1])+group[1:])
			} else {
				b.WriteString("\n")
			}
		}
		value := k.Allowed
		switch {
		case k.Required:
			value += "; required"
		case k.Default != "":
			value += "; default " + k.Default
		}
		for i, line := range strings.Split(table.Wrap(k.Help+" ["+value+"]", 94-width), "\n") {
			name := k.Path
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "    %-*s  %s\n", width, name, strings.TrimSpace(line))
		}
	}
	return b.String()
}

// firstOf is where the first key of a group stands.
func firstOf(keys []input.Key, group string) int {
	return slices.IndexFunc(keys, func(k input.Key) bool { return k.Group == group })
}
