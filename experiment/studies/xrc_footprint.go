package studies

import (
	"fmt"
	"math"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// meshKind is how the processes of all nodes are connected with one another.
type meshKind struct {
	name string
	qps  func(nodes, processes, dcis int) int // on each node
	// links makes the queue pairs of a simulated mesh; nil: it is always computed.
	links func(m *mesh, t verbs.Thread) error
}

func meshKinds() []meshKind {
	return []meshKind{
		{"RC", rcQPs, (*mesh).linkRC},
		{"RC, SRQ", rcQPs, (*mesh).linkRC},
		{"XRC", func(n, p, _ int) int { return 2 * (n - 1) * p }, (*mesh).linkXRC},
		{"UD", func(_, p, _ int) int { return p }, (*mesh).linkUD},
		{"DC", func(_, p, dcis int) int { return p * (dcis + 1) }, nil},
	}
}

// rcQPs: each process has one QP for each process of the other nodes.
func rcQPs(n, p, _ int) int { return (n - 1) * p * p }

// srqFactor is how many times the receives of a queue an SRQ has.
const srqFactor = 16

// meshSize is a mesh that has been simulated.
type meshSize struct {
	qps, pinned uint64 // on the node; pinned: bytes of rings and doorbell records
}

// footprint is, for each kind, what a node has: from simulation as long as the node has few enough
// QPs, and computed beyond.
func (x *xrcRun) footprint() error {
	if err := x.Next("footprint"); err != nil {
		return err
	}
	most, processes := x.Int("nodes"), x.Int("processes")
	initiator := math.NaN() // bytes of rings of an initiator
	queue := math.NaN()     // of the SRQs of a node
	var rows []table.Row
	for _, k := range meshKinds() {
		var run []meshSize
		for nodes := 2; nodes <= most; nodes *= 2 {
			if err := x.Ctx.Err(); err != nil {
				return experiment.ErrInterrupted
			}
			row := x.meshRow(&k, nodes)
			qps, _ := row.Float("qps")
			// The other nodes are on one device, and have as many QPs as the node, or one for each
			// process.
			if most := max(int(qps), (nodes-1)*processes); k.links != nil && most <= x.Int("simulate_qps") && !x.beyondDevice(most) {
				size, err := x.simulateMesh(&k, nodes, &row)
				if err != nil {
					return fmt.Errorf("%s, %d nodes: %w", k.name, nodes, err)
				}
				run = append(run, size)
			} else {
				row.Set("how", "computed").Set("series", k.name+", computed")
				row.Set("miss_percent", row.Get("expected_percent"))
				if k.links == nil {
					x.meshBytes(&row, float64(x.Int("dcis")*processes)*initiator+queue)
				} else if fixed, each, ok := slope(run); ok {
					x.meshBytes(&row, fixed+each*qps)
				}
			}
			rows = append(rows, row)
			x.Emit(row)
		}
		if fixed, each, ok := slope(run); ok && k.name == "XRC" {
			initiator, queue = 2*each, fixed // every second QP is a target, which has no rings
		}
	}
	x.concludeFootprint(rows)
	return nil
}

// slope is the line through the two largest meshes that were simulated; of one with the same number
// of QPs it is flat.
func slope(run []meshSize) (fixed, each float64, ok bool) {
	if len(run) < 2 {
		return 0, 0, false
	}
	a, b := run[len(run)-2], run[len(run)-1]
	if a.qps != b.qps {
		each = (float64(b.pinned) - float64(a.pinned)) / (float64(b.qps) - float64(a.qps))
	}
	return float64(b.pinned) - each*float64(b.qps), each, true
}

// meshBytes adds the memory of a node's QPs, of which pinned bytes are rings.
func (x *xrcRun) meshBytes(row *table.Row, pinned float64) {
	qps, _ := row.Float("qps")
	if math.IsNaN(pinned) {
		return
	}
	bytes := uint64(pinned) + x.qpBytes(uint64(qps))
	row.Set("bytes", bytes).Set("kib", int(bytes>>10))
}

// meshRow is what can be said of a mesh without simulation.
func (x *xrcRun) meshRow(k *meshKind, nodes int) (row table.Row) {
	qps := k.qps(nodes, x.Int("processes"), x.Int("dcis"))
	row.Set("row", "footprint").Set("scenario", "footprint").Set("transport", k.name).Set("series", k.name).Set("nodes", nodes).Set("processes", x.Int("processes"))
	row.Set("how", "run").Set("qps", qps).Set("log2_qps", math.Log2(float64(qps)))
	if x.beyondDevice(qps) {
		row.Set("beyond_device", true)
	}
	row.Set("expected_percent", 100*expectedMisses(qps, x.Profile.HCA.QPCCache))
	return row
}

// reservedQPs are numbers that no program gets, on the simulated device.
const reservedQPs = 64

// beyondDevice says whether programs cannot have so many QPs: the driver takes one for UMRs when
// the first region is made.
func (x *xrcRun) beyondDevice(qps int) bool {
	return qps >= 1<<x.Profile.HCA.LogMaxQP-reservedQPs
}

// expectedMisses is the share of look-ups that miss when QPs are used at random, each of which a
// hash gives one of the places of a cache: a place that has several QPs keeps the one that was used
// last.
func expectedMisses(qps, places int) float64 {
	q, e := float64(qps), float64(places)
	return 1 - e/q*(1-math.Pow(1-1/e, q))
}

// simulateMesh runs a mesh, adds to the row what the node's device counts, and returns what the
// node has.
func (x *xrcRun) simulateMesh(k *meshKind, nodes int, row *table.Row) (size meshSize, err error) {
	name := fmt.Sprintf("footprint, %s, %d nodes", k.name, nodes)
	err = on(x.Env, name, make([]testbed.HostConfig, 2), nil, func(t verbs.Thread, b *bed) error {
		m := &mesh{x: x, b: b, kind: k, nodes: nodes, processes: x.Int("processes"), depth: x.Int("depth")}
		if err := m.build(t); err != nil {
			return err
		}
		size = meshSize{m.qps, m.pinned}
		if want, _ := row.Float("qps"); float64(m.qps) != want {
			return fmt.Errorf("the node has %d QPs, computed were %v", m.qps, want)
		}
		return m.measure(t, row)
	})
	if err == nil {
		x.meshBytes(row, float64(size.pinned))
	}
	return size, err
}
