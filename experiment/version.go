package experiment

import (
	"runtime/debug"
)

// release is the version of the program.
const release = "0.2.0"

// Version is the release, with the commit that the program was built from when the
// build recorded one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return release + "+" + s.Value[:12]
		}
	}
	return release
}

// Release is the version of the program without its commit.
func Release() string { return release }
