package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A line names so many distinct words, and a list counts so many: a sweep may have a million.
const (
	mostWords   = 6
	mostCounted = 10_000
)

// list is distinct words in their order, of which a line names the first ones.
type list struct {
	words []string
	seen  map[string]bool
}

func newList() *list { return &list{seen: map[string]bool{}} }

func (l *list) add(w string) {
	if l.seen[w] || len(l.seen) == mostCounted {
		return
	}
	l.seen[w] = true
	if len(l.words) < mostWords {
		l.words = append(l.words, w)
	}
}

func (l *list) String() string { return strings.Join(l.words, ", ") + l.rest(len(l.words)) }

// rest says how many words there are beyond those that are shown.
func (l *list) rest(shown int) string {
	switch more := len(l.seen) - shown; {
	case more == 0:
		return ""
	case len(l.seen) == mostCounted:
		return fmt.Sprintf(" and at least %d more", more)
	default:
		return fmt.Sprintf(" and %d more", more)
	}
}

// switches are the hypotheses of many runs, key=value, by their keys: a key that is swept has many
// values.
type switches map[string]*list

func (s switches) add(hypotheses []string) {
	for _, h := range hypotheses {
		key, _, _ := strings.Cut(h, "=")
		if s[key] == nil {
			s[key] = newList()
		}
		s[key].add(h)
	}
}

// texts are the hypotheses in order; of a key with too many values, one text for all.
func (s switches) texts() []string {
	texts := []string{}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if l := s[key]; len(l.seen) > len(l.words) {
			texts = append(texts, l.words[0]+l.rest(1)+" values")
		} else {
			texts = append(texts, l.words...)
		}
	}
	slices.Sort(texts)
	return texts
}
