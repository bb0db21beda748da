package match_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/onsi/gomega/types"

	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/verbs"
)

func TestMatchers(t *testing.T) {
	wrapped := fmt.Errorf("create: %w", syscall.EBUSY)
	bad := verbs.WC{ID: 7, Status: verbs.WCRemAccessErr, VendorErr: 0x88}
	tests := map[string]struct {
		matcher types.GomegaMatcher
		actual  any
		want    bool
		text    string // of the failure, or of the negated one where it matches
	}{
		"errno":           {match.HaveErrno(syscall.EBUSY), wrapped, true, "want anything but EBUSY, got EBUSY (create: device or resource busy)"},
		"other errno":     {match.HaveErrno(syscall.EINVAL, 0), wrapped, false, "want one of {EINVAL, 0}, got EBUSY (create: device or resource busy)"},
		"success":         {match.HaveErrno(0), nil, true, "want anything but 0, got 0 (<nil>)"},
		"no success":      {match.HaveErrno(0), wrapped, false, "want 0, got EBUSY (create: device or resource busy)"},
		"status":          {match.HaveStatus(verbs.WCRemAccessErr), bad, true, "want anything but REM_ACCESS_ERR, got REM_ACCESS_ERR (wr_id 7, vendor error 0x88)"},
		"other status":    {match.HaveStatus(verbs.WCSuccess), bad, false, "want SUCCESS, got REM_ACCESS_ERR (wr_id 7, vendor error 0x88)"},
		"ID":              {match.HaveID(7), bad, true, "want anything but wr_id 7, got wr_id 7 (REM_ACCESS_ERR)"},
		"length of error": {match.HaveByteLen(0), bad, false, "want SUCCESS and 0 bytes, got REM_ACCESS_ERR and 0 bytes"},
		"length":          {match.HaveByteLen(4), verbs.WC{ByteLen: 4}, true, "want anything but SUCCESS and 4 bytes, got SUCCESS and 4 bytes"},
		"state":           {match.BeInState(verbs.QPSRTS), verbs.QPSErr, false, "want RTS, got ERR"},
		"attributes":      {match.BeInState(verbs.QPSRTS, verbs.QPSSQD), verbs.QPAttr{State: verbs.QPSRTS}, true, "want anything but one of {RTS, SQD}, got RTS"},
		"pointer":         {match.BeInState(verbs.QPSErr), &verbs.QPAttr{State: verbs.QPSRTS}, false, "want ERR, got RTS"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tt.matcher.Match(tt.actual)
			text := tt.matcher.FailureMessage
			if got {
				text = tt.matcher.NegatedFailureMessage
			}
			if err != nil || got != tt.want || text(tt.actual) != tt.text {
				t.Errorf("Match: %t, %v, %q; want %t, %q", got, err, text(tt.actual), tt.want, tt.text)
			}
		})
	}
	for _, m := range []types.GomegaMatcher{match.HaveStatus(0), match.HaveErrno(0), match.BeInState(0)} {
		if _, err := m.Match("text"); err == nil {
			t.Errorf("%T matches a string without an error", m)
		}
	}
	if _, err := match.HaveStatus(0).Match(nil); err == nil {
		t.Error("no completion is a completion")
	}
}
