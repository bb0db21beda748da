package profile

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Assign is Set of an assignment: "pcie.read_latency=450ns".
func (p *Profile) Assign(assignment string) error {
	key, text, ok := strings.Cut(assignment, "=")
	if !ok {
		return fmt.Errorf("%q is not key=value", assignment)
	}
	return p.Set(strings.TrimSpace(key), strings.TrimSpace(text))
}

// Set overrides the value of key by its text. An unknown key is answered with the
// nearest. The units' own checks are made by Validate, after all overrides.
func (p *Profile) Set(key, text string) error {
	q, ok := p.param(key)
	if !ok {
		return fmt.Errorf("unknown parameter %q%s", key, input.Suggest(key, p.Keys()))
	}
	if err := q.set(text); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	p.origins[key] = origin{source: Override, hypothesis: p.origins[key].hypothesis}
	return nil
}
