package provider

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
)

// environ are the MLX5_* variables of a process as the library has understood them
// (1.2).
type environ struct {
	totalUUARs, lowLat int
	singleThreaded     bool
	shutUpBF           bool
	preferBF           bool
	cqeSize            int
	cqeSizeBad         bool
	scatterToCQE       bool
	freezeOnError      bool
	signature          bool
}

// Limits of the library (1.2).
const (
	defTotalUUARs  = 16
	defLowLatUUARs = 4
	medThreshold   = 12
	maxBFRegs      = 512
	adapterPage    = 4096
)

// parseEnviron reads the variables in the order in which the library does, so that
// the first bad one decides the errno.
func parseEnviron(env map[string]string, pageSize int, scatter bool) (environ, error) {
	e := environ{preferBF: true, scatterToCQE: scatter, cqeSize: 64, totalUUARs: defTotalUUARs, lowLat: defLowLatUUARs}
	e.singleThreaded = env["MLX5_SINGLE_THREADED"] == "1"
	if s, ok := env["MLX5_TOTAL_UUARS"]; ok {
		e.totalUUARs = atoi(s)
	}
	if e.totalUUARs < 1 {
		return e, fmt.Errorf("open: MLX5_TOTAL_UUARS is %q: %w", env["MLX5_TOTAL_UUARS"], syscall.EINVAL)
	}
	e.totalUUARs = max(e.totalUUARs, 2*(pageSize/adapterPage))
	e.totalUUARs += e.totalUUARs & 1
	if e.totalUUARs > maxBFRegs {
		return e, fmt.Errorf("open: MLX5_TOTAL_UUARS is %q, above %d: %w", env["MLX5_TOTAL_UUARS"], maxBFRegs, syscall.ENOMEM)
	}
	if s, ok := env["MLX5_NUM_LOW_LAT_UUARS"]; ok {
		e.lowLat = atoi(s)
	}
	if e.lowLat < 0 {
		return e, fmt.Errorf("open: MLX5_NUM_LOW_LAT_UUARS is %q: %w", env["MLX5_NUM_LOW_LAT_UUARS"], syscall.EINVAL)
	}
	e.lowLat = max(e.lowLat, e.totalUUARs-medThreshold)
	if e.lowLat > e.totalUUARs-1 {
		return e, fmt.Errorf("open: %d low-latency uuars of %d: %w", e.lowLat, e.totalUUARs, syscall.ENOMEM)
	}
	if s, ok := env["MLX5_SHUT_UP_BF"]; ok {
		e.shutUpBF = s != "0"
	}
	if s, ok := env["MLX5_POST_SEND_PREFER_BF"]; ok {
		e.preferBF = s != "0"
	}
	if s, ok := env["MLX5_CQE_SIZE"]; ok {
		e.cqeSize = atoi(s)
		e.cqeSizeBad = e.cqeSize != 64 && e.cqeSize != 128
	}
	if s, ok := env["MLX5_SCATTER_TO_CQE"]; ok {
		e.scatterToCQE = s != "0"
	}
	if s, ok := env["MLX5_FREEZE_ON_ERROR_CQE"]; ok {
		e.freezeOnError = atoi(s) != 0
	}
	_, e.signature = env["MLX5_QP_SIGNATURE"]
	return e, nil
}

// atoi is C's: blanks, a sign, digits, and whatever follows is ignored.
func atoi(s string) int {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	n := 0
	for i := 0; i < len(s) && s[i] >= '0' && s[i] <= '9' && n < 1<<31; i++ {
		n = n*10 + int(s[i]-'0')
	}
	n = min(n, 1<<31-1)
	if neg {
		return -n
	}
	return n
}

// request is GET_CONTEXT's input for the generation that the library belongs to: the
// static one knew nothing of dynamic UARs.
func (e *environ) request(g kernel.Generation) kernel.UcontextReq {
	caps := uint64(libCap4KUAR)
	if g == kernel.Dynamic {
		caps |= libCapDynUAR
	}
	return kernel.UcontextReq{TotalBFRegs: uint32(e.totalUUARs), LowLatBFRegs: uint32(e.lowLat), MaxCQEVersion: 1, LibCaps: caps}
}

// lib_caps of mlx5_ib_alloc_ucontext_req_v2.
const (
	libCap4KUAR  = 1
	libCapDynUAR = 2
)
