package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/sim/profile"
)

// profile show has a row for each attribute of a card's dump, with the value of the profile that it
// is from and that value's source.
func TestShowOfAttributes(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/attributes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := showAttributes(&b, p); err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^  (\w+): "`).FindAllStringSubmatch(string(src), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + ` +\S.* \S`).MatchString(b.String()) {
				t.Errorf("%s: no row for %s in\n%s", name, m[1], b.String())
			}
		}
	}
}

// A value that was changed shows in its attribute, and so does where it is from.
func TestShownAttributeFollowsItsValue(t *testing.T) {
	p, err := profile.Load("connectx-6")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Set("hca.log_max_qp", "10"); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := showAttributes(&b, p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`max_qp +1024 +2\^log_max_qp; hca.log_max_qp \(override\)`, `max_res_rd_atom +16384 `, `num_comp_vectors +63 `,
		`max_mcast_qp_attach +240 .*ibv_devinfo`} {
		if !regexp.MustCompile(`(?m)^` + want).MatchString(b.String()) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Each output with a rate of a profile that is not calibrated says so; others do not.
func TestNotCalibratedTiming(t *testing.T) {
	for _, name := range []string{"connectx-7", "connectx-6dx"} {
		for _, args := range [][]string{
			{"run", "bfreg-map", "--profile", name},
			{"run", "bfreg-map", "--profile", name, "--format", "json"},
			{"perf", "ib_write_lat", "--profile", name, "-n", "5"},
			{"profile", "show", name},
		} {
			var out, stderr bytes.Buffer
			if code := program.Execute(t.Context(), args, &out, &stderr); code != 0 {
				t.Fatalf("%v: exit %d\n%s%s", args, code, &out, &stderr)
			}
			if got := strings.Contains(out.String()+stderr.String(), profile.TimingNotCalibrated); got != (name == "connectx-7") {
				t.Errorf("%v: %q in the output: %v\n%s%s", args, profile.TimingNotCalibrated, got, &out, &stderr)
			}
		}
	}
}
