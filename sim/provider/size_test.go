package provider

import (
	"errors"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

func sizes() *Context {
	return &Context{resp: kernel.UcontextResp{MaxSQDescSz: 1024, MaxRQDescSz: 512, MaxSendWQEBB: 32768, MaxRecvWR: 32768}}
}

// The rows are computed by hand after mlx5_calc_sq_size of rdma-core.
func TestSendQueueSizes(t *testing.T) {
	for _, c := range []struct {
		name           string
		ops            uint64
		wr, sge, inl   uint32
		cnt, post, max int
		err            error
	}{
		{"one SGE", opsAny, 128, 1, 0, 512, 128, 60, nil},
		{"no send queue", opsAny, 0, 1, 0, 0, 0, 0, nil},
		{"inline grows the WQE", opsAny, 10, 1, 61, 64, 12, 124, nil},
		{"writes only", opsRDMA, 128, 1, 0, 128, 128, 28, nil},
		{"sends only", 1 << 2, 128, 1, 28, 128, 128, 44, nil},
		{"writes and atomics", opsRDMA | opsAtomic, 128, 1, 0, 128, 128, 12, nil},
		{"a WQE of three blocks", opsRDMA, 10, 8, 0, 32, 10, 156, nil},
		{"as many SGEs as fit", opsAny, 1, 52, 0, 16, 1, 828, nil},
		{"one more", opsAny, 1, 53, 0, 0, 0, 0, syscall.EINVAL},
		{"absurd inline", opsAny, 1, 1, 1 << 20, 0, 0, 0, syscall.EINVAL},
		{"inline that wraps an int, as libmlx5 takes it", opsAny, 1, 1, 1<<32 - 1, 4, 1, 60, nil},
		{"inline of a whole WQE", opsAny, 1, 1, 828, 16, 1, 828, nil},
		{"one byte more", opsAny, 1, 1, 829, 0, 0, 0, syscall.EINVAL},
		{"too long", opsAny, 8193, 1, 0, 0, 0, 0, syscall.EINVAL},
		{"much too long", opsAny, 1 << 31, 1, 0, 0, 0, 0, syscall.EINVAL},
	} {
		got, err := sizes().sizeSQ(verbs.QPTRC, c.ops, verbs.QPCap{MaxSendWR: c.wr, MaxSendSGE: c.sge, MaxInline: c.inl})
		if !errors.Is(err, c.err) || got.cnt != c.cnt || got.maxPost != c.post || got.inline != c.max {
			t.Errorf("%s: %+v, %v; want %d blocks, %d requests, %d inline, %v", c.name, got, err, c.cnt, c.post, c.max, c.err)
		}
	}
	// One segment more than RC: 208 bytes before the data.
	if w, err := sizes().sizeSQ(verbs.QPTXRCSend, opsAny, verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1}); err != nil || w.cnt != 4 || w.inline != 256-208-inlineHeader {
		t.Errorf("XRC: %+v, %v: want 4 blocks and %d bytes inline", w, err, 256-208-inlineHeader)
	}
}

func TestReceiveQueueSizes(t *testing.T) {
	for _, c := range []struct {
		name            string
		wr, sge         uint32
		cnt, gs, stride int
		err             error
	}{
		{"none", 0, 5, 0, 0, 0, nil},
		{"one of one", 1, 1, 4, 1, 16, nil}, // at least a basic block
		{"no SGE is one", 8, 0, 8, 1, 16, nil},
		{"three SGEs are four", 100, 3, 128, 4, 64, nil},
		{"most SGEs", 1, 32, 1, 32, 512, nil},
		{"one more", 1, 33, 0, 0, 0, syscall.EINVAL},
		{"absurd SGEs", 1, 1 << 31, 0, 0, 0, syscall.EINVAL},
		{"most requests", 32768, 1, 32768, 1, 16, nil},
		{"one more request", 32769, 1, 0, 0, 0, syscall.EINVAL},
	} {
		got, err := sizes().sizeRQ(verbs.QPCap{MaxRecvWR: c.wr, MaxRecvSGE: c.sge})
		if !errors.Is(err, c.err) || got.cnt != c.cnt || got.maxGS != c.gs || err == nil && c.wr > 0 && 1<<got.shift != c.stride {
			t.Errorf("%s: %+v, %v; want %d of %d SGEs, stride %d, %v", c.name, got, err, c.cnt, c.gs, c.stride, c.err)
		}
	}
}

