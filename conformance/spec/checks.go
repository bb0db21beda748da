package spec

import (
	"fmt"
	"reflect"
	"strconv"
	"syscall"

	"github.com/onsi/gomega/types"

	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/verbs"
)

// NoErr records the errno of err and fails the case unless err is nil.
func (c *C) NoErr(step string, err error) {
	o := report.Observation{Step: step, Kind: "errno", Got: verbs.ErrnoName(verbs.ErrnoOf(err)), Want: "0"}
	if !c.judge(o, verbs.ErrnoName(verbs.ErrnoOf(err)), err == nil) {
		c.must(step, err)
	}
}

// must is NoErr without an observation, for what every case does.
func (c *C) must(step string, err error) {
	if err != nil {
		c.fail(step, "want success, got %s (%v)", verbs.ErrnoName(verbs.ErrnoOf(err)), err)
	}
}

// Errno records the errno of err and fails the case unless it is want; 0 is success.
func (c *C) Errno(step string, err error, want syscall.Errno) {
	got := verbs.ErrnoName(verbs.ErrnoOf(err))
	c.check(report.Observation{Step: step, Kind: "errno", Got: got, Want: verbs.ErrnoName(want)}, got, err, match.HaveErrno(want))
}

// ErrnoIn records the errno of err and fails the case unless it is one of set, where 0 is success.
// It returns the errno.
func (c *C) ErrnoIn(step string, err error, set ...syscall.Errno) syscall.Errno {
	names := make([]string, len(set))
	for i, e := range set {
		names[i] = verbs.ErrnoName(e)
	}
	got := verbs.ErrnoOf(err)
	c.check(report.Observation{Step: step, Kind: "errno", Got: verbs.ErrnoName(got), Want: names}, verbs.ErrnoName(got), err, match.HaveErrno(set...))
	return got
}

// check records the observation and fails the case when actual does not match, unless the
// ledger predicts what was got.
func (c *C) check(o report.Observation, got string, actual any, m types.GomegaMatcher) {
	ok, err := m.Match(actual)
	if err != nil {
		c.end(report.Error, o.Step, o.Step+": "+err.Error())
	}
	if !c.judge(o, got, ok) {
		c.fail(o.Step, "%s", m.FailureMessage(actual))
	}
}

// completion is what an observation keeps of a work completion: on an error only
// what the interface promises, and no number that differs from run to run.
type completion struct {
	ID      uint64  `json:"wr_id"`
	Status  string  `json:"status"`
	Opcode  *uint32 `json:"opcode,omitempty"`
	ByteLen *uint32 `json:"byte_len,omitempty"`
	Imm     *uint32 `json:"imm,omitempty"`
	Flags   *uint32 `json:"wc_flags,omitempty"`
}

func completionOf(wc verbs.WC) completion {
	o := completion{ID: wc.ID, Status: wc.Status.String()}
	if wc.Status != verbs.WCSuccess {
		return o
	}
	op, fl := uint32(wc.Opcode), uint32(wc.Flags)
	o.Opcode, o.Flags = &op, &fl
	if wc.Opcode == verbs.WCOpRecv || wc.Opcode == verbs.WCOpRecvRDMAImm {
		o.ByteLen = &wc.ByteLen
		if wc.Flags&verbs.WCWithImm != 0 {
			o.Imm = &wc.Imm
		}
	}
	return o
}

// Completion records a completion without judging it. Comparisons of runs compare it.
func (c *C) Completion(step string, wc verbs.WC) {
	c.record(report.Observation{Step: step, Kind: "wc", Got: completionOf(wc)})
}

// Status records the completion and fails the case unless its status is want.
func (c *C) Status(step string, wc verbs.WC, want verbs.WCStatus) {
	o := report.Observation{Step: step, Kind: "wc", Got: completionOf(wc), Want: want.String()}
	c.check(o, wc.Status.String(), wc, match.HaveStatus(want))
}

// StatusIn records the completion and fails the case unless its status is one of set. It returns
// the status.
func (c *C) StatusIn(step string, wc verbs.WC, set ...verbs.WCStatus) verbs.WCStatus {
	names := make([]string, len(set))
	for i, s := range set {
		names[i] = s.String()
	}
	o := report.Observation{Step: step, Kind: "wc", Got: completionOf(wc), Want: names}
	c.check(o, wc.Status.String(), wc, match.HaveStatus(set...))
	return wc.Status
}

// Equal records got and fails the case unless got and want are deeply equal. Byte slices are
// recorded by length and digest.
func (c *C) Equal(step string, got, want any) {
	o := report.Observation{Step: step, Kind: "value", Got: plain(got), Want: plain(want)}
	if c.judge(o, fmt.Sprint(plain(got)), reflect.DeepEqual(got, want)) {
		return
	}
	c.fail(step, "%s", unequal(got, want))
}

// True records ok and fails the case unless it is true; the message says what was expected and what
// was seen.
func (c *C) True(step string, ok bool, format string, a ...any) {
	o := report.Observation{Step: step, Kind: "check", Got: ok, Want: true}
	if !c.judge(o, strconv.FormatBool(ok), ok) {
		c.fail(step, format, a...)
	}
}

// Violates records that a rule which was judged elsewhere does not hold: want is what it demands.
// The step is the rule, and the ledger may predict got.
func (c *C) Violates(rule, got, want, format string, a ...any) {
	if !c.judge(report.Observation{Step: rule, Kind: "value", Got: got, Want: want}, got, false) {
		c.fail(rule, format, a...)
	}
}

// plain is v as an observation keeps it.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return report.Digest(v)
	case fmt.Stringer:
		return v.String()
	case error:
		return v.Error()
	}
	return v
}

func diffBytes(got, want []byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("want %d bytes, got %d", len(want), len(got))
	}
	first, n := -1, 0
	for i := range got {
		if got[i] != want[i] {
			n++
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return "equal bytes"
	}
	return fmt.Sprintf("%d of %d bytes differ; at %d want %#02x, got %#02x", n, len(got), first, want[first], got[first])
}
