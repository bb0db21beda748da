//go:build linux

package rlimit

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test binary is the program that has limits.
func TestMain(m *testing.M) {
	if os.Getenv("RLIMIT_TEST") == "" {
		os.Exit(m.Run())
	}
	if err := Check(); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	fmt.Println("enough")
}

func TestCheck(t *testing.T) {
	for limit, want := range map[string]string{
		"ulimit -v 1400000":    "the address space is limited to 1367 MiB, and at least 1536 are needed: raise the limit (ulimit -v)",
		"ulimit -S -v 1400000": "enough", // it can be raised
		"ulimit -n 40":         "40 files may be open at a time, and at least 64 are needed: raise the limit (ulimit -n)",
		"ulimit -S -n 40":      "enough",
		":":                    "enough",
	} {
		cmd := exec.Command("/bin/sh", "-c", limit+`; exec "$0"`, os.Args[0])
		cmd.Env = append(os.Environ(), "RLIMIT_TEST=1")
		out, _ := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("%s: %q, want %q", limit, got, want)
		}
	}
}
