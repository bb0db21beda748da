package studies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

func xrcLifetimes() *experiment.Experiment {
	return &experiment.Experiment{
		Name:    "xrc",
		Title:   "when an XRC target QP ends, by five designs; what a server piles up in a year; QPs and memory of RC, SRQ, XRC, UD and DC",
		Profile: "connectx-5",
		Params: []experiment.Param{
			{Key: "scenario", Default: "all", Allowed: []string{"lifetime", "long-server", "footprint", "all"}, Help: "lifetime: who receives when the creator of a target QP has died, and what stays; long-server: QPs of a server whose clients come and go for a year; footprint: QPs, memory and cache misses of a full mesh"},
			{Key: "design", Default: "all", Allowed: []string{"a", "b", "c", "d", "e", "all"}, Help: "lifetime, long-server: a: a target QP is its creator's (until December 2007); b: alloc_xrc_rcv_qp as proposed then; c: OFED 1.3; d: Linux 3.2 to 4.8; e: Linux since 4.9"},
			{Key: "clients", Default: "1000", Min: 1, Max: 10_000, Help: "long-server: clients that connect each day"},
			{Key: "days", Default: "365", Min: 1, Max: 10_000, Help: "long-server: days"},
			{Key: "both_percent", Default: "60", Min: 0, Max: 100, Help: "long-server: clients in 100 that disconnect on both sides"},
			{Key: "one_side_percent", Default: "30", Min: 0, Max: 100, Help: "long-server: clients in 100 that disconnect on their side only, so that the server is not told; those left crash"},
			{Key: "restart_days", Default: "0", Min: 0, Max: 10_000, Help: "long-server: the server's processes are killed and started again after this many days; 0: never"},
			{Key: "kernel_qp_bytes", Default: "2048", Min: 0, Max: 1 << 20, Help: "bytes of kernel memory of a QP, beside its context of 512 bytes (assumed)", Assumed: true},
			{Key: "nodes", Default: "4096", Min: 2, Max: 4096, Help: "footprint: largest number of nodes, in powers of two"},
			{Key: "processes", Default: "8", Min: 1, Max: 64, Help: "footprint: processes on each node"},
			{Key: "depth", Default: "16", Min: 1, Max: 1024, Help: "footprint: entries of each send and receive queue; an SRQ has 16 times as many"},
			{Key: "dcis", Default: "4", Min: 1, Max: 1024, Help: "footprint: DC initiators of each process (assumed)", Assumed: true},
			{Key: "simulate_qps", Default: "8192", Min: 1, Max: 32768, Help: "footprint: a mesh with no more QPs on a node is simulated, a larger one computed"},
		},
		Columns: []string{"scenario", "design", "case", "transport", "nodes", "how", "day", "joined", "sender_before", "sender_status", "received", "qps_alive", "domains_alive", "reopen", "qps_left", "domains_left",
			"connects", "not_told", "refused", "refused_errno", "full_day", "full_how", "client_qps_alive", "client_domains_alive", "mib", "after_qps", "after_domains", "after_client_qps", "after_client_domains",
			"qps", "kib", "lookups", "misses", "miss_percent", "expected_percent"},
		Plots: []chart.Plot{
			{File: "xrc-qps", Title: "QPs of a server whose clients come and go", X: "day", Y: "qps_alive", XLabel: "day", YLabel: "QPs on the server", Series: "series", Only: map[string]any{"row": "long-server-day"}, Least: true},
			{File: "xrc-memory", Title: "Memory of these QPs", X: "day", Y: "mib", XLabel: "day", YLabel: "MiB", Series: "series", Only: map[string]any{"row": "long-server-day"}, Least: true},
			{File: "xrc-footprint", Title: "QPs on each node of a full mesh", X: "nodes", Y: "log2_qps", XLabel: "nodes", YLabel: "log2(QPs)", Series: "series", Only: map[string]any{"row": "footprint"}, LogX: true, Least: true},
			{File: "xrc-misses", Title: "Misses of QP contexts, messages in random order", X: "nodes", Y: "miss_percent", XLabel: "nodes", YLabel: "% of messages", Series: "series", Only: map[string]any{"row": "footprint"}, LogX: true, Least: true},
		},
		Many: true, Run: runXRC,
	}
}

