package mutant

import "github.com/rdmasim/rdmasim/sim/rule"

// directKeys are mutants of keys that programs give entries, and of copies by the device.
var directKeys = []Mutant{
	{Name: "key-over-read-only-memory", Area: "DV", broken: rule.ListedKeysHaveTheirRights, Killers: []string{"DV-020"}},
	{Name: "key-over-any-pd", Area: "DV", broken: rule.ListedKeysAreOfThePD, Killers: []string{"DV-020"}},
	{Name: "first-pieces-swapped", Area: "DV", broken: rule.EntriesHaveTheirOrder, Killers: []string{"DV-020"}},
	{Name: "rounds-without-gaps", Area: "DV", broken: rule.RoundsHaveTheirStride, Killers: []string{"DV-021"}},
	{Name: "copy-to-read-only-memory", Area: "DV", broken: rule.CopiesNeedAWritableTarget, Killers: []string{"DV-017"}},
	{Name: "copy-completes-as-umr", Area: "DV", broken: rule.CopiesCompleteAsSuch, Killers: []string{"DV-016"}},
	{Name: "copy-of-any-length", Area: "DV", broken: rule.CopiesHaveALimit, Killers: []string{"DV-018"}},
	{Name: "entries-beyond-the-key", Area: "DV", broken: rule.KeysHaveTheirEntries, Killers: []string{"DV-020"}},
}
