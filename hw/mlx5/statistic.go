//go:build hw

package mlx5

// #include <infiniband/verbs.h>
import "C"

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// Counters reads the counters of a region by `rdma statistic`. The kernel numbers regions in its
// own way, and shows which number has the region's key to those alone who have CAP_NET_ADMIN: EPERM
// for others. ENOENT: it shows no such region.
func (m *mr) Counters(verbs.Thread) ([]verbs.NamedCounter, error) {
	device := C.GoString(C.ibv_get_device_name(m.m.context.device))
	regions, err := rdmaTool("resource", "show", "mr", "dev", device)
	if err != nil {
		return nil, err
	}
	number, err := regionNumber(regions, device, uint32(m.m.lkey))
	if err != nil {
		return nil, err
	}
	all, err := rdmaTool("statistic", "show", "mr")
	if err != nil {
		return nil, err
	}
	return regionCounters(all, device, number)
}

// rdmaTool runs iproute2's rdma, which prints a list of objects.
func rdmaTool(args ...string) (all []map[string]any, err error) {
	out, err := iproute("rdma", append([]string{"-j"}, args...)...)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("rdma %s: %w", strings.Join(args, " "), err)
	}
	return all, nil
}

// regionNumber finds the number of the region that has a key.
func regionNumber(regions []map[string]any, device string, lkey uint32) (number float64, err error) {
	keys := false
	for _, r := range regions {
		key, shown := r["lkey"]
		number, ok := r["mrn"].(float64)
		keys = keys || shown
		if ok && shown && r["ifname"] == device && isKey(key, lkey) {
			return number, nil
		}
	}
	if !keys && len(regions) > 0 {
		return 0, fmt.Errorf("rdma resource show mr: no keys are shown without CAP_NET_ADMIN: %w", syscall.EPERM)
	}
	return 0, fmt.Errorf("rdma resource show mr: no region of %s has lkey %#x: %w", device, lkey, syscall.ENOENT)
}

// isKey compares a key with what rdma prints for it: hexadecimal digits, with 0x before them or
// not.
func isKey(printed any, lkey uint32) bool {
	s, ok := printed.(string)
	if !ok {
		return printed == float64(lkey)
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 32)
	return err == nil && uint32(v) == lkey
}

// regionCounters are the counters of a region, by name.
func regionCounters(all []map[string]any, device string, number float64) (list []verbs.NamedCounter, err error) {
	for _, r := range all {
		if r["ifname"] != device || r["mrn"] != number {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r)) {
			if v, ok := r[name].(float64); ok && name != "ifindex" && name != "mrn" {
				list = append(list, verbs.NamedCounter{Name: name, Value: uint64(v)})
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("rdma statistic show mr: no region %v of %s: %w", number, device, syscall.ENOENT)
}
