package grid

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/spatial/r1"
	"gonum.org/v1/gonum/stat/distmv"
	"gonum.org/v1/gonum/stat/samplemv"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Samples are how samples are drawn: a Latin hypercube has each part of each axis equally often.
var Samples = []string{"latin", "random"}

// ParseSample reads N, latin:N or random:N.
func ParseSample(text string) (kind string, n int, err error) {
	kind, count, ok := strings.Cut(text, ":")
	if !ok {
		kind, count = Samples[0], text
	}
	if kind != Samples[0] && kind != Samples[1] {
		return "", 0, fmt.Errorf("%q is not %s%s: give a number of points, or random:N", kind, strings.Join(Samples, " or "), input.Suggest(kind, Samples))
	}
	v, err := input.Whole(count)
	if err != nil || v < 1 || v > most {
		return "", 0, fmt.Errorf("%q is not a number of points from 1 to %d", count, most)
	}
	return kind, int(v), nil
}

// Draw makes the grid a sample of n points. Those that fall on one point of the grid stay once.
func (g *Grid) Draw(kind string, n int, seed uint64) {
	dim := len(g.Axes)
	places := make([][]float64, 0, n)
	if dim > 0 {
		batch := mat.NewDense(n, dim, nil)
		src := rand.NewPCG(seed, 0x5eed)
		unit := distmv.NewUniform(unitCube(dim), src)
		if kind == "random" {
			samplemv.IID{Dist: unit}.Sample(batch)
		} else {
			samplemv.LatinHypercube{Q: unit, Src: src}.Sample(batch)
		}
		for i := range n {
			places = append(places, append([]float64(nil), batch.RawRowView(i)...))
		}
	}
	g.Sample, g.Drawn = places, n
	seen := map[string]bool{}
	kept := places[:0]
	for i, p := range places {
		name := fmt.Sprint(g.At(i))
		if !seen[name] {
			seen[name] = true
			kept = append(kept, p)
		}
	}
	g.Sample = kept
}

func unitCube(dim int) []r1.Interval {
	cube := make([]r1.Interval, dim)
	for i := range cube {
		cube[i] = r1.Interval{Min: 0, Max: 1}
	}
	return cube
}
