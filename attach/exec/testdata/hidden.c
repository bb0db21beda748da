// Leaves a process that nobody can find by its environment: it has none, and its user may not look into it. It writes its number to
// READY, and so do a child of it and one that it starts when the supervisor has ended.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void tell(const char *ready) {
	static int fd = -1; // children have it too: without a supervisor some cannot open a file
	if (fd < 0)
		fd = open(ready, O_WRONLY | O_APPEND | O_CREAT, 0644);
	if (fd < 0 || dprintf(fd, "%d\n", getpid()) < 0)
		exit(1);
}

int main(int argc, char **argv) {
	char supervisor[20];
	snprintf(supervisor, sizeof supervisor, "%d", getppid());
	if (argc > 1) {
		pid_t reaper = atoi(argv[2]);
		prctl(PR_SET_DUMPABLE, 0);
		while (getppid() != reaper) // it inherits this one
			usleep(1000);
		tell(argv[1]);
		if (!fork()) {
			tell(argv[1]);
			for (;;)
				pause();
		}
		while (getppid() == reaper)
			usleep(1000);
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
		execle(argv[0], argv[0], getenv("READY"), supervisor, (char *)NULL, none);
		return 1;
	}
	for (;;)
		pause();
}
