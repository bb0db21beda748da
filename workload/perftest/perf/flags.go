package perf

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/workload/perftest/exchange"
)

// option is a flag of perftest: a name, a letter or both.
type option struct {
	name   string
	letter byte
	arg    string // what its value is called; empty: it takes none
	help   string // in the usage; empty: it is not listed
	set    func(o *Options, value string) error
	// absent says why the flag cannot be carried out, and what to do; it is refused with that.
	absent string
}

// absent is the error of a flag that perftest has and this program has not.
func absent(f *option) string {
	name := "--" + f.name
	if f.letter != 0 {
		name = "-" + string(f.letter) + ", " + name
	}
	return " " + name + " is not available here: " + f.absent
}

// flag sets a switch.
func flag(field func(o *Options) *bool) func(*Options, string) error {
	return func(o *Options, _ string) error { *field(o) = true; return nil }
}

// integer takes any int, of what.
func integer(what string, field func(o *Options) *int) func(*Options, string) error {
	return func(o *Options, value string) error {
		v, err := whole(value, what, "int")
		*field(o) = int(v)
		return err
	}
}

// ranged takes a number between two.
func ranged(what, typ string, least, most int64, field func(o *Options) *int) func(*Options, string) error {
	return func(o *Options, value string) error {
		v, err := within(value, what, typ, least, most)
		*field(o) = int(v)
		return err
	}
}

// only refuses an option in the tests that have it not.
func only(has func(Test) bool, text string, set func(*Options, string) error) func(*Options, string) error {
	return func(o *Options, value string) error {
		if err := set(o, value); err != nil {
			return err
		}
		if !has(o.Test) {
			return refuse("%s", text)
		}
		return nil
	}
}

func bandwidth(t Test) bool { return !t.Latency }
func latency(t Test) bool   { return t.Latency }
func reads(t Test) bool     { return t.Verb == Read || t.Verb == Atomic }
func noReads(t Test) bool   { return !reads(t) }

const (
	rawOnly   = "it belongs to the raw Ethernet tests"
	noGPU     = "only host memory and CUDA memory are known"
	noCounter = "there are no files of counters; rdmasim run --counters shows those of the simulator"
)

// options are those of perftest, in the order of its usage: first those with a letter, then the
// others.
var options = slices.Concat(coreOptions, reportOptions, memoryOptions, tuningOptions, rateOptions, otherOptions)

