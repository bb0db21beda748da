package mem

import "syscall"

// sparse asks the kernel for small pages: memory of which a run touches a little here and there
// must not become resident whole where transparent huge pages are always on. A refusal changes
// nothing.
func sparse(b []byte) { _ = syscall.Madvise(b, syscall.MADV_NOHUGEPAGE) }