// What was granted is never below what was asked, and fits the ring.
func TestGrantedCoversAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := verbs.QPCap{
			MaxSendWR: rapid.Uint32Range(1, 9000).Draw(t, "wr"), MaxSendSGE: rapid.Uint32Range(0, 60).Draw(t, "sge"),
			MaxInline: rapid.Uint32Range(0, 1200).Draw(t, "inline"), MaxRecvWR: rapid.Uint32Range(0, 40000).Draw(t, "rwr"),
			MaxRecvSGE: rapid.Uint32Range(0, 40).Draw(t, "rsge"),
		}
		ops := rapid.SampledFrom([]uint64{opsAny, opsRDMA, opsRDMA | opsAtomic, 1 << 2}).Draw(t, "ops")
		if s, err := sizes().sizeSQ(verbs.QPTRC, ops, q); err == nil {
			if s.maxPost < int(q.MaxSendWR) || s.inline < int(q.MaxInline) || s.maxGS < int(q.MaxSendSGE) || s.cnt&(s.cnt-1) != 0 {
				t.Fatalf("asked %+v, granted %+v", q, s)
			}
			over, _ := sendOverhead(verbs.QPTRC, ops)
			wqe := align(over+segSize*s.maxGS, wqebb)
			if s.inline > 0 {
				wqe = max(wqe, align(over+inlineHeader+s.inline, wqebb))
			}
			if s.maxPost*wqe > s.cnt*wqebb {
				t.Fatalf("%d WQEs of %d bytes do not fit %d blocks", s.maxPost, wqe, s.cnt)
			}
		}
		if s, err := sizes().sizeRQ(q); err == nil && q.MaxRecvWR > 0 {
			if s.maxPost < int(q.MaxRecvWR) || s.maxGS < int(q.MaxRecvSGE) || s.cnt<<s.shift < wqebb {
				t.Fatalf("asked %+v, granted %+v", q, s)
			}
		}
	})
}

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want func(e environ) bool
		err  error
	}{
		{nil, func(e environ) bool { return e.cqeSize == 64 && e.scatterToCQE && !e.freezeOnError && !e.signature }, nil},
		{map[string]string{"MLX5_CQE_SIZE": "128"}, func(e environ) bool { return e.cqeSize == 128 && !e.cqeSizeBad }, nil},
		{map[string]string{"MLX5_CQE_SIZE": "96"}, func(e environ) bool { return e.cqeSizeBad }, nil},
		{map[string]string{"MLX5_SCATTER_TO_CQE": "0"}, func(e environ) bool { return !e.scatterToCQE }, nil},
		{map[string]string{"MLX5_FREEZE_ON_ERROR_CQE": "-1"}, func(e environ) bool { return e.freezeOnError }, nil},
		{map[string]string{"MLX5_FREEZE_ON_ERROR_CQE": "no"}, func(e environ) bool { return !e.freezeOnError }, nil},
		{map[string]string{"MLX5_QP_SIGNATURE": ""}, func(e environ) bool { return e.signature }, nil},
		{map[string]string{"MLX5_TOTAL_UUARS": "0"}, func(environ) bool { return true }, syscall.EINVAL},
		{map[string]string{"MLX5_TOTAL_UUARS": "600"}, func(environ) bool { return true }, syscall.ENOMEM},
	} {
		e, err := parseEnviron(c.env, 4096, true)
		if !errors.Is(err, c.err) || !c.want(e) {
			t.Errorf("%v: %+v, %v", c.env, e, err)
		}
	}
	for s, want := range map[string]int{"": 0, "12": 12, " 7x": 7, "-3": -3, "+4": 4, "x": 0, "-": 0} {
		if got := atoi(s); got != want {
			t.Errorf("atoi(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestParamsMustBeComplete(t *testing.T) {
	var p Params
	if err := p.Validate(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("zero Params: %v, want EINVAL", err)
	}
}
