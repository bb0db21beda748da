// Package grid says what is swept: keys with lists and ranges of values, keys that change together,
// and samples of a grid. A grid is never laid out: each of its points is computed from its number,
// so that a million of them take no memory.
package grid

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Setting is one key with its value.
type Setting struct{ Key, Value string }

// Axis is a key and its values, or several keys that change together.
type Axis struct {
	Keys []string `json:"keys"`
	// Values has one text for each key, for each step of the axis.
	Values [][]string `json:"values,omitempty"`
	// Between is an interval without steps, from which only a sample takes values.
	Between *Interval `json:"between,omitempty"`
}

// Grid is what is swept: every combination of the axes' values, the last axis fastest, or a sample
// of them.
type Grid struct {
	Axes []Axis `json:"axes"`
	// Sample has, for each point of a sample, where it lies on each axis: 0 is the first value and
	// 1 is behind the last.
	Sample [][]float64 `json:"sample,omitempty"`
	// Drawn is how many points were asked for. Sample has fewer if several fell on one point of the
	// grid.
	Drawn int `json:"drawn,omitempty"`
}

// ErrMany says that a grid has more points than can be counted.
var ErrMany = errors.New("the sweeps have more than 2^62 combinations: give fewer values")

// Len is the number of points. Without axes there is one, which changes nothing.
func (g *Grid) Len() (int, error) {
	if g.Sample != nil {
		return len(g.Sample), nil
	}
	n := uint64(1)
	for _, a := range g.Axes {
		if a.Between != nil {
			return 0, fmt.Errorf("%s=%v has no steps, which only a sample can use: add +STEP or *FACTOR, or --sample N", a.Name(), a.Between)
		}
		high, low := bits.Mul64(n, uint64(len(a.Values)))
		if high > 0 || low > 1<<62 {
			return 0, ErrMany
		}
		n = low
	}
	return int(n), nil
}

// Name is the key of an axis, or its keys with commas between them.
func (a *Axis) Name() string { return strings.Join(a.Keys, ",") }

// At is the point of a number from 0 to Len.
func (g *Grid) At(n int) []Setting {
	if len(g.Axes) == 0 {
		return nil
	}
	at := make([][]string, len(g.Axes))
	for i, a := range slices.Backward(g.Axes) {
		if g.Sample != nil {
			at[i] = a.at(g.Sample[n][i])
			continue
		}
		at[i] = a.Values[n%len(a.Values)]
		n /= len(a.Values)
	}
	var pt []Setting
	for i, a := range g.Axes {
		for k, key := range a.Keys {
			pt = append(pt, Setting{key, at[i][k]})
		}
	}
	return pt
}

// at is the value of a place on the axis, from 0 up to 1.
func (a *Axis) at(place float64) []string {
	if a.Between != nil {
		return []string{a.Between.at(place)}
	}
	return a.Values[min(int(place*float64(len(a.Values))), len(a.Values)-1)]
}

// Keys are the keys of all axes in order.
func (g *Grid) Keys() []string {
	var keys []string
	for _, a := range g.Axes {
		keys = append(keys, a.Keys...)
	}
	return keys
}
