//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"syscall"
)

var errUnallocated = errors.New("the device has no memory there")

// MapMemory implements uverbs.Pages: the pages of the device file, which programs map, take
// the place of what the device keeps.
func (f *file) MapMemory(n uint64, count int, bar uint64) error {
	if f.memory[n] != nil || n+uint64(count) > deviceFileSize/pageSize {
		return fmt.Errorf("page %d of the device file: %w", n, syscall.EINVAL)
	}
	b, err := f.mapPages(n, count)
	if err != nil {
		return err
	}
	for i := range count {
		if !f.dev.hca.BackMemory(bar+uint64(i)*pageSize, b[i*pageSize:(i+1)*pageSize]) {
			f.unmapPages(n, b)
			return errUnallocated
		}
	}
	f.memory[n] = b
	return nil
}

// UnmapMemory implements uverbs.Pages. The device no longer uses the pages.
func (f *file) UnmapMemory(n uint64) {
	if b := f.memory[n]; b != nil {
		delete(f.memory, n)
		f.unmapPages(n, b)
	}
}
