//go:build linux

package ucm

import (
	"errors"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// getEvent is GET_EVENT. The kernel takes an event from the queue when it has been written to the
// program, so the place is tried first.
func (k *command) getEvent() error {
	if err := k.room(eventLeast); err != nil {
		return err
	}
	b, err := k.read(uapi.CMGetEventSize)
	if err != nil {
		return err
	}
	if !k.f.cm.Readable() {
		return ErrWait
	}
	at := uapi.CMGetEvent(b).Response()
	out := uapi.CMEvent(make([]byte, uapi.CMEventSize))
	if err := k.answer(at, out); err != nil {
		return err
	}
	e, err := k.f.cm.GetEvent(noCaller, 0)
	if errors.Is(err, syscall.EAGAIN) {
		return ErrWait
	}
	if err != nil {
		return err
	}
	if e.Type == verbs.CMConnectRequest {
		k.f.keep(object{number: e.ID}, false)
	}
	putEvent(out, &e)
	return k.answer(at, out)
}

func putEvent(out uapi.CMEvent, e *cm.Event) {
	out.SetUID(e.UID)
	out.SetID(e.ID)
	out.SetEvent(uint32(e.Type))
	out.SetStatus(uint32(e.Status))
	if e.IsUD {
		p := uapi.CMUDParam(out.Param())
		p.SetQPN(e.UD.QPN)
		p.SetQKey(e.UD.QKey)
		putAH(p.AH(), &e.UD.AH)
		p.SetPrivateDataLen(uint8(copy(p.PrivateData(), e.UD.PrivateData)))
	} else {
		p := uapi.CMConnParam(out.Param())
		p.SetQPN(e.Conn.QPN)
		p.SetQKey(e.Conn.QKey)
		p.SetPrivateDataLen(uint8(copy(p.PrivateData(), e.Conn.PrivateData)))
		p.SetSRQ(flag(e.Conn.SRQ))
		p.SetResponderResources(e.Conn.ResponderResources)
		p.SetInitiatorDepth(e.Conn.InitiatorDepth)
		p.SetFlowControl(flag(e.Conn.FlowControl))
		p.SetRetryCount(e.Conn.RetryCount)
		p.SetRNRRetryCount(e.Conn.RNRRetryCount)
	}
	ece := uapi.CMECE(out.ECE())
	ece.SetVendor(e.ECE.Vendor)
	ece.SetOptions(e.ECE.Options)
}
