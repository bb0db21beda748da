//go:build linux

package uverbs

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
)

// handler carries out a method, or a command of INVOKE_WRITE; w is nil for a method.
type handler func(f *File, c Caller, k *uapi.Call, w *uapi.Write) error

// entry is a method or a command.
type entry struct {
	do    handler
	owned bool // it takes memory of the caller
	makes bool // it makes an object
}

// calling, plain, request, writing and both adapt functions that need only a part of the arguments.
func calling(do func(*File, Caller, *uapi.Call) error) handler {
	return func(f *File, c Caller, k *uapi.Call, _ *uapi.Write) error { return do(f, c, k) }
}

func plain(do func(*File, *uapi.Call) error) handler {
	return func(f *File, _ Caller, k *uapi.Call, _ *uapi.Write) error { return do(f, k) }
}

func request(do func(*File, *uapi.Write) error) handler {
	return func(f *File, _ Caller, _ *uapi.Call, w *uapi.Write) error { return do(f, w) }
}

func writing(do func(*File, Caller, *uapi.Write) error) handler {
	return func(f *File, c Caller, _ *uapi.Call, w *uapi.Write) error { return do(f, c, w) }
}

func both(do func(*File, *uapi.Call, *uapi.Write) error) handler {
	return func(f *File, _ Caller, k *uapi.Call, w *uapi.Write) error { return do(f, k, w) }
}

// destroyer is the destroy method of an object that has no answer.
func destroyer(id uint16, do func(*kernel.Ucontext, kernel.Caller, kernel.Handle) error) handler {
	return func(f *File, _ Caller, k *uapi.Call, _ *uapi.Write) error {
		h, _ := k.Handle(id)
		return do(f.u, noCaller, kernelHandle(h))
	}
}

// commandDestroyer is destroyer by a command.
func commandDestroyer(do func(*kernel.Ucontext, kernel.Caller, kernel.Handle) error) handler {
	return func(f *File, _ Caller, _ *uapi.Call, w *uapi.Write) error {
		h, err := w.Handle()
		if err != nil {
			return err
		}
		return do(f.u, noCaller, kernelHandle(h))
	}
}

