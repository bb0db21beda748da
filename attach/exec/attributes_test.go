//go:build linux && amd64

package exec

import (
	"bufio"
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// card is a file of fixtures/attributes: what ibv_devinfo printed on a card.
type card struct {
	Profile    string
	Attributes map[string]string
}

var cardLine = regexp.MustCompile(`(?m)^  (\w+): "([^"]*)"$`)

// parseCard reads a file of fixtures/attributes, whose attributes are one a line.
func parseCard(text string) (c card) {
	c.Attributes = map[string]string{}
	for _, m := range cardLine.FindAllStringSubmatch(text, -1) {
		c.Attributes[m[1]] = m[2]
	}
	if m := regexp.MustCompile(`(?m)^profile: (\S+)$`).FindStringSubmatch(text); m != nil {
		c.Profile = m[1]
	}
	return c
}

// Each attribute is the one of the card, or docs/fidelity.md lists what it is here, with a reason.
// What it lists differs.
func TestAttributesOfCards(t *testing.T) {
	needs(t, "ibv_devinfo")
	files, err := filepath.Glob("../../fixtures/attributes/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	listed := listedAttributes(t)
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := parseCard(string(src))
		if c.Profile == "" || len(c.Attributes) < 40 {
			t.Fatalf("%s: profile %q with %d attributes", file, c.Profile, len(c.Attributes))
		}
		out, status := users()[0].session(t, "-profile", c.Profile, "--", "ibv_devinfo", "-vv")
		if status != 0 {
			t.Fatalf("%s: status %d:\n%s", c.Profile, status, out)
		}
		for _, problem := range compareAttributes(&c, devinfo(out), listed[c.Profile]) {
			t.Errorf("%s: %s", c.Profile, problem)
		}
		delete(listed, c.Profile)
	}
	if len(listed) > 0 {
		t.Errorf("docs/fidelity.md lists attributes of %v, of which fixtures/attributes has no file", slices.Sorted(maps.Keys(listed)))
	}
}

// The comparison finds a difference that is not listed, one that is listed and is none, and a
// listed value that is not ours.
func TestComparisonOfAttributes(t *testing.T) {
	c := card{Attributes: map[string]string{"max_qp": "8", "max_pd": "4", "device_cap_flags": "XRC A B"}}
	ours := map[string]string{"max_qp": "8", "max_pd": "5", "device_cap_flags": "XRC"}
	for _, x := range []struct {
		listed map[string]string
		want   int
	}{
		{map[string]string{"max_pd": "5", "device_cap_flags": "without A B"}, 0},
		{map[string]string{"device_cap_flags": "without A B"}, 1},
		{map[string]string{"max_pd": "5", "device_cap_flags": "without A B", "max_qp": "8"}, 1},
		{map[string]string{"max_pd": "6", "device_cap_flags": "without A"}, 2},
		{map[string]string{"max_pd": "5", "device_cap_flags": "without A B", "max_cq": "1"}, 1},
	} {
		if got := compareAttributes(&c, ours, x.listed); len(got) != x.want {
			t.Errorf("listed %v: %q, want %d problems", x.listed, got, x.want)
		}
	}
}

// compareAttributes says what is wrong with the list of differences between a card and us.
func compareAttributes(c *card, ours, listed map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		want, is := c.Attributes[name], ours[name]
		different, isListed := listed[name]
		if rest, ok := strings.CutPrefix(different, "without "); ok {
			less := strings.Fields(rest)
			kept := slices.DeleteFunc(strings.Fields(want), func(f string) bool { return slices.Contains(less, f) })
			if different = cmp.Or(strings.Join(kept, " "), "none"); len(strings.Fields(want)) != len(kept)+len(less) {
				problems = append(problems, name+": docs/fidelity.md takes away a flag that the card does not have: "+rest)
				continue
			}
		}
		switch {
		case isListed && want == is:
			problems = append(problems, name+" is "+is+", as on the card: take it out of docs/fidelity.md")
		case !isListed && want != is:
			problems = append(problems, name+" is "+is+", on the card "+want+": docs/fidelity.md does not list it")
		case isListed && different != is:
			problems = append(problems, name+" is "+is+", and docs/fidelity.md says "+different)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if _, ok := c.Attributes[name]; !ok {
			problems = append(problems, name+": docs/fidelity.md lists it, and the card's file does not")
		}
	}
	return problems
}

var attributeRow = regexp.MustCompile("^\\| (connectx-[a-z0-9, -]+) \\| `([a-z0-9_]+)` \\| `([^`]+)` \\| .+ \\|$")

// listedAttributes are the rows of the table in docs/fidelity.md: what an attribute is here, by
// profile and name.
func listedAttributes(t *testing.T) map[string]map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]map[string]string{}
	for line := range strings.Lines(string(page)) {
		if m := attributeRow.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			for profile := range strings.SplitSeq(m[1], ", ") {
				if listed[profile] == nil {
					listed[profile] = map[string]string{}
				}
				listed[profile][m[2]] = m[3]
			}
		}
	}
	if len(listed) == 0 {
		t.Fatal("docs/fidelity.md has no table of attributes")
	}
	return listed
}

// devinfoNames are the names of ibv_devinfo that are no single words.
var devinfoNames = map[string]string{
	"completion timestamp_mask": "completion_timestamp_mask", "raw packet caps": "raw_packet_caps", "maximum available device memory": "device_memory",
}

// flagLists are followed by a line for each flag. Of those in the first list a number precedes the
// flags.
var flagLists = map[string]string{
	"device_cap_flags": " ", "device_cap_flags_ex": " ",
	"general_odp_caps": " ", "rc_odp_caps": " ", "uc_odp_caps": " ", "ud_odp_caps": " ", "xrc_odp_caps": " ", "raw_packet_caps": ", ",
}

// devinfo is what ibv_devinfo -vv printed, in the form of a card's file.
func devinfo(out string) map[string]string {
	all := map[string]string{"device_cap_flags": "none", "device_cap_flags_ex": "none", "raw_packet_caps": "none"}
	list := ""
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		name, value, ok := strings.Cut(line, ":")
		if line == "tag matching not supported" {
			all["tag_matching"] = "not supported"
		}
		if !ok {
			if between := flagLists[list]; line != "" && between != "" {
				if all[list] == "" || all[list] == "none" {
					between, all[list] = "", ""
				}
				all[list] += between + line
			}
			continue
		}
		name = cmp.Or(devinfoNames[name], name)
		list = name
		if _, seen := all[name]; !seen && flagLists[name] == "" {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all
}
