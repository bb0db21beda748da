//go:build mutants

package rule

// Mutants says that this build can break rules.
const Mutants = true

// Broken is the set of rules that a run breaks, and what is wrong in its table of QP transitions.
// The zero value breaks none.
type Broken struct {
	rules [(count + 63) / 64]uint64
	bit   TableBit
}

// Break makes the set of some rules.
func Break(rules ...Rule) Broken {
	var b Broken
	for _, r := range rules {
		b.rules[r/64] |= 1 << (r % 64)
	}
	return b
}

// BreakTable makes the set of no rule and a table that is wrong.
func BreakTable(bit TableBit) Broken { return Broken{bit: bit} }

// Has says whether the run breaks r.
func (b Broken) Has(r Rule) bool { return b.rules[r/64]>>(r%64)&1 != 0 }

// TableBit is what is wrong in the table, or zero.
func (b Broken) TableBit() TableBit { return b.bit }
