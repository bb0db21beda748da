package report_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
)

func TestReadFile(t *testing.T) {
	var plain, packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := errors.Join(sample().WriteJSON(&plain), sample().WriteJSON(zip), zip.Close()); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		text []byte
		want string // in the error
	}{
		"plain":      {plain.Bytes(), ""},
		"packed":     {packed.Bytes(), ""},
		"cut":        {plain.Bytes()[:plain.Len()/2], "is not the record of a run"},
		"cut packed": {packed.Bytes()[:packed.Len()/2], "it ends in the middle"},
		"empty":      {nil, "is not the record of a run: it is empty"},
		"wrong type": {[]byte("{\"schema\": \"" + report.Schema + "\",\n\"seed\": \"1\"}"), "is not the record of a run: line 2, column 11: seed is a string"},
		"no id":      {[]byte(`{"schema": "` + report.Schema + `", "cases": [{"outcome": "pass"}]}`), "case 1 has no id"},
		"other":      {[]byte(`{"schema":"x/1"}`), `schema "x/1"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.json")
			if err := os.WriteFile(path, tt.text, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := report.ReadFile(t.Context(), path)
			if tt.want == "" && (err != nil || len(r.Cases) != 4) {
				t.Errorf("%v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRecordWithAnIDTwiceIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "twice.json")
	text := `{"schema":"` + report.Schema + `","cases":[{"id":"RC-001","outcome":"pass"},{"id":"RC-002","outcome":"pass"},{"id":"RC-001","outcome":"pass"}]}`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := report.ReadFile(t.Context(), name); err == nil || !strings.Contains(err.Error(), name+": RC-001 appears twice, as case 1 and as case 3") {
		t.Errorf("error %v", err)
	}
}

// An outcome that nobody knows would pass for a good one.
func TestRecordWithAnUnknownOutcomeIsRefused(t *testing.T) {
	for _, outcome := range []string{"", "sparkling"} {
		name := filepath.Join(t.TempDir(), "odd.json")
		text := `{"schema":"` + report.Schema + `","cases":[{"id":"RC-001","outcome":"pass"},{"id":"RC-002","outcome":"` + outcome + `"}]}`
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := report.ReadFile(t.Context(), name); err == nil || !strings.Contains(err.Error(), `case 2, "RC-002", has the outcome "`+outcome+`", which is not one of`) {
			t.Errorf("error %v", err)
		}
	}
}
