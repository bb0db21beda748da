// Package perftest reads what the programs of linux-rdma/perftest print: ib_write_bw, ib_read_lat
// and their kin, of the versions 6.06 (perftest 4.5, as Debian 12 has it) and 6.29, which print the
// same tables. It gives each number with its line, and the configuration that the header shows.
package perftest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Operations, as titles name them.
const (
	Write    = "write"
	WriteImm = "write_imm"
	Send     = "send"
	SendImm  = "send_imm"
	Read     = "read"
	FetchAdd = "fetch_add"
	CmpSwap  = "cmp_swap"
)

// Run is one test with its configuration. Numbers that the header does not show are 0.
type Run struct {
	File string
	Line int // of the title

	Op            string
	Latency       bool // else bandwidth
	Bidirectional bool
	Events        bool

	Device     string
	Link       string // Ethernet or IB
	Connection string // RC, UC, UD, ...
	SRQ        bool
	// Sender says that this end posted: the header shows the depth of its send queue.
	Sender                       bool
	QPs                          int
	TxDepth, RxDepth             int
	PostList, RecvPostList       int
	CQModeration                 int
	MTU                          int
	Inline                       int
	OutReads                     int
	Rows                         []Row
	decided                      map[string]bool
	unit                         float64 // bytes/s of a printed bandwidth of 1
	cycles, perSecond, hasCPUUse bool
}

// Row is the result for one size of message.
type Row struct {
	Line       int
	Size       uint64 // bytes
	Iterations uint64
	// Rate is messages per second, and RateError by how much of it the printed digits may be off;
	// of a bandwidth test.
	Rate, RateError float64
	// Typical is the median in nanoseconds: of a round trip for READs and atomics, and half of one
	// for the others.
	Typical, TypicalError float64
}

// Error is what is wrong with an output, and where.
type Error struct {
	File string
	Line int
	Text string
	Err  error // ErrNothingMeasured, or nil
}

// Error returns the message.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrNothingMeasured is inside the error of a table whose numbers are zero or none: perftest did
// what it was to do, or its peer ended, and it could not measure the frequency of its clock.
var ErrNothingMeasured = errors.New("the test measured nothing")

var (
	separator = regexp.MustCompile(`^-{60,}\s*$`)
	title     = regexp.MustCompile(`^\s{10,}(Send|Send_imm|RDMA_Write|RDMA_Write_imm|RDMA_Read|Atomic FETCH_AND_ADD|Atomic CMP_AND_SWAP) (.*)Test( with events.*)?\s*$`)
	anyTitle  = regexp.MustCompile(`^\s{10,}(\S.*) Test\b`)
	bare      = regexp.MustCompile(`^\s*[0-9]+\.[0-9]{6}\s*$`)
	counter   = regexp.MustCompile(`^\s*[\w/]+=-?\d+\s*$`)
	setting   = regexp.MustCompile(`^ ([A-Za-z_*][A-Za-z_*. ]*?)\s*: (\S*)\s*$`)
)

var ops = map[string]string{"Send": Send, "Send_imm": SendImm, "RDMA_Write": Write, "RDMA_Write_imm": WriteImm, "RDMA_Read": Read,
	"Atomic FETCH_AND_ADD": FetchAdd, "Atomic CMP_AND_SWAP": CmpSwap}

// parser goes through the lines of an output.
type parser struct {
	file  string
	lines []string
	at    int
	runs  []*Run
}

// Parse reads an output, of one test or of several one after the other. An output without a test,
// one that ends before or in its table, and one with columns that are not known are errors.
func Parse(file string, src []byte) ([]*Run, error) {
	p := &parser{file: file, lines: strings.Split(strings.TrimRight(string(bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))), "\n"), "\n")}
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		m := title.FindStringSubmatch(line)
		if m == nil {
			if other := anyTitle.FindStringSubmatch(line); other != nil && p.at > 0 && separator.MatchString(p.lines[p.at-1]) {
				return nil, p.errorf(p.at, "test %q is not one of the known tests: Send, RDMA_Write, RDMA_Read and Atomic, BW or Latency", other[1])
			}
			p.at++
			continue
		}
		if err := p.test(m); err != nil {
			return nil, err
		}
	}
	if len(p.runs) == 0 {
		return nil, p.noTest()
	}
	return p.runs, nil
}

