package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

type wireOptions struct {
	oracle   oracle.Options
	format   string
	sender   string
	chosen   bool // --sender was given
	startPSN int64
	retries  map[string]*int
	pkey     uint16
	rules    bool
	stdin    io.Reader

	exactTimer        bool
	tolerance, flight time.Duration
	cnpInterval       time.Duration
	notes             bool
}

// senders are the values of --sender.
var senders = map[string]oracle.Sender{"go-back-n": oracle.GoBackN, "selective-repeat": oracle.SelectiveRepeat, "selective-ack": oracle.SelectiveAck}

func newWire() *cobra.Command {
	o := &wireOptions{retries: map[string]*int{}}
	cmd := &cobra.Command{
		Use:   "wire FILE.pcap|-",
		Short: "Judge a capture by the rules of the transport",
		Long: "wire reads a capture and judges PSNs, acknowledgements, NAKs, retries, READ responses and atomics by numbered rules.\n" +
			"It reads pcap and pcapng, also gzip-compressed, of Ethernet (with any number of VLAN tags), InfiniBand, \"tcpdump -i any\" (SLL and\n" +
			"SLL2) and raw IP; - is the standard input. It sorts frames that are up to 1 ms out of order by their time stamps, counts\n" +
			"a frame that two interfaces have seen once, and judges the headers of frames that were cut.\n" +
			"A rule that needs a value which the capture does not show reports nothing, unless a flag gives the value. The exit status\n" +
			"is 0 without a violation, 1 for a violation or a capture that is not whole, and 2 for a file that cannot be read or has\n" +
			"no RDMA packet.",
		Example: "  conform --target=sim --label-filter RC --pcap run.pcapng && conform wire run.pcapng\n" +
			"  conform wire --mtu 1024 --timeout 14 --rnr-timer 14 trace.pcap\n" +
			"  ssh host tcpdump -i any -w - udp port 4791 | conform wire -",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.rules && len(args) == 0 {
				return nil
			}
			if o.rules {
				return usagef("--rules lists the rules and judges nothing: leave %s out, or --rules", args[0])
			}
			return needs(1, "a capture")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(cmd); err != nil {
				return err
			}
			if o.rules {
				return printRules(cmd.OutOrStdout(), o.format)
			}
			o.stdin = cmd.InOrStdin()
			return o.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "table", "format of the output: table or json")
	f.StringVar(&o.sender, "sender", "go-back-n", "how requesters recover: go-back-n, selective-repeat, or selective-ack (NAKs with SACK, in the form that the simulator assumes)")
	f.IntVar(&o.oracle.MTU, "mtu", 0, "path MTU in bytes (default: learned)")
	f.Uint8Var(&o.oracle.Timeout, "timeout", 0, "local ACK timeout of the QPs, 1..31 (default: unknown)")
	f.BoolVar(&o.exactTimer, "exact-timer", false, "no requester is a ConnectX-5 or later on RoCE, which may retransmit adaptively: before the timeout, and more often than retry_cnt")
	f.DurationVar(&o.tolerance, "tolerance", 0, "tolerance of every measured time, to either side")
	f.DurationVar(&o.cnpInterval, "cnp-interval", 0, "shortest time between two congestion notifications of a port (0: unknown)")
	f.DurationVar(&o.flight, "flight", 20*time.Microsecond, "longest time that a frame takes to arrive")
	f.Int64Var(&o.startPSN, "start-psn", -1, "first PSN of every requester (default: unknown)")
	f.Uint16Var(&o.pkey, "pkey", 0, "P_Key of the QPs (default: unknown)")
	f.IntVar(&o.oracle.Receive, "receive", 0, "size of every receive buffer in bytes (default: unknown)")
	for _, n := range []struct{ flag, what string }{
		{"retry-cnt", "retry_cnt of the QPs"}, {"rnr-retry", "rnr_retry of the QPs"},
		{"rnr-timer", "min_rnr_timer code of the QPs"}, {"max-rd-atomic", "max_rd_atomic of the QPs"},
		{"max-dest-rd-atomic", "max_dest_rd_atomic of the QPs"},
	} {
		o.retries[n.flag] = f.Int(n.flag, -1, n.what+" (default: unknown)")
	}
	f.BoolVar(&o.oracle.Complete, "complete", false, "the capture is complete: a frame that is not in it was not sent (captures of the simulator say so themselves)")
	f.BoolVar(&o.oracle.Delivered, "delivered", false, "every frame that is not marked as lost has arrived")
	f.BoolVar(&o.oracle.Reconnects, "reconnects", false, "QPs may be reset and connected again")
	f.BoolVar(&o.oracle.ODP, "odp", false, "queue pairs page on demand: responders may answer every request with an RNR NAK, and requesters may ask again for what was answered")
	f.BoolVar(&o.oracle.OnlyAtomics, "only-atomics", false, "only the atomics in the capture change the words on which they operate")
	f.BoolVar(&o.rules, "rules", false, "list the rules, and judge nothing")
	f.BoolVar(&o.notes, "notes", false, "print notes as well")
	return cmd
}

