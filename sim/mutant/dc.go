package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// dc are mutants of the dynamically connected transport.
var dc = []Mutant{
	{Name: "any-access-key", Area: "DV", broken: rule.AccessKeyIsChecked, Killers: []string{"DV-009"}},
	{Name: "dci-stays-with-its-target", Area: "DV", broken: rule.InitiatorTurnsToItsTarget, Killers: []string{"DV-008"}},
	{Name: "dct-ends-with-a-connection", Area: "DV", broken: rule.TargetOutlivesItsConnections, Killers: []string{"DV-009"}},
	{Name: "dct-without-number", Area: "DV", broken: rule.TargetNumberComesWithRTR, Killers: []string{"DV-008"}},
	{Name: "dc-of-any-type", Area: "DV", broken: rule.EndsAreOfTheDriversType, Killers: []string{"DV-006"}},
	{Name: "dct-takes-posts", Area: "DV", broken: rule.TargetTakesNoPosts, Killers: []string{"DV-010"}},
	{Name: "dct-without-srq", Area: "DV", broken: rule.TargetNeedsAnSRQ, Killers: []string{"DV-010"}},
}
