package perf

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/workload/perftest/exchange"
)

// titleNames are the verbs in the title of a test (testsStr).
var titleNames = map[Verb]string{Send: "Send", SendImm: "Send_imm", Write: "RDMA_Write", WriteImm: "RDMA_Write_imm", Read: "RDMA_Read", Atomic: "Atomic"}

// title is the name of the test with blanks between its words.
func (o *Options) title() string {
	words := []string{titleNames[o.Test.Verb]}
	if o.Test.Verb == Atomic {
		words = append(words, map[bool]string{true: "CMP_AND_SWAP", false: "FETCH_AND_ADD"}[o.CmpSwap])
	}
	switch {
	case o.Test.Latency:
		words = append(words, "Latency")
	default:
		if o.BothWays {
			words = append(words, "Bidirectional")
		}
		if o.PostList > 1 {
			words = append(words, "Post List")
		}
		words = append(words, "BW")
	}
	return strings.Join(append(words, "Test"), " ")
}

func onOff(v bool) string {
	if v {
		return "ON"
	}
	return "OFF"
}

func (e *End) linkName() string {
	if e.ethernet() {
		return "Ethernet"
	}
	return "IB"
}

// setting is a line of the header, with what the JSON calls it; name is empty where only one of the
// two has it.
type setting struct {
	text  string // of the header, with the line's end
	key   string
	value any
}

// settings are the header, in order (ctx_print_test_info, write_test_info_to_file).
func (e *End) settings() []setting {
	o := e.o
	all := []setting{
		{fmt.Sprintf(" Dual-port       : OFF\t\tDevice         : %s\n", e.dev.Name()), "Dual_port", "OFF"}, {"", "Device", e.dev.Name()},
		{fmt.Sprintf(" Number of qps   : %d\t\tTransport type : IB\n", o.QPs), "Number_of_qps", o.QPs}, {"", "Transport_type", "IB"},
		{fmt.Sprintf(" Connection type : %s\t\tUsing SRQ      : %s\n", connections[o.Connection], onOff(o.SRQ)), "Connection_type", connections[o.Connection]}, {"", "Using_SRQ", onOff(o.SRQ)},
		{fmt.Sprintf(" PCIe relax order: %s\t\tLock-free      : %s\n", onOff(e.relaxed()), onOff(o.NoLock)), "PCIe_relax_order", onOff(e.relaxed())},
		{fmt.Sprintf(" ibv_wr* API     : %s\t\tUsing Enhanced Reorder      : OFF\n", onOff(!e.old)), "ibv_wr_API", onOff(!e.old)},
	}
	number := func(show bool, label, key, unit string, v int) {
		if show {
			all = append(all, setting{fmt.Sprintf(" %-16s: %d%s\n", label, v, unit), key, v})
		}
	}
	number(o.Sender || o.BothWays, "TX depth", "TX_depth", "", o.TxDepth)
	number(o.PostList > 1, "Post List", "Post_List", "", o.PostList)
	number(o.RecvList > 1, "Recv Post List", "Recv_Post_List", "", o.RecvList)
	number(o.Test.Verb.receives() && o.receiver(), "RX depth", "RX_depth", "", o.RxDepth)
	number(!o.Test.Latency, "CQ Moderation", "CQ_Moderation", "", o.CQMod)
	if !o.Test.Latency {
		batch := fmt.Sprint(e.newBatch().size)
		if o.Dynamic {
			batch = "Dynamic"
		}
		all = append(all, setting{fmt.Sprintf(" CQE Poll Batch  : %s\n", batch), "", nil})
	}
	number(true, "Mtu", "Mtu", "[B]", e.mtu.Bytes())
	all = append(all, setting{fmt.Sprintf(" Link type       : %s\n", e.linkName()), "Link_type", e.linkName()})
	number(e.useGID, "GID index", "GID_index", "", e.gidIndex)
	number(!reads(o.Test), "Max inline data", "Max_inline_data", "[B]", e.inline)
	number(reads(o.Test), "Outstand reads", "Outstand_reads", "", e.reads)
	all = append(all, setting{fmt.Sprintf(" rdma_cm QPs\t : %s\n", onOff(o.CM)), "rdma_cm_QPs", onOff(o.CM)})
	if o.Memory.Kind == "cuda" {
		all = append(all, setting{"", "cuda_device", o.Memory.Device})
	}
	return append(all, e.exchangeSettings()...)
}

// exchangeSettings are the lines about how the ends talk.
func (e *End) exchangeSettings() []setting {
	o := e.o
	if !o.SideCM {
		return []setting{{" Data ex. method : Ethernet\n", "Data_ex_method", "Ethernet"}}
	}
	all := []setting{{" Data ex. method : rdma_cm", "Data_ex_method", "rdma_cm"}}
	if o.CM && o.tos != unset {
		all = append(all, setting{fmt.Sprintf(" \tTOS    : %d", o.tos), "TOS", o.tos})
	}
	if o.CM && o.Host == "" {
		all = append(all, setting{"\n" + separator + " Waiting for client rdma_cm QP to connect\n Please run the same command with the IB/RoCE interface IP", "", nil})
	}
	return append(all, setting{"\n", "", nil})
}

