package perf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Parse reads a command line without the program's name by the rules of perftest: those of
// getopt_long, those of each flag when it is met, and those between flags in the order of
// force_dependecies. It returns a *Refusal for a line that perftest refuses, and a
// *Help for one that asks for help.
func Parse(t Test, program string, args []string) (*Options, error) {
	o := defaults(t)
	o.Program = program
	g := &getopt{o: o, seen: map[*option]bool{}}
	if err := g.run(args); err != nil {
		var h *Help
		if errors.As(err, &h) && h.Text == "" {
			h.Text = usage(o)
		}
		return nil, err
	}
	if o.Memory.DMABuf && o.Memory.Kind == "" {
		return nil, refuse("CUDA DMA-BUF cannot be used without CUDA")
	}
	if len(g.rest) > 1 {
		return nil, refuse(" Invalid Command line. Please check command rerun ")
	}
	if len(g.rest) == 1 {
		o.Host = g.rest[0]
	}
	o.Sender = (o.Host != "") != o.Reversed
	err := o.complete()
	var r *Refusal
	if errors.As(err, &r) { // after what was printed before it
		r.Out, r.Err = o.out+r.Out, o.err+r.Err
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Server is the server of a client: with the same flags, and without a host.
func (o *Options) Server() *Options { return o.end("") }

// Client is the client of a server, of a host that nobody looks up.
func (o *Options) Client() *Options { return o.end("server") }

func (o *Options) end(host string) *Options {
	s := *o.given
	s.Host, s.Sender = host, (host != "") != o.Reversed
	_ = s.complete() // the same flags have passed
	return &s
}

// outside refuses with perftest's separator before the text.
func outside(format string, args ...any) error {
	return &Refusal{Out: separator, Err: fmt.Sprintf(format, args...) + "\n"}
}

// complete sets what follows from the flags, and refuses what does not go together.
func (o *Options) complete() error {
	given := *o
	given.given = nil
	o.given = &given
	o.depths()
	for _, check := range []func() error{o.checkSize, o.checkLists, o.checkTimed, o.checkCM, o.checkInfinite, o.checkEvents, o.checkRate, o.checkOutput, o.checkRest} {
		if err := check(); err != nil {
			return err
		}
	}
	o.polling()
	o.surprises()
	return nil
}

// depths limits queues to what can be used, and moderates completions.
func (o *Options) depths() {
	if o.Test.Verb == Write {
		o.RxDepth = 1
	}
	if o.Method != Infinite && !o.Timed {
		o.TxDepth = int(min(uint64(o.TxDepth), o.Iters))
		if o.Test.Verb.receives() {
			o.RxDepth = int(min(uint64(o.RxDepth), o.Iters))
		}
		if o.Connection != RC {
			if o.SRQ && o.Iters <= leastUDSRQ {
				o.RxDepth = leastUDSRQ
			}
			if o.RxDepth == receiveDepth {
				o.RxDepth = int(min(o.Iters, maxUCReceives))
			}
		}
	}
	if o.Size > modLimit && o.Connection != UD && o.Method != AllSizes && !o.Events {
		if !o.cqModGiven {
			o.CQMod = 1
		} else if o.CQMod > 1 {
			o.out += separator + "Warning: Large message requested and CQ moderation enabled\nWarning: It can lead to inaccurate results\n"
		}
	}
	o.CQMod = min(o.CQMod, o.TxDepth)
	if reads(o.Test) {
		o.Inline = 0
	}
	if o.Method == AllSizes {
		if o.sizeGiven && o.Test.Verb != Atomic {
			o.note("-s is ignored with -a, which measures sizes from 2 to %d bytes.", allSizesMost)
		}
		o.Size = allSizesMost
	}
}

func (o *Options) checkSize() error {
	switch {
	case o.Test.Verb == Atomic && o.Size != atomicSize:
		return &Refusal{Out: separator + "Message size cannot be changed for Atomic tests \n"}
	case o.SRQ && !o.Test.Verb.sends():
		return &Refusal{Out: separator + " Using SRQ only avavilible in SEND / SEND_IMM tests.\n"}
	case o.SRQ && o.QPs > o.RxDepth:
		return &Refusal{Out: separator + " Using SRQ depth should be greater than number of QPs.\n"}
	}
	return nil
}

func (o *Options) checkLists() error {
	for _, l := range []struct {
		n        int
		who, gap string
	}{{o.PostList, "-l", ""}, {o.RecvList, "--recv_post_list", "receive "}} {
		switch {
		case l.n < 1:
			return refuse(" %s %d: a list has at least one request", l.who, l.n)
		case l.n == 1:
			continue
		case o.Test.Latency:
			return outside("%sost list is supported in BW tests only", map[bool]string{true: "P", false: "Receive p"}[l.gap == ""])
		case !o.Timed && o.Iters%uint64(l.n) != 0:
			return outside("Number of iterations must be a multiple of %spost list size", l.gap)
		}
		if l.gap != "" {
			if l.n > o.RxDepth && o.Test.Verb.receives() {
				return refuse(" --recv_post_list %d is more than the %d receives of a queue pair (-r): none would be posted", l.n, o.RxDepth)
			}
			continue
		}
		if !o.cqModGiven {
			o.CQMod = l.n
			o.out += separator + "Post List requested - CQ moderation will be the size of the post list\n"
		} else if l.n%o.CQMod != 0 {
			return outside("Post list size must be a multiple of CQ moderation")
		}
		if l.n > o.TxDepth {
			return refuse(" -l %d is more than the %d requests that a queue pair may have outstanding (-t): the first list would never be posted (perftest polls forever)", l.n, o.TxDepth)
		}
	}
	return nil
}

const noPeak = " WARNING: BW peak won't be measured in this run.\n"

// withoutPeak says once that no peak is searched.
func (o *Options) withoutPeak() {
	if !o.NoPeak && !o.Test.Latency {
		o.out += noPeak
	}
	o.NoPeak = true
}

func (o *Options) checkTimed() error {
	if !o.Timed {
		return nil
	}
	o.Iters = 0
	o.withoutPeak()
	switch {
	case o.Events:
		return outside("Duration mode doesn't work with events.")
	case o.Method == AllSizes:
		return outside("Duration mode currently doesn't support running on all sizes.")
	}
	return nil
}

func (o *Options) checkCM() error {
	switch {
	case o.CM && o.Connection == UC:
		return &Refusal{Out: separator + " UC is not supported in librdmacm\n"}
	case !o.CM && o.tos != unset:
		return &Refusal{Out: " TOS only valid for rdma_cm based QP and RawEth QP \n"}
	}
	o.SideCM = o.SideCM || o.CM
	return nil
}

func (o *Options) checkInfinite() error {
	if o.Test.Verb.receives() && !o.Test.Latency && !o.Sender && !o.BothWays {
		o.withoutPeak()
	}
	if o.Method != Infinite {
		return nil
	}
	o.withoutPeak()
	o.Timed = true
	switch {
	case o.Events:
		return outside(" run_infinitely does not support events feature yet.")
	case o.Test.Latency:
		return outside(" run_infinitely exists only in BW tests for now.")
	case o.BothWays && o.Test.Verb.receives():
		return outside(" run_infinitely mode is not supported in SEND, SEND_IMM or WRITE_IMM Bidirectional BW test")
	case o.RateLimit > 0 || o.RateType != "":
		return outside(" run_infinitely does not support rate limit feature yet")
	}
	return nil
}

func (o *Options) checkEvents() error {
	if o.Events && o.Test.Verb == Write {
		return outside(" Events feature not available on WRITE verb")
	}
	return nil
}

func (o *Options) checkRate() error {
	limited := o.RateLimit > 0 || o.RateType != ""
	if o.Burst > 0 && !limited {
		return outside(" Can't enable burst mode when rate limiter is off")
	}
	switch {
	case !limited:
		return nil
	case o.RateType == "PP":
		return exit("Packet Pacing is only supported for Raw Ethernet.")
	case o.RateType == "HW":
		return refuse(" --rate_limit_type=HW is not available here: queue pairs have no static rate. Give --rate_limit_type=SW")
	case o.RateLimit <= 0:
		return refuse(" --rate_limit_type without --rate_limit: give the rate")
	}
	if o.RateType == "" {
		o.RateType = "SW"
		o.note("--rate_limit without a type asks for a limit in hardware, which is not available here: the program limits (--rate_limit_type=SW).")
	}
	if o.Burst <= 0 {
		o.err += fmt.Sprintf(" Setting burst size to tx depth = %d\n", o.TxDepth)
		o.Burst = o.TxDepth
	}
	if o.Test.Latency || o.Test.Verb == Atomic || o.Test.Verb.sends() && o.BothWays {
		return outside("SW Rate limiter cann't be executed on non-BW, ATOMIC or bidirectional SEND / SEND_IMM tests")
	}
	if every := o.interval(o.Size); every > patience.Seconds() {
		return refuse(" --rate_limit %g: a burst of %d messages of %d bytes would begin every %.3g s, and a test in which nothing happens for %.0f s ends: give a higher rate, or a smaller --burst_size or -s", o.RateLimit, o.Burst, o.Size, every, patience.Seconds())
	}
	return nil
}

// interval is how many seconds are between the beginnings of two bursts of messages of a size.
func (o *Options) interval(size uint64) float64 {
	perSecond := o.RateLimit
	switch o.RateUnit {
	case MebibytePerSecond:
		perSecond *= (1 << 20) / float64(size)
	case GigabitPerSecond:
		perSecond *= 1e9 / 8 / float64(size)
	}
	return float64(o.Burst) / perSecond
}

func (o *Options) checkOutput() error {
	switch {
	case o.Output == FullOutput:
	case !o.Test.Latency && o.Output == OutputLatency:
		return outside(" Output verbosity level for BW can be: bandwidth, message_rate")
	case o.Test.Latency && o.Output != OutputLatency:
		return outside(" Output verbosity level for LAT can be: latency")
	}
	if o.Gap > 0 && !o.Test.Latency {
		return outside(" Latency gap feature is only for latency tests")
	}
	if o.Timed && o.Margin == unset {
		o.Margin = o.Duration / 4
	}
	if o.NullMR && (o.Test.Verb.sends() || o.Test.Verb == Atomic) {
		return outside("Perftest supports using a null memory region with write/read verbs only")
	}
	return nil
}

func (o *Options) checkRest() error {
	switch {
	case o.Memory.Kind != "" && o.Test.Latency && o.Test.Verb == Write:
		return outside("Perftest doesn't support device memory latency test with write (without immediate) verb; use --write_with_imm")
	case o.Memory.Kind != "" && int(min(o.Size, 1<<30)) <= o.Inline:
		return outside("Perftest doesn't support device memory tests with inline messages")
	case o.Memory.Kind != "" && o.HugePages:
		return refuse(" Can't use multiple memory types")
	}
	if o.scatters() {
		o.out += separator + "Scatter2CQE (size <= 64) is not supported with device memory send tests: setting MLX5_SCATTER_TO_CQE=0\n"
	}
	if o.Test.Verb.receives() && o.RxDepth%2 == 1 && o.Method == Regular {
		o.RxDepth++
	}
	if !o.Timed && o.Iters > peakLimit && !o.Test.Latency && !o.NoPeak {
		o.withoutPeak()
	}
	switch {
	case o.Timed && o.Duration <= 2*o.Margin:
		return outside("please check that DURATION > 2*MARGIN")
	case !o.Events && o.vectorSet:
		return exit(" Events must be enabled to select a completion vector")
	case o.Test.Latency && o.Iters > latencyMost:
		return refuse(" -n %d: a latency test keeps the time of each message, and has at most %d", o.Iters, latencyMost)
	}
	return nil
}

// polling decides how many completions a poll takes.
func (o *Options) polling() {
	short := !o.Timed && o.Iters < dynamicLeast
	if short || o.Test.Latency || o.BothWays && (o.Test.Verb == Send || o.Test.Verb == WriteImm) {
		o.out += "Disabling dynamic polling\n"
		o.Dynamic = false
	}
}

// surprises notes what perftest does silently.
func (o *Options) surprises() {
	switch {
	case o.Timed && o.given.Iters != defaults(o.Test).Iters && o.Method != Infinite:
		o.note("-n is ignored with -D: the messages of %d s are counted.", o.Duration-2*o.Margin)
	case o.limitRate && !o.limitBW:
		o.note("-y without -w is not enforced: perftest compares only if a bandwidth is asked for too.")
	}
	if o.Test.Latency && !o.Timed && o.Iters < fewSamples {
		o.note("-n %d: the 99%% and 99.9%% columns need %d measurements and more; of fewer they are the greatest that count, t_max.", o.Iters, fewSamples)
	}
	if o.Connection == UC && !o.Test.Latency && !o.Test.Verb.sends() {
		o.note("on UC a message is complete when it has been sent: the rate counts all messages that were sent, whether they arrived or not.")
	}
	if o.Port < 1 || o.Port > 65535 {
		o.note("-p %d is no TCP port, and the connection will fail.", o.Port)
	}
	slices.Sort(o.Notes)
	o.Notes = slices.Compact(o.Notes)
}

// usage is perftest's, with what is available here.
func usage(o *Options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s            start a server and wait for connection\n  %s <host>     connect to server at <host>\n\nOptions:\n", o.Program, o.Program)
	for i := range options {
		f := &options[i]
		if f.help == "" {
			continue
		}
		name := "    "
		if f.letter != 0 {
			name = fmt.Sprintf("-%c, ", f.letter)
		}
		name += "--" + f.name
		if f.arg != "" {
			name += "=<" + f.arg + ">"
		}
		fmt.Fprintf(&b, "  %-34s  %s\n", name, f.help)
	}
	return b.String()
}
