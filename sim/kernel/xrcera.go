package kernel

import (
	"fmt"
	"syscall"
)

// XRCEra is a design of XRC target QPs: who owns them, and when they end.
type XRCEra uint8

// The designs, the newest first.
const (
	// XRC6_1 is XRC4_9 except that handles of ibv_open_qp get no events, since ib_uverbs_open_qp
	// gives them no event file: Linux 6.1 has this code, and 6.12 behaves so; the first such
	// release is not known.
	XRC6_1 XRCEra = iota
	// XRC4_9 is Linux from commit 5b810a242c28 on: the QP ends with its last handle, however that
	// handle is closed.
	XRC4_9
	// XRC3_2 is mainline before that commit: the end of a process closes its handles, and the QP
	// stays if one of them was the last.
	XRC3_2
	// XRCOFED1_3 names QPs by number; a QP ends when no process is registered for it.
	XRCOFED1_3
	// XRCProposal is the proposal of December 2007: it names QPs by number, and a QP ends with its
	// domain.
	XRCProposal
	// XRCCreator is the design before that: a QP belongs to its creator alone.
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
