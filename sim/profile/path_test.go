package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A name that ends in .yaml is the path of a user's file; any other is a stored profile.
func TestLoadOfAPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.yaml")
	const text = "name: own\ntitle: mine\nextends: connectx-5\nhca:\n  read_interval: {value: 20ns, source: measured here}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := p.Lookup("hca.read_interval"); p.Name != "own" || v.Text != "20ns" || v.Source != "measured here" {
		t.Errorf("%s: %+v", p.Name, v)
	}
	if v, _ := p.Lookup("hca.read_handling"); v.Source != Fitted {
		t.Errorf("a value of the base: %+v", v)
	}
	if _, err := Load(path + ".yaml"); err == nil || !strings.Contains(err.Error(), "own.yaml.yaml") {
		t.Errorf("no such file: %v", err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, "20ns", "20", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "own.yaml:5:") {
		t.Errorf("a bad value: %v", err)
	}
}
