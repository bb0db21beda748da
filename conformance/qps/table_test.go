package qps

import (
	"testing"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/verbs"
)

// What the kit gives on the way to RTS is exactly what the table requires, and the
// rows with attributes go where the table of states allows.
func TestTableAgreesWithKit(t *testing.T) {
	for _, typ := range types {
		for _, tr := range transitions(typ.typ) {
			if !isLegal(tr.from, tr.to) {
				t.Errorf("%s: %v to %v has attributes and is not legal", typ.name, tr.from, tr.to)
			}
			if tr.required&tr.optional != 0 {
				t.Errorf("%s: %v to %v: bits %#x are required and optional", typ.name, tr.from, tr.to, tr.required&tr.optional)
			}
			climb := tr.from != tr.to && tr.to >= verbs.QPSInit && tr.to <= verbs.QPSRTS
			if got := kit.MaskFor(typ.typ, tr.to) &^ verbs.QPMaskState; climb && got != tr.required {
				t.Errorf("%s: %v to %v: the kit gives %#x, the table requires %#x", typ.name, tr.from, tr.to, got, tr.required)
			}
		}
	}
}

// Every legal pair of states has its row.
func TestEveryLegalPairHasARow(t *testing.T) {
	for _, typ := range types {
		rows := map[[2]verbs.QPState]int{}
		for _, tr := range transitions(typ.typ) {
			rows[[2]verbs.QPState{tr.from, tr.to}]++
		}
		for _, from := range starts {
			for _, to := range legal[from] {
				want := 1
				if to == verbs.QPSSQD {
					want = 0 // mlx5 refuses it
				}
				if n := rows[[2]verbs.QPState{from, to}]; n != want {
					t.Errorf("%s: %v to %v has %d rows, want %d", typ.name, from, to, n, want)
				}
			}
		}
	}
}
