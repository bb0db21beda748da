package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// shape is what a result shows of one picture, or of one kind of rows that no picture has: lines of
// numbers, and words.
type shape struct {
	id, x, y string
	least    bool               // the least value is the best one
	curve    bool               // x has an order, so a line has a knee
	names    []string           // lines
	xs       []float64          // in order
	label    map[float64]string // of xs
	at       map[string]map[float64]float64
	words    map[string]string // by what they are words of
	keys     []string          // of words, in order
}

// Two numbers differ if they are apart by more than differs, and they are equal again within
// equals, so that a conclusion does not depend on the last digit. A line is at its best within
// atBest of its best value.
const (
	differs = 0.05
	equals  = 0.025
	atBest  = 0.1
)

// shapesOf are the shapes of a result.
func shapesOf(r *trialResult) (all []*shape) {
	drawn := map[any]bool{}
	for i := range r.plots {
		p := &r.plots[i]
		ch := p.Collect(r.rows)
		s := &shape{id: p.Title, x: p.X, y: p.Y, least: p.Least, curve: len(p.Words) == 0, names: ch.Names, label: map[float64]string{}, at: map[string]map[float64]float64{}}
		for j := range r.rows {
			if p.Matches(&r.rows[j]) {
				drawn[r.rows[j].Get("row")] = true
			}
		}
		for _, t := range ch.Ticks {
			s.xs, s.label[t.Value] = append(s.xs, t.Value), t.Label
		}
		for name, points := range ch.Points {
			s.at[name] = map[float64]float64{}
			for _, q := range points {
				s.at[name][q.X] = q.Y
			}
		}
		if len(s.names) > 0 {
			all = append(all, s)
		}
	}
	for _, rows := range table.Kinds(r.rows) {
		if kind := table.KindOf(rows); !drawn[kind] && kind != "thread" && kind != "counter" {
			all = append(all, shapeOfRows(kind, rows, r.cols))
		}
	}
	return all
}

// mostRows is how many rows of a kind are compared with each other.
const mostRows = 40

// shapeOfRows compares rows with each other by the first of their numbers that is a rate or a time.
func shapeOfRows(kind any, rows []table.Row, columns []string) *shape {
	s := &shape{id: strings.TrimSpace(table.Text(kind) + " rows"), label: map[float64]string{0: ""}, xs: []float64{0}, at: map[string]map[float64]float64{}, words: map[string]string{}}
	for i := range rows {
		row := &rows[i]
		var name []string
		for _, k := range row.Keys() {
			if v, ok := row.Get(k).(string); ok && k != "row" && k != "verdict" && !experiment.IsFinding(k) && len(name) < 3 && slices.Contains(columns, k) {
				name = append(name, v)
			}
		}
		label := clip(strings.Join(name, ", "))
		if _, twice := s.at[label]; twice || label == "" {
			label = clip(fmt.Sprintf("row %d %s", i+1, label))
		}
		for _, k := range row.Keys() {
			if v, ok := row.Get(k).(string); ok && k != "row" && !experiment.IsFinding(k) && slices.Contains(columns, k) {
				s.keys, s.words[label+": "+k] = append(s.keys, label+": "+k), v
			}
			v, ok := row.Float(k)
			if !ok || s.y != "" && s.y != k || !isResult(k) || len(rows) > mostRows {
				continue
			}
			s.y, s.least = k, !strings.HasSuffix(k, "ps")
			s.names, s.at[label] = append(s.names, label), map[float64]float64{0: v}
		}
	}
	return s
}

func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}

// isResult reports whether a key is that of a rate or a time.
func isResult(k string) bool {
	return strings.HasSuffix(k, "_mps") || strings.HasSuffix(k, "gbps") || strings.HasSuffix(k, "_kps") || strings.Contains(k, "latency_")
}

// where names a place of the picture.
func (s *shape) where(x float64) string {
	if s.x == "" {
		return ""
	}
	return fmt.Sprintf(" at %s %s", s.x, s.label[x])
}

func apart(a, b, by float64) bool { return math.Abs(a-b) > by*math.Max(math.Abs(a), math.Abs(b)) }

// better reports whether a beats b.
func (s *shape) better(a, b float64) bool { return a > b != s.least }

// winner is the line that is best at x, "" if two are.
func (s *shape) winner(x float64) string {
	best := ""
	for _, n := range s.names {
		v, ok := s.at[n][x]
		if ok && (best == "" || s.better(v, s.at[best][x])) {
			best = n
		}
	}
	for _, n := range s.names {
		if v, ok := s.at[n][x]; ok && n != best && !apart(v, s.at[best][x], differs) {
			return ""
		}
	}
	return best
}

