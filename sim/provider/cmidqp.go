package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/verbs"
)

// QP is what CreateQP made.
func (id *CMID) QP() verbs.QP {
	if id.qp == nil {
		return nil
	}
	return id.qp
}

// CreateQP is rdma_create_qp.
func (id *CMID) CreateQP(vt verbs.Thread, pd verbs.PD, a verbs.QPInitAttr) (_ verbs.QP, err error) {
	err = id.call(vt, "create_qp", func(t *Thread, _ *cm.File) error {
		switch {
		case id.qp != nil || id.dev == nil:
			return fmt.Errorf("the id has a QP, or no device: %w", syscall.EINVAL)
		case a.Type != id.typ:
			return fmt.Errorf("a QP of type %d for an id of type %d: %w", a.Type, id.typ, syscall.EINVAL)
		}
		in := id.dev.pd
		if pd != nil {
			own, ok := pd.(*PD)
			if !ok || own.ctx != id.dev.ctx {
				return fmt.Errorf("a PD of another context: %w", syscall.EINVAL)
			}
			in = own
		}
		q, err := in.CreateQP(t, a)
		if err != nil {
			return err
		}
		id.qp = q.(*QP)
		if err := id.initQP(t); err != nil {
			id.qp = nil
			_ = q.Destroy(t)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return id.qp, nil
}

// initQP is ucma_init_conn_qp, and ucma_init_ud_qp for a QP of datagrams.
func (id *CMID) initQP(t *Thread) error {
	if err := id.modify(t, verbs.QPSInit, nil); err != nil || id.typ != verbs.QPTUD {
		return err
	}
	a := verbs.QPAttr{State: verbs.QPSRTR}
	if err := id.qp.Modify(t, &a, verbs.QPMaskState); err != nil {
		return err
	}
	a = verbs.QPAttr{State: verbs.QPSRTS}
	return id.qp.Modify(t, &a, verbs.QPMaskState|verbs.QPMaskSQPSN)
}

// modify brings the QP to a state with the kernel's attributes, after edit, which may be nil.
func (id *CMID) modify(t *Thread, to verbs.QPState, edit func(*verbs.QPAttr)) error {
	a, mask, err := id.ch.file.InitQPAttr(t.caller, id.h, to)
	if err != nil {
		return err
	}
	if edit != nil {
		edit(&a)
	}
	return id.qp.Modify(t, &a, mask)
}

// bringUp is ucma_modify_qp_rtr and ucma_modify_qp_rts; a depth of 255 is the kernel's.
func (id *CMID) bringUp(t *Thread, respRes, initDepth uint8) error {
	if err := id.modify(t, verbs.QPSInit, nil); err != nil {
		return err
	}
	err := id.modify(t, verbs.QPSRTR, func(a *verbs.QPAttr) {
		if respRes != verbs.MaxRespRes {
			a.MaxDestRdAtomic = respRes
		}
	})
	if err != nil {
		return err
	}
	return id.modify(t, verbs.QPSRTS, func(a *verbs.QPAttr) {
		if initDepth != verbs.MaxInitDepth {
			a.MaxRdAtomic = initDepth
		}
	})
}

// endQP is ucma_modify_qp_err.
func (id *CMID) endQP(t *Thread) error {
	if id.qp == nil {
		return nil
	}
	a := verbs.QPAttr{State: verbs.QPSErr}
	return id.qp.Modify(t, &a, verbs.QPMaskState)
}

// DestroyQP is rdma_destroy_qp.
func (id *CMID) DestroyQP(vt verbs.Thread) error {
	return id.call(vt, "destroy_qp", func(t *Thread, _ *cm.File) error {
		if id.qp == nil {
			return fmt.Errorf("the id has no QP: %w", syscall.EINVAL)
		}
		if err := id.qp.Destroy(t); err != nil {
			return err
		}
		id.qp = nil
		return nil
	})
}

// InitQPAttr is rdma_init_qp_attr.
func (id *CMID) InitQPAttr(vt verbs.Thread, to verbs.QPState) (a verbs.QPAttr, mask verbs.QPAttrMask, err error) {
	err = id.call(vt, "init_qp_attr", func(t *Thread, f *cm.File) (err error) {
		a, mask, err = f.InitQPAttr(t.caller, id.h, to)
		return err
	})
	return a, mask, err
}
