//go:build mutants

package rule

// Mutants says that this build can break rules.
const Mutants = true

// Broken is the set of rules that a run breaks. The zero value breaks none.
type Broken [(count + 63) / 64]uint64

// Break makes the set of some rules.
func Break(rules ...Rule) Broken {
	var b Broken
	for _, r := range rules {
		b[r/64] |= 1 << (r % 64)
	}
	return b
}

// Has says whether the run breaks r.
func (b Broken) Has(r Rule) bool { return b[r/64]>>(r%64)&1 != 0 }
