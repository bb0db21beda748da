//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

var errUnallocated = errors.New("the device has no memory there")

// MapMemory implements uverbs.Pages: the pages of the device file, which programs map, take
// the place of what the device keeps.
func (f *file) MapMemory(n uint64, count int, bar uint64) error {
	if f.memory[n] != nil || n+uint64(count) > deviceFileSize/pageSize {
		return fmt.Errorf("page %d of the device file: %w", n, syscall.EINVAL)
	}
	b, err := unix.Mmap(int(f.own.Fd()), int64(n*pageSize), count*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map page %d of the device file: %w", n, err)
	}
	for i := range count {
		if !f.dev.hca.BackMemory(bar+uint64(i)*pageSize, b[i*pageSize:(i+1)*pageSize]) {
			return errors.Join(errUnallocated, unix.Munmap(b))
		}
	}
	f.memory[n] = b
	return nil
}

// UnmapMemory implements uverbs.Pages. The device no longer uses the pages.
func (f *file) UnmapMemory(n uint64) {
	if b := f.memory[n]; b != nil {
		delete(f.memory, n)
		_ = unix.Munmap(b)
	}
}
