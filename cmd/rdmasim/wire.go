package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/attach/peer"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
	"github.com/rdmasim/rdmasim/workload/pingpong"
)

// wireFlags are the flags of rdmasim wire.
type wireFlags struct {
	serve, to, source, program, profile, faults, loss, pcap string
	set, allow                                              []string
	port                                                    int
	counters                                                bool
	cfg                                                     peer.Config
}

func wireCommand() *cobra.Command {
	var f wireFlags
	c := &cobra.Command{
		Use:   "wire (--serve udp:ADDRESS | --to HOST) [flags] [-- [PROGRAM] FLAGS...]",
		Short: "Act as the other end of perftest, a pingpong or rping on a real network",
		Long: `Acts as the other end of a program of perftest, ibv_*_pingpong or rping that runs elsewhere:
on a card, on Soft-RoCE, or below rdmasim exec --wire. A simulated host runs this end; its
adapter sends and receives RoCE v2 datagrams on UDP port 4791 of an address of this machine, or
frames of an Ethernet. With --serve it waits for a client, with --to it is the client. The
program and its flags follow after --; both ends need the same flags. Times are real. The
programs are
` + strings.Join(wirePrograms()[:len(perf.Programs())], ", ") + `,
` + strings.Join(append(pingpong.Programs(), rpingProgram), ", ") + `.`,
		Example: `  rdmasim wire --serve udp:192.0.2.2                  # peer: ib_write_bw 192.0.2.2
  rdmasim wire --serve udp:192.0.2.2 --loss 1% -- ib_send_lat -n 100
  rdmasim wire --to 192.0.2.1 --counters -- ib_read_bw -s 65536`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	s := c.Flags()
	s.SetInterspersed(false)
	s.StringVar(&f.serve, "serve", "", "wait for a client; the adapter has this `ADDRESS` of the machine, such as udp:192.0.2.2, or is on an Ethernet, as with exec --wire")
	s.StringVar(&f.to, "to", "", "be the client of the server at this `HOST`")
	s.StringVar(&f.source, "source", "", "with --to: the adapter's `ADDRESS`, as with --serve (default: that by which the machine reaches the host)")
	s.StringVar(&f.program, "program", wireDefault, "`NAME` of the program")
	s.IntVar(&f.port, "port", 0, "port of the exchange, as the program's -p (default: the program's)")
	s.IntVar(&f.cfg.MTU, "mtu", 0, mtuHelp)
	s.StringSliceVar(&f.allow, "allow", nil, "take datagrams only from this `NETWORK`, such as 192.0.2.0/24, or address, and send only there; may be repeated")
	s.StringVar(&f.profile, "profile", profile.Default, profileHelp)
	s.StringArrayVar(&f.set, "set", nil, "change a value of the profile, as `key=value`; may be repeated")
	s.StringVar(&f.pcap, "pcap", "", "write the frames to this pcapng `FILE`, with virtual time in nanoseconds")
	input.SizeVar(s, &f.cfg.PcapLimit, "pcap-limit", 64<<20, "end the capture after this `SIZE` of frames; 0: no limit")
	s.StringVar(&f.faults, "fault", "", "inject the faults on the wire of this YAML `FILE` (docs/wire.md)")
	s.StringVar(&f.loss, "loss", "", "lose this `SHARE` of all frames at random, such as 0.1%")
	s.BoolVar(&f.counters, "counters", false, "print the adapter's counters that are not zero at the end")
	return c
}

// mtuHelp is of --mtu.
const mtuHelp = "MTU in `BYTES` of the adapter on an Ethernet (default: that of the TAP interface, 1500 with dgram:); path MTUs are at least 96 bytes less"

// wireDefault is the program without --program.
const wireDefault = "ib_write_bw"

// wirePrograms are those whose ends can be carried out.
func wirePrograms() (names []string) {
	for _, n := range perf.Programs() {
		names = append(names, "ib_"+n)
	}
	return append(append(names, pingpong.Programs()...), rpingProgram)
}

func (f *wireFlags) run(c *cobra.Command, args []string) error {
	say := func(format string, a ...any) {
		fmt.Fprintf(c.ErrOrStderr(), "rdmasim wire: %s\n", plain.Message(fmt.Sprintf(format, a...)))
	}
	program, args, err := f.check(c, args)
	if err != nil {
		return err
	}
	if err := f.configure(c); err != nil {
		return err
	}
	f.cfg.Say = say
	open := f.newPerf
	switch {
	case program == rpingProgram:
		open = f.newRping
	case slices.Contains(pingpong.Programs(), program):
		open = f.newPingpong
	}
	e, err := open(c, program, args)
	if e == nil {
		return err
	}
	defer e.close()
	var frames *outfile.File
	if f.pcap != "" {
		if frames, err = outfile.Create(c.Context(), f.pcap); err != nil {
			return f.usage("--pcap: %w", err)
		}
		defer frames.Abort()
		f.cfg.Pcap = frames
	}
	h, err := peer.Open(f.cfg)
	if err != nil {
		return f.usage("%w", err)
	}
	var failure error
	err = h.Run(c.Context(), func(t verbs.Thread) { failure = e.run(h, t) })
	for _, line := range h.Faults() {
		say("%s", line)
	}
	if p := e.peer(); p != "" {
		say("the peer was %s", p)
	}
	w := h.Wire()
	say("%s sent %s and received %d", w.Name(), plain.Count(int(w.Counts().Sent), w.Unit()), w.Counts().Received)
	if d := w.Counts().Dropped(); d != "" {
		say("%s dropped %ss: %s", w.Name(), w.Unit(), d)
	}
	if f.counters {
		printCounters(c.OutOrStdout(), h.Counters())
	}
	lost := h.Close()
	if frames != nil {
		lost = frames.Commit(func(io.Writer) error { return lost })
	}
	switch {
	case c.Context().Err() != nil:
		err = fmt.Errorf("wire: %w", outfile.ErrInterrupted)
	case err != nil:
		err = fmt.Errorf("wire: %w", err)
	case failure != nil:
		err = perfFailed(c, "wire", failure)
	}
	if err != nil && lost != nil {
		say("%v", lost)
		return err
	}
	return errors.Join(err, lost)
}

// printCounters prints those that are not zero.
func printCounters(w io.Writer, all map[string]uint64) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := all[name]; n > 0 {
			fmt.Fprintf(w, "%-40s %d\n", name, n)
		}
	}
}

