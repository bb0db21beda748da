//go:build !linux || !amd64

package exec

import (
	"context"
	"io"
)

// Child does nothing here.
func Child() {}

// Nested is false.
func Nested() bool { return false }

// Run fails: ErrPlatform.
func Run(context.Context, *Config) (status int, err error) { return 0, ErrPlatform }

// PrintRefused fails: ErrPlatform.
func PrintRefused(io.Writer) error { return ErrPlatform }
