package profile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// file is a profile as it is written.
type file struct {
	Name    string `yaml:"name" required:"true"`
	Title   string `yaml:"title" required:"true"`
	Extends string `yaml:"extends"`
	Partial bool   `yaml:"partial"`
	// NotCalibrated says why the times are no evidence; a file that extends this one has the same.
	NotCalibrated string `yaml:"not_calibrated"`

	CPU      map[string]entry `yaml:"cpu"`
	PCIe     map[string]entry `yaml:"pcie"`
	HCA      map[string]entry `yaml:"hca"`
	UAR      map[string]entry `yaml:"uar"`
	Commands map[string]entry `yaml:"commands"`
	Congest  map[string]entry `yaml:"congestion"`
	ODP      map[string]entry `yaml:"odp"`
	Link     map[string]entry `yaml:"link"`
	IB       map[string]entry `yaml:"ib"`
	Switch   map[string]entry `yaml:"switch"`
	Kernel   map[string]entry `yaml:"kernel"`
	GPU      map[string]entry `yaml:"gpu"`
	Provider map[string]entry `yaml:"provider"`
}

type entry struct {
	Value  string `yaml:"value" required:"true"`
	Source string `yaml:"source" required:"true"`
	Reason string `yaml:"reason"`
	Check  string `yaml:"check"`
}

func (f *file) sections() map[string]map[string]entry {
	return map[string]map[string]entry{
		"cpu": f.CPU, "pcie": f.PCIe, "hca": f.HCA, "uar": f.UAR, "commands": f.Commands, "congestion": f.Congest, "odp": f.ODP,
		"link": f.Link, "ib": f.IB, "switch": f.Switch, "kernel": f.Kernel, "gpu": f.GPU, "provider": f.Provider,
	}
}

func stored() []string {
	entries, err := fixtures.Profiles.ReadDir("profiles")
	if err != nil {
		panic("profile: " + err.Error()) // embedded: it is there
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// read decodes a stored file.
func read(name string) (*input.Doc, *file, error) {
	path := "profiles/" + name + ".yaml"
	src, err := fixtures.Profiles.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("unknown profile %q%s; profiles are %s", name, input.Suggest(name, List()), strings.Join(List(), ", "))
	}
	f := new(file)
	doc, err := input.Decode(path, src, f)
	return doc, f, err
}

// partial is the line of a stored file that is only a part of others: List does not decode all
// files to find it.
var partial = regexp.MustCompile(`(?m)^partial: true$`)

// List is the names of the profiles that come with the program, sorted.
func List() []string {
	return slices.DeleteFunc(stored(), func(name string) bool {
		src, err := fixtures.Profiles.ReadFile("profiles/" + name + ".yaml")
		return err != nil || partial.Match(src)
	})
}
