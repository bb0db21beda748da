package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Runs says where a case runs, by kind of target. Each word is one of those that String spells out.
type Runs struct {
	Sim  string `yaml:"sim" json:"sim"`   // the simulator: yes, extension or no
	Rxe  string `yaml:"rxe" json:"rxe"`   // Soft-RoCE: yes, deviates, lacks or no
	MLX5 string `yaml:"mlx5" json:"mlx5"` // ConnectX cards: yes or no
}

// where is what the words of the three targets mean. One that means nothing is left out of the
// sentence.
var where = [3]struct {
	target string
	words  map[string]string
}{
	{"sim", map[string]string{"yes": "simulator", "extension": "simulator, by an extension of it", "no": ""}},
	{"rxe", map[string]string{"yes": "Soft-RoCE", "deviates": "Soft-RoCE with a known deviation", "lacks": "Soft-RoCE, which must prove that it lacks a need of the case", "no": ""}},
	{"mlx5", map[string]string{"yes": "mlx5", "no": ""}},
}

func (r Runs) words() [3]string { return [3]string{r.Sim, r.Rxe, r.MLX5} }

// check says what is wrong with the words, or returns nil.
func (r Runs) check() error {
	for i, word := range r.words() {
		if _, ok := where[i].words[word]; !ok {
			return fmt.Errorf("runs: %s is %q: want one of %s", where[i].target, word, strings.Join(slices.Sorted(maps.Keys(where[i].words)), ", "))
		}
	}
	return nil
}

// String spells out where the case runs.
func (r Runs) String() string {
	var on []string
	for i, word := range r.words() {
		if text := where[i].words[word]; text != "" {
			on = append(on, text)
		}
	}
	return strings.Join(on, "; ")
}
