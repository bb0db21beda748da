package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce/oracle"
)

// listedRetransmissions is how many of a flow the table has; JSON has more.
const listedRetransmissions = 10

// printRetransmissions gives an account of what each flow sent again, and says whether both ends
// kept the rules.
func printRetransmissions(w io.Writer, res *oracle.Result) {
	if !slices.ContainsFunc(res.Flows, func(f oracle.Flow) bool { return len(f.Retransmissions) > 0 }) {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "SENT AGAIN\tFRAME\tSECONDS\tPSN\tPACKETS\tTRY\tWAITED_MS\tCAUSE\tLOST")
	for _, f := range res.Flows {
		for _, r := range f.Retransmissions[:min(len(f.Retransmissions), listedRetransmissions)] {
			cause := string(r.Cause)
			if r.NAK > 0 {
				cause = fmt.Sprintf("%s of frame %d", cause, r.NAK)
			}
			fmt.Fprintf(tw, "%s\t%d\t%.6f\t%#06x\t%d\t%d\t%.3f\t%s\t%s\n", plain.Line(f.Name), r.Frame, float64(r.Time)/1e9, r.PSN, r.Packets, r.Sending,
				float64(r.WaitedNS)/1e6, cause, r.Lost)
		}
	}
	_ = tw.Flush()
	for _, f := range res.Flows {
		if len(f.Retransmissions) > 0 {
			fmt.Fprintln(w, accountOf(res, &f))
		}
	}
}

// accountOf sums up the retransmissions of a flow in a sentence.
func accountOf(res *oracle.Result, f *oracle.Flow) string {
	all := len(f.Retransmissions) + f.MoreRetransmissions
	text := fmt.Sprintf("%s: %s", plain.Line(f.Name), plain.Count(all, "retransmission"))
	if all > listedRetransmissions {
		text += fmt.Sprintf(" (the first %d are listed)", listedRetransmissions)
	}
	text += fmt.Sprintf(", %.3f ms waited", float64(f.LostNS)/1e6)
	broken := map[oracle.Kind][]string{}
	for _, v := range res.Verdicts {
		if what := strings.TrimSpace(oracle.Bound(v.Rule) + " " + v.Rule); (v.Flow == f.Name || v.Flow != "" && v.Flow == f.Peer) && !slices.Contains(broken[v.Kind], what) {
			broken[v.Kind] = append(broken[v.Kind], what)
		}
	}
	switch {
	case len(broken[oracle.Violation]) > 0:
		text += "; broken: " + strings.Join(broken[oracle.Violation], ", ")
	case len(broken[oracle.Inconclusive]) > 0:
		text += "; no rule is certainly broken, inconclusive: " + strings.Join(broken[oracle.Inconclusive], ", ")
	case f.Peer == "":
		text += "; no rule is broken by this end, the other is not in the file"
	default:
		text += "; both ends kept every rule that was judged"
	}
	return text
}
