package conformance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// A catalogue of one area, with %s for what a test changes.
const small = `
areas: [{area: RC, title: reliable connection}]
capabilities: [{capability: tap, about: frames can be seen}]
cases:
  - {id: RC-001, area: RC, text: first, needs: [tap, no tap], strength: E, sources: [], runs: {sim: yes, rxe: yes, mlx5: yes}}
`

const everywhere = "sim: yes, rxe: yes, mlx5: yes"

func TestCatalogueRefuses(t *testing.T) {
	row := func(id, area, needs, strength, runs string) string {
		return "  - {id: " + id + ", area: " + area + ", text: second, needs: [" + needs + "], strength: " + strength +
			", sources: [], runs: {" + runs + "}}\n"
	}
	tests := map[string]struct{ row, want string }{
		"nothing":       {row("RC-002", "RC", "tap", "H", "sim: extension, rxe: lacks, mlx5: no"), ""},
		"gap":           {row("RC-003", "RC", "", "E", everywhere), "RC-003: the next case of area RC must be RC-002"},
		"used again":    {row("RC-001", "RC", "", "E", everywhere), "RC-001: the next case of area RC must be RC-002"},
		"area":          {row("UC-001", "UC", "", "E", everywhere), `no area "UC"; a new one gets a line under areas`},
		"other's ID":    {row("UC-002", "RC", "", "E", everywhere), "must be RC-002"},
		"strength":      {row("RC-002", "RC", "", "X", everywhere), `strength is "X": want E, S or H`},
		"runs":          {row("RC-002", "RC", "", "E", "sim: yes, rxe: M, mlx5: yes"), `rxe is "M": want one of deviates, lacks, no, yes`},
		"runs left out": {row("RC-002", "RC", "", "E", "sim: yes, mlx5: yes"), `rxe is "": want one of`},
		"capability":    {row("RC-002", "RC", "tpa", "E", everywhere), `"tpa", which is not a capability (did you mean "tap"?); a new one gets a line`},
		"judges":        {strings.Replace(row("RC-002", "RC", "", "E", everywhere), "sources", "judges: responder, sources", 1), ""},
		"judges both":   {strings.Replace(row("RC-002", "RC", "", "E", everywhere), "sources", "judges: both, sources", 1), `judges is "both": want requester or responder`},
		"no capability": {row("RC-002", "RC", "no tpa", "E", everywhere), `"tpa", which is not a capability`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseCatalogue([]byte(small + tt.row))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("parseCatalogue returned %v, want %q", err, tt.want)
			}
		})
	}
}

// Numbers from 900 stay free: the catalogue takes 899 rows of an area and refuses the next, and
// files of others may speak of theirs.
func TestNumbersOfOtherSuites(t *testing.T) {
	var rows strings.Builder
	row := func(n int) string {
		return fmt.Sprintf("  - {id: RC-%03d, area: RC, text: t, needs: [], strength: E, sources: [], runs: {%s}}\n", n, everywhere)
	}
	for n := 2; n < reserved; n++ {
		rows.WriteString(row(n))
	}
	c, err := parseCatalogue([]byte(small + rows.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseCatalogue([]byte(small + rows.String() + row(reserved))); err == nil || !strings.Contains(err.Error(), "RC-900: numbers from 900 are reserved") {
		t.Errorf("row 900: %v", err)
	}
	for id, want := range map[string]bool{"RC-001": true, "RC-899": true, "RC-900": true, "RC-901": true, "NIC-999": true, "V2-950": true,
		"NIC-001": false, "RC-1000": false, "RC-90": false, "RC-9": false, "-900": false, "RC-901x": false, "rc-901": false} {
		if c.knows(id) != want {
			t.Errorf("%s: %v", id, !want)
		}
	}
	item := func(id, area, text string) Item { return Item{Entry: Entry{ID: id, Area: area, Text: text}} }
	for _, tt := range []struct {
		items []Item
		want  string
	}{
		{[]Item{item("RC-001", "RC", "first"), item("RC-901", "RC", "own"), item("NIC-1", "NIC", "own")}, ""},
		{[]Item{item("RC-901", "RC", "own"), item("RC-901", "RC", "own")}, "case RC-901 is given twice"},
		{[]Item{item("RC-001", "RC", "own")}, "RC-001 is a case of the catalogue: numbers from 900 are yours, such as RC-900"},
		{[]Item{item("RC-1000", "RC", "own")}, "RC-1000 may become a case of the catalogue"},
	} {
		if err := c.checkOwn(tt.items); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.items, err, tt.want)
		}
	}
}

func TestBuiltInCatalogue(t *testing.T) {
	if _, err := LoadCatalogue(); err != nil {
		t.Error(err)
	}
}

// Another process that adopts the packed catalogue has the same; one of another program reads its
// own.
func TestPackedCatalogue(t *testing.T) {
	text, err := Pack()
	if err != nil {
		t.Fatal(err)
	}
	own, _ := LoadCatalogue()
	adopt := func(text []byte) *Catalogue {
		t.Helper()
		builtIn.once, builtIn.c = sync.Once{}, nil
		if err := Adopt(text); err != nil {
			t.Fatal(err)
		}
		return builtIn.c
	}
	defer func() { builtIn.once, builtIn.c = sync.Once{}, nil }()
	if got := adopt(text); !reflect.DeepEqual(got, own) {
		t.Error("what was packed is another catalogue")
	}
	var p Packed
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	p.Of[0]++
	other, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if adopt(other) != nil {
		t.Error("the catalogue of another program was adopted")
	}
	if c, err := LoadCatalogue(); err != nil || !reflect.DeepEqual(c, own) {
		t.Errorf("then LoadCatalogue returned %v", err)
	}
	if Adopt([]byte("x")) == nil {
		t.Error("text that is no JSON was adopted")
	}
}
