package profile

import "fmt"

// GivenBy is the name of the stored profile that gives the value of key: the profile itself, or one
// that it extends. It is empty for an override, for a key that there is not, and for a value of a
// user's own file.
func (p *Profile) GivenBy(key string) string {
	o, ok := p.origins[key]
	if !ok || o.doc == nil {
		return ""
	}
	var name string
	if n, err := fmt.Sscanf(o.doc.File, "profiles/%s", &name); n != 1 || err != nil {
		return ""
	}
	return name[:max(0, len(name)-len(".yaml"))]
}

// Refit gives key another value where the stored profile of that name gives it, as a change of that
// file would: a profile that has a value of its own keeps it. It reports whether the value changed
// hands.
func (p *Profile) Refit(file, key, text string) (bool, error) {
	q, ok := p.param(key)
	if !ok {
		return false, fmt.Errorf("unknown parameter %q", key)
	}
	if p.GivenBy(key) != file {
		return false, nil
	}
	if err := q.set(text); err != nil {
		return false, fmt.Errorf("%s: %w", key, err)
	}
	return true, nil
}
