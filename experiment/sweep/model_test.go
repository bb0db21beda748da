package sweep

import "testing"

// Colleagues who build one commit share results, whether make or go build made their programs.
func TestTagsOfTheModel(t *testing.T) {
	for tags, want := range map[string]string{
		"": "", "netgo,osusergo": "", "mutants": " tags mutants", "mutants,netgo,osusergo": " tags mutants", "hw,netgo": " tags hw", "a,b": " tags a,b",
	} {
		if got := modelTags(tags); got != want {
			t.Errorf("tags %q: %q, want %q", tags, got, want)
		}
	}
}
