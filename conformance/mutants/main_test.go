package mutants

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("CONFORM_TEST_MUTANTS") != "" {
		os.Exit(workOnTestMutants())
	}
	os.Exit(m.Run())
}
