package main

import "testing"

// Each row of the catalogue is a case, or says what it waits for.
func TestEveryRowIsSomewhere(t *testing.T) {
	cat, done, err := suiteItems()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range cat.Cases {
		_, has := done[e.ID]
		switch {
		case !has && cat.Waits(e) == "":
			t.Errorf("%s has no code: write it, or say in catalogue.yaml what it waits for", e.ID)
		case has && e.Waits != "":
			t.Errorf("%s has code: remove what it waits for from catalogue.yaml", e.ID)
		}
	}
}
