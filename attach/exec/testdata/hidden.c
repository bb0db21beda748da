// Leaves a process that nobody can find by its environment: it has none, and its user may not look into it. It writes its number to
// READY, and so does a child of it.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void tell(const char *ready) {
	FILE *f = fopen(ready, "a");
	if (!f || fprintf(f, "%d\n", getpid()) < 0 || fclose(f))
		exit(1);
}

int main(int argc, char **argv) {
	if (argc > 1) {
		prctl(PR_SET_DUMPABLE, 0);
		tell(argv[1]);
		if (!fork())
			tell(argv[1]);
		for (;;)
			pause();
	}
	if (!fork()) {
		setsid();
		if (fork())
			return 0;
		char *none[] = {NULL};
		execle(argv[0], argv[0], getenv("READY"), (char *)NULL, none);
		return 1;
	}
	for (;;)
		pause();
}
