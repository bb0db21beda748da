//go:build hw

package mlx5

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/hw/wire"
	"github.com/rdmasim/rdmasim/verbs"
)

// Below rdmasim exec a tester has the devices in hand too, over the same socket as their wire.

var (
	_ verbs.CounterReader = (*Testbed)(nil)
	_ verbs.DeviceClock   = (*Testbed)(nil)
)

// benchNeeds are the tokens of cases for which the devices are taken in hand.
var benchNeeds = []string{"mmio log", "fault", "counters", "hw counters", "addr", "device time"}

// bench is the way to devices in a tester's hands; nil: they are not.
func (tb *Testbed) bench() *wire.Port {
	if p, ok := tb.wire.(*wire.Port); ok && p.Bench {
		return p
	}
	return nil
}

// Log is the log of register writes of simulated devices; those of others keep none.
func (tb *Testbed) Log() verbs.MMIOLog {
	if p := tb.bench(); p != nil {
		return registerLog{p}
	}
	return nil
}

// registerLog is a log that the supervisor of the devices keeps. A case that it cannot be had for
// is in error.
type registerLog struct{ p *wire.Port }

func (l registerLog) Start() {
	if err := l.p.StartLog(); err != nil {
		panic(fmt.Errorf("begin a log of register writes: %w", err))
	}
}

func (l registerLog) Stop() []verbs.MMIOWrite {
	w, err := l.p.StopLog()
	if err != nil {
		panic(fmt.Errorf("the log of register writes: %w", err))
	}
	return w
}

// Faults breaks the simulated device of the first host, where the calls of cases come from.
func (tb *Testbed) Faults() verbs.Faults {
	if p := tb.bench(); p != nil {
		return benchFaults{p}
	}
	return nil
}

type benchFaults struct{ p *wire.Port }

func (f benchFaults) TearBlueFlame(t verbs.Thread, n, keep int) error {
	defer enterCall(t, "tear pushes").leaveCall()
	return f.p.Tear(0, n, keep)
}

// SwapDoorbells is refused: a store that a later one overwrites before the supervisor looks cannot
// be put behind it.
func (benchFaults) SwapDoorbells(verbs.Thread, int) error {
	return fmt.Errorf("swap doorbells below rdmasim exec: %w", syscall.EOPNOTSUPP)
}

func (f benchFaults) FailNext(t verbs.Thread, qpn uint32, syndrome, vendor uint8) error {
	defer enterCall(t, "make a request fail").leaveCall()
	return f.p.FailNext(0, qpn, syndrome, vendor)
}

// counterLifespan is more than the kernel keeps the values of hw_counters
// (RDMA_HW_STATS_DEFAULT_LIFESPAN of 10 ms).
const counterLifespan = 15 * time.Millisecond

// HardwareCounters are those of a simulated device, or the files of a real one's port.
func (tb *Testbed) HardwareCounters(t verbs.Thread, host int) (map[string]uint64, error) {
	defer enterCall(t, "read counters").leaveCall()
	if p := tb.bench(); p != nil {
		return p.Counters(host)
	}
	if host < 0 || host >= len(tb.setup.nodes) || tb.setup.nodes[host].agent != "" {
		return nil, fmt.Errorf("counters of host %d: %w", host, syscall.EOPNOTSUPP)
	}
	time.Sleep(counterLifespan)
	return portCounters(&tb.setup.nodes[host])
}

// portCounters reads the files in hw_counters of a port.
func portCounters(n *Node) (map[string]uint64, error) {
	dir := counterFolder(n)
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]uint64{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			continue // a counter that is switched off (rdma statistic)
		}
		v, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && f.Name() != "lifespan" {
			all[f.Name()] = v
		}
	}
	return all, nil
}

func counterFolder(n *Node) string {
	return fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/hw_counters", n.Device, n.Port)
}

// counted reports whether the ports of all nodes are mlx5's, are on this machine, and have
// counters.
func (s *Setup) counted() bool {
	for i := range s.nodes {
		if n := &s.nodes[i]; n.agent != "" {
			return false
		} else if c, err := portCounters(n); err != nil || len(c) == 0 {
			return false
		}
	}
	return true
}

// DeviceTime is how long simulated devices have worked; of others it is the time of the threads.
func (tb *Testbed) DeviceTime(t verbs.Thread) (time.Duration, error) {
	defer enterCall(t, "read the devices' clock").leaveCall()
	if p := tb.bench(); p != nil {
		return p.Clock()
	}
	return t.Now(), nil
}

// benchAddress gives the interface of a simulated device an address, or takes it away. done is
// false where the devices are not in hand.
func (tb *Testbed) benchAddress(host int, ip netip.Addr, add bool) (done bool, err error) {
	p := tb.bench()
	if p == nil {
		return false, nil
	}
	return true, p.Address(host, ip, add)
}
