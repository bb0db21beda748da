package kernel

import (
	"fmt"
	"syscall"
)

// XRCEra is a design of XRC target QPs: who they belong to, and when they end.
type XRCEra uint8

// The designs, the newest first.
const (
	// XRC6_1 is XRC4_9 but that handles of ibv_open_qp hear of no event: ib_uverbs_open_qp gives them no event file. So it stands
	// in Linux 6.1, and so 6.12 behaves; the first release is not known.
	XRC6_1 XRCEra = iota
	// XRC4_9 is Linux from commit 5b810a242c28 on: the QP ends with its last handle, however that is closed.
	XRC4_9
	// XRC3_2 is mainline before: the end of a process closes handles, and the QP stays when it had the last one.
	XRC3_2
	// XRCOFED1_3 has QPs by number; it ends when no process is registered for it.
	XRCOFED1_3
	// XRCProposal is the one of December 2007: a QP by number, that ends with its domain.
	XRCProposal
	// XRCCreator is what was before that: the QP is its creator's alone.
	XRCCreator
)

// hasHandles says ENOSYS where target QPs are reached by number only.
func (e XRCEra) hasHandles() error {
	if e == XRCOFED1_3 || e == XRCProposal {
		return fmt.Errorf("this kernel names XRC receive QPs by number: %w", syscall.ENOSYS)
	}
	return nil
}

// sharesHandles says ENOSYS where there is no second handle.
func (e XRCEra) sharesHandles() error {
	if e == XRCCreator {
		return fmt.Errorf("on this kernel an XRC receive QP is its creator's: %w", syscall.ENOSYS)
	}
	return e.hasHandles()
}

// is says ENOSYS for a call of another design.
func (e XRCEra) is(design XRCEra, what string) error {
	if e != design {
		return fmt.Errorf("%s: this kernel has no such call: %w", what, syscall.ENOSYS)
	}
	return nil
}