// knee are the first and the last place at which a line is at its best.
func (s *shape) knee(name string, slack float64) (first, last int) {
	line, best := s.at[name], math.NaN()
	for _, x := range s.xs {
		if v, ok := line[x]; ok && (math.IsNaN(best) || s.better(v, best)) {
			best = v
		}
	}
	first, last = -1, -1
	for i, x := range s.xs {
		if v, ok := line[x]; ok && !apart(v, best, slack) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

// knees are all that have one: lines that are not at their best everywhere.
func (s *shape) knees() (names []string) {
	for _, n := range s.names {
		if first, last := s.knee(n, atBest); s.curve && len(s.at[n]) > 2 && last-first+1 < len(s.at[n]) {
			names = append(names, n)
		}
	}
	return names
}

// conclusions are what the shape shows.
func (s *shape) conclusions() (lines []string) {
	for _, x := range s.xs {
		if w := s.winner(x); w != "" && len(s.names) > 1 {
			lines = append(lines, fmt.Sprintf("%s: best%s: %s", s.id, s.where(x), w))
		}
	}
	for _, n := range s.knees() {
		first, last := s.knee(n, atBest)
		lines = append(lines, fmt.Sprintf("%s: %s is at its best from %s %s to %s", s.id, n, s.x, s.label[s.xs[first]], s.label[s.xs[last]]))
	}
	if pairs := s.pairs(); pairs > 0 {
		lines = append(lines, fmt.Sprintf("%s: order of %d pairs by %s", s.id, pairs, s.y))
	}
	if len(s.words) > 0 {
		lines = append(lines, fmt.Sprintf("%s: %d words", s.id, len(s.words)))
	}
	return lines
}

// pairs is the number of pairs of lines that differ at a place.
func (s *shape) pairs() (n int) {
	s.eachPair(func(string, string, float64) { n++ })
	return n
}

// eachPair calls f for lines of which a is better than b at x.
func (s *shape) eachPair(f func(a, b string, x float64)) {
	for _, x := range s.xs {
		for i, a := range s.names {
			for _, b := range s.names[i+1:] {
				va, oka := s.at[a][x]
				vb, okb := s.at[b][x]
				switch {
				case !oka || !okb || !apart(va, vb, differs):
				case s.better(va, vb):
					f(a, b, x)
				default:
					f(b, a, x)
				}
			}
		}
	}
}

// compare says which conclusions another result does not show, and the largest change of a number
// in percent.
func (s *shape) compare(all []*shape) (changes []string, effect float64) {
	i := slices.IndexFunc(all, func(o *shape) bool { return o.id == s.id })
	if i < 0 {
		return []string{s.id + ": there is no such row"}, 0
	}
	o := all[i]
	for _, n := range s.names {
		for _, x := range s.xs {
			a, oka := s.at[n][x]
			b, okb := o.at[n][x]
			if oka && okb && a != b {
				effect = max(effect, 100*math.Abs(b-a)/math.Max(math.Abs(a), 1e-12))
			}
		}
	}
	changes = append(changes, s.order(o)...)
	for _, n := range s.knees() {
		changes = append(changes, s.kneeMoved(o, n)...)
	}
	for _, k := range s.keys {
		if w, ok := o.words[k]; ok && w != s.words[k] {
			changes = append(changes, fmt.Sprintf("%s: %s, not %s", k, clip(w), clip(s.words[k])))
		}
	}
	return changes, min(effect, 1e6)
}

// order is which winners and which pairs are others.
func (s *shape) order(o *shape) (changes []string) {
	for _, x := range s.xs {
		w := s.winner(x)
		if w == "" || len(s.names) < 2 {
			continue
		}
		for _, n := range o.names {
			if v, ok := o.at[n][x]; ok && n != w && o.better(v, o.at[w][x]) && apart(v, o.at[w][x], equals) {
				changes = append(changes, fmt.Sprintf("%s: best%s is %s, not %s", s.id, s.where(x), n, w))
				break
			}
		}
	}
	turned, equal, first := 0, 0, ""
	s.eachPair(func(a, b string, x float64) {
		va, oka := o.at[a][x]
		vb, okb := o.at[b][x]
		switch {
		case !oka || !okb:
			return
		case !apart(va, vb, equals):
			equal++
		case o.better(vb, va):
			turned++
		default:
			return
		}
		if first == "" {
			first = fmt.Sprintf("%s and %s%s", a, b, s.where(x))
		}
	})
	if turned+equal > 0 {
		changes = append(changes, fmt.Sprintf("%s: of %d pairs in order %d turn and %d become equal, first %s", s.id, s.pairs(), turned, equal, first))
	}
	return changes
}

// kneeMoved says how the knee of a line moves, unless it lies between the places that are nearly at
// their best and those that are clearly not.
func (s *shape) kneeMoved(o *shape, n string) []string {
	first, last := s.knee(n, atBest)
	widest, end := o.knee(n, atBest+differs)
	narrow, stop := o.knee(n, atBest-differs)
	if widest < 0 || first >= widest && first <= narrow && last <= end && last >= stop {
		return nil
	}
	from, to := o.knee(n, atBest)
	return []string{fmt.Sprintf("%s: %s is at its best from %s %s to %s, not from %s to %s", s.id, n, s.x, o.label[o.xs[from]], o.label[o.xs[to]], s.label[s.xs[first]], s.label[s.xs[last]])}
}
