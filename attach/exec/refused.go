//go:build linux && amd64

package exec

import (
	"fmt"
	"io"
	"text/tabwriter"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
)

// PrintRefused lists what is not available to programs, with the errno, and what they see.
func PrintRefused(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range uverbs.Refused() {
		name := unix.ErrnoName(r.Errno)
		if r.Errno == unix.EOPNOTSUPP {
			name = "EOPNOTSUPP" // ENOTSUP is the same number
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.What, name, r.How)
	}
	return t.Flush()
}
