package perf

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload/perftest/exchange"
)

// Env is what an end has around it.
type Env struct {
	Out, Err io.Writer
	// Connect makes the channel of a test without the connection manager: for the server, it waits
	// for a client.
	Connect func() (Channel, error)
	// Server is the address of the server for a client of the connection manager. It may wait until
	// the server listens.
	Server func(t verbs.Thread) (netip.Addr, error)
	// Listening, unless nil, is told that a server of the connection manager listens, on a port
	// with this address.
	Listening func(addr netip.Addr)
	// PeerGone, unless nil, reports that the other end has ended, so that nobody waits for it.
	PeerGone func() bool
	// Random draws packet sequence numbers.
	Random func() uint32
	// Interrupted reports whether the user wants the test to end; nil: never.
	Interrupted func() bool
	// WriteJSON puts a report in the place of a file; nil: there are no files.
	WriteJSON func(path string, b []byte) error
	// OldPost has requests posted by ibv_post_send where perftest would take the newer calls.
	OldPost bool
	// Steps, unless nil, gets what each step took; Calls are the verbs calls since it was called
	// last.
	Steps *Steps
	Calls func() []CallCount
	// Measuring, unless nil, is told when the run of a size begins, and when it has ended.
	Measuring func(size uint64, begins bool, now time.Duration)
	// Idle, unless nil, is called between two looks of a loop that polls memory, in place of the
	// time that a look takes: it may return when something may have been written.
	Idle func(t verbs.Thread)
	// Note, unless nil, is told what the results do not show.
	Note func(text string)
}

// StepError is a step of the flow that failed, why, and what to try.
type StepError struct {
	Step string
	Err  error
	Hint string
	// Words are what perftest prints, line by line.
	Words string
}

