package experiment

import (
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// limitOf runs a scenario and returns what limits it, and what a second run with more of that says.
func limitOf(t *testing.T, lockstep bool, text string, changes ...Setting) (sim.Load, *Confirmation) {
	t.Helper()
	s, p := changed(t, text, changes...)
	rec := &recorder{lockstep: lockstep}
	out, err := s.run(t.Context(), 1, p, rec, "")
	if err != nil {
		t.Fatal(err)
	}
	l, ok := out.use.limit()
	if !ok {
		t.Fatal("the use of the units was not read")
	}
	if lockstep {
		return l, nil
	}
	c, err := s.confirm(t.Context(), 1, p, rec, out, "")
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

const manyWrites = `
name: writes
profile: connectx-5
traffic:
  - {name: w, threads: 8, contexts: 8, verb: write, payload: 2B, inline: true, window: 64, signal_every: 16, warmup: 10us, duration: 30us}
`

// planted are scenarios in which one resource is so slow that nothing else can be the limit.
var planted = []struct {
	want sim.Resource
	unit string // a part of its name
	text string
	set  []Setting
}{
	{sim.CPU, "host0", manyWrites, []Setting{{"provider.build_wqe", "400ns"}}},
	{sim.Lock, "host0, lock", manyWrites, []Setting{{"traffic.0.contexts", "1"}, {"traffic.0.qp_sharing", "8"}, {"traffic.0.window", "128"}, {"provider.build_wqe", "100ns"}}},
	{sim.Doorbell, "UAR pages", manyWrites, []Setting{{"traffic.0.contexts", "1"}, {"uar.bf_busy", "400ns"}, {"uar.bf_conflict", "serialize"}}},
	{sim.Doorbell, "PCIe to the device", manyWrites, []Setting{{"pcie.bandwidth", "10Gbps"}}},
	{sim.PU, "the PU of a QP", manyWrites, []Setting{{"traffic.0.threads", "1"}, {"traffic.0.contexts", "1"}, {"hca.pu_service", "400ns"}, {"hca.requester_latency", "400ns"}}},
	{sim.PU, "PUs", manyWrites, []Setting{{"hca.pus", "2"}, {"hca.pu_service", "100ns"}}},
	{sim.SendEngine, "host0/mlx5_0", manyWrites, []Setting{{"hca.issue_interval", "50ns"}}},
	{sim.ReceiveEngine, "host1/mlx5_0", manyWrites, []Setting{{"hca.rx_interval", "50ns"}}},
	{sim.ResponseEngine, "host0/mlx5_0", manyWrites, []Setting{{"hca.rx_ack_interval", "100ns"}, {"traffic.0.signal_every", "1"}}},
	{sim.ReadEngine, "host1/mlx5_0", manyWrites, []Setting{{"traffic.0.verb", "read"}, {"traffic.0.inline", "false"}, {"hca.read_interval", "100ns"}}},
	{sim.Wire, "", manyWrites, []Setting{{"link.bandwidth", "10Gbps"}, {"hca.wire_rate", "10Gbps"}}},
	{sim.Wire, "", manyWrites, []Setting{{"profile", "connectx-4-ib"}, {"ib.speed", "sdr"}}},
	{sim.PCIeWrite, "PCIe from the device", `
name: reads
profile: connectx-5
traffic:
  - {name: r, from: 1, to: 0, threads: 4, verb: read, payload: 4KiB, window: 16, mr_size: 1MiB, warmup: 20us, duration: 40us}
`, []Setting{{"pcie.bandwidth", "40Gbps"}, {"pcie.write_header", "200B"}}},
	{sim.PCIeRead, "PCIe to the device", `
name: big
profile: connectx-5
traffic:
  - {name: w, threads: 4, verb: write, payload: 4KiB, window: 16, mr_size: 1MiB, warmup: 20us, duration: 40us}
`, []Setting{{"pcie.bandwidth", "40Gbps"}, {"pcie.cpl_header", "100B"}}},
	{sim.PCIeRead, "PCIe tags", `
name: tags
profile: connectx-5
traffic:
  - {name: w, threads: 4, verb: write, payload: 512B, window: 32, mr_size: 1MiB, warmup: 20us, duration: 40us}
`, []Setting{{"pcie.reads_in_flight", "2"}}},
	{sim.PeerPath, "READs of the GPU", `
name: gpu
profile: connectx-5
traffic:
  - {name: r, verb: read, payload: 16KiB, mr_size: 64KiB, window: 16, mtu: "4096", memory: gpu, memory_at: to, warmup: 40us, duration: 80us}
`, []Setting{{"gpu.path", "root"}}},
	{sim.PeerPath, "PCIe from the device", `
name: gpu
profile: connectx-5
traffic:
  - {name: w, verb: write, payload: 16KiB, mr_size: 64KiB, window: 16, mtu: "4096", memory: gpu, memory_at: to, warmup: 40us, duration: 80us}
`, []Setting{{"gpu.path", "socket"}}},
	{sim.TxBuffer, "", `
name: room
profile: connectx-5
traffic:
  - {name: w, threads: 4, verb: write, payload: 4KiB, window: 32, mr_size: 1MiB, warmup: 20us, duration: 40us}
`, []Setting{{"hca.tx_buffer", "4096B"}}},
	{sim.Atomics, "slot", `
name: counter
profile: connectx-5
traffic:
  - {name: a, threads: 4, qps_per_thread: 4, verb: faa, mrs: 8, mr_size: 8B, window: 16, warmup: 20us, duration: 60us}
`, nil},
	{sim.Atomics, "entry", `
name: counters
profile: connectx-5
traffic:
  - {name: a, threads: 8, verb: faa, payload: 8B, window: 16, access: random, mr_size: 32KiB, warmup: 20us, duration: 60us}
`, []Setting{{"hca.atomic_interval", "100ns"}}},
	{sim.Caches, "", `
name: many
profile: connectx-5
traffic:
  - {name: r, threads: 4, qps_per_thread: 64, verb: read, payload: 8B, window: 16, spread: 16, warmup: 20us, duration: 40us}
`, []Setting{{"hca.qpc_cache", "16"}}},
	{sim.Paging, "host0/mlx5_0, page faults", `
name: cold
profile: connectx-5
traffic:
  - {name: w, verb: write, payload: 64KiB, mr_size: 16MiB, window: 4, access: random, mtu: "4096", on_demand: explicit, on_demand_at: from, messages: 64}
`, nil},
	{sim.Window, "", `
name: one
profile: connectx-5
traffic:
  - {name: r, verb: read, payload: 8B, window: 2, rd_atomic: 2, warmup: 20us, duration: 40us}
`, nil},
	{sim.AckTimer, "host0/mlx5_0, the ACK timer of a QP", lossy, nil},
}

// lossy is a stream that loses one packet in a thousand, and now and then one that nothing behind
// it tells of.
const lossy = `
name: one
profile: connectx-5
traffic: [{name: w, payload: 64KiB, window: 16, duration: 60ms}]
faults: [{do: drop, per_million: 1000}]
`

// Requests of which none comes back limit nothing: a window is a limit only once it has been filled
// and freed.
func TestWindowThatNeverComesBack(t *testing.T) {
	for _, c := range []struct {
		window, duration, want string
	}{{"4096", "4us", "none"}, {"2", "40us", "window"}} {
		s, p := changed(t, `
name: one
profile: connectx-5
traffic:
  - {name: r, verb: read, payload: 8B, threads: 1, window: 2, rd_atomic: 2, warmup: 5us, duration: 4us}
`, Setting{"traffic.0.window", c.window}, Setting{"traffic.0.duration", c.duration})
		out, err := s.run(t.Context(), 1, p, &recorder{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := out.limitWord(sim.Load{Resource: sim.Window}); got != c.want {
			t.Errorf("window %s, %s: limited by %s, want %s", c.window, c.duration, got, c.want)
		}
		if got := out.limitWord(sim.Load{Resource: sim.Lock}); got != "lock" {
			t.Errorf("a lock that is busy: limited by %s", got)
		}
	}
}

// What is planted is found, is the same in lockstep, and a second run with more of it confirms it.
func TestPlantedLimits(t *testing.T) {
	seen := map[sim.Resource]bool{}
	for _, c := range planted {
		seen[c.want] = true
		name := c.want.String()
		for _, s := range c.set {
			name += " " + s.Key + "=" + s.Value
		}
		t.Run(name, func(t *testing.T) {
			l, conf := limitOf(t, false, c.text, c.set...)
			if l.Resource != c.want || !strings.Contains(l.Unit, c.unit) {
				t.Errorf("limited by %v, %s, %d ‰", l.Resource, l.Unit, l.PerMille)
			}
			if !conf.holds() {
				t.Errorf("the second run: %v", conf)
			}
			if testing.Short() {
				return
			}
			if again, _ := limitOf(t, true, c.text, c.set...); again != l {
				t.Errorf("%+v, in lockstep %+v", l, again)
			}
		})
	}
	for _, r := range sim.Resources() {
		if !seen[r] {
			t.Errorf("no limit by %v is planted", r)
		}
		if _, ok := raises[r]; !ok && r != sim.Window {
			t.Errorf("nothing raises %v", r)
		}
	}
}

// A second run in which the rate stays refutes the limit: here two engines are equally slow.
func TestALimitIsRefuted(t *testing.T) {
	l, c := limitOf(t, false, manyWrites, Setting{"hca.issue_interval", "50ns"}, Setting{"hca.rx_interval", "50ns"})
	if l.PerMille < sim.Busy || c.holds() || c.verdict() != "no" || !strings.HasPrefix(c.String(), "refuted: ") || !strings.Contains(c.String(), "50ns -> 25ns") {
		t.Errorf("limited by %v, %d ‰: %v", l.Resource, l.PerMille, c)
	}
}