// xrcDesign is who an XRC target QP belongs to, and when it ends.
type xrcDesign struct {
	letter, kernel, name string // kernel: the value of kernel.xrc
	calls                workload.XRCCalls
}

func (d *xrcDesign) series() string { return fmt.Sprintf("(%s) %s", d.letter, d.name) }

func xrcDesigns() []xrcDesign {
	return []xrcDesign{
		{"a", "creator", "its creator's", workload.XRCOwned},
		{"b", "proposal", "alloc_xrc_rcv_qp", workload.XRCAllocated},
		{"c", "ofed-1.3", "OFED 1.3", workload.XRCRegistered},
		{"d", "3.2", "Linux 3.2", workload.XRCShared},
		{"e", "4.9", "Linux 4.9", workload.XRCShared},
	}
}

// xrcRun is a run of the experiment.
type xrcRun struct {
	experiment.Parts
	designs []xrcDesign
}

func runXRC(env *experiment.Env) error {
	if err := varies(env, "kernel.xrc", "give --set design="); err != nil {
		return err
	}
	x := &xrcRun{Parts: experiment.Parts{Env: env}, designs: xrcDesigns()}
	if letter := x.String("design"); letter != "all" {
		x.designs = slices.DeleteFunc(x.designs, func(d xrcDesign) bool { return d.letter != letter })
	}
	return x.Do([]experiment.Part{
		{Name: "lifetime", Runs: len(x.designs) * len(lifetimeCases()), Run: x.lifetime},
		{Name: "long-server", Runs: len(x.designs), Check: x.checkLongServer, Run: x.longServer},
		{Name: "footprint", Runs: 1, Run: x.footprint},
	}, nil)
}

// under runs body on two hosts whose kernel has a design.
func (x *xrcRun) under(d *xrcDesign, name string, body func(t verbs.Thread, b *bed) error) error {
	p := x.Profile.Clone()
	if err := p.Set("kernel.xrc", d.kernel); err != nil {
		return err
	}
	return on(x.Env, fmt.Sprintf("%s, design %s", name, d.letter), make([]testbed.HostConfig, 2), func(c *testbed.Config) { c.Profile = p }, body)
}

// xrcObjects are the objects of a device that programs have made, by the names of kernel.Resources.
type xrcObjects map[string]uint64

// objects counts what lives on a host.
func (b *bed) objects(host int) xrcObjects {
	all, unit := xrcObjects{}, fmt.Sprintf("host%d/mlx5_0/resources", host)
	for _, r := range b.TB.Counters() {
		if r.Unit == unit {
			all[r.Name] = r.Value
		}
	}
	return all
}

// commands is how many commands the devices have had from their drivers.
func (b *bed) commands() (n uint64) {
	for _, r := range b.TB.Counters() {
		if strings.HasSuffix(r.Unit, "/kernel") && r.Name == "commands" {
			n += r.Value
		}
	}
	return n
}

// audit finds what lives on although every process has ended, beside target QPs and their domains.
func (o xrcObjects) audit() error {
	for _, name := range []string{"ctx", "pd", "cq", "srq", "mr", "comp_channel", "uar", "pinned_pages"} {
		if n, ok := o[name]; !ok || n > 0 {
			return fmt.Errorf("every process has ended, and %d %s live (counted: %v)", n, name, ok)
		}
	}
	return nil
}

// contextBytes is what a QP's context takes of the device's memory on the host, in slots of which
// qpc_cache is told.
const contextBytes = 512

// qpBytes is what so many QPs without queues take.
func (x *xrcRun) qpBytes(qps uint64) uint64 {
	return qps * (contextBytes + uint64(x.Int("kernel_qp_bytes")))
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
