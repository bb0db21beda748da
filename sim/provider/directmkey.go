package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// RegDirectDmabufMR is mlx5dv_reg_dmabuf_mr.
func (c *Context) RegDirectDmabufMR(vt verbs.Thread, vp verbs.PD, offset, length, iova uint64, fd int, access verbs.AccessFlags, flags uint32) (verbs.MR, error) {
	p, ok := vp.(*PD)
	if !ok || p == nil {
		return nil, fmt.Errorf("reg_dmabuf_mr without a PD, which the library reads: %w", syscall.EFAULT)
	}
	if c.proc.Params.Generation == kernel.Static {
		Of(vt)
		return nil, fmt.Errorf("mlx5dv_reg_dmabuf_mr: the library is too old: %w", syscall.EOPNOTSUPP)
	}
	return p.regDmabuf(vt, kernel.DmabufMRReq{Offset: offset, Length: length, Iova: iova, Access: access, Driver: true, Flags: flags}, fd)
}