func (f *wireFlags) usage(format string, a ...any) error {
	err := fmt.Errorf("wire: "+format, a...)
	if errors.Is(err, outfile.ErrInterrupted) {
		return err
	}
	return &experiment.UsageError{Err: err}
}

// check finds the program and its flags.
func (f *wireFlags) check(c *cobra.Command, args []string) (string, []string, error) {
	given := c.Flags().Changed
	switch {
	case f.serve == "" && f.to == "":
		return "", nil, f.usage("--serve udp:ADDRESS waits for a client, --to HOST is one: give one of them")
	case f.serve != "" && f.to != "":
		return "", nil, f.usage("--serve and --to: an end is a server or a client")
	case f.source != "" && f.to == "":
		return "", nil, f.usage("--source is about --to, which is not given: --serve has the address")
	case given("port") && (f.port < 1 || f.port > 1<<16-1):
		return "", nil, f.usage("--port %d: a TCP port from 1 to 65535 is needed", f.port)
	}
	program := f.program
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if given("program") {
			return "", nil, f.usage("--program %s and %s: name the program once", f.program, plain.Line(args[0]))
		}
		program, args = args[0], args[1:]
	}
	if !slices.Contains(wirePrograms(), program) {
		return "", nil, f.usage("%q is not one of %s%s; a session of rdmasim exec --wire runs any program", program, strings.Join(wirePrograms(), ", "), input.Suggest(program, wirePrograms()))
	}
	if given("port") {
		args = append(args, "-p", strconv.Itoa(f.port))
	}
	if err := errors.Join(input.NamesGiven(c.Flags(), "pcap", "fault"), input.Needs(c.Flags(), "pcap-limit", "pcap")); err != nil {
		return "", nil, f.usage("%w", err)
	}
	if err := outfile.Distinct([]outfile.Named{{Flag: "--pcap", Path: f.pcap}}, []outfile.Named{{Flag: "--fault", Path: f.faults}}); err != nil {
		return "", nil, f.usage("%w", err)
	}
	return program, args, nil
}

// configure reads what the flags say of the host.
func (f *wireFlags) configure(c *cobra.Command) (err error) {
	flag, text := "--serve", f.serve
	if f.to != "" {
		flag, text = "--source", f.source
	}
	if text == "" {
		a, err := f.sourceTo(c.Context())
		if err != nil {
			return err
		}
		f.cfg.Place = wire.At(a)
	} else if f.cfg.Place, err = wire.ParsePlace(text); err != nil {
		return f.usage("%s %w", flag, err)
	}
	if c.Flags().Changed("mtu") {
		if err := wire.CheckMTU(f.cfg.Place, f.cfg.MTU); err != nil {
			return f.usage("%w", err)
		}
	}
	for _, s := range f.allow {
		n, err := wire.ParseAllow(s)
		if err != nil {
			return f.usage("--allow %w", err)
		}
		f.cfg.Allow = append(f.cfg.Allow, n)
	}
	p, err := profile.Load(f.profile)
	if err != nil {
		return &experiment.UsageError{Err: err}
	}
	p = p.Clone()
	if err := setProfile(p, "wire", f.set); err != nil {
		return err
	}
	noteTiming(c, "wire", p)
	f.cfg.Profile = p
	f.cfg.Faults, err = readFaults(c, f.faults, f.loss)
	return err
}

// sourceTo is the address of this machine by which it reaches the host.
func (f *wireFlags) sourceTo(ctx context.Context) (netip.Addr, error) {
	d := net.Dialer{Timeout: dialPatience}
	c, err := d.DialContext(ctx, "udp", net.JoinHostPort(f.to, strconv.Itoa(roce.UDPPort)))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("wire: --to %s: %w", plain.Line(f.to), err)
	}
	defer c.Close()
	a := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	if b := c.RemoteAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(); a == b {
		return netip.Addr{}, f.usage("--to %s is this machine's own address %v: give another of its addresses with --source, such as --source udp:127.0.0.2", plain.Line(f.to), a)
	}
	return a, nil
}
