package verbs

import "fmt"

// MWType is IBV_MW_TYPE_*.
type MWType uint32

// Types of memory windows.
const (
	MWType1 MWType = 1
	MWType2 MWType = 2
)

// MWBindInfo is ibv_mw_bind_info.
type MWBindInfo struct {
	MR           MR
	Addr, Length uint64
	Access       AccessFlags
}

// MWBind is ibv_mw_bind.
type MWBind struct {
	ID    uint64
	Flags SendFlags
	Info  MWBindInfo
}

// MWBindWR is the part of a send request that binds a window: RKey is the key that the window
// gets.
type MWBindWR struct {
	MW   MW
	RKey uint32
	Info MWBindInfo
}

// IncRKey returns the key with its low byte, which belongs to the application, incremented
// (ibv_inc_rkey).
func IncRKey(k uint32) uint32 { return k&^0xff | (k+1)&0xff }

// ReregFlags are IBV_REREG_MR_CHANGE_*.
type ReregFlags uint32

// What a rereg changes.
const (
	ReregTranslation ReregFlags = 1 << 0
	ReregPD          ReregFlags = 1 << 1
	ReregAccess      ReregFlags = 1 << 2
)

// ReregError is a failed ibv_rereg_mr: its result, and the errno behind it.
type ReregError struct {
	Code int
	Err  error
}

// Results of a failed rereg (IBV_REREG_MR_ERR_*).
const (
	ReregErrInput = -1
	ReregErrCmd   = -4
)

// Error returns the result of ibv_rereg_mr and the errno.
func (e *ReregError) Error() string { return fmt.Sprintf("rereg_mr returns %d: %v", e.Code, e.Err) }

// Unwrap returns the errno.
func (e *ReregError) Unwrap() error { return e.Err }
