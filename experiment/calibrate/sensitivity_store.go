package calibrate

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/fixtures"
)

// SensitivityReport is the sensitivity of a result, with what the result was of.
type SensitivityReport struct {
	Name        string                  `json:"name"`
	Set         []string                `json:"set"` // settings that were asked for
	Version     string                  `json:"version"`
	Profile     string                  `json:"profile"`
	ProfileHash string                  `json:"profile_hash"`
	Seed        uint64                  `json:"seed"`
	Sensitivity *experiment.Sensitivity `json:"sensitivity"`
}

// SensitivityOf is the report of a result of the request.
func SensitivityOf(res *experiment.Result, req experiment.Request) *SensitivityReport {
	set := slices.Sorted(slices.Values(req.Set))
	if set == nil {
		set = []string{}
	}
	return &SensitivityReport{res.Name, set, res.Version, res.Profile, res.ProfileHash, res.Seed, res.Sensitivity}
}

// WriteJSON writes the report as programs read it, which is also how it is stored.
func (r *SensitivityReport) WriteJSON(w io.Writer) error { return table.WriteJSON(w, r) }

// Write prints it in the format table or json.
func (r *SensitivityReport) Write(w io.Writer, format string) error {
	if format != "table" {
		return table.WriteJSON(w, r)
	}
	if err := r.Sensitivity.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "rdmasim %s, profile %s (%s), seed %d\n", r.Version, r.Profile, r.ProfileHash, r.Seed)
	return err
}

// Current returns an error if the profile has changed since the report was made.
func (r *SensitivityReport) Current() error {
	if h, err := profileHash(r.Profile); err != nil || h != r.ProfileHash {
		return fmt.Errorf("the sensitivity of %s was found with other values of %s: run make sensitivity", strings.Join(append([]string{r.Name}, r.Set...), " "), r.Profile)
	}
	return nil
}

// StoredSensitivities are all that come with the program.
func StoredSensitivities() ([]*SensitivityReport, error) {
	names, err := fixtures.List("sensitivity")
	if err != nil {
		return nil, err
	}
	var all []*SensitivityReport
	for _, n := range names {
		src, err := fixtures.Read("sensitivity/" + n)
		if err != nil {
			return nil, err
		}
		r := &SensitivityReport{}
		if err := json.Unmarshal(src, r); err != nil || r.Sensitivity == nil {
			return nil, fmt.Errorf("sensitivity/%s: it is not the report of a sensitivity (%v)", n, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// StoredSensitivity is that of an experiment with these settings.
func StoredSensitivity(name string, set []string) (*SensitivityReport, error) {
	all, err := StoredSensitivities()
	if err != nil {
		return nil, err
	}
	var known []string
	for _, r := range all {
		if r.Name == name && slices.Equal(r.Set, slices.Sorted(slices.Values(set))) {
			return r, nil
		}
		line := r.Name
		for _, s := range r.Set {
			line += " --set " + s
		}
		known = append(known, line)
	}
	return nil, experiment.Usagef("no sensitivity is stored for these settings: drop --stored to compute it; the stored ones are %s", strings.Join(known, "; "))
}
