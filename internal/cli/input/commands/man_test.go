package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A page has the text of the help, and what roff would read as its own stands in it as text.
func TestManualPage(t *testing.T) {
	root := &cobra.Command{Use: "p", Short: "A program", Version: "1.2+abc", Long: "First line\n.dots and \\slashes\n\n  kept as it is\nlast"}
	sub := &cobra.Command{Use: "sub [FILE]", Short: "Do it", Example: "  p sub -x", Run: func(*cobra.Command, []string) {}}
	sub.Flags().IntP("count", "n", 3, "number of `TIMES`")
	sub.Flags().Bool("secret", false, "not shown")
	_ = sub.Flags().MarkHidden("secret")
	root.AddCommand(sub, ManCommand())
	page := string(Man(root))
	for _, want := range []string{".TH \"P\" 1 \"\" \"p 1.2\" \"p manual\"\n", "\\&.dots and \\eslashes\n.PP\n.nf\n  kept as it is\n.fi\nlast\n", ".B sub\nDo it\n", ".BR p\\-sub (1)\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in:\n%s", want, page)
		}
	}
	page = string(Man(sub))
	for _, want := range []string{".B \\-n, \\-\\-count TIMES\nnumber of TIMES (default 3)\n", ".nf\n  p sub \\-x\n.fi\n", ".BR p (1)\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in:\n%s", want, page)
		}
	}
	if strings.Contains(page, "secret") {
		t.Error("a hidden flag is shown")
	}
	dir := filepath.Join(t.TempDir(), "man1")
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 || filepath.Base(files[0]) != "p-completion.1" || filepath.Base(files[1]) != "p-sub.1" || filepath.Base(files[2]) != "p.1" {
		t.Fatalf("%q, %v", files, err)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed, so that no page is formatted")
	}
	for _, f := range files {
		if out, err := exec.Command(groff, "-man", "-ww", "-z", f).CombinedOutput(); err != nil || len(out) > 0 {
			text, _ := os.ReadFile(f)
			t.Errorf("%v\n%s\n%s", err, out, text)
		}
	}
}
