package experiment

import (
	"runtime/debug"
)

// release is the version of the program.
const release = "0.2.0"

// Version returns the release and, if the build recorded it, the commit from which the program was
// built.
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

// Release returns the version of the program without its commit.
func Release() string { return release }
