package experiment

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Validity is what published figures say of a result: how far the simulator was off for loads like
// its own.
type Validity struct {
	// Points is how many points of a sweep were looked at, and Point the one of them that is least
	// like what was validated.
	Point  string `json:"point,omitempty"`
	Points int    `json:"points,omitempty"`
	// Factor: a Share of the published figures near to the load were predicted within this factor,
	// without their own check. 0: no figure is near.
	Factor float64 `json:"factor,omitempty"`
	Share  float64 `json:"share"`
	// Uncalibrated says that no figure is near since the timing of the profile is not calibrated.
	Uncalibrated bool `json:"uncalibrated,omitempty"`
	// Beyond says in what the load goes farther than all published figures of its kind; Factor
	// then comes from figures that themselves go farther than those of other checks.
	Beyond []string `json:"beyond,omitempty"`
	// Check is the number of the nearest check of rdmasim validate. Differs says in what its load
	// is unlike this one, the most important first.
	Check    int      `json:"nearest_check"`
	Title    string   `json:"nearest_check_title"`
	Distance float64  `json:"distance"`
	Differs  []string `json:"differs"`
}

// mostDifferences is how many a line names.
const mostDifferences = 3

// String is the line below a table.
func (v *Validity) String() string {
	if v.Uncalibrated {
		return "How far to trust it: not known, for the timing of the profile is not calibrated."
	}
	nearest := fmt.Sprintf("check %d of rdmasim validate has this load", v.Check)
	if n := len(v.Differs); n > 0 {
		named := v.Differs
		if n > mostDifferences {
			named = append(named[:mostDifferences:mostDifferences], plain.Count(n-mostDifferences, "other"))
		}
		nearest = fmt.Sprintf("the nearest, check %d of rdmasim validate, differs in %s", v.Check, strings.Join(named, ", "))
	}
	load := "this load"
	if v.Points > 1 {
		load = fmt.Sprintf("%s (of %d points the least like them)", v.Point, v.Points)
	}
	if v.Factor == 0 {
		return fmt.Sprintf("How far to trust it: not known, for no published figure is near %s; %s.", load, nearest)
	}
	if len(v.Beyond) > 0 {
		return fmt.Sprintf("How far to trust it: not far, for %s lies beyond all published figures in %s; %.0f %% of figures beyond the others were predicted, without their own check, within a factor of %.2f; %s.",
			load, strings.Join(v.Beyond, ", "), 100*v.Share, v.Factor, nearest)
	}
	return fmt.Sprintf("How far to trust it: %.0f %% of the published figures near %s were predicted, without their own check, within a factor of %.2f; %s.",
		100*v.Share, load, v.Factor, nearest)
}
