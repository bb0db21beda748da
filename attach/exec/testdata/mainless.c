// Goes on without its main thread, with a child, and ignores what asks it to end. With an argument a child does so, and its parent ends; with two it stays.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_t leader;

static void *stay(void *unused) {
	pthread_join(leader, NULL); // the kernel ends the thread only after this returns
	char state[200] = "";
	do {
		FILE *f = fopen("/proc/self/stat", "r");
		if (!f || !fgets(state, sizeof state, f))
			exit(1);
		fclose(f);
	} while (!strstr(state, ") Z"));
	close(open(getenv("READY"), O_CREAT | O_WRONLY, 0600));
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv) {
	signal(SIGTERM, SIG_IGN);
	if (argc > 1 && fork()) {
		while (access(getenv("READY"), F_OK))
			usleep(1000);
		if (argc > 2)
			pause();
		return 7;
	}
	leader = pthread_self();
	if (!fork())
		for (;;)
			pause();
	pthread_t t;
	if (pthread_create(&t, NULL, stay, NULL))
		return 1;
	pthread_exit(NULL);
}
