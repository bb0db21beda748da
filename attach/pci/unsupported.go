//go:build !(linux && amd64)

package pci

import "context"

// Run serves only where its parts exist.
func Run(context.Context, *Config, func(options []string)) error { return ErrPlatform }
