//go:build hw

package main

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// What a player prints reaches the terminal of the agent as text.
func TestErrorsOfPlayersAreText(t *testing.T) {
	var out bytes.Buffer
	player := withErrors(func() *exec.Cmd { return exec.Command("/bin/sh", "-c", `printf '\033[2Jx\n' >&2`) }, plain.NewWriter(&out))
	if err := player().Run(); err != nil || out.String() != "\\u001b[2Jx\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}