// complete checks the flags and sets the options from them.
func (o *wireOptions) complete(cmd *cobra.Command) error {
	if o.format != "table" && o.format != "json" {
		return usagef("--format %q is neither table nor json", o.format)
	}
	var ok bool
	o.chosen = cmd.Flags().Changed("sender")
	if o.oracle.Sender, ok = senders[o.sender]; !ok {
		return usagef("--sender %q is none of go-back-n, selective-repeat and selective-ack%s", o.sender, input.Suggest(o.sender, []string{"go-back-n", "selective-repeat", "selective-ack"}))
	}
	if o.oracle.MTU != 0 && roce.MTUFromBytes(o.oracle.MTU) == 0 {
		return usagef("--mtu %d is not 256, 512, 1024, 2048 or 4096", o.oracle.MTU)
	}
	if o.oracle.Timeout > 31 {
		return usagef("--timeout %d is not in 0 to 31", o.oracle.Timeout)
	}
	if cmd.Flags().Changed("start-psn") {
		if o.startPSN < 0 || o.startPSN > roce.PSNMask {
			return usagef("--start-psn %d is not in 0 to %d", o.startPSN, roce.PSNMask)
		}
		psn := uint32(o.startPSN)
		o.oracle.StartPSN = &psn
	}
	for _, n := range []struct {
		flag string
		most int
		to   **int
	}{{"retry-cnt", 7, &o.oracle.RetryCount}, {"rnr-retry", 7, &o.oracle.RNRRetry}, {"rnr-timer", 31, &o.oracle.RNRTimer}, {"max-rd-atomic", 255, &o.oracle.MaxRdAtomic},
		{"max-dest-rd-atomic", 255, &o.oracle.MaxDestRdAtomic}} {
		if !cmd.Flags().Changed(n.flag) {
			continue
		}
		v := o.retries[n.flag]
		if *v < 0 || *v > n.most {
			return usagef("--%s %d is not in 0 to %d", n.flag, *v, n.most)
		}
		*n.to = v
	}
	if o.tolerance < 0 || o.flight <= 0 || o.oracle.Receive < 0 || o.cnpInterval < 0 {
		return usagef("--tolerance, --receive and --cnp-interval must not be negative, --flight must be positive")
	}
	o.oracle.Adaptive = !o.exactTimer
	o.oracle.CNPInterval = int64(o.cnpInterval)
	o.oracle.PKey, o.oracle.Tolerance, o.oracle.Flight = o.pkey, int64(o.tolerance), int64(o.flight)
	return nil
}

// judgement is the output of --format json.
type judgement struct {
	Schema  string           `json:"schema"`
	File    string           `json:"file"`
	Format  string           `json:"format"`
	Error   string           `json:"error,omitempty"` // why the file cannot be read behind the last packet that was judged, or has nothing to judge
	Frames  int              `json:"frames"`
	Summary map[string]int   `json:"summary"`
	Runs    []*oracle.Result `json:"runs"`
	// Hint says which flags the capture seems to need.
	Hint     string `json:"hint,omitempty"`
	hintOnly bool   // with them it has no violation
	// Part: it lacks packets of a capture of the simulator, and so is judged as other captures are.
	Part     bool `json:"part,omitempty"`
	notWhole bool
}

