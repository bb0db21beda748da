package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// profileKey is the entry of a record's environment that names the file of a profile without its
// folder, and the hash of its text.
const profileKey = "profile_file"

// simProfile is what --profile chooses: a stored profile by its name, or a user's by its file.
type simProfile struct {
	given string // as the command line has it
	name  string // of the profile
	text  string // of a file, which is read once: workers get this
}

// readProfile reads what --profile names. Its errors name file, line and column.
func readProfile(ctx context.Context, given string) (simProfile, error) {
	if !profile.IsFile(given) {
		if known := profile.List(); !slices.Contains(known, given) {
			return simProfile{}, usagef("unknown profile %q%s; profiles are %s, or the path of a file that ends in .yaml", given, input.Suggest(given, known),
				strings.Join(known, ", "))
		}
		return simProfile{given: given, name: given}, nil
	}
	text, err := input.ReadFile(ctx, given)
	if err != nil {
		return simProfile{}, &status{exitUsage, err}
	}
	p, err := profile.Parse(given, text)
	if err != nil {
		return simProfile{}, &status{exitUsage, err}
	}
	return simProfile{given: given, name: p.Name, text: string(text)}, nil
}

const profileHelp = "profile of the simulated device: a name from rdmasim profile list, or the path of your own file, which ends in .yaml"

// path is that of the file; empty: the profile is a stored one.
func (p simProfile) path() string {
	if p.text == "" {
		return ""
	}
	return p.given
}

// file is the name of the file, and what identifies its text; empty: the profile is a stored one.
func (p simProfile) file() string {
	if p.text == "" {
		return ""
	}
	return filepath.Base(p.given) + ", " + report.Digest([]byte(p.text))
}

// identity tells profiles apart, also files in which a profile has the same name.
func (p simProfile) identity() string {
	if p.text == "" {
		return p.name
	}
	return p.name + " of " + p.file()
}

// fileName is the name in an entry of a record's environment that has the hash of a file after it.
func fileName(entry string) string { return entry[:max(strings.LastIndex(entry, ", "), 0)] }
