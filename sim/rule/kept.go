//go:build !mutants

package rule

// Mutants says that this build can break rules: it cannot.
const Mutants = false

// Broken takes no room, and what asks it is compiled away.
type Broken struct{}

// Break makes the empty set: see Mutants.
func Break(...Rule) Broken { return Broken{} }

// Has is false.
func (Broken) Has(Rule) bool { return false }

// BreakTable makes the empty set: see Mutants.
func BreakTable(TableBit) Broken { return Broken{} }

// TableBit is zero.
func (Broken) TableBit() TableBit { return TableBit{} }
