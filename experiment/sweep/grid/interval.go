package grid

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// quantity is a kind of value that has an order: how it is read and written, in whole units.
type quantity struct {
	name   string
	parse  func(string) (uint64, error)
	format func(uint64) string
}

func whole(s string) (uint64, error) { return input.Whole(s) }

var quantities = []quantity{
	{"whole number", whole, func(n uint64) string { return strconv.FormatUint(n, 10) }},
	{"size", input.ParseSize, input.FormatSize},
	{"time", func(s string) (uint64, error) { n, err := input.ParseTime(s); return uint64(n), err },
		func(n uint64) string { return input.FormatTime(int64(n)) }},
	{"rate", input.ParseRate, input.FormatRate},
	{"frequency", input.ParseFrequency, input.FormatFrequency},
}

// quantityOf is the kind that all texts have.
func quantityOf(texts ...string) (*quantity, []uint64, error) {
	var first error
	for i := range quantities {
		q := &quantities[i]
		var all []uint64
		for _, t := range texts {
			n, err := q.parse(t)
			if err != nil {
				break
			}
			all = append(all, n)
		}
		if len(all) == len(texts) {
			return q, all, nil
		}
	}
	for _, t := range texts {
		known := false
		for i := range quantities {
			_, err := quantities[i].parse(t)
			known = known || err == nil
		}
		if !known {
			return nil, nil, fmt.Errorf("%q is not a number, size, time, rate or frequency", t)
		}
		first = fmt.Errorf("%s are not of one kind: give all of them with units of the same kind", strings.Join(texts, ", "))
	}
	return nil, nil, first
}

// Interval is a range of values without steps.
type Interval struct {
	Kind string `json:"kind"`
	Low  uint64 `json:"low"`
	High uint64 `json:"high"` // inclusive
}

func (v *Interval) quantity() *quantity {
	for i := range quantities {
		if quantities[i].name == v.Kind {
			return &quantities[i]
		}
	}
	return &quantities[0]
}

// String returns the text form.
func (v *Interval) String() string {
	q := v.quantity()
	return q.format(v.Low) + ".." + q.format(v.High)
}

// at is the value of a place from 0 up to 1.
func (v *Interval) at(place float64) string {
	steps := v.High - v.Low + 1
	return v.quantity().format(v.Low + min(uint64(place*float64(steps)), steps-1))
}

// most bounds the values of one axis, which are laid out.
const most = 1_000_000

// stepped is a range as texts: from low to high, each the one before and step, or times factor.
func stepped(text, low, high, step string, times bool) ([]string, error) {
	if times {
		q, ends, err := quantityOf(low, high)
		if err != nil {
			return nil, err
		}
		factor, err := strconv.ParseFloat(step, 64)
		if err != nil || !(factor > 1) || math.IsInf(factor, 0) {
			return nil, fmt.Errorf("%s: the factor %q is not a number above 1", text, step)
		}
		if ends[0] == 0 {
			return nil, fmt.Errorf("%s begins at 0, which no factor can raise: begin above 0", text)
		}
		return grow(q, text, ends[0], ends[1], func(n uint64) uint64 {
			if f := float64(n) * factor; f < 1<<63 {
				return max(uint64(f), n+1)
			}
			return math.MaxUint64
		})
	}
	q, n, err := quantityOf(low, high, step)
	if err != nil {
		return nil, err
	}
	if n[2] == 0 {
		return nil, fmt.Errorf("%s has a step of 0", text)
	}
	return grow(q, text, n[0], n[1], func(v uint64) uint64 {
		sum, carry := bits.Add64(v, n[2], 0)
		if carry > 0 {
			return math.MaxUint64
		}
		return sum
	})
}

func grow(q *quantity, text string, low, high uint64, next func(uint64) uint64) ([]string, error) {
	if low > high {
		return nil, fmt.Errorf("%s is empty: %s is above %s", text, q.format(low), q.format(high))
	}
	var all []string
	for v := low; v <= high && v != math.MaxUint64; v = next(v) {
		if len(all) == most {
			return nil, fmt.Errorf("%s has more than %d values", text, most)
		}
		all = append(all, q.format(v))
	}
	return all, nil
}
