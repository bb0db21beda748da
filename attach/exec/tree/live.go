//go:build linux && amd64

package tree

import (
	"fmt"
	"os"
	"path/filepath"
)

// changingNames are the files and folders of a port whose contents change with its link and its
// subnet.
var changingNames = []string{"state", "phys_state", "lid", "sm_lid", "gids", "pkeys"}

// portFile is a file of a port with its line.
type portFile struct{ name, line string }

// changing are the files of changingNames.
func (p *Port) changing() []portFile {
	l := []portFile{
		{"state", p.State}, {"phys_state", p.PhysState}, {"lid", fmt.Sprintf("%#x", p.LID)}, {"sm_lid", fmt.Sprintf("%#x", p.SMLID)},
	}
	for i := range p.GIDs {
		l = append(l, portFile{fmt.Sprintf("gids/%d", i), p.GIDs[i].String()})
	}
	for i, k := range p.PKeys {
		l = append(l, portFile{fmt.Sprintf("pkeys/%d", i), fmt.Sprintf("0x%04x", k)})
	}
	return l
}

// WriteLive writes those of the port's changing files in p.Live that differ from what was there
// before (nil: none is there yet). A reader finds each with its old or with its new line.
func (p *Port) WriteLive(was *Port) error {
	old := map[string]string{}
	if was != nil {
		for _, f := range was.changing() {
			old[f.name] = f.line
		}
	} else {
		for _, folder := range []string{"gids", "pkeys"} {
			if err := os.MkdirAll(filepath.Join(p.Live, folder), 0o755); err != nil { //nolint:gosec // programs of other users look into it
				return err
			}
		}
	}
	var b builder
	for _, f := range p.changing() {
		if line, ok := old[f.name]; ok && line == f.line {
			continue
		}
		path := filepath.Join(p.Live, f.name)
		at := path
		if was != nil {
			at += ".new"
		}
		if b.write(at, f.line+"\n"); b.err != nil {
			return b.err
		}
		if was == nil {
			continue
		}
		if err := os.Rename(at, path); err != nil {
			return err
		}
	}
	return nil
}