// methods are those that need a context (ib_uverbs_get_ucontext): all but two.
var methods = map[[2]uint16]entry{
	{uapi.ObjectDevice, uapi.DeviceQueryPort}:        {do: plain((*File).queryPort)},
	{uapi.ObjectDevice, uapi.DeviceQueryGIDTable}:    {do: plain((*File).queryGIDTable)},
	{uapi.ObjectDevice, uapi.DeviceQueryGIDEntry}:    {do: plain((*File).queryGIDEntry)},
	{uapi.ObjectDevice, uapi.DeviceQueryContext}:     {do: plain((*File).queryContext)},
	{uapi.ObjectPD, uapi.PDQuery}:                    {do: plain((*File).queryPD)},
	{uapi.ObjectMR, uapi.MRQuery}:                    {do: plain((*File).queryMR)},
	{uapi.ObjectPD, uapi.PDDestroy}:                  {do: destroyer(uapi.PDDestroyHandle, (*kernel.Ucontext).DeallocPD)},
	{uapi.ObjectMR, uapi.MRDestroy}:                  {do: destroyer(uapi.MRDestroyHandle, (*kernel.Ucontext).DeregMR)},
	{uapi.ObjectMR, uapi.MRAdvise}:                   {do: plain((*File).adviseMR)},
	{uapi.ObjectMR, uapi.DMMRReg}:                    {do: plain((*File).regDM), makes: true},
	{uapi.ObjectMR, uapi.MRRegDmabuf}:                {do: calling((*File).regDmabuf), makes: true},
	{uapi.ObjectDM, uapi.DMAlloc}:                    {do: plain((*File).allocDM), makes: true},
	{uapi.ObjectDM, uapi.DMFree}:                     {do: plain((*File).freeDM)},
	{uapi.ObjectDM, uapi.DMQuery}:                    {do: plain((*File).queryDM)},
	{uapi.ObjectDevice, uapi.MLX5QueryPort}:          {do: plain((*File).queryPortDriver)},
	{uapi.ObjectWQ, uapi.WQCreate}:                   {do: plain((*File).createWQ), owned: true, makes: true},
	{uapi.ObjectWQ, uapi.WQDestroy}:                  {do: plain((*File).destroyWQ)},
	{uapi.ObjectRWQIndTbl, uapi.WQTableDestroy}:      {do: destroyer(uapi.WQTableDestroyHandle, (*kernel.Ucontext).DestroyWQTable)},
	{uapi.ObjectFlow, uapi.FlowDestroy}:              {do: destroyer(uapi.FlowDestroyHandle, (*kernel.Ucontext).DestroyFlow)},
	{uapi.ObjectFlow, uapi.FlowCreate}:               {do: plain((*File).createMatchedFlow), makes: true},
	{uapi.ObjectFlowAction, uapi.ModifyHeaderCreate}: {do: plain((*File).createModifyHeader), makes: true},
	{uapi.ObjectFlowAction, uapi.ReformatCreate}:     {do: plain((*File).createPacketReformat), makes: true},
	{uapi.ObjectFlowAction, uapi.FlowActionDestroy}:  {do: destroyer(uapi.FlowActionDestroyHandle, (*kernel.Ucontext).DestroyFlowAction)},
	{uapi.ObjectFlowMatcher, uapi.MatcherCreate}:     {do: plain((*File).createMatcher), makes: true},
	{uapi.ObjectFlowMatcher, uapi.MatcherDestroy}:    {do: destroyer(uapi.MatcherDestroyHandle, (*kernel.Ucontext).DestroyFlowMatcher)},
	{uapi.ObjectDEVXObj, uapi.DEVXObjModify}:         {do: plain((*File).modifyDevxObject)},
	{uapi.ObjectMW, uapi.MWDestroy}:                  {do: destroyer(uapi.MWDestroyHandle, (*kernel.Ucontext).DeallocMW)},
	{uapi.ObjectAH, uapi.AHDestroy}:                  {do: destroyer(uapi.AHDestroyHandle, (*kernel.Ucontext).DestroyAH)},
	{uapi.ObjectCQ, uapi.CQCreate}:                   {do: calling((*File).createCQ), owned: true, makes: true},
	{uapi.ObjectCQ, uapi.CQDestroy}:                  {do: plain((*File).destroyCQ)},
	{uapi.ObjectQP, uapi.QPCreate}:                   {do: calling((*File).createQP), owned: true, makes: true},
	{uapi.ObjectQP, uapi.QPDestroy}:                  {do: plain((*File).destroyQP)},
	{uapi.ObjectSRQ, uapi.SRQCreate}:                 {do: calling((*File).createSRQ), owned: true, makes: true},
	{uapi.ObjectSRQ, uapi.SRQDestroy}:                {do: plain((*File).destroySRQ)},
	{uapi.ObjectXRCD, uapi.XRCDDestroy}:              {do: plain((*File).destroyXRCD)},
	{uapi.ObjectAsyncEvent, uapi.AsyncEventAlloc}:    {do: calling((*File).allocAsync), makes: true},
	{uapi.ObjectDEVX, uapi.DEVXOther}:                {do: plain((*File).devxOther)},
	{uapi.ObjectDEVXObj, uapi.DEVXObjCreate}:         {do: plain((*File).createDevxObject), owned: true, makes: true},
	{uapi.ObjectDEVXObj, uapi.DEVXObjDestroy}:        {do: plain((*File).destroyDevxObject)},
	{uapi.ObjectDEVXObj, uapi.DEVXObjQuery}:          {do: plain((*File).queryDevxObject)},
	{uapi.ObjectDEVX, uapi.DEVXQueryEQN}:             {do: plain((*File).queryEQN)},
	{uapi.ObjectDEVXUmem, uapi.UmemReg}:              {do: plain((*File).regUmem), owned: true, makes: true},
	{uapi.ObjectDEVXUmem, uapi.UmemDereg}:            {do: destroyer(uapi.UmemDeregHandle, (*kernel.Ucontext).DeregUmem)},
	{uapi.ObjectUAR, uapi.UARAlloc}:                  {do: plain((*File).allocUAR), makes: true},
	{uapi.ObjectUAR, uapi.UARDestroy}:                {do: plain((*File).destroyUAR)},
}

