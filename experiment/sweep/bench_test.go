package sweep

import (
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
)

// BenchmarkCachedPoint measures a run whose result is in the store: in a worker its address and a
// look into the store, in the supervisor the reading of its result.
func BenchmarkCachedPoint(b *testing.B) {
	sc, err := experiment.ParseScenario("q.yaml", []byte(question))
	if err != nil {
		b.Fatal(err)
	}
	p := &Plan{Name: "q.yaml", Scenario: []byte(question), Seeds: 1_000_000, Request: experiment.Request{Seed: 1}}
	r, err := p.prepare()
	if err != nil {
		b.Fatal(err)
	}
	st, err := store.Open(b.TempDir(), r.model)
	if err != nil {
		b.Fatal(err)
	}
	at, id, err := r.address(0)
	if err != nil {
		b.Fatal(err)
	}
	res, err := sc.Experiment().Execute(b.Context(), experiment.Request{Seed: 1}, nil)
	if err != nil {
		b.Fatal(err)
	}
	text, err := encode(res, id, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := st.Put(at, text); err != nil {
		b.Fatal(err)
	}
	a := &Answer{r: r, store: st}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"address", func() error { _, _, err := r.address(1); return err }},
		{"look", func() error { _, err := st.Has(at); return err }},
		{"read", func() error { _, err := a.load(at); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := c.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
