package mw

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// change is a request, made by hand, that changes a key: as the library makes that which binds a
// window of type 2 to the beginning of a region, until a case changes it.
type change struct {
	key   uint32 // that it names
	umr   prm.UMRCtrlSegment
	ctx   prm.MKC
	entry prm.KLM // empty: the request has no entry
	body  []byte
}

func (b *windowBed) bindByHand(w *window, mr verbs.MR, qpn uint32) *change {
	body := make([]byte, prm.UMRCtrlSegmentSize+prm.MKCSize+prm.WQEBBSize)
	r := &change{key: w.RKey(), umr: prm.UMRCtrlSegment(body), ctx: prm.MKC(body[prm.UMRCtrlSegmentSize:]), body: body}
	r.entry = prm.KLM(body[prm.UMRCtrlSegmentSize+prm.MKCSize:])
	r.umr.SetFlags(prm.UMRTranslationOffset | prm.UMRInline | prm.UMRCheckFree)
	r.umr.SetXLTOctowords(prm.WQEBBSize / prm.KLMSize)
	r.umr.SetMKeyMask(prm.MKeyMaskFree | prm.MKeyMaskKey | prm.MKeyMaskQPN | prm.MKeyMaskLen | prm.MKeyMaskStartAddr |
		prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA)
	r.ctx.SetQPN(qpn)
	r.ctx.SetMKey70(verbs.IncRKey(w.RKey()) & 0xff)
	r.ctx.SetRW(true)
	r.ctx.SetStartAddr(b.mem.Addr(0))
	r.ctx.SetLen(64)
	r.entry.SetByteCount(64)
	r.entry.SetMKey(mr.LKey())
	r.entry.SetVA(b.mem.Addr(0))
	return r
}

// changesByHand posts changes of keys that no library asks for, each by a QP of its own: the device
// refuses them.
func changesByHand(c *spec.C) {
	b := open(c)
	free, err := b.PD.RegMR(c.T, b.mem.Addr(0), size, access)
	kit.Must(c, "reg_mr", err)
	kit.DestroyOnce(c, "dereg_mr", free.Dereg)
	p := b.Env.Pair(c, kit.Default())
	r := b.bindByHand(b.alloc(c, verbs.MWType2), free, p.B.QPN())
	r.key = free.LKey()
	r.umr.SetFlags(prm.UMRInline)
	r.umr.SetXLTOctowords(0)
	r.umr.SetMKeyMask(prm.MKeyMaskFree)
	r.ctx.SetFree(true)
	kit.PostRaw(c, p.B, prm.WQEOpUMR, p.B.QPN(), r.key, r.body[:prm.UMRCtrlSegmentSize+prm.MKCSize]...)
	c.Status("change that frees the key of a region and keeps its low byte", kit.PollRaw(c, p.B.SendCQ), verbs.WCSuccess)

	for _, tc := range []struct {
		step   string
		ok     bool
		change func(r *change)
	}{
		{"bind as the library makes it", true, func(*change) {}},
		{"bind that keeps the low byte of the key and names another", false, func(r *change) {
			r.umr.SetMKeyMask(r.umr.MKeyMask() &^ prm.MKeyMaskKey)
			r.key ^= 1
		}},
		{"change of a key in use, of one that is free", false, func(r *change) {
			r.umr.SetFlags(prm.UMRTranslationOffset | prm.UMRInline | prm.UMRCheckNotFree)
		}},
		{"bind to a region by another low byte", false, func(r *change) { r.entry.SetMKey(r.entry.MKey() ^ 1) }},
		{"bind of a window longer than its entry by a byte", false, func(r *change) { r.ctx.SetLen(65) }},
		{"bind to a region whose key is free", false, func(r *change) { r.entry.SetMKey(free.LKey()) }},
	} {
		w := b.alloc(c, verbs.MWType2)
		p := b.Env.Pair(c, kit.Default())
		r := b.bindByHand(w, b.mem.MR, p.B.QPN())
		tc.change(r)
		kit.PostRaw(c, p.B, prm.WQEOpUMR, p.B.QPN(), r.key, r.body...)
		wc := kit.PollRaw(c, p.B.SendCQ)
		if tc.ok {
			c.Status(tc.step, wc, verbs.WCSuccess)
			c.Status("write by the window", p.A.PostAndPoll(c, b.write(verbs.IncRKey(w.RKey()), 0, 64)), verbs.WCSuccess)
			continue
		}
		failed(c, tc.step, wc)
	}
}
