package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// units are what all QPs of a device share. A connection, and the engines of its QP, hold them
// instead of the device.
type units struct {
	core
	frameStore
	addresses
	pipelines
	sendEngine
	port    port
	dma     dma
	caches  caches
	atomics atomicUnit
	events  eventQueues
	faults  *odp.Unit // nil: no paging on demand
	notices notices
	gone    goneKeys
	memory  memory // on the device
	scratch
	dcConnections uint32 // that DCIs have made
}

// pipelines are the servers that all messages of a kind pass, one after the other.
type pipelines struct {
	rxReq, rxRsp sim.Server // requests and responses that arrive
	readEng      sim.Server // READ requests served
	issue        sim.Server // WQEs begun
	missed       misses     // of their time
}

// misses is for how long misses in the caches have held up the servers.
type misses struct{ req, rsp, read, issue sim.Time }

// scratch is what one event needs and the next may use again.
type scratch struct {
	wqe    [1024]byte // a WQE that wraps in a QP's buffer
	parsed prm.SendWQE
	again  [1024]byte // a WQE that is read again
}