// Error returns the message.
func (e *StepError) Error() string {
	s := fmt.Sprintf("step %q failed: %v", e.Step, e.Err)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// End is one end of a test.
type End struct {
	o   *Options
	env *Env
	ch  Channel
	// undo are what takes back what was made, in the order in which it was made.
	undo []func(verbs.Thread) error

	dev      verbs.Device
	ctx      verbs.Context
	attr     verbs.DeviceAttr
	port     verbs.PortAttr
	gid      verbs.GID
	useGID   bool
	gidIndex int
	inline   int
	old      bool // posts by ibv_post_send
	reads    int  // outstanding reads of this end
	mtu      verbs.MTU
	page     int
	line     int // of the cache
	peer     float64

	pd, dom      verbs.PD // dom is the parent domain with a thread domain, or pd
	sendCQ, rcq  verbs.CQ
	sendCh, rcCh verbs.CompChannel
	srq          verbs.SRQ
	memory       memoryKind
	nullMR       verbs.MR
	conns        []*conn
	remote       []exchange.Keys

	// Of tests by the connection manager: the addresses of the server and of this end, the ids of
	// the queue pairs and how many of them are connected, and of a server what listens, and the
	// client's initiator depths and responder resources.
	server, source netip.Addr
	cm             *events
	ids            []verbs.CMID
	connected      int
	listener       verbs.CMID
	depths         [][2]uint8
	broken         bool // the test has failed

	size   uint64 // of the messages that are measured now
	times  times
	batch  batch
	wc     []verbs.WC
	swc    []verbs.WC
	mine   exchange.Report
	passed struct{ bw, rate bool }
	rows   []jsonRow
	behind []fellBehind
	short  []uint64 // sizes at which many receives had been posted before
	posted uint64   // receives, before the last of them
}

// conn is a queue pair with what its loops count.
type conn struct {
	index int
	qp    verbs.QP
	ex    verbs.QPEx
	mr    verbs.MR
	buf   verbs.Buffer
	psn   uint32
	// out and in are where its messages are sent from and received, as offsets in the buffer.
	out, in uint64

	// Of datagrams: where they go.
	ah                    verbs.AH
	remoteQPN, remoteQKey uint32

	wrs      []verbs.SendWR
	sges     []verbs.SGE
	remote   uint64
	rkey     uint32
	scnt     uint64
	ccnt     uint64
	rwrs     []verbs.RecvWR
	rsges    []verbs.SGE
	received uint64
	unused   int
	rposted  uint64
}

func (c *conn) addr() uint64 { return c.buf.Addr() + c.out }

// New makes an end.
func New(o *Options, env *Env) *End { return &End{o: o, env: env, size: o.Size} }

// Peer is what the peer has said of itself, as far as the test has come.
type Peer struct {
	Version float64 // of perftest; 0: not known yet
	MTU     verbs.MTU
	Keys    []exchange.Keys // of its queue pairs
}

// Peer is the other end.
func (e *End) Peer() Peer { return Peer{e.peer, e.mtu, e.remote} }

// printf writes to standard output what a full output has.
func (e *End) printf(format string, args ...any) {
	if e.o.Output == FullOutput {
		fmt.Fprintf(e.env.Out, format, args...)
	}
}

// later notes how to take back what was made.
func (e *End) later(f func(verbs.Thread) error) { e.undo = append(e.undo, f) }

// Run runs the test, in a thread of the process that opens the device. Whatever it has made is
// taken back when it returns.
func (e *End) Run(t verbs.Thread) error {
	fmt.Fprint(e.env.Out, e.o.out)
	fmt.Fprint(e.env.Err, e.o.err)
	err := e.flow(t)
	e.broken = err != nil
	if end := e.step(t, stepDestroy, func() error { return e.destroy(t) }); end != nil && err == nil {
		err = end
	}
	return err
}

// measured runs the timed part of a size.
func (e *End) measured(t verbs.Thread, f func() error) error {
	tell := func(begins bool) {
		if e.env.Measuring != nil {
			e.env.Measuring(e.size, begins, t.Now())
		}
	}
	return e.step(t, stepRun, func() error {
		tell(true)
		defer tell(false)
		return f()
	})
}

func (e *End) destroy(t verbs.Thread) error {
	var errs []error
	for _, f := range slices.Backward(e.undo) {
		if err := f(t); err != nil {
			errs = append(errs, err)
		}
	}
	e.undo = nil
	if e.ch != nil {
		errs = append(errs, e.ch.Close())
	}
	return errors.Join(errs...)
}

// step runs one step of the flow, and notes what it took.
func (e *End) step(t verbs.Thread, name string, f func() error) error {
	began := t.Now()
	err := f()
	if s := e.env.Steps; s != nil {
		var calls []CallCount
		if e.env.Calls != nil {
			calls = e.env.Calls()
		}
		s.add(Step{Name: name, Took: t.Now() - began, Calls: calls})
	}
	var already *StepError
	switch {
	case err == nil:
	case !errors.As(err, &already):
		err = &StepError{Step: name, Err: err}
	case already.Step == "":
		already.Step = name
	}
	return err
}

// Names of the steps.
const (
	stepDevice   = "device"
	stepOpen     = "open"
	stepVerify   = "verify capabilities"
	stepLink     = "link"
	stepConnect  = "connect"
	stepVersions = "versions and system data"
	stepMTU      = "MTU"
	stepCM       = "CM"
	stepConnects = "CM connections"
	stepCompare  = "compare parameters"
	stepMemory   = "allocate"
	stepMR       = "PD and MR"
	stepQueues   = "CQ and QP"
	stepInit     = "INIT"
	stepKeys     = "exchange addresses"
	stepRTR      = "RTR"
	stepRTS      = "RTS"
	stepReady    = "handshake"
	stepWarmUp   = "warm-up"
	stepRun      = "run"
	stepReport   = "report"
	stepClose    = "close"
	stepDestroy  = "destroy"
)

// flow is main of the test's program.
func (e *End) flow(t verbs.Thread) error {
	type step struct {
		name string
		do   func(verbs.Thread) error
	}
	steps := []step{
		{stepDevice, e.findDevice}, {stepOpen, e.open}, {stepVerify, e.verify}, {stepLink, e.checkLink}, {stepMemory, e.prepareMemory}, {stepConnect, e.connect}, {stepVersions, e.versions},
		{stepMTU, e.agreeMTU}, {stepCompare, e.compare},
	}
	if e.o.CM {
		steps = append(steps, step{stepCM, e.findQueues}, step{stepMR, e.register}, step{stepQueues, e.createQueues}, step{stepConnects, e.connectQueues}, step{stepKeys, e.exchangeKeys}, step{stepReady, e.ready})
	} else {
		steps = append(steps, step{stepMR, e.register}, step{stepQueues, e.createQueues}, step{stepInit, e.toInit}, step{stepKeys, e.exchangeKeys}, step{stepRTR, e.toRTR}, step{stepRTS, e.toRTS}, step{stepReady, e.ready})
	}
	for _, s := range steps {
		e.bound(s.name == stepVersions || s.name == stepMTU || s.name == stepCompare)
		if err := e.step(t, s.name, func() error { return s.do(t) }); err != nil {
			return err
		}
	}
	if e.o.Test.Latency {
		return e.latencyTest(t)
	}
	return e.bandwidthTest(t)
}

// bound bounds the waits for messages that a peer sends at once, or no longer: it may take any time
// to register its memory, and to measure.
func (e *End) bound(on bool) {
	ch, ok := e.ch.(interface{ limit(time.Duration) error })
	if !ok {
		return
	}
	d := time.Duration(0)
	if on {
		d = patience
	}
	_ = ch.limit(d) // of a connection that has ended, which the next message tells
}

// findDevice is ctx_find_dev.
func (e *End) findDevice(t verbs.Thread) error {
	devs, err := t.Process().Devices(t)
	if err != nil {
		return fmt.Errorf("list of devices: %w", err)
	}
	names := ""
	for _, d := range devs {
		if e.o.Device == "" || d.Name() == e.o.Device {
			e.dev = d
			return nil
		}
		names += " " + d.Name()
	}
	if e.o.Device == "" {
		return &StepError{Step: stepDevice, Err: errors.New("there is no RDMA device"), Hint: "load a driver, or run below rdmasim exec", Words: "Did not detect devices \nIf device exists, check if driver is up\n Unable to find the Infiniband/RoCE device\n"}
	}
	return &StepError{Step: stepDevice, Err: fmt.Errorf("there is no device %s", e.o.Device), Hint: "the devices are" + names, Words: fmt.Sprintf("IB device %s not found\n Unable to find the Infiniband/RoCE device\n", e.o.Device)}
}

func (e *End) open(t verbs.Thread) (err error) {
	if e.ctx, err = e.dev.Open(t); err != nil {
		return fmt.Errorf("%s: %w", e.dev.Name(), err)
	}
	e.later(func(t verbs.Thread) error { return e.ctx.Close(t) })
	if e.attr, err = e.ctx.QueryDevice(t); err != nil {
		return fmt.Errorf("query of %s: %w", e.dev.Name(), err)
	}
	return nil
}

// mlx5Parts are the part numbers of the adapters that perftest knows as mlx5 (ib_dev_name), with
// its newer way to post.
var mlx5Parts = []uint32{4113, 4115, 4116, 4117, 4118, 4119, 4120, 4121, 4122, 4123, 4124, 4125, 4126, 4127, 4129, 4131, 4133, 4135, 41682, 41683, 41686, 41692, 41695}

func (e *End) known() bool { return slices.Contains(mlx5Parts, e.attr.VendorPartID) }

// verify is verify_params_with_device_context, and what depends on the device's class.
func (e *End) verify(t verbs.Thread) error {
	e.old = e.o.OldPost || e.env.OldPost || !e.known()
	if e.o.Events && e.o.Vector >= e.ctx.NumCompVectors() {
		return &StepError{Step: stepVerify, Err: fmt.Errorf("-X %d: the device has completion vectors 0 to %d", e.o.Vector, e.ctx.NumCompVectors()-1),
			Words: fmt.Sprintf(" Completion vector specified is invalid\n Max completion vector = %d\n", e.ctx.NumCompVectors()-1)}
	}
	if e.o.Test.Verb == Atomic && e.attr.Atomic == verbs.AtomicNone {
		return &StepError{Step: stepVerify, Err: errors.New("the device has no atomics"), Hint: "measure read or write instead"}
	}
	if e.o.ODP {
		if err := e.checkODP(t); err != nil {
			return err
		}
	}
	if e.o.PKeyIndex > int(e.attr.MaxPKeys)-1 {
		fmt.Fprintf(e.env.Out, "%s", separator)
		fmt.Fprintf(e.env.Err, " Specified PKey Index, %d, greater than allowed max, %d\n Changing to 0\n", e.o.PKeyIndex, int(e.attr.MaxPKeys)-1)
		e.o.PKeyIndex = 0
	}
	e.chooseInline()
	e.chooseReads()
	return nil
}

// checkODP is check_odp_support.
func (e *End) checkODP(t verbs.Thread) error {
	a, err := e.ctx.QueryDeviceEx(t, 0)
	if err != nil {
		return fmt.Errorf("query of on-demand paging: %w", err)
	}
	caps, name := a.ODPRC, "RC"
	switch e.o.Connection {
	case UC:
		caps, name = a.ODPUC, "UC"
	case UD:
		caps, name = a.ODPUD, "UD"
	}
	need := map[Verb]uint32{Send: verbs.ODPSend | verbs.ODPRecv, SendImm: verbs.ODPSend | verbs.ODPRecv, Write: verbs.ODPWrite, WriteImm: verbs.ODPWrite, Read: verbs.ODPRead, Atomic: verbs.ODPAtomic}[e.o.Test.Verb]
	if a.ODPGeneralCaps&verbs.ODPSupport != 0 && caps&need == need {
		return nil
	}
	return &StepError{Step: stepVerify, Err: fmt.Errorf("--odp: the device has no on-demand paging of this verb on %s", name), Hint: "leave --odp out", Words: " The device does not support On-Demand Paging.\n"}
}

// chooseInline is ctx_set_max_inline for host memory.
func (e *End) chooseInline() {
	o := e.o
	e.inline = o.Inline
	switch {
	case !e.known():
		if o.Inline != unset {
			fmt.Fprint(e.env.Out, separator)
			fmt.Fprint(e.env.Err, "Device not recognized to implement inline feature. Disabling it\n")
		}
		e.inline = 0
	case o.Inline != unset:
	case o.Memory.Kind != "":
		fmt.Fprint(e.env.Out, "Perftest doesn't supports device memory tests with inline messages: inline size set to 0\n")
		e.inline = 0
	case !o.Test.Latency || reads(o.Test):
		e.inline = 0
	case !o.Test.Verb.sends():
		e.inline = 220
	case o.Connection == UD:
		e.inline = 188
	default:
		e.inline = 236
	}
}

// chooseReads is ctx_set_out_reads.
func (e *End) chooseReads() {
	most := min(e.attr.MaxQPRdAtom, 255)
	switch n := e.o.OutReads; {
	case !reads(e.o.Test):
		e.reads = 1
	case n > most:
		fmt.Fprint(e.env.Out, separator)
		fmt.Fprintf(e.env.Err, " Number of outstanding reads is above max = %d\n Changing to that max value\n", most)
		e.reads = most
	case n <= 0:
		e.reads = most
	default:
		e.reads = n
	}
}

// checkLink is check_link: the port must be active.
func (e *End) checkLink(t verbs.Thread) (err error) {
	if e.port, err = e.ctx.QueryPort(t, e.o.IBPort); err != nil {
		return &StepError{Step: stepLink, Err: fmt.Errorf("query of port %d: %w", e.o.IBPort, err), Hint: fmt.Sprintf("the device has ports 1 to %d", e.attr.PhysPortCnt), Words: fmt.Sprintf(" Unable to query port %d attributes\n Couldn't set the link layer\n Couldn't get context for the device\n", e.o.IBPort)}
	}
	if e.port.State != verbs.PortActive {
		return &StepError{Step: stepLink, Err: fmt.Errorf("port %d is not active", e.o.IBPort), Hint: "bring its link up, or choose another with -i", Words: fmt.Sprintf(" Port number %d state is not active\n Couldn't set the link layer\n", e.o.IBPort)}
	}
	e.useGID = e.o.GIDIndex != unset
	if e.ethernet() || e.useGID {
		return e.chooseGID(t)
	}
	return nil
}

func (e *End) ethernet() bool { return e.port.LinkLayer == verbs.LinkEthernet }

// connect makes the channel to the peer.
func (e *End) connect(t verbs.Thread) (err error) {
	if e.o.Host == "" {
		e.printf("\n************************************\n* Waiting for client to connect... *\n************************************\n")
	}
	if e.o.SideCM {
		return e.connectSide(t)
	}
	if e.ch, err = e.env.Connect(); err != nil {
		hint, words := "start the server first, and give the same -p to both", fmt.Sprintf("Couldn't connect to %s:%d\n", e.o.Host, e.o.Port)
		if e.o.Host == "" {
			hint, words = "another program may have the port: choose another with -p, for both ends", fmt.Sprintf("Couldn't listen to port %d\n", e.o.Port)
		}
		return &StepError{Step: stepConnect, Err: err, Hint: hint, Words: words + "Unable to open file descriptor for socket connection\n Unable to init the socket connection\n"}
	}
	return nil
}

// interrupted reports whether the user wants no more.
func (e *End) interrupted() bool { return e.env.Interrupted != nil && e.env.Interrupted() }

// patience is how long an end waits for a message that does not come, as perftest's watch-dog does:
// two of its periods.
const patience = 120 * time.Second
