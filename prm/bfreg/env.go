package bfreg

import (
	"fmt"
	"strings"
	"syscall"
)

// Env is what the library takes from the environment for its bfregs.
type Env struct {
	Total, LowLat  uint32
	SingleThreaded bool // locks become in-use checks and bfregs need none
	ShutUpBF       bool // never BlueFlame
	PreferBF       bool // BlueFlame for WQEs without inline data too
}

// Variables are the names that ParseEnv looks up.
var Variables = []string{"MLX5_TOTAL_UUARS", "MLX5_NUM_LOW_LAT_UUARS", "MLX5_SINGLE_THREADED", "MLX5_SHUT_UP_BF", "MLX5_POST_SEND_PREFER_BF"}

// ParseEnv reads the MLX5_* variables that concern bfregs as mlx5_alloc_context
// does; lookup is os.LookupEnv of the process in question, pageSize its host's in
// bytes. The error wraps EINVAL for a number below its minimum and ENOMEM for one
// above what there is.
func ParseEnv(lookup func(string) (string, bool), pageSize int) (Env, error) {
	e := Env{PreferBF: true}
	total, err := totalUUARs(lookup, pageSize)
	if err != nil {
		return Env{}, err
	}
	low := int64(DefaultLowLat)
	if v, ok := lookup("MLX5_NUM_LOW_LAT_UUARS"); ok {
		low = atoi(v)
	}
	if low < 0 {
		return Env{}, fmt.Errorf("MLX5_NUM_LOW_LAT_UUARS: %d is below 0: %w", low, syscall.EINVAL)
	}
	low = max(low, total-MediumThreshold)
	if low > total-1 {
		return Env{}, fmt.Errorf("MLX5_NUM_LOW_LAT_UUARS: %d of %d bfregs, at most %d: %w", low, total, total-1, syscall.ENOMEM)
	}
	e.Total, e.LowLat = uint32(total), uint32(low)
	if v, ok := lookup("MLX5_SINGLE_THREADED"); ok {
		e.SingleThreaded = v == "1"
	}
	if v, ok := lookup("MLX5_SHUT_UP_BF"); ok {
		e.ShutUpBF = v != "0"
	}
	if v, ok := lookup("MLX5_POST_SEND_PREFER_BF"); ok {
		e.PreferBF = v != "0"
	}
	return e, nil
}

func totalUUARs(lookup func(string) (string, bool), pageSize int) (int64, error) {
	total := int64(DefaultTotal)
	if v, ok := lookup("MLX5_TOTAL_UUARS"); ok {
		total = atoi(v)
	}
	if total < 1 {
		return 0, fmt.Errorf("MLX5_TOTAL_UUARS: %d is below 1: %w", total, syscall.EINVAL)
	}
	total = max(total, int64(pageSize/adapterPage*PerUAR))
	total = (total + PerUAR - 1) / PerUAR * PerUAR
	if total > Max {
		return 0, fmt.Errorf("MLX5_TOTAL_UUARS: %d is above %d: %w", total, Max, syscall.ENOMEM)
	}
	return total, nil
}

// atoi is C's: leading blanks, a sign, digits up to the first other byte, 0 when
// there is none. Values beyond an int saturate, as glibc's conversion by strtol to
// a long and then to an int would leave to chance.
func atoi(s string) int64 {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg, s = s[0] == '-', s[1:]
	}
	n := int64(0)
	for i := 0; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		n = min(n*10+int64(s[i]-'0'), 1<<31-1)
	}
	if neg {
		return -n
	}
	return n
}
