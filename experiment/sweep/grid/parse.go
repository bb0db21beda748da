package grid

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Parse reads one sweep: KEY=VALUES, or KEY,KEY=VALUES for keys that change together. VALUES are
// items with commas between them. An item is a value, or LOW:HIGH:STEP, LOW..HIGH+STEP or
// LOW..HIGH*FACTOR, which include HIGH where they reach it; of several keys it has a value for each
// with colons between them. A value in double quotes is a word, whatever is in it: commas, colons
// or points. VALUES may be @FILE, a file with one item a line; dir is where its path begins.
// KEY=LOW..HIGH alone is an interval for samples.
func Parse(ctx context.Context, text, dir string) (Axis, error) {
	keys, list, ok := strings.Cut(text, "=")
	if !ok || list == "" || keys == "" {
		return Axis{}, fmt.Errorf("%q is not of the form key=v1,v2,... (or key=LOW:HIGH:STEP, key=LOW..HIGH*FACTOR, key,key=a:b,c:d, key=@FILE)", text)
	}
	a := Axis{Keys: strings.Split(keys, ",")}
	for i, k := range a.Keys {
		if k == "" || strings.ContainsAny(k, " \t") {
			return Axis{}, fmt.Errorf("%q: %q is not a key", text, k)
		}
		if slices.ContainsFunc(a.Keys[:i], func(other string) bool { return OneKey(other) == OneKey(k) }) {
			return Axis{}, fmt.Errorf("%q: the key %s is given twice", text, k)
		}
	}
	items, err := items(ctx, list, dir)
	if err != nil {
		return Axis{}, err
	}
	if len(a.Keys) == 1 && len(items) == 1 {
		if low, high, ok := strings.Cut(items[0], ".."); ok && !strings.ContainsAny(high, `+*"`) {
			return between(a, items[0], low, high)
		}
	}
	for _, item := range items {
		if err := a.add(item); err != nil {
			return Axis{}, err
		}
	}
	if len(a.Values) == 0 {
		return Axis{}, fmt.Errorf("%q has no values", text)
	}
	seen := map[string]bool{}
	for _, v := range a.Values {
		one := strings.Join(v, ":")
		if seen[one] {
			return Axis{}, fmt.Errorf("%s: %s is given twice", a.Name(), one)
		}
		seen[one] = true
	}
	return a, nil
}

// OneKey is the one spelling of a key: set.uar.bf_busy of a scenario is the value uar.bf_busy of
// the profile.
func OneKey(k string) string { return strings.TrimPrefix(k, "set.") }

func between(a Axis, item, low, high string) (Axis, error) {
	q, ends, err := quantityOf(low, high)
	if err != nil {
		return Axis{}, fmt.Errorf("%s: %w", item, err)
	}
	if ends[0] > ends[1] || ends[1]-ends[0] >= 1<<53 {
		return Axis{}, fmt.Errorf("%s is empty or too wide", item)
	}
	a.Between = &Interval{q.name, ends[0], ends[1]}
	return a, nil
}

// items splits a list, or reads a file of one item a line.
func items(ctx context.Context, list, dir string) ([]string, error) {
	name, file := strings.CutPrefix(list, "@")
	if !file {
		return split(list, ',')
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	text, err := input.ReadFile(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("the file of values: %w", err)
	}
	var all []string
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		item, err := split(strings.TrimSpace(line), ',')
		if err == nil && len(item) > 1 {
			err = errors.New("write one item on each line, and a value with a comma in double quotes")
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
		}
		if item[0] != "" {
			all = append(all, item[0])
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no values: give one a line", name)
	}
	return all, nil
}

// split splits a text at a separator that is not in double quotes.
func split(text string, separator rune) ([]string, error) {
	var all []string
	begin, quoted := 0, false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			all, begin = append(all, text[begin:i]), i+1
		}
	}
	if quoted {
		return nil, fmt.Errorf("%s: a double quote is not closed", text[begin:])
	}
	return append(all, text[begin:]), nil
}

// unquote is the word that a text in double quotes stands for.
func unquote(text string) (word string, quoted bool) {
	if len(text) > 1 && text[0] == '"' && strings.IndexByte(text[1:], '"') == len(text)-2 {
		return text[1 : len(text)-1], true
	}
	return text, false
}

// add adds the values of one item.
func (a *Axis) add(item string) error {
	parts, err := split(item, ':')
	if err != nil {
		return err
	}
	whole := false
	for i := range parts {
		parts[i], whole = unquote(parts[i])
	}
	if len(a.Keys) > 1 {
		if len(parts) != len(a.Keys) {
			return fmt.Errorf("%s=%s: %d keys change together, and the item has %d values: give one for each, with colons between them", a.Name(), item, len(a.Keys), len(parts))
		}
		a.Values = append(a.Values, parts)
		return nil
	}
	if whole && len(parts) == 1 {
		a.Values = append(a.Values, parts)
		return nil
	}
	values := []string{item}
	low, rest, dots := strings.Cut(item, "..")
	if _, _, kerr := quantityOf(low); kerr != nil {
		dots = false // a text with two points
	}
	switch i := strings.IndexAny(rest, "+*"); {
	case dots && i < 0:
		err = fmt.Errorf("%s: an interval cannot be part of a list: add +STEP or *FACTOR", item)
	case dots:
		values, err = stepped(item, low, rest[:i], rest[i+1:], rest[i] == '*')
	case len(parts) == 3 && strings.HasPrefix(item, "-"):
		err = fmt.Errorf("%s: a range begins at 0 or above: give values below it as a list", item)
	case len(parts) == 3:
		if _, _, kerr := quantityOf(parts[0]); kerr == nil {
			values, err = stepped(item, parts[0], parts[1], parts[2], false)
		}
	case len(parts) == 2:
		if _, _, kerr := quantityOf(parts[0]); kerr == nil {
			err = errors.New(item + " is not a range: give LOW:HIGH:STEP, or LOW..HIGH+STEP")
		}
	}
	if err != nil {
		return err
	}
	for _, v := range values {
		a.Values = append(a.Values, []string{v})
	}
	return nil
}
