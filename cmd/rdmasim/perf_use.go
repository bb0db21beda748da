package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/perf"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/sim/testbed"
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
		l := sim.Load{}
		if s.before != nil && s.after != nil {
			l = sim.Limit(s.after.Since(s.before))
		}
		if l.Unit == "" {
			fmt.Fprintf(tw, "  %d\t-\tthe run was too short to tell\t-\n", s.size)
			continue
		}
		fmt.Fprintf(tw, "  %d\t%v\t%s\t%.1f %%\n", s.size, l.Resource, l.Unit, float64(l.PerMille)/10)
	}
	return tw.Flush()
}

// withPeerMemory gives the simulated host nvidia-peermem where the test needs it: without it a GPU's address cannot be registered, and
// whoever asks perftest for --use_cuda without a DMA-BUF has it. --set gpu.peermem=false shows a host without it.
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