func (p *parser) errorf(at int, format string, args ...any) error {
	return &Error{File: p.file, Line: at + 1, Text: fmt.Sprintf(format, args...)}
}

// noTest says why an output has no test.
func (p *parser) noTest() error {
	for i, l := range p.lines {
		switch {
		case bare.MatchString(l):
			return p.errorf(i, "a number alone does not say of what it is: run the test without --output")
		case strings.Contains(l, "Couldn't connect"), strings.Contains(l, "Failed status"), strings.HasPrefix(strings.TrimSpace(l), "Unable"):
			return p.errorf(i, "the test did not run: %s", strings.TrimSpace(l))
		}
	}
	return p.errorf(0, "this is no output of perftest: no line has the title of a test, such as RDMA_Write BW Test")
}

// test reads a test from its title to the line below its table.
func (p *parser) test(m []string) error {
	r := &Run{File: p.file, Line: p.at + 1, Op: ops[m[1]], Latency: strings.Contains(m[2], "Latency"), Bidirectional: strings.Contains(m[2], "Bidirectional"),
		Events: m[3] != "", decided: map[string]bool{}}
	began := p.at
	p.at++
	for ; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if strings.HasPrefix(line, " #bytes") {
			break
		}
		if title.MatchString(line) {
			return p.errorf(began, "the output of this test ends before its table: the test failed, or the file was cut")
		}
		if err := p.header(r, line); err != nil {
			return err
		}
	}
	if p.at == len(p.lines) {
		return p.errorf(began, "the output of this test ends before its table: the test failed, or the file was cut")
	}
	if err := p.columns(r); err != nil {
		return err
	}
	if err := p.rows(r); err != nil {
		return err
	}
	if r.QPs == 0 || r.Connection == "" || r.MTU == 0 {
		return p.errorf(began, "the header of this test has no Number of qps, Connection type or Mtu: it is not whole")
	}
	p.runs = append(p.runs, r)
	return nil
}

// header takes a line of the header, which may have two columns.
func (p *parser) header(r *Run, line string) error {
	for column := range strings.SplitSeq(line, "\t\t") {
		if !strings.HasPrefix(column, " ") {
			column = " " + column
		}
		m := setting.FindStringSubmatch(column)
		if m == nil {
			continue
		}
		number := map[string]*int{"Number of qps": &r.QPs, "TX depth": &r.TxDepth, "RX depth": &r.RxDepth, "Post List": &r.PostList, "Recv Post List": &r.RecvPostList,
			"CQ Moderation": &r.CQModeration, "Mtu": &r.MTU, "Max inline data": &r.Inline, "Outstand reads": &r.OutReads}[m[1]]
		if number != nil {
			n, err := strconv.Atoi(strings.TrimSuffix(m[2], "[B]"))
			if err != nil || n < 0 {
				return p.errorf(p.at, "%s is %q, not a whole number", m[1], m[2])
			}
			if r.decided[m[1]] && *number != n {
				return p.errorf(p.at, "%s is %d here and was %d before in the same header", m[1], n, *number)
			}
			*number, r.decided[m[1]] = n, true
			r.Sender = r.Sender || m[1] == "TX depth"
			continue
		}
		switch m[1] {
		case "Device":
			r.Device = m[2]
		case "Link type":
			r.Link = m[2]
		case "Connection type":
			r.Connection = m[2]
		case "Using SRQ":
			r.SRQ = m[2] == "ON"
		}
	}
	return nil
}

// columns reads the titles of the table.
func (p *parser) columns(r *Run) error {
	line := p.lines[p.at]
	switch {
	case r.Latency && strings.Contains(line, "t_typical[usec]"):
	case r.Latency && strings.Contains(line, "t_typical[cycles]"):
		r.cycles = true
	case r.Latency && strings.Contains(line, "tps average"):
		r.perSecond = true
	case !r.Latency && strings.Contains(line, "Port1"):
		return p.errorf(p.at, "a table for each port is not read: run the test without --report-per-port")
	case !r.Latency && strings.Contains(line, "BW average[MiB/sec]"), !r.Latency && strings.Contains(line, "BW average[MB/sec]"):
		r.unit = 1 << 20 // both versions divide by 2^20
	case !r.Latency && strings.Contains(line, "BW average[Gb/sec]"):
		r.unit = 1e9 / 8
	default:
		return p.errorf(p.at, "no known version of perftest (6.06 or 6.29) prints these columns: %s", strings.Join(strings.Fields(line), " "))
	}
	r.hasCPUUse = strings.Contains(line, "CPU_Util")
	p.at++
	return nil
}