// header prints what is measured, and how.
func (e *End) header() {
	e.printf("%s                    %s\n", separator, e.o.title())
	if e.o.Events {
		e.printf(" Test with events. Using %s_comp%d\n", e.dev.Name(), e.o.Vector)
	}
	for _, s := range e.settings() {
		e.printf("%s", s.text)
	}
	e.printf("%s", separator)
}

// printAddress is ctx_print_pingpong_data.
func (e *End) printAddress(side string, k exchange.Keys) {
	e.printf(" %s address: LID %s QPN %s PSN %s", side, hex(uint64(k.LID), 4), hex(uint64(k.QPN), 6), hex(uint64(k.PSN), 6))
	if e.o.SideCM { // the end that talks is that of a send test
		e.printf("\n")
		e.printGID(&k)
		return
	}
	if e.o.Test.Verb == Read {
		e.printf(" OUT %s", hex(uint64(k.OutReads), 4))
	}
	if e.o.Test.Verb == Read || e.o.Test.Verb == Write {
		e.printf(" RKey %s VAddr %s", hex(uint64(k.RKey), 8), hex(k.Addr, 16))
	}
	e.printf("\n")
	e.printGID(&k)
}

func (e *End) printGID(k *exchange.Keys) {
	if e.useGID {
		parts := make([]string, len(k.GID))
		for i, b := range k.GID {
			parts[i] = fmt.Sprintf("%02d", b)
		}
		e.printf(" GID: %s\n", strings.Join(parts, ":"))
	}
}

// hex is %#0*x of C: 0x counts as part of the width, and zero has none.
func hex(v uint64, width int) string {
	if v == 0 {
		return strings.Repeat("0", width)
	}
	return fmt.Sprintf("0x%0*x", width-2, v)
}

// titles prints the separator and the titles of the columns.
func (e *End) titles() {
	e.printf("%s", separator)
	switch {
	case e.o.Test.Latency && e.o.Timed:
		e.printf(" #bytes        #iterations       t_avg[usec]    tps average\n")
	case e.o.Test.Latency:
		e.printf(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% percentile[usec] \n")
	default:
		unit := "MiB"
		if e.o.Gbits {
			unit = "Gb"
		}
		e.printf(" #bytes     #iterations    BW peak[%s/sec]    BW average[%s/sec]   MsgRate[Mpps]\n", unit, unit)
	}
}

// printReport is print_full_bw_report: a row, the file, and the verdict on the limits.
func (e *End) printReport(r, theirs *exchange.Report) error {
	o := e.o
	peak, average, rate := r.Peak, r.Average, r.Rate
	if theirs != nil {
		peak, average, rate = peak+theirs.Peak, average+theirs.Average, rate+theirs.Rate
	}
	if o.BothWays && theirs != nil || !o.BothWays || o.BothWays && o.Test.Verb.sends() {
		e.judge(average, rate)
	}
	fine := o.Gbits && r.Average < 0.1
	err := e.writeJSON(bandwidthRow(r.Size, r.Iters, peak, average, rate, fine, o.Output))
	switch o.Output {
	case OutputBandwidth:
		fmt.Fprintf(e.env.Out, "%f\n", average)
	case OutputRate:
		fmt.Fprintf(e.env.Out, "%f\n", rate)
	default:
		e.row(r.Size, r.Iters, peak, average, rate)
	}
	return err
}

// row is a row of a bandwidth table (REPORT_FMT, and REPORT_FMT_EXT for small numbers).
func (e *End) row(size, iters uint64, peak, average, rate float64) {
	if e.o.Gbits && average < 0.1 {
		e.printf(" %-7d    %d           %-7.6f            %-7.6f            %-7.6f\n", size, iters, peak, average, rate)
		return
	}
	e.printf(" %-7d    %-10d       %-7.2f            %-7.2f\t\t     %-7.6f\n", size, iters, peak, average, rate)
}

// list prints all times (-H and -U).
func (e *End) list(all []float64) {
	fmt.Fprint(e.env.Out, "#, usec\n")
	for i, v := range all {
		fmt.Fprintf(e.env.Out, "%d, %s\n", i+1, general(v))
	}
}

// general is %g of C: six significant digits.
func general(v float64) string {
	s := fmt.Sprintf("%.6g", v)
	if mantissa, exponent, ok := strings.Cut(s, "e"); ok && len(exponent) == 2 {
		return mantissa + "e" + exponent[:1] + "0" + exponent[1:]
	}
	return s
}

func (e *End) printLatency(s *summary) error {
	err := e.writeJSON(latencyRow(e.size, e.o.Iters, s, e.o.Output))
	if e.o.Output == OutputLatency {
		fmt.Fprintf(e.env.Out, "%f\n", s.average)
		return err
	}
	e.printf(" %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n", e.size, e.o.Iters, s.least, s.most, s.typical, s.average, s.deviation, s.p99, s.p999)
	return err
}

func (e *End) printLatencyTimed(average, perSecond float64) error {
	err := e.writeJSON(latencyTimedRow(e.size, e.mine.Iters, average, perSecond, e.o.Output))
	if e.o.Output == OutputLatency {
		fmt.Fprintf(e.env.Out, "%f\n", average)
		return err
	}
	e.printf(" %-7d       %d            %-7.2f        %-7.2f\n", e.size, e.mine.Iters, average, perSecond)
	return err
}