var coreOptions = []option{
	{"all", 'a', "", "sizes from 2 to 2^23", func(o *Options, _ string) error { o.Method = AllSizes; return nil }, ""},
	{"atomic_type", 'A', "type", "CMP_AND_SWAP or FETCH_AND_ADD, of atomic tests", setAtomic, ""},
	{"bidirectional", 'b', "", "both ends send, of bandwidth tests", only(bandwidth, " Bidirectional is only available in BW test", flag(func(o *Options) *bool { return &o.BothWays })), ""},
	{"connection", 'c', "type", "RC, UC or, of send tests, UD", setConnection, ""},
	{"report-cycles", 'C', "", "", nil, "times are in nanoseconds of a monotonic clock, and cycles of a processor are not counted: leave it out"},
	{"ib-dev", 'd', "name", "the device (default: the first)", func(o *Options, v string) error { o.Device = v; return nil }, ""},
	{"duration", 'D', "s", "run for this many seconds (virtual ones on the simulator) instead of a number of iterations", setDuration, ""},
	{"events", 'e', "", "sleep until a completion event instead of polling; not of write tests", flag(func(o *Options) *bool { return &o.Events }), ""},
	{"vector", 'X', "n", "the completion vector of events", setVector, ""},
	{"margin", 'f', "s", "leave out this many seconds at the beginning and at the end of -D (default: a quarter)", func(o *Options, v string) (err error) {
		o.Margin, err = notNegative(v, "Margin")
		return err
	}, ""},
	{"CPU-freq", 'F', "", "accepted: times do not depend on the processor's frequency", func(*Options, string) error { return nil }, ""},
	{"mcg", 'g', "", "", nil, "multicast groups are not joined: leave it out"},
	{"MGID", 'M', "gid", "", nil, "multicast groups are not joined: leave it out"},
	{"help", 'h', "", "this text", func(*Options, string) error { return &Help{} }, ""},
	{"version", 'V', "", "the version of perftest that is the model", func(*Options, string) error { return &Help{"Version: " + exchange.Version + "\n"} }, ""},
	{"report-histogrm", 'H', "", "print all times in order of size, of latency tests", only(latency, " Available only on Latency tests", flag(func(o *Options) *bool { return &o.Histogram })), ""},
	{"report-unsorted", 'U', "", "print all times in the order in which they were measured, of latency tests", only(latency, " is Available only on Latency tests", flag(func(o *Options) *bool { return &o.Unsorted })), ""},
	{"ib-port", 'i', "n", "port of the device (default 1)", setIBPort, ""},
	{"inline_size", 'I', "bytes", "messages up to this size are sent inline", only(noReads, " Inline feature not available on READ/Atomic verbs", ranged("Max inline", "int", 0, 1024, func(o *Options) *int { return &o.Inline })), ""},
	{"post_list", 'l', "n", "requests of one post call", integer("Send Post List size", func(o *Options) *int { return &o.PostList }), ""},
	{"hop_limit", 'L', "n", "", nil, rawOnly},
	{"mtu", 'm', "bytes", "256 to 4096 (default: the port's)", integer("MTU", func(o *Options) *int { return &o.MTU }), ""},
	{"iters", 'n', "n", "messages of each queue pair, at least 5", setIters, ""},
	{"noPeak", 'N', "", "do not search the peak bandwidth", only(bandwidth, " NoPeak only valid for BW tests", flag(func(o *Options) *bool { return &o.NoPeak })), ""},
	{"outs", 'o', "n", "outstanding reads and atomics (default: what the device has)", only(reads, " Setting Outstanding reads only available on READ verb", integer("Outstanding Reads", func(o *Options) *int { return &o.OutReads })), ""},
	{"dualport", 'O', "", "", nil, "a test uses one port of a device: leave it out"},
	{"port", 'p', "n", "TCP port of the exchange (default 18515)", integer("Port", func(o *Options) *int { return &o.Port }), ""},
	{"qp", 'q', "n", "queue pairs, of bandwidth tests", setQPs, ""},
	{"cq-mod", 'Q', "n", "one completion for this many requests", func(o *Options, v string) error {
		o.cqModGiven = true
		return ranged("CQ moderation", "int", 1, 1024, func(o *Options) *int { return &o.CQMod })(o, v)
	}, ""},
	{"rx-depth", 'r', "n", "receives of a queue pair", setRxDepth, ""},
	{"rdma_cm", 'R', "", "connect the queue pairs by the connection manager", flag(func(o *Options) *bool { return &o.CM }), ""},
	{"size", 's', "bytes", "size of a message (default 65536, of latency tests 2); the suffixes K and M are known", setSize, ""},
	{"sl", 'S', "n", "service level (default 0)", setSL, ""},
	{"tx-depth", 't', "n", "requests outstanding on a queue pair (default 128, of latency tests 1)", ranged("Tx depth", "int", 1, 15000, func(o *Options) *int { return &o.TxDepth }), ""},
	{"tos", 'T', "n", "", ranged("TOS", "int", 0, 256, func(o *Options) *int { return &o.tos }), ""},
	{"qp-timeout", 'u', "n", "ACK timeout: 4.096 us times 2^n (default 14)", setTimeout, ""},
	{"limit_bw", 'w', "value", "exit with status 1 if the bandwidth is lower", setLimit(" Invalid Minimum BW Limit", func(o *Options, v float64) { o.LimitBW, o.limitBW = v, true }), ""},
	{"limit_msgrate", 'y', "value", "exit with status 1 if the message rate is lower", setLimit(" Invalid Minimum msgRate Limit", func(o *Options, v float64) { o.LimitRate, o.limitRate = v, true }), ""},
	{"report-counters", 'W', "list", "", nil, noCounter},
	{"gid-index", 'x', "n", "index of the GID (default: RoCE v2 with an IPv4 address, if there is one)", ranged("Gid index", "uint8_t", 0, 64, func(o *Options) *int { return &o.GIDIndex }), ""},
	{"comm_rdma_cm", 'z', "", "exchange data by the connection manager", flag(func(o *Options) *bool { return &o.SideCM }), ""},
}

