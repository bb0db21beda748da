// Package bfreg holds the rules by which queues get BlueFlame registers, as pure
// functions and small tables without time, memory or a device.
//
// Two generations are here, of the kernel and of the library apart. In the static one
// (rdma-core 1eee3c83 of 2018, Linux 4.16) a context has a fixed number of bfregs, the kernel
// chooses one for each QP (Table), and thread domains take dynamic ones that the library
// numbers (TDTable). In today's, the library makes UAR objects as it needs them and hands out
// their registers itself (Pools).
//
// A static library on today's kernel gets what it always got: mlx5_ib keeps the tables for it.
// Today's library on a static kernel leaves QPs to the kernel, and its thread domains take the
// kernel's dynamic pages by the rules of its own list (NewLegacyPools).
//
// A bfreg number b counts the two bfregs of each 4 KiB UAR that user QPs may have.
// The gross number, which the kernel returns and the old library calls uuarn,
// counts all four registers of each UAR.
//
// Sources: drivers/infiniband/hw/mlx5/qp.c and main.c; rdma-core's
// providers/mlx5/mlx5.c and verbs.c.
package bfreg

import "fmt"

// Numbers of the kernel (device.h, MLX5_*) and of the library (mlx5.h).
const (
	PerUAR      = 2   // bfregs of a UAR that users get
	GrossPerUAR = 4   // registers of a UAR
	Max         = 512 // static bfregs of a context
	MinDyn      = 512
	MaxDyn      = 1024

	DefaultTotal  = 16
	DefaultLowLat = 4
	// MediumThreshold bounds the medium class of the library's request: at most
	// MediumThreshold-1 bfregs.
	MediumThreshold = 12

	adapterPage = 4096
)

// Class is the rule by which a queue got its register.
type Class uint8

// Classes. The first three are the kernel's in the static generation, the next three
// the library's in the dynamic one; thread domains exist in both.
const (
	BFReg0        Class = iota // plain doorbells only, any number of QPs
	Medium                     // shared, behind a lock
	High                       // one QP
	Dedicated                  // one QP
	Shared                     // shared, behind a lock
	NC                         // the context's one uncached UAR: doorbells only
	TD                         // one thread domain
	IndependentTD              // one thread domain, alone on its UAR page
)

var classNames = [...]string{"bfreg0", "medium", "high", "dedicated", "shared", "nc", "td", "independent-td"}

// String returns the text form.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}

// Gross is the gross number of bfreg b: the kernel's answer to CREATE_QP.
func Gross(b uint32) uint32 { return b/PerUAR*GrossPerUAR + b%PerUAR }

// FromGross is the bfreg of gross number g; false for a fast-path register, which
// the kernel never hands to a user.
func FromGross(g uint32) (uint32, bool) {
	if g%GrossPerUAR >= PerUAR {
		return 0, false
	}
	return g/GrossPerUAR*PerUAR + g%GrossPerUAR, true
}

// NeedLock2018 is need_uuar_lock of rdma-core 1eee3c83 for gross number uuarn in a
// context of total bfregs with lowLat low-latency ones.
func NeedLock2018(uuarn, total, lowLat uint32, singleThreaded bool) bool {
	if uuarn == 0 || singleThreaded {
		return false
	}
	return uuarn < (total-lowLat)*PerUAR
}

// NeedLock is today's need_uuar_lock, on the static path. It differs from
// NeedLock2018 only when total-lowLat is odd.
func NeedLock(uuarn, total, lowLat uint32, singleThreaded bool) bool {
	if uuarn == 0 || singleThreaded {
		return false
	}
	return uuarn/2+uuarn%2 < total-lowLat
}
