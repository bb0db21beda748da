package conformance

import (
	"strings"
	"testing"
)

func TestLedgerMistakes(t *testing.T) {
	const entry = "- {id: %, profiles: [p], evidence: e, predicts: [{case: DEV-006, step: s, got: EIO}]}\n"
	two := strings.ReplaceAll(entry, "%", "A") + strings.ReplaceAll(entry, "%", "B")
	for text, want := range map[string]string{
		"deviations:\n" + two: "A and B both predict DEV-006: s",
		"deviations: [{id: A, profiles: [p], evidence: e, predicts: [{case: DEV-899, step: s, got: EIO}]}]": `case "DEV-899" is unknown`,
		"deviations: [{id: A, profiles: [p], predicts: [{case: DEV-006, step: s, got: EIO}]}]":              "needs an ID, evidence",
		"deviations: [{id: A, skips: true}]": "skips",
	} {
		if _, err := parseLedger([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
