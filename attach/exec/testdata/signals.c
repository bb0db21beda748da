// Opens a folder of the devices ROUNDS times while the supervisor gets signals that it ignores, also
// while it gives the program a descriptor. Every descriptor must be the folder's.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SENDERS = 3 };

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, i, ok = 1;
	pid_t supervisor = getppid(), sender[SENDERS];
	for (i = 0; i < SENDERS; i++)
		if (!(sender[i] = fork()))
			while (!kill(supervisor, SIGCHLD))
				;
	for (i = 0; i < rounds && ok; i++) {
		struct stat st;
		int fd = open("/sys/class/infiniband_verbs", O_RDONLY | O_DIRECTORY);
		ok = fd > 2 && !fstat(fd, &st) && S_ISDIR(st.st_mode);
		if (!ok)
			printf("open %d of %d gives descriptor %d\n", i, rounds, fd);
		close(fd);
	}
	for (i = 0; i < SENDERS; i++)
		kill(sender[i], SIGKILL);
	if (ok)
		puts("all opened");
	return !ok;
}
