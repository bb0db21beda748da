// Package runs works on what runs of the suite leave behind: it judges a run as a whole, joins the
// parts of a divided run (Merge), lists the cases that several runs left out (FindGaps), keeps the
// cases of a run that may be killed (Journal, Recover), and joins the captures and timelines of its
// cases. Command conform prints what it returns.
package runs
