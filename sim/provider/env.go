package provider

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/prm/bfreg"
	"github.com/rdmasim/rdmasim/sim/kernel"
)

// environ are the MLX5_* variables of a process as the library has understood them
// (mlx5.c: get_total_uuars, get_num_low_lat_uuars and their neighbours).
type environ struct {
	bfreg.Env
	cqeSize       int
	cqeSizeBad    bool
	scatterToCQE  bool
	freezeOnError bool
	signature     bool
}

// Variables are the names that the library reads from the environment of a process.
var Variables = append([]string{"MLX5_CQE_SIZE", "MLX5_SCATTER_TO_CQE", "MLX5_FREEZE_ON_ERROR_CQE", "MLX5_QP_SIGNATURE",
	"MLX_QP_ALLOC_TYPE", "MLX_CQ_ALLOC_TYPE", "MLX_SRQ_ALLOC_TYPE"}, bfreg.Variables...)

// parseEnviron reads the variables. Those of bfregs can make an open fail.
func parseEnviron(env map[string]string, pageSize int, scatter bool) (environ, error) {
	e := environ{scatterToCQE: scatter, cqeSize: 64}
	lookup := func(k string) (string, bool) {
		v, ok := env[k]
		return v, ok
	}
	var err error
	if e.Env, err = bfreg.ParseEnv(lookup, pageSize); err != nil {
		return e, fmt.Errorf("open: %w", err)
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

// atoi is C's: the number at the start, 0 when there is none.
func atoi(s string) int {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || end == 0 && (s[0] == '-' || s[0] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// request is GET_CONTEXT's input for the generation that the library belongs to: a static one
// knows nothing of dynamic UARs.
func (e *environ) request(g kernel.Generation) kernel.UcontextReq {
	caps, flags := uint64(libCap4KUAR), uint32(0)
	if g == kernel.Dynamic {
		caps |= libCapDynUAR
		flags = kernel.UctxDevX
	}
	return kernel.UcontextReq{Flags: flags, TotalBFRegs: e.Total, LowLatBFRegs: e.LowLat, MaxCQEVersion: 1, LibCaps: caps}
}

// lib_caps of mlx5_ib_alloc_ucontext_req_v2.
const (
	libCap4KUAR  = 1
	libCapDynUAR = 2
)
