package model_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/verbs"
)

// wants fails unless the error says so; empty: there is none.
func wants(t *testing.T, what string, err error, text string) {
	t.Helper()
	if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

// TestMovedRegion: a region that is moved or given to another PD is good for what it is now.
func TestMovedRegion(t *testing.T) {
	p := connected(t)
	ok(t, p.mr.Move(32, 64, nil))
	wants(t, "a write to what is behind the old end", p.write(1, p.piece(88, 0), verbs.WCLocProtErr), "") // its local piece is at 0
	p = connected(t)
	wants(t, "a move to nothing", p.mr.Move(32, 0, nil), "want EINVAL")
	p = connected(t)
	ok(t, p.mr.ChangePD(true, nil))
	wants(t, "a write from another PD", p.write(1, p.piece(8, 0), verbs.WCSuccess), "LOC_PROT_ERR")
	p = connected(t)
	ok(t, p.mr.ChangePD(true, nil))
	ok(t, p.mr.ChangePD(false, nil))
	wants(t, "a write from the PD again", p.write(1, p.piece(8, 0), verbs.WCSuccess), "")
}

// TestPagesGivenBack: bytes of pages that were given back are zero.
func TestPagesGivenBack(t *testing.T) {
	p := connected(t)
	for i := range p.mr.Mem.Bytes {
		p.mr.Mem.Bytes[i] = 7
	}
	p.mr.Evicted(0, 64)
	b := make([]byte, 128)
	for i := 64; i < 128; i++ {
		b[i] = 7
	}
	wants(t, "zeros", p.mr.Mem.Check(b), "")
	b[3] = 7
	wants(t, "what was there", p.mr.Mem.Check(b), "at byte 3")
}

// TestMostReads: a queue pair cannot have more READs outstanding than the device announces.
func TestMostReads(t *testing.T) {
	p := connected(t)
	ok(t, p.a.Modify(&verbs.QPAttr{State: verbs.QPSSQD}, verbs.QPMaskState, nil))
	p.a.MostRd, p.a.MostDestRd = 16, 8
	wants(t, "the most", p.a.Modify(&verbs.QPAttr{MaxRdAtomic: 16}, verbs.QPMaskMaxQPRdAtomic, nil), "")
	wants(t, "one more", p.a.Modify(&verbs.QPAttr{MaxRdAtomic: 17}, verbs.QPMaskMaxQPRdAtomic, nil), "want EINVAL")
	wants(t, "one more to answer", p.a.Modify(&verbs.QPAttr{MaxDestRdAtomic: 9}, verbs.QPMaskMaxDestRdAtomic, syscall.EINVAL), "")
}

// TestPieces: a receive and a request have at most the pieces that were granted; inline data by
// ibv_wr_* may have more.
func TestPieces(t *testing.T) {
	three := func(p *pair) []model.Piece { return []model.Piece{p.piece(0, 1), p.piece(8, 1), p.piece(16, 1)} }
	p := connected(t)
	wants(t, "a receive", p.b.PostRecv(1, three(p), nil), "want EINVAL")
	r := model.Request{ID: 1, Op: verbs.WRRDMAWrite, Flags: verbs.SendSignaled | verbs.SendInline, Local: three(p), Remote: p.piece(8, 0)}
	wants(t, "inline data", p.a.PostSend([]model.Request{r}, 0, nil), "want refusal")
	p = connected(t)
	p.a.Extended = true
	wants(t, "inline data by ibv_wr_*", p.a.PostSend([]model.Request{r}, 0, nil), "")
}

// xrc is a sender, its target and two SRQs, of which the second has a receive.
func xrc(t *testing.T) (p *pair, named []*model.SRQ) {
	t.Helper()
	p = connected(t)
	for range 2 {
		named = append(named, &model.SRQ{World: p.w, Cap: 4, CQ: &model.CQ{Name: "CQ of an SRQ", World: p.w, Cap: 8}})
	}
	p.b = p.w.NewTarget(&model.QP{Name: "B", Number: 2}, named)
	p.a.Type, p.a.Peer, p.b.Peer, p.b.State = verbs.QPTXRCSend, p.b, p.a, verbs.QPSRTS
	ok(t, named[1].PostRecv(9, []model.Piece{p.piece(0, 8)}, nil))
	return p, named
}

// TestXRC: a message goes to the SRQ that it names and completes to the CQ of that SRQ.
func TestXRC(t *testing.T) {
	send := func(p *pair, to *model.SRQ) error {
		r := p.request(1, verbs.WRSend, p.piece(8, 8), p.piece(0, 0))
		r.SRQ = to
		return p.a.PostSend([]model.Request{r}, 0, nil)
	}
	done := func(status verbs.WCStatus) *verbs.WC { return &verbs.WC{ID: 1, QPN: 1, Status: status} }
	got := &verbs.WC{ID: 9, QPN: 2, Opcode: verbs.WCOpRecv, ByteLen: 8}
	p, named := xrc(t)
	ok(t, send(p, named[1]))
	wants(t, "a message", p.ca.Completion(done(verbs.WCSuccess)), "")
	wants(t, "at the other SRQ's CQ", named[0].CQ.Completion(got), "completion of none")
	wants(t, "its receive", named[1].CQ.Completion(got), "")
	p, named = xrc(t)
	ok(t, send(p, named[0]))
	wants(t, "to an empty SRQ", p.ca.Completion(done(verbs.WCSuccess)), "want RNR_RETRY_EXC_ERR")
	p, _ = xrc(t)
	ok(t, send(p, nil))
	wants(t, "to no SRQ", p.ca.Completion(done(verbs.WCSuccess)), "REM_ACCESS_ERR")
	p, _ = xrc(t)
	wants(t, "attributes that the sender has not", p.a.Modify(&verbs.QPAttr{Access: remote}, verbs.QPMaskAccessFlags|verbs.QPMaskMinRNRTimer, nil), "")
	wants(t, "attributes that the target has not", p.b.Modify(&verbs.QPAttr{}, verbs.QPMaskAccessFlags|verbs.QPMaskPathMTU, nil), "want EINVAL")
}
