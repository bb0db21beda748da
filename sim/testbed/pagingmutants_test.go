//go:build mutants

package testbed

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim/rule"
)

// The programs find what keeps a translation of a page that is gone, and an answer that goes
// astray.
func TestPagingProgramsFindMutants(t *testing.T) {
	const most = 2000
	for _, r := range []rule.Rule{rule.RacedPagesAreLookedUpAgain, rule.InvalidationReachesTheDevice, rule.InvalidationReachesTheLastPage,
		rule.AnswerReachesItsSide, rule.EverySegmentIsPaged, rule.EveryPlaceLeadsToItsChild, rule.EmptyChildLeavesItsPlace,
		rule.LandingIsAskedForAgain, rule.InvalidationAwaitsAccesses, rule.FaultNamesItsRequest} {
		t.Run(r.String(), func(t *testing.T) {
			for first := uint64(0); first < most; first += programsOfABed {
				p, err := runPaging(t, first, programsOfABed, rule.Break(r), &pagingStats{})
				if err != nil {
					t.Logf("found by the program of seed %d: %v", p.seed, err)
					return
				}
			}
			t.Errorf("%d programs have not found it", most)
		})
	}
}
