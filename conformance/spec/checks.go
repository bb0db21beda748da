package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/onsi/gomega"

	"github.com/rdmasim/rdmasim/report"
	"github.com/rdmasim/rdmasim/verbs"
)

// ErrnoName is the symbol of an errno as observations spell it: "0" for success.
func ErrnoName(e syscall.Errno) string {
	switch {
	case e == 0:
		return "0"
	case e == ^syscall.Errno(0):
		return "no errno"
	case e == syscall.EOPNOTSUPP: // has two names on Linux
		return "EOPNOTSUPP"
	}
	if s := unix.ErrnoName(e); s != "" {
		return s
	}
	return fmt.Sprintf("errno %d", uint(e))
}

// NoErr holds when err is nil.
func (c *C) NoErr(step string, err error) {
	o := report.Observation{Step: step, Kind: "errno", Got: ErrnoName(verbs.ErrnoOf(err)), Want: "0"}
	if !c.judge(o, ErrnoName(verbs.ErrnoOf(err)), err == nil) {
		c.must(step, err)
	}
}

// must is NoErr without an observation, for what every case does.
func (c *C) must(step string, err error) {
	if err != nil {
		c.Failf("%s: want success, got %s (%v)", step, ErrnoName(verbs.ErrnoOf(err)), err)
	}
}

// Errno holds when err carries exactly the errno want; 0 is success.
func (c *C) Errno(step string, err error, want syscall.Errno) {
	got := verbs.ErrnoOf(err)
	o := report.Observation{Step: step, Kind: "errno", Got: ErrnoName(got), Want: ErrnoName(want)}
	if !c.judge(o, ErrnoName(got), got == want) {
		c.Failf("%s: want %s, got %s (%v)", step, ErrnoName(want), ErrnoName(got), err)
	}
}

// ErrnoIn holds when the errno of err is one of set, where 0 is success. It returns
// the member seen.
func (c *C) ErrnoIn(step string, err error, set ...syscall.Errno) syscall.Errno {
	got := verbs.ErrnoOf(err)
	names := make([]string, len(set))
	for i, e := range set {
		names[i] = ErrnoName(e)
	}
	o := report.Observation{Step: step, Kind: "errno", Got: ErrnoName(got), Want: names}
	if !c.judge(o, ErrnoName(got), slices.Contains(set, got)) {
		c.Failf("%s: want one of {%s}, got %s (%v)", step, strings.Join(names, ", "), ErrnoName(got), err)
	}
	return got
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
	if op >= uint32(verbs.WCOpRecv) {
		o.ByteLen = &wc.ByteLen
		if wc.Flags&verbs.WCWithImm != 0 {
			o.Imm = &wc.Imm
		}
	}
	return o
}

// Completion records a completion without judging it.
func (c *C) Completion(step string, wc verbs.WC) {
	c.record(report.Observation{Step: step, Kind: "wc", Got: completionOf(wc)})
}

// Status holds when the completion has the status want.
func (c *C) Status(step string, wc verbs.WC, want verbs.WCStatus) {
	o := report.Observation{Step: step, Kind: "wc", Got: completionOf(wc), Want: want.String()}
	if !c.judge(o, wc.Status.String(), wc.Status == want) {
		c.Failf("%s: want %v, got %v (wr_id %d, vendor error %#x)", step, want, wc.Status, wc.ID, wc.VendorErr)
	}
}

// StatusIn holds when the completion's status is one of set; it returns the member
// seen.
func (c *C) StatusIn(step string, wc verbs.WC, set ...verbs.WCStatus) verbs.WCStatus {
	names := make([]string, len(set))
	for i, s := range set {
		names[i] = s.String()
	}
	o := report.Observation{Step: step, Kind: "wc", Got: completionOf(wc), Want: names}
	if !c.judge(o, wc.Status.String(), slices.Contains(set, wc.Status)) {
		c.Failf("%s: want one of {%s}, got %v (wr_id %d, vendor error %#x)", step, strings.Join(names, ", "),
			wc.Status, wc.ID, wc.VendorErr)
	}
	return wc.Status
}

// Equal holds when got and want are deeply equal. Byte slices are recorded by length
// and digest.
func (c *C) Equal(step string, got, want any) {
	o := report.Observation{Step: step, Kind: "value", Got: plain(got), Want: plain(want)}
	if c.judge(o, fmt.Sprint(plain(got)), reflect.DeepEqual(got, want)) {
		return
	}
	if g, ok := got.([]byte); ok {
		if w, ok := want.([]byte); ok {
			c.Failf("%s: %s", step, diffBytes(g, w))
		}
	}
	c.gomega.Expect(got).To(gomega.Equal(want), step)
}

// True holds when ok does; the message says what was expected and what was seen.
func (c *C) True(step string, ok bool, format string, a ...any) {
	o := report.Observation{Step: step, Kind: "check", Got: ok, Want: true}
	if !c.judge(o, strconv.FormatBool(ok), ok) {
		c.Failf("%s: %s", step, fmt.Sprintf(format, a...))
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
