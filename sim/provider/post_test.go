package provider

import "testing"

// A request costs what was built: each 16-byte segment behind the control segment, further lines,
// and the copy of inline data, which is no segment.
func TestCostOfAPost(t *testing.T) {
	p := &Params{BuildWQE: 1_000_000, BuildSegment: 10_000, BuildLine: 100, InlineCopy: 1}
	for _, c := range []struct {
		what string
		s    posting
		want int64
	}{
		{"WRITE of one entry", posting{ds: 3}, 1_020_000},
		{"the same over XRC", posting{ds: 4}, 1_030_000},
		{"atomic over XRC", posting{ds: 5}, 1_040_100},
		{"WRITE of 2 bytes inline", posting{ds: 3, copied: 2}, 1_010_001},
		{"WRITE of 65 bytes inline", posting{ds: 7, copied: 65}, 1_010_102},
		{"SEND of nothing", posting{ds: 1}, 1_000_000},
		{"bind", posting{ds: bindUnits}, 1_110_200},
		{"invalidate", posting{ds: unbindUnits}, 1_070_100},
	} {
		if got := c.s.cost(p); int64(got) != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}
