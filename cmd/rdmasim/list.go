package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/studies"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/profile"
)

func listCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List experiments with their keys, and scenarios; or keys, or profiles",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var names []string
			for _, sub := range c.Commands() {
				names = append(names, sub.Name())
			}
			return fmt.Errorf("%s takes no %q%s: %s, alone or with %s", c.CommandPath(), args[0], input.Suggest(args[0], names), c.CommandPath(), strings.Join(names, ", "))
		},
		Example: "  rdmasim list\n  rdmasim list keys hca.ack\n  rdmasim list keys 'traffic.*mr*'",
		RunE: func(c *cobra.Command, _ []string) error {
			w := c.OutOrStdout()
			if err := listExperiments(w); err != nil {
				return err
			}
			fmt.Fprint(w, "\nEach value of the profile is a key as well, such as uar.bf_conflict; rdmasim list keys lists them.\n\n")
			return listScenarios(w)
		},
	}
	c.AddCommand(
		&cobra.Command{Use: "experiments", Short: "List the experiments with their keys", Args: commands.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error { return listExperiments(c.OutOrStdout()) }},
		&cobra.Command{Use: "scenarios", Short: "List the scenarios that come with the program", Args: commands.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error { return listScenarios(c.OutOrStdout()) }},
		profilesCommand("profiles"), keysCommand())
	return c
}

func listExperiments(w io.Writer) error {
	fmt.Fprintln(w, "Experiments, to run with: rdmasim run NAME [--set key=value] [--sweep key=v1,v2]")
	for _, x := range studies.All() {
		fmt.Fprintf(w, "\n  %s: %s\n", x.Name, x.Title)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, p := range x.Params {
			fmt.Fprintf(tw, "    %s=%s\t%s\n", p.Key, p.Default, p.Help)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func listScenarios(w io.Writer) error {
	fmt.Fprintln(w, "Scenarios that come with the program, to run with: rdmasim run NAME.yaml (a file of your own: its path)")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	all, err := experiment.Scenarios()
	if err != nil {
		return err
	}
	for _, s := range all {
		fmt.Fprintf(tw, "  %s\t%s\n", s.File, s.Title)
	}
	return tw.Flush()
}

// profilesCommand lists the profiles: profile list, and list profiles.
func profilesCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "List the profiles", Args: commands.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, n := range profile.List() {
				p, err := profile.Load(n)
				if err != nil {
					return err
				}
				fmt.Fprintf(tw, "%s\t%s\n", n, p.Title)
			}
			return tw.Flush()
		},
	}
}

// keysCommand lists the keys that --set and --sweep take.
func keysCommand() *cobra.Command {
	var name, format string
	c := &cobra.Command{
		Use:   "keys [PATTERN]",
		Short: "List the keys of scenarios and profiles: value, what is allowed, and what the value rests on",
		Long: `Lists the keys that --set and --sweep take: those of scenarios, whose value is the default,
then those of a profile. PATTERN chooses keys that contain it, or that match it if it has a *.
rdmasim help scenario says what keys of scenarios mean, rdmasim profile show has the whole source of
each value, and rdmasim list has the keys of experiments.`,
		Example: "  rdmasim list keys ack\n  rdmasim list keys 'switch.*' --profile connectx-7",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("one pattern is allowed, and %d are given: quote one with a *", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			p, err := profile.Load(name)
			if err != nil {
				return usagef("--profile: %w", err)
			}
			rows, err := keyRows(p, strings.Join(args, ""))
			if err != nil {
				return err
			}
			res := &experiment.Result{Rows: rows}
			switch format {
			case "json":
				return table.WriteJSON(c.OutOrStdout(), rows)
			case "csv":
				return res.Write(c.OutOrStdout(), format)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "KEY\tVALUE\tALLOWED\tSOURCE")
			for i := range rows {
				var cells []string
				for _, k := range rows[i].Keys() {
					cells = append(cells, plain.Line(table.Text(rows[i].Get(k))))
				}
				fmt.Fprintln(tw, strings.Join(cells, "\t"))
			}
			return tw.Flush()
		},
	}
	c.Flags().StringVar(&name, "profile", profile.Default, profileHelp)
	c.Flags().StringVar(&format, "format", "table", "format of the output: table, json or csv")
	commands.CompleteArgs(c, 1, func() []string {
		var all []string
		for _, k := range experiment.ScenarioKeys() {
			all = append(all, k.Path)
		}
		return append(all, profileKeys()...)
	}, false)
	return c
}

// profileKeys are the keys of every profile.
func profileKeys() []string { return new(profile.Profile).Keys() }

// keyRows are the keys that match a pattern.
func keyRows(p *profile.Profile, pattern string) (rows []table.Row, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, usagef("%q is no pattern: * stands for any text, ? for a character, [ab] for one of some", pattern)
	}
	matches := func(key string) bool {
		if strings.ContainsAny(pattern, "*?[") {
			ok, _ := path.Match(pattern, key)
			return ok
		}
		return strings.Contains(key, pattern)
	}
	var all []string
	add := func(key, value, allowed, source string) {
		all = append(all, key)
		if matches(key) {
			var row table.Row
			rows = append(rows, *row.Set("key", key).Set("value", value).Set("allowed", allowed).Set("source", source))
		}
	}
	for _, k := range experiment.ScenarioKeys() {
		if !k.Map {
			add(k.Path, orDash(k.Default), k.Allowed, "scenario")
		}
	}
	for _, v := range p.Values() {
		source := "published"
		switch {
		case v.Hypothesis:
			source = profile.Hypothesis
		case v.Source == profile.Assumed || v.Source == profile.Fitted:
			source = v.Source
		}
		add(v.Key, v.Text, profile.Allowed(v.Key), source)
	}
	if len(rows) == 0 {
		return nil, usagef("no key matches %q%s", pattern, input.Suggest(pattern, slices.Clip(all)))
	}
	return rows, nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
