package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.DirectVerbs = (*Context)(nil)

// noDirect refuses a call of direct verbs on a device that is not libmlx5's (mlx5_get_dv_ops).
func (c *Context) noDirect(call string) error {
	if c.proc.Params.Foreign && !c.breaks(rule.ForeignDevicesHaveNoDirectVerbs) {
		return fmt.Errorf("%s on a device that is not mlx5: %w", call, syscall.EOPNOTSUPP)
	}
	return nil
}

// unmodelled is the answer of a call for which a device needs what none here has, or of which
// nothing is modelled.
func (c *Context) unmodelled(call, what string) error {
	if err := c.noDirect(call); err != nil {
		return err
	}
	return fmt.Errorf("%s: %s: %w", call, what, syscall.EOPNOTSUPP)
}

// DirectSupported is mlx5dv_is_supported.
func (c *Context) DirectSupported() bool { return !c.proc.Params.Foreign }

// Flags of mlx5dv_context (MLX5DV_CONTEXT_FLAGS_*).
const (
	flagCQEV1      = 1 << 0
	flagCQE128Comp = 1 << 4
	flagCQE128Pad  = 1 << 5
	flagBlueFlame  = 1 << 8
)

// alwaysAnswered are the parts of mlx5dv_query_device that libmlx5 answers for any device, if with
// zeros: what the device or the kernel lacks is nothing that it says. The others depend on them.
const alwaysAnswered = verbs.DirectCQECompression | verbs.DirectSWP | verbs.DirectStridingRQ | verbs.DirectTunnelOffloads |
	verbs.DirectDCIStreams | verbs.DirectDynBFRegs | verbs.DirectFlowActionFlags | verbs.DirectDCODPCaps | verbs.DirectHCACoreClock |
	verbs.DirectSignature | verbs.DirectWRMemcpyLength | verbs.DirectCryptoOffload | verbs.DirectMaxDCRDAtom

// QueryDirect is mlx5dv_query_device: what the library has asked the kernel when it opened the
// device.
func (c *Context) QueryDirect(vt verbs.Thread, mask uint64) (a verbs.DirectAttr, err error) {
	defer Of(vt).answers(&err)
	Of(vt).Core.Run(Of(vt).P, c.proc.Params.Control)
	if err := c.noDirect("query_device"); err != nil {
		return a, err
	}
	for _, f := range []struct {
		has  bool
		flag uint64
	}{{c.resp.CQEVersion == 1, flagCQEV1}, {c.u.CompressesCQEs128(), flagCQE128Comp}, {c.u.PadsCQEs(), flagCQE128Pad}, {c.resp.BFRegSize > 0, flagBlueFlame}} {
		if f.has {
			a.Flags |= f.flag
		}
	}
	if c.breaks(rule.DirectAnswerIsMasked) {
		mask = verbs.DirectContextKnownMask
	}
	a.CompMask = mask & alwaysAnswered
	if mask&verbs.DirectCQECompression != 0 {
		a.CQEComp = c.attr.CQEComp
	}
	if mask&verbs.DirectDynBFRegs != 0 {
		a.MaxDynamicBFRegs = c.resp.NumDynBFRegs
	}
	if i, err := c.u.ClockInfo(); err == nil && mask&verbs.DirectClockInfoUpdate != 0 {
		a.CompMask |= verbs.DirectClockInfoUpdate
		a.MaxClockInfoUpdate = i.OverflowPeriod
	}
	c.queryDC(mask, &a)
	c.queryMkey(mask, &a)
	return a, nil
}

// AllocVAR is mlx5dv_alloc_var.
func (c *Context) AllocVAR(verbs.Thread, uint32) (verbs.VAR, error) {
	return nil, c.unmodelled("alloc_var", "the device emulates no virtio queues")
}