// commands are those of INVOKE_WRITE.
var commands = map[uint32]entry{
	uapi.CmdQueryDevice:                        {do: request((*File).queryDevice)},
	uapi.CmdQueryDevice | uapi.CmdExtended:     {do: both((*File).queryDeviceEx)},
	uapi.CmdQueryPort:                          {do: request((*File).queryPortOld)},
	uapi.CmdAllocPD:                            {do: both((*File).allocPD), makes: true},
	uapi.CmdDeallocPD:                          {do: commandDestroyer((*kernel.Ucontext).DeallocPD)},
	uapi.CmdRegMR:                              {do: request((*File).regMR), owned: true, makes: true},
	uapi.CmdReregMR:                            {do: request((*File).reregMR), owned: true},
	uapi.CmdDeregMR:                            {do: commandDestroyer((*kernel.Ucontext).DeregMR)},
	uapi.CmdAllocMW:                            {do: both((*File).allocMW), makes: true},
	uapi.CmdDeallocMW:                          {do: commandDestroyer((*kernel.Ucontext).DeallocMW)},
	uapi.CmdCreateAH:                           {do: both((*File).createAH), makes: true},
	uapi.CmdDestroyAH:                          {do: commandDestroyer((*kernel.Ucontext).DestroyAH)},
	uapi.CmdCreateCompChannel:                  {do: writing((*File).createChannel), makes: true},
	uapi.CmdResizeCQ:                           {do: both((*File).resizeCQ), owned: true},
	uapi.CmdModifyCQ | uapi.CmdExtended:        {do: request((*File).modifyCQ)},
	uapi.CmdQueryQP:                            {do: request((*File).queryQP)},
	uapi.CmdModifyQP:                           {do: request((*File).modifyQP)},
	uapi.CmdModifyQP | uapi.CmdExtended:        {do: request((*File).modifyQP)},
	uapi.CmdAttachMcast:                        {do: request((*File).attachMcast)},
	uapi.CmdDetachMcast:                        {do: request((*File).detachMcast)},
	uapi.CmdCreateSRQ:                          {do: both((*File).createSRQOld), owned: true, makes: true},
	uapi.CmdModifySRQ:                          {do: request((*File).modifySRQ)},
	uapi.CmdQuerySRQ:                           {do: request((*File).querySRQ)},
	uapi.CmdDestroySRQ:                         {do: request((*File).destroySRQOld)},
	uapi.CmdOpenXRCD:                           {do: writing((*File).openXRCD), makes: true},
	uapi.CmdCloseXRCD:                          {do: request((*File).closeXRCD)},
	uapi.CmdCreateXSRQ:                         {do: both((*File).createXSRQ), owned: true, makes: true},
	uapi.CmdCreateFlow | uapi.CmdExtended:      {do: request((*File).createFlow), makes: true},
	uapi.CmdModifyWQ | uapi.CmdExtended:        {do: request((*File).modifyWQ)},
	uapi.CmdCreateRWQIndTbl | uapi.CmdExtended: {do: request((*File).createWQTable), makes: true},
	uapi.CmdOpenQP:                             {do: request((*File).openQP), makes: true},
}

// method carries a call out.
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
		return f.carryOut(w.Name, commands[w.Cmd], syscall.EOPNOTSUPP, c, k, w)
	}
	return f.carryOut(k.Method.Name, methods[key], syscall.EPROTONOSUPPORT, c, k, nil)
}

// carryOut carries out a method or a command. Without a handler it fails with unknown.
func (f *File) carryOut(name string, e entry, unknown syscall.Errno, c Caller, k *uapi.Call, w *uapi.Write) error {
	err := f.needContext(name)
	if err != nil {
		return err
	}
	switch {
	case e.do == nil:
		err = unknown
	case e.owned:
		err = f.checkOpener(c)
	}
	if err == nil && e.makes {
		err = f.room()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return e.do(f, c, k, w)
}
