package rule

import (
	"strings"
	"testing"
	"unsafe"
)

func TestEveryRuleIsASentence(t *testing.T) {
	seen := map[string]Rule{}
	for _, r := range All() {
		s := r.String()
		if strings.HasSuffix(s, ".") || strings.ToUpper(s[:1]) != s[:1] {
			t.Errorf("rule %d: %q is no sentence without its full stop", uint16(r), s)
		}
		if other, twice := seen[s]; twice {
			t.Errorf("rules %d and %d: %q", uint16(r), uint16(other), s)
		}
		seen[s] = r
		if sentences[r] != "" && wireSentences[r] != "" {
			t.Errorf("rule %d has two sentences: %q", uint16(r), s)
		}
	}
	if got := Rule(511).String(); got != "Rule(511)" {
		t.Error(got)
	}
}

// Without the tag nothing can be broken, and the set takes no room; with it a set has what
// it was made of.
func TestBreaking(t *testing.T) {
	all := All()
	first, last := all[0], all[len(all)-1]
	b := Break(first, last)
	if b.Has(first) != Mutants || b.Has(last) != Mutants || b.Has(all[1]) || (Broken{}).Has(first) {
		t.Errorf("%v has %d: %v, %d: %v", b, first, b.Has(first), last, b.Has(last))
	}
	if size := unsafe.Sizeof(b); !Mutants && size != 0 {
		t.Errorf("a Broken takes %d bytes in a build without mutants", size)
	}
}
