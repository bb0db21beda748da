package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const verbs = "../.."

// The file in package verbs is what its interfaces give.
func TestUpToDate(t *testing.T) {
	src, err := os.ReadFile(filepath.Join(verbs, "unimplemented.go"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^//go:generate go run ./internal/genunimplemented (.*)$`).FindSubmatch(src)
	if line == nil {
		t.Fatal("unimplemented.go has no line go:generate")
	}
	want, err := generate(verbs, strings.Fields(string(line[1])))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(verbs, output))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("run go generate ./verbs: %s is not what the interfaces give, %v", output, err)
	}
}

func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	text := "package verbs\n\nimport \"time\"\n\ntype T interface {\n\tA()\n\tB(x, y int, f func(T)) (int, error)\n\tC(time.Duration) (a, b uint32)\n\tD() error\n}\n\ntype U interface{ T }\n"
	if err := os.WriteFile(filepath.Join(dir, "v.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := generate(dir, []string{"T"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"import \"time\"\n",
		"// UnimplementedT implements T.\ntype UnimplementedT struct{}\n",
		"func (UnimplementedT) A()                                      {}\n",
		"B(x, y int, f func(T)) (r0 int, _ error) { return r0, unimplemented(\"T.B\") }\n",
		"C(time.Duration) (r0 uint32, r1 uint32)",
		"{ return r0, r1 }\n",
		"{ return unimplemented(\"T.D\") }\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("there is no\n%s\nin\n%s", want, got)
		}
	}
	for _, name := range []string{"U", "V"} {
		if _, err := generate(dir, []string{name}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
