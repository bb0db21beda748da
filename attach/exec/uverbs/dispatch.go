//go:build linux

package uverbs

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
)

// handler carries out a method.
type handler func(f *File, c Caller, k *uapi.Call) error

// commandHandler carries out a command of INVOKE_WRITE.
type commandHandler func(f *File, c Caller, k *uapi.Call, w *uapi.Write) error

// plain, request and both adapt functions that need only a part of the arguments.
func plain(do func(*File, *uapi.Call) error) handler {
	return func(f *File, _ Caller, k *uapi.Call) error { return do(f, k) }
}

func request(do func(*File, *uapi.Write) error) commandHandler {
	return func(f *File, _ Caller, _ *uapi.Call, w *uapi.Write) error { return do(f, w) }
}

func both(do func(*File, *uapi.Call, *uapi.Write) error) commandHandler {
	return func(f *File, _ Caller, k *uapi.Call, w *uapi.Write) error { return do(f, k, w) }
}

// destroyer is the destroy method of an object that has no answer.
func destroyer(id uint16, do func(*kernel.Ucontext, kernel.Caller, kernel.Handle) error) handler {
	return func(f *File, _ Caller, k *uapi.Call) error {
		h, _ := k.Handle(id)
		return do(f.u, noCaller, kernelHandle(h))
	}
}

// commandDestroyer is destroyer by a command.
func commandDestroyer(do func(*kernel.Ucontext, kernel.Caller, kernel.Handle) error) commandHandler {
	return func(f *File, _ Caller, _ *uapi.Call, w *uapi.Write) error {
		h, err := w.Handle()
		if err != nil {
			return err
		}
		return do(f.u, noCaller, kernelHandle(h))
	}
}

// method carries a call out. All methods but two need a context
// (ib_uverbs_get_ucontext).
func (f *File) method(c Caller, k *uapi.Call) error {
	key := [2]uint16{k.Method.Object, k.Method.ID}
	switch key {
	case [2]uint16{uapi.ObjectDevice, uapi.DeviceGetContext}:
		return f.getContext(k)
	case [2]uint16{uapi.ObjectDevice, uapi.DeviceInvokeWrite}:
		w, err := k.WriteCall()
		if err != nil {
			return err
		}
		return f.write(c, k, w)
	}
	if err := f.needContext(k.Method.Name); err != nil {
		return err
	}
	var do handler
	owned, makes := false, false
	switch key {
	case [2]uint16{uapi.ObjectDevice, uapi.DeviceQueryPort}:
		do = plain((*File).queryPort)
	case [2]uint16{uapi.ObjectDevice, uapi.DeviceQueryGIDTable}:
		do = plain((*File).queryGIDTable)
	case [2]uint16{uapi.ObjectDevice, uapi.DeviceQueryGIDEntry}:
		do = plain((*File).queryGIDEntry)
	case [2]uint16{uapi.ObjectDevice, uapi.DeviceQueryContext}:
		do = plain((*File).queryContext)
	case [2]uint16{uapi.ObjectPD, uapi.PDQuery}:
		do = plain((*File).queryPD)
	case [2]uint16{uapi.ObjectMR, uapi.MRQuery}:
		do = plain((*File).queryMR)
	case [2]uint16{uapi.ObjectPD, uapi.PDDestroy}:
		do = destroyer(uapi.PDDestroyHandle, (*kernel.Ucontext).DeallocPD)
	case [2]uint16{uapi.ObjectMR, uapi.MRDestroy}:
		do = destroyer(uapi.MRDestroyHandle, (*kernel.Ucontext).DeregMR)
	case [2]uint16{uapi.ObjectMR, uapi.MRAdvise}:
		do = plain((*File).adviseMR)
	case [2]uint16{uapi.ObjectMR, uapi.DMMRReg}:
		do, makes = plain((*File).regDM), true
	case [2]uint16{uapi.ObjectMR, uapi.MRRegDmabuf}:
		do, makes = (*File).regDmabuf, true
	case [2]uint16{uapi.ObjectDM, uapi.DMAlloc}:
		do, makes = plain((*File).allocDM), true
	case [2]uint16{uapi.ObjectDM, uapi.DMFree}:
		do = plain((*File).freeDM)
	case [2]uint16{uapi.ObjectMW, uapi.MWDestroy}:
		do = destroyer(uapi.MWDestroyHandle, (*kernel.Ucontext).DeallocMW)
	case [2]uint16{uapi.ObjectAH, uapi.AHDestroy}:
		do = destroyer(uapi.AHDestroyHandle, (*kernel.Ucontext).DestroyAH)
	case [2]uint16{uapi.ObjectCQ, uapi.CQCreate}:
		do, owned, makes = (*File).createCQ, true, true
	case [2]uint16{uapi.ObjectCQ, uapi.CQDestroy}:
		do = plain((*File).destroyCQ)
	case [2]uint16{uapi.ObjectQP, uapi.QPCreate}:
		do, owned, makes = (*File).createQP, true, true
	case [2]uint16{uapi.ObjectQP, uapi.QPDestroy}:
		do = plain((*File).destroyQP)
	case [2]uint16{uapi.ObjectSRQ, uapi.SRQCreate}:
		do, owned, makes = (*File).createSRQ, true, true
	case [2]uint16{uapi.ObjectSRQ, uapi.SRQDestroy}:
		do = plain((*File).destroySRQ)
	case [2]uint16{uapi.ObjectXRCD, uapi.XRCDDestroy}:
		do = plain((*File).destroyXRCD)
	case [2]uint16{uapi.ObjectAsyncEvent, uapi.AsyncEventAlloc}:
		do, makes = (*File).allocAsync, true
	case [2]uint16{uapi.ObjectDEVX, uapi.DEVXOther}:
		do = plain((*File).devxOther)
	case [2]uint16{uapi.ObjectDEVXObj, uapi.DEVXObjCreate}:
		do, owned, makes = plain((*File).createDevxObject), true, true
	case [2]uint16{uapi.ObjectDEVXObj, uapi.DEVXObjDestroy}:
		do = destroyer(uapi.DEVXObjDestroyHandle, (*kernel.Ucontext).DestroyMKeyObject)
	case [2]uint16{uapi.ObjectUAR, uapi.UARAlloc}:
		do, makes = plain((*File).allocUAR), true
	case [2]uint16{uapi.ObjectUAR, uapi.UARDestroy}:
		do = plain((*File).destroyUAR)
	default:
		return fmt.Errorf("%s: %w", k.Method.Name, syscall.EPROTONOSUPPORT)
	}
	if owned {
		if err := f.checkOpener(c); err != nil {
			return fmt.Errorf("%s: %w", k.Method.Name, err)
		}
	}
	if makes {
		if err := f.room(); err != nil {
			return fmt.Errorf("%s: %w", k.Method.Name, err)
		}
	}
	return do(f, c, k)
}

