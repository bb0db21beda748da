package input

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

type sampleJSON struct {
	Name string         `json:"name"`
	Seed uint64         `json:"seed"`
	Sums map[string]int `json:"sums"`
	Rows []struct {
		ID  string `json:"id"`
		On  bool   `json:"on"`
		Got any    `json:"got"`
	} `json:"rows"`
}

func TestJSONErrorsSayWhereAndWhat(t *testing.T) {
	for text, want := range map[string]string{
		"": "it is empty",
		"{\"name\": \"x\",\n \"rows\": [{\"id\": 3}]}": "line 2, column 18: rows.id is a number, and a string is needed",
		`{"seed": -1}`:             "seed is -1, and a whole number from 0 is needed",
		`{"seed": 1.5}`:            "seed is 1.5, and a whole number from 0 is needed",
		`{"seed": "1"}`:            "seed is a string, and a whole number from 0 is needed",
		`{"rows": {}}`:             "rows is an object, and a list is needed",
		`{"rows": [{"on": "no"}]}`: "rows.on is a string, and true or false is needed",
		`{"sums": []}`:             "sums is a list, and an object is needed",
		`[]`:                       "it is a list, and an object is needed",
		`{"name" 3}`:               "line 1, column 9: it is not JSON",
		`{"name": "x"} {}`:         "line 1, column 14: something follows the end",
		`{"name": "seed", "seed": 1, "rows": [], "seed": 2}`:               `line 1, column 46: this key appears twice in one object: "seed"`,
		"{\"rows\": [{\"id\": \"a\"},\n{\"got\": {\"x\": [], \"x\": 3}}]}": `line 2, column 21: this key appears twice in one object: "x"`,
	} {
		if err := JSON([]byte(text), &sampleJSON{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	var s sampleJSON
	if err := JSON([]byte(`{"name": "name", "sums": {"name": 1, "x": 2}, "rows": [{"id": "id"}, {"id": "id", "got": {"id": {"id": ["id", "id"]}}}]}`), &s); err != nil {
		t.Errorf("keys that are there once in each object: %v", err)
	}
	s = sampleJSON{}
	if err := JSON([]byte(`{"rows": [{"got": 18446744073709551615}]} `), &s); err != nil || s.Rows[0].Got != json.Number("18446744073709551615") {
		t.Errorf("%v, %v", s, err)
	}
}

// A text that is cut anywhere says so.
func TestJSONThatIsCut(t *testing.T) {
	const text = `{"name": "x", "seed": 12, "rows": [{"id": "a", "on": true, "got": null}]}`
	for n := 1; n < len(text); n++ {
		if err := JSON([]byte(text[:n]), &sampleJSON{}); err == nil || !strings.Contains(err.Error(), "it ends in the middle, after") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// JSON takes what package json takes as a whole text, but for a key that is there twice, and
// nothing else.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"name": "x", "seed": 12, "rows": [{"id": "a"}]}`))
	f.Add([]byte("{\"rows\":\n[3"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, want := JSON(text, &sampleJSON{}), json.Unmarshal(text, &sampleJSON{})
		if (got == nil) != (want == nil) && !errors.Is(got, errKeyTwice) {
			t.Errorf("%v, package json: %v", got, want)
		}
	})
}
