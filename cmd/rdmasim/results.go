package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/experiment/sweep"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// resultsCommand looks at what sweeps have kept.
func resultsCommand() *cobra.Command {
	c := &cobra.Command{Use: "results", Short: "List, export and remove the results that sweeps keep", Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	dir := c.PersistentFlags().String("store", "", "`DIR` of the results (default: $"+storeVariable+", or rdmasim/results in the user's cache folder)")
	c.AddCommand(resultsList(dir), resultsCollect(dir), resultsExport(dir))
	return c
}

// storeFolder is the folder that a command works on.
func storeFolder(given string) (string, error) {
	dir := cmp.Or(given, os.Getenv(storeVariable))
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", usagef("this user has no cache folder (%w): name the store with --store", err)
		}
		dir = filepath.Join(cache, "rdmasim", "results")
	}
	if dir == noStore {
		return "", usagef("--store none keeps no results: name a folder with --store")
	}
	if err := store.Check(dir); errors.Is(err, fs.ErrNotExist) {
		return "", usagef("%s has no results: a sweep puts them there (rdmasim run ... --sweep ...), and --store names another folder", dir)
	} else if err != nil {
		return "", usagef("%w", err)
	}
	return dir, nil
}

// listed is what a line of results ls counts.
type listed struct {
	model, name, profile string
	n                    int
	size                 int64
	newest               time.Time
}

func resultsList(dir *string) *cobra.Command {
	verbose := false
	c := &cobra.Command{Use: "ls", Short: "List the results, by version of the model and experiment", Args: commands.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		folder, err := storeFolder(*dir)
		if err != nil {
			return err
		}
		model, err := sweep.Model()
		if err != nil {
			return err
		}
		tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		var order []*listed
		of := map[[3]string]*listed{}
		for e, err := range store.Entries(folder) {
			if err != nil {
				return err
			}
			r, err := sweep.ReadEntry(&e)
			if err != nil {
				fmt.Fprintln(c.ErrOrStderr(), "rdmasim:", plain.Message(err.Error()))
				continue
			}
			if verbose {
				fmt.Fprintf(tw, "%s\t%s\n", e.Time.UTC().Format(time.DateTime), plain.Line(r.CommandLine()))
			}
			key := [3]string{e.Model, r.Name, r.Profile}
			l := of[key]
			if l == nil {
				l = &listed{model: e.Model, name: r.Name, profile: r.Profile}
				of[key] = l
				order = append(order, l)
			}
			l.n++
			l.size += e.Size
			if e.Time.After(l.newest) {
				l.newest = e.Time
			}
		}
		if verbose {
			return tw.Flush()
		}
		fmt.Fprintln(tw, "RESULTS\tSIZE\tNEWEST\tEXPERIMENT\tPROFILE\tMODEL")
		for _, l := range order {
			mine := ""
			if l.model == model {
				mine = " (this program)"
			}
			fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s%s\n", l.n, humanSize(l.size), l.newest.UTC().Format(time.DateTime), plain.Line(l.name), plain.Line(l.profile), plain.Line(l.model), mine)
		}
		return tw.Flush()
	}}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "print the command line of each result")
	return c
}

func humanSize(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// jobsKept is how long the folder of a job stays that does nothing: longer than jobs wait in queues
// and run.
const jobsKept = 30 * 24 * time.Hour

func resultsCollect(dir *string) *cobra.Command {
	older, all := time.Duration(0), false
	c := &cobra.Command{Use: "gc", Short: "Remove results of other versions of the model, or old ones",
		Long: `gc removes the results that other versions of the model made; with --older also those of this version that are as old as that, and
with --all every result. A sweep runs again what is missing. It also removes folders of cluster jobs in which nothing has changed for
30 days (with --older: for that long; with --all: every one).`,
		Args: commands.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			if older < 0 {
				return usagef("--older %v: a time above zero is needed, such as 720h", older)
			}
			folder, err := storeFolder(*dir)
			if err != nil {
				return err
			}
			model, err := sweep.Model()
			if err != nil {
				return err
			}
			n, size, err := store.Collect(folder, func(e *store.Entry) bool {
				if older > 0 {
					return time.Since(e.Time) > older
				}
				return all || !e.Of(model)
			})
			fmt.Fprintf(c.OutOrStdout(), "removed %s of %s\n", plain.Count(n, "result"), humanSize(size))
			if err != nil {
				return err
			}
			unchanged := jobsKept
			switch {
			case all:
				unchanged = 0
			case older > 0:
				unchanged = older
			}
			if n, err = store.CollectJobs(folder, unchanged); n > 0 {
				fmt.Fprintf(c.OutOrStdout(), "removed what %s of a cluster left\n", plain.Count(n, "job"))
			}
			return err
		}}
	c.Flags().DurationVar(&older, "older", 0, "remove results of any version that are older than this, such as 720h")
	c.Flags().BoolVar(&all, "all", false, "remove all results")
	return c
}

func resultsExport(dir *string) *cobra.Command {
	name, format, out := "", "jsonl", ""
	any := false
	c := &cobra.Command{Use: "export", Short: "Write the rows of all results as one table",
		Long: "export writes the rows of results of this program's version of the model, each with its experiment, profile, seed and the\nsettings that its command line gave, as JSON Lines, CSV or Parquet.",
		Args: commands.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			if !sweep.ExportFormat(format) {
				return usagef("--format %q is not one of jsonl, csv, parquet%s", format, input.Suggest(format, []string{"jsonl", "csv", "parquet"}))
			}
			if format == "parquet" && out == "" {
				return usagef("--format parquet is a binary format: name a file with -o")
			}
			folder, err := storeFolder(*dir)
			if err != nil {
				return err
			}
			model := ""
			if !any {
				if model, err = sweep.Model(); err != nil {
					return err
				}
			}
			table, n, err := sweep.Export(folder, model, name)
			if err != nil {
				return err
			}
			if n == 0 {
				return usagef("%s has no matching results: rdmasim results ls lists all", folder)
			}
			if out == "" {
				return table.Write(c.OutOrStdout(), format)
			}
			f, err := outfile.Create(c.Context(), out)
			if err != nil {
				return usagef("%w", err)
			}
			return f.Commit(func(w io.Writer) error { return table.Write(w, format) })
		}}
	f := c.Flags()
	f.StringVar(&name, "name", "", "only results of this experiment or scenario")
	f.StringVar(&format, "format", "jsonl", "format of the table: jsonl, csv or parquet")
	f.StringVarP(&out, "output", "o", "", "write to this `FILE` instead of standard output")
	f.BoolVar(&any, "any-model", false, "results of other versions of the model, too")
	return c
}
