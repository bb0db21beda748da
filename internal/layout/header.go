package layout

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrMissing is wrapped when there is no C compiler or no such header.
var ErrMissing = errors.New("not installed")

// Header is C headers that gcc can be asked about.
type Header struct {
	Folders []string // where headers are, besides the usual places
	Before  string   // lines before the headers
	Files   []string
}

// Values are integer constant expressions of C, as gcc computes them with the headers.
func (h Header) Values(exprs []string) ([]uint64, error) {
	var b strings.Builder
	b.WriteString("int main(void) {\n")
	for _, e := range exprs {
		fmt.Fprintf(&b, "printf(\"%%llu\\n\", (unsigned long long)(%s));\n", e)
	}
	b.WriteString("return 0; }\n")
	out, err := h.Run(b.String())
	if err != nil {
		return nil, err
	}
	values := make([]uint64, 0, len(exprs))
	for line := range strings.Lines(out) {
		v, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	if len(values) != len(exprs) {
		return nil, fmt.Errorf("%d values of %d expressions", len(values), len(exprs))
	}
	return values, nil
}

// Measure gives the same members with the places that they have in the headers.
func (h Header) Measure(members []Member) ([]Member, error) {
	exprs := make([]string, 0, 2*len(members))
	for _, m := range members {
		switch {
		case m.Name == "":
			exprs = append(exprs, "0", "sizeof(struct "+m.Struct+")")
		case m.Width == 0:
			exprs = append(exprs, "offsetof(struct "+m.Struct+", "+m.Name+")", "0")
		default:
			exprs = append(exprs, "offsetof(struct "+m.Struct+", "+m.Name+")", "sizeof(((struct "+m.Struct+" *)0)->"+m.Name+")")
		}
	}
	values, err := h.Values(exprs)
	if err != nil {
		return nil, err
	}
	measured := make([]Member, len(members))
	for i, m := range members {
		measured[i] = Member{m.Struct, m.Name, int(values[2*i]), int(values[2*i+1])}
	}
	return measured, nil
}

// Run compiles a program behind the includes, runs it, and gives what it prints.
func (h Header) Run(program string) (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", fmt.Errorf("gcc is %w", ErrMissing)
	}
	dir, err := os.MkdirTemp("", "header")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	src, bin := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	text := "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n" + h.Before
	args := []string{"-w", "-o", bin, src}
	for _, folder := range h.Folders {
		args = append(args, "-I", folder)
	}
	for _, f := range h.Files {
		text += "#if !__has_include(<" + f + ">)\n#error missing " + f + "\n#else\n#include <" + f + ">\n#endif\n"
	}
	if err := os.WriteFile(src, []byte(text+program), 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		for _, f := range h.Files {
			if strings.Contains(string(out), "#error missing "+f) {
				return "", fmt.Errorf("%s is %w", f, ErrMissing)
			}
		}
		return "", fmt.Errorf("gcc: %w\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	return string(out), err
}
