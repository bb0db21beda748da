// Package rule names the rules that a mutant can break inside the device, the driver
// model or the library: those that no wrapper at one of their interfaces can break from
// outside. A mutant is a run that breaks one; the suite must notice (sim/mutant).
//
// Only a build with the tag mutants can break any. In every other build Broken is a type
// of size zero whose Has is the constant false, so that the compiler removes whatever
// depends on it.
package rule

import "fmt"

// Rule is one rule.
type Rule uint16

// count is the room in a Broken.
const count = 608

// String returns the text form.
func (r Rule) String() string {
	if r < count && sentences[r]+wireSentences[r] != "" {
		return sentences[r] + wireSentences[r]
	}
	return fmt.Sprintf("Rule(%d)", uint16(r))
}

// All lists the rules.
func All() []Rule {
	var all []Rule
	for r := range sentences {
		if sentences[r]+wireSentences[r] != "" {
			all = append(all, Rule(r))
		}
	}
	return all
}