var reportOptions = []option{
	{"report_gbits", 0, "", "bandwidth in Gb/s instead of MiB/s", flag(func(o *Options) *bool { return &o.Gbits }), ""},
	{"report-both", 0, "", "with -b, also the results of either direction", flag(func(o *Options) *bool { return &o.ReportBoth }), ""},
	{"report-per-port", 0, "", "", nil, "a test uses one port of a device: leave it out"},
	{"output", 0, "what", "print one number: bandwidth, message_rate or latency", setOutput, ""},
	{"out_json", 0, "", "write the report to a file as JSON", flag(func(o *Options) *bool { return &o.JSON }), ""},
	{"out_json_file", 0, "file", "name of that file (default perftest_out.json)", func(o *Options, v string) error {
		if o.JSONFile = v; v == "" {
			return refuse(" --out_json_file without a name: give the name of a file")
		}
		return nil
	}, ""},
	{"cpu_util", 0, "", "", nil, "what processors do is not measured: leave it out"},
}

var memoryOptions = []option{
	{"mr_per_qp", 0, "", "a memory region for each queue pair", flag(func(o *Options) *bool { return &o.MRPerQP }), ""},
	{"use_hugepages", 0, "", "buffers in pages of 2 MiB", flag(func(o *Options) *bool { return &o.HugePages }), ""},
	{"odp", 0, "", "on-demand paging instead of pinned memory", flag(func(o *Options) *bool { return &o.ODP }), ""},
	{"use-null-mr", 0, "", "local memory is a null memory region, of write and read tests", flag(func(o *Options) *bool { return &o.NullMR }), ""},
	{"use_cuda", 0, "n", "buffers in the memory of CUDA device n", setCUDA, ""},
	{"use_cuda_bus_id", 0, "id", "buffers in the memory of the CUDA device at this PCI address", func(o *Options, v string) error {
		o.Memory.Kind, o.Memory.BusID = "cuda", v
		return nil
	}, ""},
	{"use_cuda_dmabuf", 0, "", "register that memory as a dma-buf", flag(func(o *Options) *bool { return &o.Memory.DMABuf }), ""},
	{"use_cuda_pcie_mapping", 0, "", "", nil, "only the default mapping of a dma-buf is known"},
	{"use_data_direct", 0, "", "", nil, "only the default mapping of a dma-buf is known"},
	{"cuda_mem_type", 0, "n", "", nil, "only device memory is known: leave it out"},
	{"gpu_touch", 0, "when", "", nil, "no program runs on a GPU: leave it out"},
	{"mmap", 0, "file", "", nil, "buffers are anonymous memory or CUDA memory: leave it out"},
	{"mmap-offset", 0, "n", "", nil, "buffers are anonymous memory or CUDA memory: leave it out"},
	{"payload_file_path", 0, "file", "", nil, "the content of messages cannot be chosen: leave it out"},
	{"data_validation", 0, "", "", nil, "payload is not validated during a run; conform checks it case by case"},
	{"data_validation_debug", 0, "", "", nil, "payload is not validated during a run; conform checks it case by case"},
	{"use_musa", 0, "n", "", nil, noGPU}, {"use_musa_bus_id", 0, "id", "", nil, noGPU}, {"use_musa_dmabuf", 0, "", "", nil, noGPU}, {"use_musa_pcie_mapping", 0, "", "", nil, noGPU},
	{"use_rocm", 0, "n", "", nil, noGPU}, {"use_rocm_dmabuf", 0, "", "", nil, noGPU}, {"use_neuron", 0, "n", "", nil, noGPU}, {"use_neuron_dmabuf", 0, "", "", nil, noGPU},
	{"use_hl", 0, "id", "", nil, noGPU}, {"use_mlu", 0, "n", "", nil, noGPU}, {"use_mlu_dmabuf", 0, "", "", nil, noGPU}, {"use_opencl", 0, "n", "", nil, noGPU},
	{"opencl_platform_id", 0, "n", "", nil, noGPU}, {"use_ib_dm_dmabuf", 0, "name", "", nil, noGPU},
}

