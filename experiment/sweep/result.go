package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/sweep/store"
	"github.com/rdmasim/rdmasim/experiment/table"
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

	rows []table.Row
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

// known reports whether the store has the result of an address, and can be read as one: what
// cannot, whoever put it there, counts as missing.
func known(st *store.Store, at store.Address) (bool, error) {
	text, err := st.Get(at)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = decode(text)
	return err == nil, nil
}

// decode reads a result. The error of one that is none is fs.ErrNotExist.
func decode(text []byte) (*result, error) {
	r, err := decodeRows(text)
	if err == nil && (r.Name == "" || r.Profile == "") {
		err = errors.New("it lacks an experiment or a profile")
	}
	if err != nil {
		return nil, fmt.Errorf("it is not a result, and counts as missing (%w): %w", err, fs.ErrNotExist)
	}
	return r, nil
}

func decodeRows(text []byte) (*result, error) {
	r := &result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	for _, t := range r.Rows {
		row, err := table.DecodeRow(t)
		if err != nil {
			return nil, err
		}
		r.rows = append(r.rows, row)
	}
	r.Rows = nil
	return r, nil
}