// write carries out a command of INVOKE_WRITE.
func (f *File) write(c Caller, k *uapi.Call, w *uapi.Write) error {
	if err := f.needContext(w.Name); err != nil {
		return err
	}
	do, owned := command(w.Cmd)
	if do == nil {
		return fmt.Errorf("%s: %w", w.Name, syscall.EOPNOTSUPP)
	}
	if owned {
		if err := f.checkOpener(c); err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	if makesObject(w.Cmd) {
		if err := f.room(); err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	return do(f, c, k, w)
}

// makesObject reports whether a command makes an object.
func makesObject(cmd uint32) bool {
	switch cmd {
	case uapi.CmdAllocPD, uapi.CmdRegMR, uapi.CmdAllocMW, uapi.CmdCreateAH, uapi.CmdCreateCompChannel, uapi.CmdCreateSRQ,
		uapi.CmdOpenXRCD, uapi.CmdCreateXSRQ, uapi.CmdOpenQP:
		return true
	}
	return false
}

// command is the handler of a command; owned says that it takes memory of the caller.
func command(cmd uint32) (do commandHandler, owned bool) {
	switch cmd {
	case uapi.CmdQueryDevice:
		return request((*File).queryDevice), false
	case uapi.CmdQueryDevice | uapi.CmdExtended:
		return both((*File).queryDeviceEx), false
	case uapi.CmdQueryPort:
		return request((*File).queryPortOld), false
	case uapi.CmdAllocPD:
		return both((*File).allocPD), false
	case uapi.CmdDeallocPD:
		return commandDestroyer((*kernel.Ucontext).DeallocPD), false
	case uapi.CmdRegMR:
		return request((*File).regMR), true
	case uapi.CmdReregMR:
		return request((*File).reregMR), true
	case uapi.CmdDeregMR:
		return commandDestroyer((*kernel.Ucontext).DeregMR), false
	case uapi.CmdAllocMW:
		return both((*File).allocMW), false
	case uapi.CmdDeallocMW:
		return commandDestroyer((*kernel.Ucontext).DeallocMW), false
	case uapi.CmdCreateAH:
		return both((*File).createAH), false
	case uapi.CmdDestroyAH:
		return commandDestroyer((*kernel.Ucontext).DestroyAH), false
	case uapi.CmdCreateCompChannel:
		return func(f *File, c Caller, _ *uapi.Call, w *uapi.Write) error { return f.createChannel(c, w) }, false
	case uapi.CmdResizeCQ:
		return both((*File).resizeCQ), true
	case uapi.CmdModifyCQ | uapi.CmdExtended:
		return request((*File).modifyCQ), false
	case uapi.CmdQueryQP:
		return request((*File).queryQP), false
	case uapi.CmdModifyQP, uapi.CmdModifyQP | uapi.CmdExtended:
		return request((*File).modifyQP), false
	case uapi.CmdAttachMcast:
		return request((*File).attachMcast), false
	case uapi.CmdDetachMcast:
		return request((*File).detachMcast), false
	case uapi.CmdCreateSRQ:
		return both((*File).createSRQOld), true
	case uapi.CmdModifySRQ:
		return request((*File).modifySRQ), false
	case uapi.CmdQuerySRQ:
		return request((*File).querySRQ), false
	case uapi.CmdDestroySRQ:
		return request((*File).destroySRQOld), false
	case uapi.CmdOpenXRCD:
		return func(f *File, c Caller, _ *uapi.Call, w *uapi.Write) error { return f.openXRCD(c, w) }, false
	case uapi.CmdCloseXRCD:
		return request((*File).closeXRCD), false
	case uapi.CmdCreateXSRQ:
		return both((*File).createXSRQ), true
	case uapi.CmdOpenQP:
		return request((*File).openQP), false
	}
	return nil, false
}
