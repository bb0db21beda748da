package sweep

import (
	"encoding/json"
	"slices"

	"github.com/rdmasim/rdmasim/experiment"
)

// result is what the store keeps of a run.
type result struct {
	// Command runs it again. Other settings may mean the same run.
	Command     []string                `json:"command"`
	Name        string                  `json:"name"`
	Version     string                  `json:"version"`
	Profile     string                  `json:"profile"`
	ProfileHash string                  `json:"profile_hash"`
	Seed        uint64                  `json:"seed"`
	Hypotheses  []string                `json:"hypotheses"`
	Notes       []string                `json:"notes"`
	Faults      []experiment.FaultCount `json:"faults,omitempty"`
	Rows        []json.RawMessage       `json:"rows"`

	rows []experiment.Row
}

// encode is a finished run as the store keeps it.
func encode(res *experiment.Result, id *experiment.Identity, command []string) ([]byte, error) {
	r := result{Command: command, Name: res.Name, Version: res.Version, Profile: id.Profile, ProfileHash: id.ProfileHash, Seed: res.Seed,
		Hypotheses: res.Hypotheses, Faults: res.Faults, Notes: []string{}, Rows: []json.RawMessage{}}
	for _, n := range res.Notes {
		if !slices.ContainsFunc(res.Faults, func(f experiment.FaultCount) bool { return f.String() == n }) {
			r.Notes = append(r.Notes, n)
		}
	}
	for i := range res.Rows {
		row, err := res.Rows[i].Exact()
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
	}
	return json.Marshal(&r)
}

func decode(text []byte) (*result, error) {
	r := &result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	for _, t := range r.Rows {
		row, err := experiment.DecodeRow(t)
		if err != nil {
			return nil, err
		}
		r.rows = append(r.rows, row)
	}
	r.Rows = nil
	return r, nil
}
