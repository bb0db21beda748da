package experiment

import (
	"fmt"
	"testing"
)

// Regions have the pages that were asked for, and the result says so: mlx5_ib takes the largest
// page in which the memory is contiguous, and not more than the region needs.
func TestPageSizeOfRegions(t *testing.T) {
	for _, c := range []struct {
		size, page string
		mrs        int
		want       string
		entries    int
	}{
		{"1MiB", "", 2, "4KiB", 512},
		{"1MiB", "4KiB", 1, "4KiB", 256},
		{"5MiB", "2MiB", 1, "2MiB", 3},
		{"1MiB", "2MiB", 1, "1MiB", 1}, // part of one page
		{"3GiB", "1GiB", 1, "1GiB", 3},
		{"4KiB", "", 3, "4KiB", 3},
	} {
		page := ""
		if c.page != "" {
			page = ", page_size: " + c.page
		}
		src := fmt.Sprintf("name: x\ntraffic: [{verb: write, messages: 1, mr_size: %s, mrs: %d%s}]\n", c.size, c.mrs, page)
		out := runText(t, src)
		row := trafficRow(out.loads[0], out.Results[0])
		if row.Get("mr_page") != c.want || row.Get("mr_entries") != c.entries {
			t.Errorf("%s in pages %q: %v in %v entries, want %s in %d", c.size, c.page, row.Get("mr_page"), row.Get("mr_entries"), c.want, c.entries)
		}
	}
}