// wireFindings is a judgement, and why there may be none.
type wireFindings struct {
	judgement
	broken  *pcap.BrokenError
	nothing error // says that nothing is to be judged
}

// judge judges a file. If the file is broken, it judges what can be read.
func (o *wireOptions) judge(ctx context.Context, name string) (*wireFindings, error) {
	from := o.stdin
	if name != "-" {
		f, err := input.Open(ctx, name)
		if err != nil {
			return nil, usagef("%w", err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	r, packets, err := pcap.Read(from)
	var broken *pcap.BrokenError
	if err != nil && (r == nil || !errors.As(err, &broken)) {
		return nil, usagef("%s: %w", name, err)
	}
	runs, runErr := oracle.Runs(r, packets)
	if runErr != nil {
		return nil, usagef("%s: %w", name, runErr)
	}
	opts := o.oracle
	opts.Declared = opts.Complete
	own, all := oracle.Own(r, packets)
	if own { // our own captures hold every frame, and mark what was lost
		opts.Complete, opts.Declared, opts.Reconnects = all || opts.Complete, !all && opts.Declared, true
	}
	opts.Kept = &oracle.Kept{}
	j := judgement{Schema: "rdmasim/wire/1", File: name, Format: r.Format, Frames: len(packets), Summary: map[string]int{}, Runs: []*oracle.Result{}, Part: own && !all}
	for _, c := range runs {
		if len(c.Frames) == 0 && len(runs) > 1 {
			continue
		}
		res := oracle.Judge(c, opts)
		j.Runs = append(j.Runs, res)
		j.notWhole = j.notWhole || !res.Whole
		for _, k := range []oracle.Kind{oracle.Violation, oracle.Warning, oracle.Note, oracle.Inconclusive} {
			j.Summary[k.String()] += res.Count(k)
		}
	}
	if n := j.Summary[oracle.Violation.String()]; n > 0 {
		j.Hint, j.hintOnly = hint(runs, n, o.others(own, opts))
	}
	nothing := withoutRDMA(name, runs, j.Runs)
	switch {
	case broken != nil:
		j.Error = broken.Error()
	case nothing != nil:
		j.Error = nothing.Error()
	}
	return &wireFindings{j, broken, nothing}, nil
}

// run judges a file and prints what was found. Nobody waits for the judgement of a large file when
// ctx ends.
func (o *wireOptions) run(ctx context.Context, w io.Writer, name string) error {
	interrupted := &status{exitInterrupted, fmt.Errorf("interrupted before %s was judged", name)}
	if ctx.Err() != nil {
		return interrupted
	}
	var j *wireFindings
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		j, err = o.judge(ctx, name)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return interrupted
	}
	if err != nil {
		return err
	}
	if o.format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(&j.judgement); err != nil {
			return err
		}
	} else if j.nothing == nil || j.broken != nil {
		o.table(w, &j.judgement)
	}
	switch {
	case j.broken != nil:
		return usagef("%s: %w", name, j.broken)
	case j.nothing != nil:
		return j.nothing
	case j.Summary[oracle.Violation.String()] > 0, j.notWhole:
		return &status{exitFailed, nil}
	}
	return nil
}

// sum adds up what its runs count.
func (j *judgement) sum(of func(*oracle.Result) int) int {
	n := 0
	for _, res := range j.Runs {
		n += of(res)
	}
	return n
}

// table prints flows, verdicts and the summary, and the hint below them; the hint alone where other
// flags leave no violation.
func (o *wireOptions) table(w io.Writer, j *judgement) {
	if j.Hint != "" {
		defer fmt.Fprintln(w, j.Hint)
	}
	if j.hintOnly {
		return
	}
	rdma := 0
	for _, res := range j.Runs {
		rdma += res.RDMA
		printJudged(w, res, o.notes)
	}
	if j.Part {
		fmt.Fprintln(w, "these are not all packets of a capture of the simulator, and so are judged like those of any other capture")
	}
	if n := j.sum(func(r *oracle.Result) int { return r.Early }); n > 0 {
		fmt.Fprintf(w, "%s sent again before the ACK timeout, as by adaptive retransmission of ConnectX-5 and later: where no such device sends, --exact-timer says so\n", plain.Count(n, "request"))
	}
	if n := j.sum(func(r *oracle.Result) int { return r.Unproved }); n > 0 {
		fmt.Fprintf(w, "%s more if the capture has every frame, which is not known of it: --complete says so\n", plain.Count(n, "violation"))
	}
	fmt.Fprintf(w, "%s, %d of RDMA: %s, %s, %s, %d inconclusive\n", plain.Count(j.Frames, "frame"), rdma,
		plain.Count(j.Summary["violation"], "violation"), plain.Count(j.Summary["warning"], "warning"), plain.Count(j.Summary["note"], "note"),
		j.Summary["inconclusive"])
}

// printJudged prints one run. Of a file with several runs it prints only those with verdicts.
func printJudged(w io.Writer, res *oracle.Result, notes bool) {
	if res.Name != "" && !notes && res.Count(oracle.Violation)+res.Count(oracle.Warning)+res.Count(oracle.Inconclusive) == 0 {
		return
	}
	if res.Name != "" {
		fmt.Fprintln(w, plain.Line(res.Name))
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "FLOW\tTRANSPORT\tREQUESTS\tRESENT\tRESPONSES\tMTU")
	for _, f := range res.Flows {
		mtu := "-"
		if f.MTU != 0 {
			mtu = fmt.Sprint(f.MTU)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t%s\n", plain.Line(f.Name), f.Transport, f.Requests, f.Resent, f.Responses, mtu)
	}
	_ = tw.Flush()
	printRetransmissions(w, res)
	printGaps(w, res.Flows)
	for _, v := range res.Verdicts {
		if v.Kind == oracle.Note && !notes {
			continue
		}
		count := ""
		if v.Count > 1 {
			count = fmt.Sprintf(" (and %d more%s)", v.Count-1, numbers(v.Others, v.Count-1))
		}
		fmt.Fprintf(w, "%s %-12v frame %-5d %s: %s%s\n", v.Rule, v.Kind, v.Frame, plain.Line(v.Flow), plain.Line(v.Text), count)
	}
	for _, line := range res.Reading {
		fmt.Fprintln(w, line)
	}
	for _, l := range res.LeftOut {
		if l.Kind != oracle.Note || notes {
			fmt.Fprintf(w, "%s %-12v and %d more, which are not listed: at most %d of a rule are\n", l.Rule, l.Kind, l.Count, oracle.MostVerdicts)
		}
	}
	fmt.Fprintln(w)
}

// printGaps says of each flow where the capture lacks frames, and up to where it is judged.
func printGaps(w io.Writer, flows []oracle.Flow) {
	for _, f := range flows {
		for _, g := range f.Missing {
			fmt.Fprintf(w, "%s: frames are missing, by frame %d: %s\n", plain.Line(f.Name), g.Frame, plain.Line(g.Text))
		}
		if n := f.Gaps - len(f.Missing); n > 0 {
			fmt.Fprintf(w, "%s: frames are missing, by %s more\n", plain.Line(f.Name), plain.Count(n, "frame"))
		}
		if f.JudgedTo > 0 {
			fmt.Fprintf(w, "%s: judged up to frame %d, and only counted behind it\n", plain.Line(f.Name), f.JudgedTo)
		}
	}
}

// numbers lists frames, and that there are others if not all of them are there.
func numbers(frames []int, all int) string {
	if len(frames) == 0 {
		return ""
	}
	text := ": frames"
	for i, n := range frames {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(" ", n)
	}
	if all > len(frames) {
		text += ", ..."
	}
	return text
}

func printRules(w io.Writer, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(oracle.Rules())
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range oracle.Rules() {
		how := "judged"
		switch {
		case r.Blind != "":
			how = "not judged: " + r.Blind
		case r.Needs != "":
			how = "needs " + r.Needs
		}
		if r.Complete {
			how += "; inconclusive unless the capture is complete"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", r.ID, r.Text, how)
	}
	return tw.Flush()
}
