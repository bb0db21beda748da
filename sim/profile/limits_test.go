package profile

import (
	"math"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// most is the largest value of a kind that a profile may hold: products of these with the sizes of
// messages fit into the clock.
var most = map[Kind]uint64{Time: uint64(1000 * sim.Second), Rate: 1e16, Size: 1 << 44, Freq: 1e9, Count: 1 << 24}

// Each time, size, rate and count has a limit below what would make a product of them wrap, and an
// error beyond it names the key and what is allowed.
func TestEveryValueHasALimit(t *testing.T) {
	base := load(t, Default)
	for _, key := range base.Keys() {
		q, _ := base.param(key)
		limit, numeric := most[q.kind]
		if !numeric {
			continue
		}
		for shift := range 64 {
			n := uint64(math.MaxUint64) >> shift
			if n <= limit {
				break
			}
			for _, n := range []uint64{n, n/2 + 1} { // all bits, and a power of two
				p := base.Clone()
				q, _ := p.param(key)
				if q.v.CanInt() && (n > math.MaxInt64 || q.v.OverflowInt(int64(n))) || !q.v.CanInt() && q.v.OverflowUint(n) || n <= limit {
					continue
				}
				if q.v.CanInt() {
					q.v.SetInt(int64(n))
				} else {
					q.v.SetUint(n)
				}
				err := p.Validate()
				if err == nil {
					t.Errorf("%s may be %s", key, q.text())
				} else if !strings.Contains(err.Error(), key) {
					t.Errorf("%s=%s: the error does not name it: %v", key, q.text(), err)
				}
			}
		}
	}
}
