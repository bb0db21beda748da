package main

import (
	"os"
	osexec "os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

// The program of exec knows the command of its session, whatever its own words look like; a session
// within another is that one.
func TestExecTellsItsCommand(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs Linux on x86-64, for exec")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own := commands.Quoted(self)
	t.Setenv(commands.SessionVariable, "of somebody else")
	print := []string{"printenv", commands.SessionVariable}
	for want, args := range map[string][]string{
		"exec --devices 2 --":  append([]string{"exec", "--devices", "2", "env", "X=1"}, print...),
		"exec --uar static --": {"exec", "--uar", "static", "sh", "-c", strings.Join(print, " "), "--", "hello"},
		"exec --seed 7 --":     append([]string{"exec", "--seed", "7", "--", self, mainArg, "exec", "--seed", "8", "--"}, print...),
	} {
		out, err := osexec.Command(self, append([]string{mainArg}, args...)...).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != own+" "+want {
			t.Errorf("%q: %v, %q, want %q", args, err, got, own+" "+want)
		}
	}
}
