package experiment

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/provider"
)

// longestName is the length of a name in bytes: with the endings of files it is less than the 255
// that file systems allow.
const longestName = 100

// checkNames refuses names that would leave the output folder, and texts that would bring control
// characters to a terminal, or formulas into a spreadsheet that reads the CSV.
func (s *Scenario) checkNames() error {
	if err := checkName(s.Name); err != nil {
		return s.doc.Errorf("name", "name %q %v", s.Name, err)
	}
	for _, f := range []struct{ key, text string }{{"title", s.Title}, {"source", s.Source}} {
		if strings.ContainsFunc(f.text, unprintable) {
			return s.doc.Errorf(f.key, "%s %q has control characters: leave them out", f.key, f.text)
		}
	}
	loads := map[string]int{}
	for i := range s.Traffic {
		at := "traffic." + strconv.Itoa(i) + ".name"
		name := s.loadName(i)
		if err := checkName(name); err != nil {
			return s.doc.Errorf(at, "name %q %v", name, err)
		}
		if j, taken := loads[name]; taken {
			return s.doc.Errorf(at, "loads %d and %d are both named %s: give each a name of its own", j, i, name)
		}
		loads[name] = i
	}
	return nil
}

// loadName is the name of a load, or the default for one that has none.
func (s *Scenario) loadName(i int) string {
	return cmp.Or(s.Traffic[i].Name, "load"+strconv.Itoa(i))
}

// checkEnv refuses variables that the library does not read: they would change nothing.
func (s *Scenario) checkEnv(at string, env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.Contains(provider.Variables, name) {
			return s.doc.Errorf(at+".env."+name, "unknown environment variable %q%s; the simulated library reads %s",
				name, input.Suggest(name, provider.Variables), strings.Join(provider.Variables, ", "))
		}
	}
	return nil
}

// checkName says what is wrong with a name that becomes a file's, or a cell of a table.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty: give one, such as my-run")
	case len(name) > longestName:
		return errors.New("is too long: at most " + strconv.Itoa(longestName) + " bytes are allowed")
	}
	for i, r := range name {
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		if !word && (i == 0 || !strings.ContainsRune(" ._+-,()", r)) {
			return errors.New("cannot be used: letters, digits, spaces and . _ + - , ( ) are allowed, and a letter or digit comes first")
		}
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