// rows reads the table, whose last line is followed by dashes.
func (p *parser) rows(r *Run) error {
	for ; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if separator.MatchString(line) {
			if len(r.Rows) == 0 {
				return p.errorf(p.at, "the table has no row: the test failed, or this is the end that measures nothing")
			}
			return nil
		}
		switch {
		case strings.HasPrefix(line, "#, ") && len(r.Rows) == 0: // with -H and -U all times come before, and the titles again
			if !p.skipTo(" #bytes") {
				return p.errorf(len(p.lines)-1, "the output ends in the list of times of the test in line %d: the file was cut", r.Line)
			}
			continue
		case strings.TrimSpace(line) == "", counter.MatchString(line): // with --report-counters
			continue
		}
		row, err := p.row(r, strings.Fields(line))
		if err != nil {
			return err
		}
		r.Rows = append(r.Rows, row)
	}
	return p.errorf(len(p.lines)-1, "the output ends in the table of the test in line %d: the test failed, or the file was cut", r.Line)
}

// skipTo goes on to the next line that begins so.
func (p *parser) skipTo(prefix string) bool {
	for ; p.at < len(p.lines); p.at++ {
		if strings.HasPrefix(p.lines[p.at], prefix) {
			return true
		}
	}
	return false
}

func (p *parser) row(r *Run, f []string) (Row, error) {
	want := 5
	switch {
	case r.perSecond:
		want = 4
	case r.Latency:
		want = 9
	case r.hasCPUUse:
		want = 6
	}
	row := Row{Line: p.at + 1}
	if len(f) != want {
		return row, p.errorf(p.at, "a row of this table has %d numbers, and here are %d: %s", want, len(f), strings.Join(f, " "))
	}
	var err error
	if row.Size, err = strconv.ParseUint(f[0], 10, 31); err != nil || row.Size == 0 {
		return row, p.errorf(p.at, "%q is not a message size", f[0])
	}
	if row.Iterations, err = strconv.ParseUint(f[1], 10, 64); err != nil || row.Iterations == 0 {
		return row, p.errorf(p.at, "%q is not an iteration count", f[1])
	}
	values := make([]float64, len(f))
	for i := 2; i < len(f); i++ {
		values[i], err = strconv.ParseFloat(strings.Replace(f[i], "-nan", "nan", 1), 64)
		if err != nil {
			return row, p.errorf(p.at, "%q is not a number", f[i])
		}
	}
	which, scale := 4, 1000.0 // t_typical, in us
	if r.perSecond {
		which = 2 // t_avg is all that there is
	}
	if r.Latency {
		row.Typical, row.TypicalError = values[which]*scale, precision(f[which])/values[which]
		if r.cycles {
			return row, p.errorf(p.at, "the times are in cycles, of a clock that is not known: run the test without -C")
		}
		return row, p.sound(row.Typical, f)
	}
	// Of the two numbers that say the same, the one with more digits.
	row.Rate, row.RateError = values[4]*1e6, precision(f[4])/values[4]
	if e := precision(f[3]) / values[3]; e < row.RateError || math.IsNaN(row.RateError) {
		row.Rate, row.RateError = values[3]*r.unit/float64(row.Size), e
	}
	return row, p.sound(row.Rate, f)
}

// precision is half of the last digit.
func precision(text string) float64 {
	_, digits, _ := strings.Cut(text, ".")
	return math.Pow(10, -float64(len(digits))) / 2
}

// sound refuses numbers of a clock that did not work.
func (p *parser) sound(v float64, f []string) error {
	if v > 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return nil
	}
	return &Error{p.file, p.at + 1, fmt.Sprintf("%v: %s. perftest prints that where it cannot measure the clock's frequency, as on some virtual machines, or where the peer ended",
		ErrNothingMeasured, strings.Join(f, " ")), ErrNothingMeasured}
}