var tuningOptions = []option{
	{"recv_post_list", 0, "n", "receives of one post call", integer("Receive Post List size", func(o *Options) *int { return &o.RecvList }), ""},
	{"run_infinitely", 0, "", "print a row each -D seconds until it is interrupted", func(o *Options, _ string) error { o.Method = Infinite; return nil }, ""},
	{"reversed", 0, "", "the server sends", flag(func(o *Options) *bool { return &o.Reversed }), ""},
	{"use-srq", 0, "", "one shared receive queue, of send tests", flag(func(o *Options) *bool { return &o.SRQ }), ""},
	{"perform_warm_up", 0, "", "send a window of messages before the test, of write, read and atomic bandwidth tests", flag(func(o *Options) *bool { return &o.WarmUp }), ""},
	{"use_old_post_send", 0, "", "post by ibv_post_send", flag(func(o *Options) *bool { return &o.OldPost }), ""},
	{"write_with_imm", 0, "", "write with immediate", only(func(t Test) bool { return t.Verb == Write || t.Verb == WriteImm }, "Write_with_imm can only be used with write verbs", func(o *Options, _ string) error { o.Test.Verb = immediate(o.Test.Verb, Write, WriteImm); return nil }), ""},
	{"send_with_imm", 0, "", "send with immediate", only(func(t Test) bool { return t.Verb.sends() }, "Send_with_imm can only be used with send verbs", func(o *Options, _ string) error { o.Test.Verb = immediate(o.Test.Verb, Send, SendImm); return nil }), ""},
	{"no_lock", 0, "", "a thread domain, so that the library takes no lock", flag(func(o *Options) *bool { return &o.NoLock }), ""},
	{"cqe_poll", 0, "n", "completions of one poll (default: adapts itself, or 16)", func(o *Options, v string) error {
		o.Dynamic = false
		return ranged("CQE Poll", "uint16_t", 1, 65535, func(o *Options) *int { return &o.CQEPoll })(o, v)
	}, ""},
	{"disable_dynamic_polling", 0, "", "always poll for 16 completions", func(o *Options, _ string) error { o.Dynamic = false; return nil }, ""},
	{"latency_gap", 0, "us", "wait before each message, of latency tests", func(o *Options, v string) error {
		n, err := notNegative(v, "Latency gap time")
		o.Gap = time.Duration(n) * time.Microsecond
		return err
	}, ""},
	{"disable_pcie_relaxed", 0, "", "register memory without relaxed ordering", flag(func(o *Options) *bool { return &o.NoRelaxed }), ""},
	{"pkey_index", 0, "n", "index of the partition key", integer("Pkey index", func(o *Options) *int { return &o.PKeyIndex }), ""},
	{"tclass", 0, "n", "traffic class", func(o *Options, v string) error {
		n, err := whole(v, "traffic class", "uint16_t")
		o.Traffic = uint8(n)
		return err
	}, ""},
	{"flow_label", 0, "list", "flow labels of the queue pairs in turn", setFlows, ""},
	{"dlid", 0, "n", "destination LID", func(o *Options, v string) error {
		n, err := whole(v, "dlid", "uint16_t")
		o.DLID = uint16(n)
		return err
	}, ""},
	{"wait_destroy", 0, "s", "wait before the end", func(o *Options, v string) error {
		n, err := whole(v, "wait_destroy", "uint32_t")
		o.WaitEnd = time.Duration(n) * time.Second
		return err
	}, ""},
	{"ipv6", 0, "", "a GID with an IPv6 address", flag(func(o *Options) *bool { return &o.IPv6GID }), ""},
	{"ipv6-addr", 0, "", "the exchange over IPv6", flag(func(o *Options) *bool { return &o.IPv6 }), ""},
	{"bind_source_ip", 0, "address", "the exchange from this address", func(o *Options, v string) error { o.SourceIP = v; return nil }, ""},
	{"retry_count", 0, "n", "", setRetryCount, ""},
}

var rateOptions = []option{
	{"rate_limit", 0, "value", "send no faster than this", func(o *Options, v string) error {
		if o.RateLimit = strtod(v); !(o.RateLimit > 0) || math.IsInf(o.RateLimit, 0) { // and what is no number
			return refuse(" Rate limit must be non-negative floating point number")
		}
		return nil
	}, ""},
	{"rate_limit_type", 0, "type", "SW: the program waits between bursts", func(o *Options, v string) error {
		if !slices.Contains([]string{"SW", "HW", "PP"}, v) {
			return refuse(" Invalid rate limit type flag. Please use HW, SW or PP.")
		}
		o.RateType = v
		return nil
	}, ""},
	{"rate_units", 0, "unit", "unit of the limit: M (MiB/s), g (Gb/s) or p (messages/s)", func(o *Options, v string) error {
		if v != "M" && v != "g" && v != "p" {
			return refuse(" Invalid rate limit units. Please use M,g or p")
		}
		o.RateUnit = v[0]
		return nil
	}, ""},
	{"burst_size", 0, "n", "messages of a burst (default: the tx-depth)", func(o *Options, v string) (err error) {
		o.Burst, err = notNegative(v, "Burst size")
		return err
	}, ""},
	{"typical_pkt_size", 0, "n", "", nil, "it belongs to a limit in hardware, and only --rate_limit_type=SW is available"},
}

