//go:build hw

package mlx5

import (
	"encoding/json"
	"errors"
	"syscall"
	"testing"
)

// What rdma of iproute2 6.1 prints for two regions, and for their counters.
const (
	printedRegions = `[{"ifindex":0,"ifname":"mlx5_0","mrn":0,"rkey":"902","lkey":"902","mrlen":4096,"pdn":0,"pid":77,"comm":"x"},
		{"ifindex":1,"ifname":"mlx5_1","mrn":4,"rkey":"a03","lkey":"a03","mrlen":4096,"pdn":0,"pid":77,"comm":"x"}]`
	printedCounters = `[{"ifindex":0,"ifname":"mlx5_0","mrn":4},{"ifindex":1,"ifname":"mlx5_1","mrn":4,"page_invalidations":2,"page_faults":3}]`
)

func parsed(t *testing.T, s string) (all []map[string]any) {
	if err := json.Unmarshal([]byte(s), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRegionsOfTheRDMATool(t *testing.T) {
	regions, counters := parsed(t, printedRegions), parsed(t, printedCounters)
	n, err := regionNumber(regions, "mlx5_1", 0xa03)
	if n != 4 || err != nil {
		t.Fatalf("region %v, %v", n, err)
	}
	list, err := regionCounters(counters, "mlx5_1", n)
	if err != nil || len(list) != 2 || list[0].Name != "page_faults" || list[0].Value != 3 || list[1].Value != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := regionCounters(counters, "mlx5_0", 4); len(list) != 0 || err != nil {
		t.Errorf("of a pinned region: %v, %v", list, err)
	}
	for _, c := range []struct {
		device string
		lkey   uint32
	}{{"mlx5_0", 0xa03}, {"mlx5_1", 0x902}, {"mlx5_2", 0x902}} {
		if _, err := regionNumber(regions, c.device, c.lkey); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("key %#x of %s: %v", c.lkey, c.device, err)
		}
	}
	for _, r := range regions {
		delete(r, "lkey")
	}
	if _, err := regionNumber(regions, "mlx5_0", 0x902); !errors.Is(err, syscall.EPERM) {
		t.Errorf("without keys: %v", err)
	}
}
