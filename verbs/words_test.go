package verbs_test

import (
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

func TestNamesOfValues(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{verbs.AccessRemoteRead, "REMOTE_READ"},
		{verbs.AccessLocalWrite | verbs.AccessRemoteAtomic | 1<<18, "LOCAL_WRITE|REMOTE_ATOMIC|0x40000"},
		{verbs.AccessFlags(0), "0x0"},
		{verbs.WCOpRecvRDMAImm, "RECV_RDMA_WITH_IMM"},
		{verbs.WCOpcode(77), "0x4d (no verbs.WCOpcode)"},
		{verbs.WCWithImm | verbs.WCGRH, "GRH|WITH_IMM"},
		{verbs.QPMaskState | verbs.QPMaskAV, "STATE|AV"},
		{verbs.MTU1024, "1024 bytes"},
		{verbs.LinkEthernet, "ETHERNET"},
		{verbs.WireDelay, "delayed"},
	} {
		if got, ok := verbs.Words(tt.value); got != tt.want || !ok {
			t.Errorf("%T %d: %q, want %q", tt.value, tt.value, got, tt.want)
		}
	}
	for _, v := range []any{nil, 5, "x", []verbs.MTU{verbs.MTU256}, verbs.WCSuccess} { // a status has a String of its own
		if got, ok := verbs.Words(v); ok {
			t.Errorf("%v has the words %q", v, got)
		}
	}
}