var otherOptions = []option{
	{"dont_xchg_versions", 0, "", "", nil, "perftest itself ends with an error behind it: leave it out"},
	{"force-link", 0, "layer", "", nil, "the port says which link layer it has: leave it out"},
	{"connectionless", 0, "", "", nil, "multicast groups are not joined: leave it out"},
	{"pin_cores", 0, "list", "", nil, "threads are placed by the program: use taskset for a real device"},
	{"numa_node", 0, "n", "", nil, "threads are placed by the program: use numactl for a real device"},
	{"disable_numa", 0, "", "", func(*Options, string) error { return nil }, ""},
	{"use_ooo", 0, "", "", nil, "data is placed in order: leave it out"},
	{"no_enhanced_reorder", 0, "", "", nil, "receives are in order: leave it out"},
	{"log_dci_streams", 0, "n", "", nil, "there are no dynamically connected queue pairs"}, {"log_active_dci_streams", 0, "n", "", nil, "there are no dynamically connected queue pairs"},
	{"source_mac", 'B', "mac", "", nil, rawOnly}, {"dest_mac", 'E', "mac", "", nil, rawOnly}, {"dest_ip", 'J', "address", "", nil, rawOnly}, {"source_ip", 'j', "address", "", nil, rawOnly},
	{"dest_port", 'K', "n", "", nil, rawOnly}, {"source_port", 'k', "n", "", nil, rawOnly}, {"server", 'Z', "", "", nil, rawOnly}, {"client", 'P', "", "", nil, rawOnly},
	{"mac_fwd", 'v', "", "", nil, rawOnly}, {"remote_mac", 0, "mac", "", nil, rawOnly}, {"local_mac", 0, "mac", "", nil, rawOnly}, {"remote_ip", 0, "address", "", nil, rawOnly},
	{"local_ip", 0, "address", "", nil, rawOnly}, {"remote_port", 0, "n", "", nil, rawOnly}, {"local_port", 0, "n", "", nil, rawOnly}, {"tcp", 0, "", "", nil, rawOnly},
	{"raw_ipv6", 0, "", "", nil, rawOnly}, {"promiscuous", 0, "", "", nil, rawOnly}, {"raw_mcast", 0, "", "", nil, rawOnly}, {"flows", 0, "n", "", nil, rawOnly},
	{"flows_burst", 0, "n", "", nil, rawOnly}, {"reply_every", 0, "n", "", nil, rawOnly}, {"vlan_en", 0, "", "", nil, rawOnly}, {"vlan_pcp", 0, "n", "", nil, rawOnly},
}

func immediate(v, plain, with Verb) Verb {
	if v == plain {
		return with
	}
	return v
}

func setAtomic(o *Options, v string) error {
	if o.Test.Verb != Atomic {
		return refuse(" You are not running the atomic_lat/bw test!\n To change the atomic action type, you must run one of the atomic tests")
	}
	if v != "CMP_AND_SWAP" && v != "FETCH_AND_ADD" {
		return exit(" Invalid Atomic type! please choose from {CMP_AND_SWAP,FETCH_AND_ADD}")
	}
	o.CmpSwap = v == "CMP_AND_SWAP"
	return nil
}

func setConnection(o *Options, v string) error {
	i := slices.Index(connections, v)
	switch {
	case i < 0:
		return exit(" Invalid Connection type. Please choose from {RC,UC,UD,XRC,DC,SRD}")
	case i == UC && reads(o.Test):
		return exit(" UC connection not possible in READ/ATOMIC verbs")
	case i == UD && !o.Test.Verb.sends():
		return exit(" UD connection only possible in SEND verb")
	case i > UD:
		return refuse(" -c %s is not available here: connections are RC, UC or UD", v)
	}
	o.Connection = i
	return nil
}

