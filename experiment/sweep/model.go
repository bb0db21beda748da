package sweep

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Model is the version of the model: results are only shared among programs of which it is the
// same.
//
// It has to change whenever a change of the code may change a result, and nobody has to remember to
// change it. So it is the commit that the program was built from, with the kind of processor, since
// figures that are derived from a run have floating point. Colleagues who build one commit share
// results. Where the build recorded no commit, or the tree had changes, it is the linker's build
// ID, a hash of all that went into this program. Both change with changes that do not matter, which
// costs a run and no wrong result.
func Model() (string, error) {
	info, ok := debug.ReadBuildInfo()
	var revision, tags string
	modified := false
	for i := 0; ok && i < len(info.Settings); i++ {
		switch s := info.Settings[i]; s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value != "false"
		case "-tags":
			tags = modelTags(s.Value)
		}
	}
	if revision != "" && !modified {
		return "commit " + revision + tags + " " + runtime.GOARCH, nil
	}
	id, err := buildID()
	return "build " + id, err
}

// modelTags names the build tags that may change a result. How a program looks up names, which make
// fixes, changes none.
func modelTags(list string) string {
	kept := slices.DeleteFunc(strings.Split(list, ","), func(tag string) bool { return tag == "netgo" || tag == "osusergo" || tag == "" })
	if len(kept) == 0 {
		return ""
	}
	return " tags " + strings.Join(kept, ",")
}

// buildID is the linker's hash of this program, or one of its file where the linker left none.
func buildID() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", errors.Join(errors.New("the version of the model cannot be determined"), err)
	}
	defer func() { _ = f.Close() }()
	if e, err := elf.NewFile(f); err == nil {
		if note := e.Section(".note.go.buildid"); note != nil {
			// A note: sizes of name and text, kind, name, text (elf(5)). The text is printable.
			if data, err := note.Data(); err == nil && len(data) > 16 {
				if id := strings.TrimRight(string(data[16:]), "\x00"); len(bytes.TrimSpace([]byte(id))) > 20 {
					h := sha256.Sum256([]byte(id))
					return hex.EncodeToString(h[:16]), nil
				}
			}
		}
	}
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
