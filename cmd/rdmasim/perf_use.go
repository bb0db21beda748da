package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
)

// perfUse is how busy the units of both ends were while each size was measured.
type perfUse struct{ sizes []*sizeUse }

type sizeUse struct {
	size          uint64
	before, after *sim.Usage
}

// watch is told when the run of a size begins and ends.
func (p *perfUse) watch(tb *testbed.Testbed) func(size uint64, begins bool, now time.Duration) {
	return func(size uint64, begins bool, now time.Duration) {
		if begins {
			s := &sizeUse{size: size}
			p.sizes = append(p.sizes, s)
			tb.UsageAt(provider.FromDuration(now), func(u *sim.Usage) { s.before = u })
			return
		}
		s := p.sizes[len(p.sizes)-1]
		tb.UsageAt(provider.FromDuration(now), func(u *sim.Usage) { s.after = u })
	}
}

// write prints what each size was limited by.
func (p *perfUse) write(w io.Writer) error {
	if len(p.sizes) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nWhat limited each size: the unit that was busy for nine tenths of the run or more, else the window of outstanding requests:")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "  bytes\tlimited by\tbusiest unit\tbusy")
	for _, s := range p.sizes {
		l := s.limit()
		if l.Unit == "" {
			fmt.Fprintf(tw, "  %d\t-\tthe run was too short to tell\t-\n", s.size)
			continue
		}
		fmt.Fprintf(tw, "  %d\t%v\t%s\t%.1f %%\n", s.size, l.Resource, l.Unit, float64(l.PerMille)/10)
	}
	if err := tw.Flush(); err != nil || len(p.sizes) == 1 {
		return err
	}
	return p.draw(w)
}

// limit is what the size was limited by; a load without a unit says that the run was too short to
// tell.
func (s *sizeUse) limit() (l sim.Load) {
	if s.before != nil && s.after != nil {
		l = sim.Limit(s.after.Since(s.before))
	}
	return l
}

// draw plots the limit of each size: a line for each resource that is one, the last on the way of a
// message on top.
func (p *perfUse) draw(w io.Writer) error {
	at := make([]sim.Load, len(p.sizes))
	for i, s := range p.sizes {
		at[i] = s.limit()
	}
	var b strings.Builder
	b.WriteString("\nLimited by, over the size of messages:\n")
	for _, r := range slices.Backward(sim.Resources()) {
		if !slices.ContainsFunc(at, func(l sim.Load) bool { return l.Unit != "" && l.Resource == r }) {
			continue
		}
		fmt.Fprintf(&b, "  %15s |", r)
		for _, l := range at {
			mark := "."
			if l.Unit != "" && l.Resource == r {
				mark = "#"
			}
			fmt.Fprintf(&b, " %5s", mark)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "  %15s  ", "bytes")
	for _, s := range p.sizes {
		fmt.Fprintf(&b, " %5s", shortSize(s.size))
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// shortSize is a power of two in at most five characters.
func shortSize(n uint64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%dMi", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%dKi", n>>10)
	}
	return fmt.Sprint(n)
}

// withPeerMemory gives the simulated host nvidia-peermem where the test needs it: without it a
// GPU's address cannot be registered, and whoever asks perftest for --use_cuda without a DMA-BUF
// has it. --set gpu.peermem=false shows a host without it.
func withPeerMemory(c *cobra.Command, f *perfFlags, o *perf.Options, p *profile.Profile) error {
	if o.Memory.Kind == "" || o.Memory.DMABuf || slices.ContainsFunc(f.set, func(s string) bool { return strings.HasPrefix(s, "gpu.peermem=") }) {
		return nil
	}
	if v, ok := p.Lookup("gpu.peermem"); !ok || v.Text != "false" {
		return nil
	}
	fmt.Fprintln(c.ErrOrStderr(), "rdmasim perf: note: the simulated host has nvidia-peermem (gpu.peermem=true), without which ibv_reg_mr refuses memory of a GPU; --set gpu.peermem=false shows that")
	return p.Set("gpu.peermem", "true")
}