func setDuration(o *Options, v string) error {
	n, err := whole(v, "Duration period", "int")
	if err == nil && n <= 0 {
		err = refuse(" Duration period must be positive")
	}
	o.Duration, o.Timed = int(n), true
	return err
}

func setVector(o *Options, v string) error {
	if o.Test.Verb == Write || o.Test.Verb == WriteImm {
		return refuse(" Events feature not available on WRITE verb")
	}
	o.vectorSet = true
	return ranged("EQN", "int", 0, 2048, func(o *Options) *int { return &o.Vector })(o, v)
}

func setIBPort(o *Options, v string) error {
	n, err := whole(v, "IB Port", "uint8_t")
	if err == nil && n < 1 {
		err = refuse("IB Port can't be less than 1")
	}
	o.IBPort = int(n)
	return err
}

func setIters(o *Options, v string) error {
	n, err := within(v, "Iteration num", "uint64_t", 5, 1<<32)
	o.Iters = uint64(n)
	return err
}

func setQPs(o *Options, v string) error {
	n, err := within(v, "num of Qps", "int", 1, 16384)
	if err == nil && o.Test.Latency && n > 1 {
		err = refuse(" Multiple QPs only available on bw tests")
	}
	o.QPs = int(n)
	return err
}

func setRxDepth(o *Options, v string) error {
	n, err := within(v, " Rx depth", "int", 1, 16384)
	if err == nil && reads(o.Test) && n > 1 {
		err = refuse(" On RDMA verbs rx depth can be only 1")
	}
	o.RxDepth = int(n)
	return err
}

// setSize takes what strtol reads of the text, as perftest does: only a last letter K or M is
// known, and any other is cut off.
func setSize(o *Options, v string) error {
	factor := int64(1)
	digits := v
	if rest, ok := strings.CutSuffix(digits, "K"); ok {
		digits, factor = rest, 1<<10
	}
	if rest, ok := strings.CutSuffix(digits, "M"); ok {
		digits, factor = rest, 1<<20
	}
	n, rest := strtol(digits)
	const most = 1<<31 - 1
	if n < 1 || n > most/factor {
		return refuse(" Message Size should be between %d and %d", 1, most)
	}
	o.Size, o.sizeGiven = uint64(n*factor), true
	if rest != "" {
		o.note("-s %s is %d bytes: perftest cuts off %q, and knows only K and M.", v, n*factor, rest)
	}
	return nil
}

func setSL(o *Options, v string) error {
	n, err := whole(v, "Service Level", "uint8_t")
	if err == nil && n > 15 {
		err = refuse(" Only 15 Service levels")
	}
	o.SL = uint8(n)
	return err
}

func setTimeout(o *Options, v string) error {
	n, err := whole(v, "QP Timeout", "uint8_t")
	if err == nil && n > 31 {
		err = refuse(" -u %s: the field has 5 bits, and a number from 0 to 31 is needed (perftest passes on %d, and the call that sets it fails)", v, n)
	}
	o.QPTimeout = uint8(n)
	return err
}

func setLimit(text string, set func(*Options, float64)) func(*Options, string) error {
	return func(o *Options, v string) error {
		n := strtod(v)
		if n < 0 {
			return refuse("%s", text)
		}
		set(o, n)
		return nil
	}
}

func setOutput(o *Options, v string) error {
	i := slices.Index([]string{"bandwidth", "message_rate", "latency"}, v)
	if i < 0 {
		return refuse(" Invalid verbosity level output flag. Please use bandwidth, latency, message_rate")
	}
	o.Output = i + 1
	return nil
}

func setCUDA(o *Options, v string) error {
	n, err := notNegative(v, "CUDA device")
	o.Memory.Kind, o.Memory.Device = "cuda", n
	return err
}

func setFlows(o *Options, v string) error {
	for label := range strings.SplitSeq(v, ",") {
		n, err := strconv.ParseUint(label, 0, 20)
		if err != nil {
			return refuse(" --flow_label %s: %q is not a number of 20 bits; separate several with commas", v, label)
		}
		o.Flows = append(o.Flows, uint32(n))
	}
	return nil
}

// setRetryCount sets how often a connection of the connection manager sends again. The kernel takes
// 7 for more.
func setRetryCount(o *Options, value string) error {
	n, err := notNegative(value, "Retry Count")
	o.RetryCount = uint8(min(n, retries))
	return err
}
