package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Entries of a record's environment of a run in a guest: files of the simulation outside, without
// their folders.
const (
	guestFaultKey   = "guest_fault"   // of rdmasim vm --fault
	guestCaptureKey = "guest_capture" // of rdmasim vm --pcap
)

// guestFile is the value of a flag of the rdmasim vm in whose guest this program runs, or empty.
func guestFile(flag string) string {
	words, ok := commands.Words(os.Getenv(commands.GuestVariable))
	if !ok {
		return ""
	}
	for i, w := range words {
		if w == "--" {
			break
		}
		if value, is := strings.CutPrefix(w, "--"+flag+"="); is {
			return value
		}
		if w == "--"+flag && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// noteGuest puts the files of the simulation around a guest into the record of a run in it.
func noteGuest(run *report.Run) {
	for flag, key := range map[string]string{"fault": guestFaultKey, "pcap": guestCaptureKey} {
		if name := guestFile(flag); name != "" {
			run.Environment[key] = filepath.Base(name)
		}
	}
}

// printGuest names these files beside a failure.
func printGuest(w io.Writer) {
	if name := guestFile("fault"); name != "" {
		fmt.Fprintf(w, "    faults: %s, which rdmasim vm injects\n", plain.Line(name))
	}
	if name := guestFile("pcap"); name != "" {
		fmt.Fprintf(w, "    capture: %s, whole when the guest has ended\n", plain.Line(name))
	}
}
