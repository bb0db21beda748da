// Package perf does what the programs of linux-rdma/perftest do, over package verbs: the eight
// tests ib_{write,read,send, atomic}_{bw,lat} with their flags, their exchange over TCP, their
// loops, their arithmetic and their output. So one program measures the simulator and, through
// libibverbs, a real device, and has a real ib_write_bw as its peer.
//
// The model is perftest 6.29 (master 00b55b6); version 6.06 is understood as a peer. Where a source
// is named below without its project, it is a file of that version.
package perf

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Verb is what a test does, with perftest's numbers.
type Verb int

// Verbs.
const (
	Send Verb = iota
	SendImm
	Write
	WriteImm
	Read
	Atomic
)

// receives reports whether the verb has completions at the end that receives.
func (v Verb) receives() bool { return v == Send || v == SendImm || v == WriteImm }

// sends reports whether the receiver chooses the memory.
func (v Verb) sends() bool { return v == Send || v == SendImm }

// Test is one of the programs.
type Test struct {
	Verb    Verb
	Latency bool
}

var programs = []string{"send_bw", "send_lat", "write_bw", "write_lat", "read_bw", "read_lat", "atomic_bw", "atomic_lat"}

// Programs are the names of the tests.
func Programs() []string { return slices.Clone(programs) }

// ParseTest finds the test of a name, with or without the ib_ of perftest's programs.
func ParseTest(name string) (Test, error) {
	short := strings.TrimPrefix(name, "ib_")
	if !slices.Contains(programs, short) {
		return Test{}, fmt.Errorf("%q is not one of the tests %s", name, strings.Join(programs, ", "))
	}
	verb, kind, _ := strings.Cut(short, "_")
	return Test{map[string]Verb{"send": Send, "write": Write, "read": Read, "atomic": Atomic}[verb], kind == "lat"}, nil
}

// Name is the name of perftest's program.
func (t Test) Name() string {
	return "ib_" + map[Verb]string{Send: "send", SendImm: "send", Write: "write", WriteImm: "write", Read: "read", Atomic: "atomic"}[t.Verb] +
		map[bool]string{false: "_bw", true: "_lat"}[t.Latency]
}

// Method says which sizes are measured, and for how long, with perftest's numbers.
type Method int

// Methods.
const (
	Regular Method = iota
	AllSizes
	Infinite
)

// Connections, with perftest's numbers.
const (
	RC = iota
	UC
	UD
)

var connections = []string{"RC", "UC", "UD", "RawEth", "XRC", "DC", "SRD"}

// Outputs.
const (
	FullOutput = iota
	OutputBandwidth
	OutputRate
	OutputLatency
)

// Units of a rate limit.
const (
	GigabitPerSecond  = 'g'
	MebibytePerSecond = 'M'
	PacketPerSecond   = 'p'
)

// Options are the settings of one end, as its command line gives them and perftest completes them.
type Options struct {
	Test Test
	// Program is the name that usage and errors show.
	Program string
	// Host is the server's; empty at the server.
	Host string
	// Sender posts what is measured: the client, or with --reversed the server.
	Sender bool

	Port       int
	Device     string
	IBPort     int
	MTU        int // asked for, in bytes; 0: the port's
	Size       uint64
	sizeGiven  bool
	Iters      uint64 // of each queue pair; 0 with a duration
	TxDepth    int
	RxDepth    int
	QPTimeout  uint8
	SL         uint8
	tos        int // of the connection manager; unset: none
	GIDIndex   int // -1: perf chooses
	Method     Method
	Timed      bool // for a duration
	Duration   int  // seconds
	Margin     int
	Connection int
	QPs        int
	Events     bool
	Vector     int
	vectorSet  bool
	Inline     int // -1: perftest's choice
	OutReads   int
	CmpSwap    bool // atomics are that; else fetch and add
	BothWays   bool
	CQMod      int
	cqModGiven bool
	NoPeak     bool
	PostList   int
	RecvList   int
	Histogram  bool
	Unsorted   bool
	Gbits      bool
	ReportBoth bool
	Output     int
	JSON       bool
	JSONFile   string
	LimitBW    float64
	LimitRate  float64
	limitBW    bool
	limitRate  bool

	CM, SideCM bool  // -R and -z
	RetryCount uint8 // of connections by the connection manager
	SRQ        bool
	MRPerQP    bool
	HugePages  bool
	ODP        bool
	NoLock     bool
	OldPost    bool
	NoRelaxed  bool // --disable_pcie_relaxed
	WarmUp     bool
	NullMR     bool
	Reversed   bool
	CQEPoll    int
	Dynamic    bool // polls adapt their batch
	Gap        time.Duration
	PKeyIndex  int
	Traffic    uint8
	Flows      []uint32
	DLID       uint16
	IPv6GID    bool
	IPv6       bool
	SourceIP   string
	WaitEnd    time.Duration

	RateLimit float64
	RateUnit  byte
	RateType  string // "", "SW" or "HW"
	Burst     int

	// Memory is the kind of the test's buffers, by the flag that chose it; empty: host memory.
	Memory Memory

	// Notes are what perftest does silently although one would not expect it.
	Notes []string
	// given are the options before they were completed.
	given *Options
	// out and err are what perftest prints before it begins.
	out, err string
}

// Warnings are the lines that perftest prints while it reads its command line, to standard output
// and to standard error.
func (o *Options) Warnings() (out, err string) { return o.out, o.err }

// Memory is what the flags say about the kind of memory.
type Memory struct {
	Kind   string // "", or "cuda"
	Device int
	BusID  string
	DMABuf bool
}

const unset = -1

// defaults are those of init_perftest_params.
func defaults(t Test) *Options {
	o := &Options{Test: t, Port: 18515, IBPort: 1, Size: 65536, TxDepth: 128, RxDepth: 1, QPTimeout: 14, GIDIndex: unset, Duration: 5, Margin: unset, tos: unset, RetryCount: retries,
		QPs: 1, Inline: unset, CQMod: 100, Iters: 1000, PostList: 1, RecvList: 1, JSONFile: "perftest_out.json", CQEPoll: pollBatch, Dynamic: true, RateUnit: GigabitPerSecond}
	if t.Latency {
		o.TxDepth, o.Size = 1, 2
	}
	if t.Verb == Atomic {
		o.Size = atomicSize
	}
	if t.Verb == Send || t.Verb == Write {
		o.RxDepth = receiveDepth
	}
	if t.Verb == Write && !t.Latency {
		o.Iters = 5000
	}
	return o
}

// Constants of perftest_parameters.h.
const (
	atomicSize    = 8
	receiveDepth  = 512
	pollBatch     = 16
	maxUCReceives = 16000
	leastUDSRQ    = 20
	allSizesMost  = 1 << 23
	modLimit      = 8192  // larger messages are moderated only on request
	peakLimit     = 20000 // of more iterations no peak is searched
	fewSamples    = 100   // a latency test with less has no 99 % point
	dynamicLeast  = 3000
	latencyMost   = 100_000_000 // a latency test keeps the time of each message
)

// receiver reports whether this end receives what is measured.
func (o *Options) receiver() bool { return !o.Sender || o.BothWays }

// qpType is the type of the test's queue pairs.
func (o *Options) qpType() verbs.QPType {
	return []verbs.QPType{verbs.QPTRC, verbs.QPTUC, verbs.QPTUD}[o.Connection]
}

// sample is how long a timed test counts.
func (o *Options) sample() time.Duration {
	return time.Duration(o.Duration-2*o.Margin) * time.Second
}

// note says what perftest does without a word.
func (o *Options) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}
