//go:build hw

package mlx5

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The folder of a testbed whose process was killed is removed by the next one of the same user.
func TestFolderOfAKilledProcess(t *testing.T) {
	if os.Getenv("FOLDER_OF_A_KILLED_PROCESS") != "" {
		if _, err := (&Testbed{}).files(); err != nil {
			t.Fatal(err)
		}
		_ = os.Stdout.Close()
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestFolderOfAKilledProcess$")
	cmd.Env = append(os.Environ(), "FOLDER_OF_A_KILLED_PROCESS=yes")
	if err := cmd.Run(); err == nil {
		t.Fatal("it was not killed")
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 1 {
		t.Fatalf("it left %v", left)
	}
	tb := &Testbed{}
	own, err := tb.files()
	if err != nil {
		t.Fatal(err)
	}
	if all, _ := filepath.Glob(filepath.Join(dir, "*")); len(all) != 1 || all[0] != own {
		t.Errorf("with %s, there are %v", own, all)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	if all, _ := filepath.Glob(filepath.Join(dir, "*")); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}
