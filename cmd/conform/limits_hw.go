//go:build hw

package main

/*
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define ADDRESS_SPACE (3ULL << 30)

// The first thread that cannot be made ends the program with a dump of registers, and threads are
// made before Go's main function. Constructors run before Go.
__attribute__((constructor)) static void check_address_space(void)
{
	struct rlimit l;
	char text[160];
	int n;

	if (getrlimit(RLIMIT_AS, &l) != 0 || l.rlim_cur >= ADDRESS_SPACE)
		return;
	l.rlim_cur = l.rlim_max < ADDRESS_SPACE ? l.rlim_max : ADDRESS_SPACE;
	if (setrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur >= ADDRESS_SPACE)
		return;
	n = snprintf(text, sizeof text, "conform: the address space is limited to %llu MiB, and conform-hw needs at least %llu: raise the limit (ulimit -v)\n",
		     (unsigned long long)l.rlim_cur >> 20, ADDRESS_SPACE >> 20);
	if (write(STDERR_FILENO, text, n) < 0)
		_exit(3);
	_exit(2);
}
*/
import "C"

import "github.com/rdmasim/rdmasim/internal/cli/rlimit"

// The check before Go's start and that of the supervisor ask for the same.
var _ [C.ADDRESS_SPACE]struct{} = [rlimit.HardwareAddressSpace]struct{}{}
