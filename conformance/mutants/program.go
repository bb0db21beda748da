package mutants

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rdmasim/rdmasim/sim/rule"
)

// mutantsHint says what conform mutants needs.
const mutantsHint = `mutants need conform-mutants, which is not beside conform, in $CONFORM_MUTANTS or in PATH.
Build it in the sources:
  make build, or go build -tags mutants -o conform-mutants ./cmd/conform`

// module and mainPackage are where the worker is built from.
const (
	module      = "github.com/rdmasim/rdmasim"
	mainPackage = module + "/cmd/conform"
)

// Program returns the path of the program that can run mutants: this one if it was built with the
// tag mutants, else $CONFORM_MUTANTS, else conform-mutants beside this program or in PATH. If there
// is none and the working directory is in the module, it builds one in the user's cache and says so
// on stderr.
func Program(ctx context.Context, stderr io.Writer) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if rule.Mutants {
		return self, nil
	}
	if path := os.Getenv("CONFORM_MUTANTS"); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("$CONFORM_MUTANTS: %v", err)
		}
		return path, nil
	}
	if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), "conform-mutants")); err == nil {
		return beside, nil
	}
	if path, err := exec.LookPath("conform-mutants"); err == nil {
		return path, nil
	}
	return buildMutants(ctx, stderr)
}

// buildMutants builds the worker into the user's cache. It works in the module only.
func buildMutants(ctx context.Context, stderr io.Writer) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m").Output()
	if err != nil || strings.TrimSpace(string(out)) != module {
		return "", fmt.Errorf("%s", mutantsHint)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "rdmasim")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("%w\n%s", err, mutantsHint)
	}
	program := filepath.Join(dir, "conform-mutants")
	fmt.Fprintf(stderr, "conform: building %s with the tag mutants\n", program)
	build := exec.CommandContext(ctx, "go", "build", "-tags", "mutants", "-o", program, mainPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s\n%s", err, text, mutantsHint)
	}
	return program, nil
}
